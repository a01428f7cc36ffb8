/** Reads a task and asks a person: what comes in over standard input. */
import { fstatSync, readSync, statSync } from 'node:fs'
import type { ApprovalAnswer, Approver } from '../agent/services.js'
import { HarnessError, messageOf } from '../errors.js'
import { exactRule, keepRule } from './always.js'
import type { Client } from './client.js'
import type { Io } from './io.js'
import { oneLine, printable } from './terminal.js'

/** The words joined; standard input, when it is not a terminal, is read to its end and added. */
export async function readTask(words: readonly string[], io: Io): Promise<string> {
  const piped = isAtHand() ? readNow() : io.stdin.isTTY === true ? '' : await readAll(io)
  const task = [words.join(' ').trim(), piped.trim()].filter(part => part !== '').join('\n\n')
  if (task === '') throw new HarnessError('usage', 'usage: hx agent "TASK"   (for example: hx agent "Read README.md and list src/*.js")')
  return task
}

/** A file, or nothing: no stream is made for what can be read at once. */
function isAtHand(): boolean {
  try {
    const input = fstatSync(0)
    return input.isFile() || (input.isCharacterDevice() && input.rdev === statSync('/dev/null').rdev)
  } catch { return false }                                   // closed, or no such device here
}
function readNow(): string {
  const buffer = Buffer.allocUnsafe(MAX_INPUT_BYTES + 1)
  let size = 0
  for (let read = -1; read !== 0 && size < buffer.length; size += read) read = readSync(0, buffer, size, buffer.length - size, null)
  if (size > MAX_INPUT_BYTES) throw tooLong()
  return buffer.toString('utf8', 0, size)
}
const tooLong = () => new HarnessError('usage', `standard input is longer than ${MAX_INPUT_BYTES / 1024} KB; put it into a file, and let the task name it`)

/** A program that started this one may have left its standard input open: a person should see what is waited for. */
const WAITED_MS = 1000
const MAX_INPUT_BYTES = 1024 * 1024

async function readAll(io: Io): Promise<string> {
  const chunks: Buffer[] = []
  let size = 0
  const timer = setTimeout(() => { io.note('hx: reading standard input to its end; close it, or start hx with </dev/null') }, WAITED_MS)
  try {
    for await (const part of io.stdin) {
      const chunk = Buffer.isBuffer(part) ? part : Buffer.from(String(part))
      size += chunk.length
      if (size > MAX_INPUT_BYTES) throw tooLong()
      chunks.push(chunk)
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EAGAIN' && code !== 'EISDIR' && code !== 'EBADF') throw error   // a closed or odd standard input holds no task
  } finally { clearTimeout(timer) }
  return Buffer.concat(chunks).toString('utf8')
}

/** Puts each ask to the person at the terminal, one at a time. */
export function terminalApprover(io: Io, client: Pick<Client, 'status'>): Approver {
  let turn: Promise<unknown> = Promise.resolve()
  return request => {
    const answer = turn.then(() => ask(io, client, request))
    turn = answer.catch(() => {})                            // the next ask does not care how this one ended
    return answer
  }
}

async function ask(io: Io, client: Pick<Client, 'status'>, request: Parameters<Approver>[0]): Promise<ApprovalAnswer | undefined> {
  const { call, reason, plugin, signal } = request
  if (signal.aborted) return undefined
  const { paintNote } = io, rule = exactRule(request)
  const shown = call.name === 'bash' ? printable(String(call.arguments['command'])) : oneLine(JSON.stringify(call.arguments), 400)
  io.stderr.write(`\n${paintNote('yellow', `${plugin} asks:`)} ${printable(reason)}\n  ${paintNote('bold', call.name)} ${shown}\n`)
  const { createInterface } = process.getBuiltinModule('node:readline/promises')         // nobody is asked in most runs
  const lines = createInterface({ input: io.stdin, output: io.stderr, historySize: 0 })
  lines.on('SIGINT', () => { process.kill(process.pid, 'SIGINT') })       // a question reads the keys itself: Ctrl-C is handed on to whoever stops the turn
  try {
    for (;;) {
      const said = (await lines.question(`  [y] once  [s] this session, this very call  ${rule === undefined ? '' : '[a] always  '}[n] no, tell the model why > `, { signal })).trim().toLowerCase()
      if (said === 'y' || said === 'yes') return { answer: 'once' }
      if (said === 's') return { answer: 'session' }
      if (said === 'a' && rule !== undefined) {
        await keepRule(io, client, plugin, rule).then(kept => { io.note(`  ${kept}`) }, (error: unknown) => { io.note(`  not kept, so it holds as long as this host runs: ${messageOf(error)}`) })
        return { answer: 'always' }
      }
      if (said === 'n' || said === 'no' || said === '') return { answer: 'denied', note: (await lines.question('  why? (empty: no reason) > ', { signal })).trim() || undefined }
      if (/^no? /.test(said)) return { answer: 'denied', note: said.replace(/^no? +/, '') }
    }
  } catch (error) {
    if (signal.aborted) return undefined
    if ((error as NodeJS.ErrnoException).code === 'ABORT_ERR') return { answer: 'denied' }      // Ctrl-D: a person was asked, and left
    throw error
  } finally { lines.close() }
}

/**
 * `hx agent "TASK"`: one task, then the end. The answer goes to stdout, all else to stderr; with --json exactly the log lines that the run appends.
 */
import { HarnessError } from '../errors.js'
import { dollars } from '../agent/cost.js'
import { textOf } from '../agent/vocabulary.js'
import type { Mode, RunEvent, RunResult } from '../agent/services.js'
import { differing } from '../daemon/key-digest.js'
import type { Client, DaemonClient, OwnClient, RunHandle, RunOrder } from './client.js'
import { connect } from './connect.js'
import type { Io } from './io.js'
import { readTask, terminalApprover } from './prompt.js'
import { sessionId } from './sessions.js'
import { onSignals } from './signals.js'
import { oneLine, printable } from './terminal.js'
import { tellTroubles } from './troubles.js'

interface Options {
  session?: string
  continue?: boolean
  model?: string
  maxSteps?: number
  mode?: Mode
  yes?: boolean
  offline?: boolean
  ephemeral?: boolean
  detach?: boolean
  ifIdle?: boolean
  steer?: boolean
  plugin: string[]
  without: string[]
  safe?: boolean
}

export async function agent(io: Io, words: readonly string[], options: Options): Promise<number> {
  if (options.session !== undefined && options.continue) throw new HarnessError('usage', '--session and --continue exclude each other')
  if (options.offline && options.model !== undefined) throw new HarnessError('usage', '--offline and --model exclude each other')
  if (options.yes && options.mode !== undefined && options.mode !== 'yes') throw new HarnessError('usage', `--yes is short for --mode yes; it excludes --mode ${options.mode}`)
  if (options.steer && options.session === undefined && !options.continue) throw new HarnessError('usage', '--steer is for a session whose turn runs: name it with --session or --continue')
  if (options.steer && (options.ifIdle || options.detach)) throw new HarnessError('usage', '--steer excludes --if-idle and --detach')
  if (options.ephemeral && (options.continue || options.session !== undefined)) throw new HarnessError('usage', '--ephemeral keeps nothing, so it can not continue a session; leave it out, or leave out --session and --continue')
  if (options.detach && options.ephemeral) throw new HarnessError('usage', '--detach and --ephemeral exclude each other: nobody could read what came of it')
  const prompt = await readTask(words, io)
  const client = await connect(io, { plugins: options.plugin, without: options.without, safe: options.safe === true })
  if (client.where === 'daemon') {
    const [, plugins] = await Promise.all([tellKeys(io, client), client.plugins()])
    if (!io.json) tellTroubles(io, plugins)
  }
  const signals = onSignals()
  try {
    const session = options.session !== undefined ? await sessionOf(client, options.session, io) : options.continue ? await lastSession(client, io.cwd) : undefined
    if (signals.code !== undefined) return signals.code
    const order = {
      prompt, session, cwd: io.cwd,
      model: options.offline ? 'offline' : options.model,
      maxSteps: options.maxSteps, mode: options.yes ? 'yes' : options.mode, ephemeral: options.ephemeral, ifIdle: options.ifIdle,
    }
    if (options.detach) return await detached(io, client, order)
    const approver = io.interactive ? terminalApprover(io, client) : undefined
    const after = options.steer && client.where === 'daemon' ? await client.steer(session!, prompt) : undefined
    if (after !== undefined) io.note('hx: handed to the turn that runs, which takes it at its next step')
    const handle = after !== undefined ? await (client as DaemonClient).attach(session!, { after }, approver) : await client.run(order, approver)
    signals.first = name => { handle.abort(`stopped by ${name}`) }
    const result = io.json ? await printLines(handle, io) : await printText(handle, io, client.where === 'daemon')
    if (!io.json && signals.code === undefined) await (await import('./held.js')).tellHeld(io, client)
    return signals.code ?? exitOf(result)
  } finally {
    await client.close()
    signals.off()
  }
}

/** A daemon has the keys of the shell that started it; whoever has others here is told. */
export async function tellKeys(io: Io, daemon: DaemonClient): Promise<void> {
  const names = differing(await daemon.keys(), io.env)
  if (names.length > 0) io.note(io.paintNote('yellow', `hx: ${names.join(' and ')} of this shell ${names.length > 1 ? 'are' : 'is'} not the daemon's, which is used; "hx restart" takes this shell's`))
}

/** Prints the session and leaves; the daemon goes on. */
async function detached(io: Io, client: OwnClient | DaemonClient, order: RunOrder): Promise<number> {
  if (client.where !== 'daemon') throw new HarnessError('daemon_missing', '--detach needs a daemon that goes on with the turn; start one with "hx start"')
  const session = await client.start(order)
  if (io.json) io.line({ session })
  else {
    io.say(session)
    io.note(`hx: the turn runs in the daemon; follow it with: hx attach ${session}`)
  }
  return 0
}

/** The first that applies of 3 (refused), 1 (not done), 0. */
export function exitOf(result: RunResult): number {
  if (result.reason === 'rejected' || result.unanswered) return 3
  return result.reason === 'completed' ? 0 : 1
}

/** A session keeps its workspace; whoever stands elsewhere is told. */
export async function sessionOf(client: Client, given: string, io: Io): Promise<string> {
  const all = await client.sessions()
  const id = await sessionId(all, given, one => client.session(one)), cwd = all.find(one => one.id === id)?.cwd
  if (cwd !== undefined && cwd !== io.cwd) io.note(`hx: session ${id} works in ${printable(cwd)}`)
  return id
}
export async function lastSession(client: Client, cwd: string): Promise<string> {
  const last = (await client.sessions()).find(one => one.cwd === cwd && !one.archived && one.parent === undefined)
  if (last) return last.id
  throw new HarnessError('session_missing', `there is no session in ${cwd} to continue; leave out --continue to begin one`)
}

export async function printLines(handle: RunHandle, io: Io): Promise<RunResult> {
  for await (const event of handle.events) if ('seq' in event) io.line(event)
  return handle.result
}

/**
 * On a terminal the reply is shown as it comes; elsewhere the answer is printed once it is known to be the last.
 * What plugins print goes to the process that hosts them; `account` is the client's own, for when that is the daemon.
 */
export async function printText(handle: RunHandle, io: Io, account = false): Promise<RunResult> {
  const live = io.stdout.isTTY === true && !io.globals.quiet
  let open = false                                          // the cursor stands behind streamed text
  let beside = false                                        // the last reply went on with calls, so its text is no answer
  const close = () => { if (open) io.stdout.write('\n'); open = false }
  for await (const event of handle.events) {
    if (event.type === 'message' && event.role === 'assistant') beside = (event.toolCalls?.length ?? 0) > 0
    if (live && event.type === 'delta' && event.kind === 'text') { io.stdout.write(printable(event.text)); open = true }
    else if (event.type !== 'delta') { close(); tell(event, io, live, account) }
  }
  close()
  const result = await handle.result
  if (!live && !beside && result.text !== '') io.say(printable(result.text))
  const { cost, cachedTokens = 0, inputTokens, outputTokens } = result.usage
  if (cost !== undefined) io.note(io.paintNote('dim', `hx: ${inputTokens + outputTokens} tokens${cachedTokens > 0 ? `, ${cachedTokens} of them cached` : ''}, ${dollars(cost)}`))
  if (result.message !== undefined) io.stderr.write(`${io.paintNote(result.reason === 'completed' ? 'yellow' : 'red', `hx: ${printable(result.message)}`)}\n`)
  return result
}

function tell(event: Exclude<RunEvent, { type: 'delta' }>, io: Io, live: boolean, account: boolean): void {
  const dim = (text: string) => { io.note(io.paintNote('dim', text)) }
  if (event.type === 'message' && event.role === 'assistant' && event.toolCalls?.length && !live) {
    const beside = printable(textOf(event)).trim()
    if (beside !== '') io.note(beside)
  } else if (event.type === 'warning') io.note(io.paintNote('yellow', `hx: ${oneLine(event.message, 400)}`))
  else if (event.type === 'progress' && io.globals.verbose) dim(`${event.name}: ${oneLine(event.message)}`)
  else if (account && event.type === 'tool-intent') dim(`> ${event.name} ${oneLine(JSON.stringify(event.arguments), 160)}`)
  else if (account && event.type === 'tool-result' && event.kind !== 'ok') io.note(io.paintNote('yellow', `${event.name}: ${oneLine(event.content, 300)}`))
}

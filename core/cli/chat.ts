/**
 * `hx chat`: a conversation on the terminal, with the daemon of this config or with this very process as the host; the answers are the same.
 * Here: the options, who answers, what is printed beside the conversation, and how it ends. On a terminal that can't move its cursor: chat/plain.ts, else chat/interactive.ts.
 */
import { appendFileSync, existsSync, renameSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '../errors.js'
import type { Mode } from '../agent/services.js'
import { currentOwner } from '../kernel/async-context.js'
import { makeFolder } from '../kernel/folder.js'
import { places } from '../places.js'
import { lastSession, sessionOf, tellKeys } from './agent.js'
import { Conversation } from './chat/conversation.js'
import { History } from './chat/history.js'
import { Interactive } from './chat/interactive.js'
import { Plain } from './chat/plain.js'
import { connect, daemonOf, find } from './connect.js'
import type { Io } from './io.js'
import { isFree } from './launch.js'
import { tellTroubles } from './troubles.js'

/** Of what plugins print; a longer one is put aside, once, when a chat begins. */
const MAX_LOG_BYTES = 10 * 1024 * 1024
/** How long the daemon of a chat is waited for when it has ended, before this process is the host; how often it is looked for. */
const RETURNS_WITHIN_MS = 5000, LOOK_MS = 200

interface Options {
  session?: string
  continue?: boolean
  model?: string
  mode?: Mode
  offline?: boolean
  plugin: string[]
  without: string[]
  safe?: boolean
}

export async function chat(io: Io, options: Options): Promise<number> {
  if (options.session !== undefined && options.continue) throw new HarnessError('usage', '--session and --continue exclude each other')
  if (options.offline && options.model !== undefined) throw new HarnessError('usage', '--offline and --model exclude each other')
  if (io.json || io.stdin.isTTY !== true || io.stdout.isTTY !== true) throw new HarnessError('usage', 'hx chat is a conversation on a terminal, and here is none; for programs and pipes there is: hx agent "TASK"')
  const changes = { plugins: options.plugin, without: options.without, safe: options.safe === true, watch: true }
  const client = await connect(io, changes)
  let face: Interactive | Plain | undefined, talk: Conversation | undefined
  const log = join(places(io.env).logs, 'chat.log')
  const quiet = keepStderr(io, log, {
    say: text => { if (face) face.note(text); else process.stdout.write(`${text}\n`) },
    hide: text => (talk?.client ?? client).hide(text),
  })
  const off = onEnd(code => { if (face) face.stop(code); else process.exit(code) })
  try {
    if (client.where === 'daemon') {
      await tellKeys(io, client)
      tellTroubles(io, await client.plugins())
    }
    const session = options.session !== undefined ? await sessionOf(client, options.session, io) : options.continue ? await lastSession(client, io.cwd) : undefined
    talk = new Conversation({
      client, cwd: io.cwd, session, mode: options.mode, model: options.offline ? 'offline' : options.model,
      connect: async () => { await successor(io, () => { face?.note('the daemon has ended; it may be back in a moment') }); return connect(io, { ...changes, unasked: true }) }, note: message => { face?.note(message) },
    })
    const history = new History(join(places(io.env).state, 'chat-history'))
    face = io.env['TERM'] === 'dumb' ? new Plain(io, talk) : new Interactive(io, talk, history)
    return await face.run()
  } finally {
    const detached = talk?.busy === true && talk.client.where === 'daemon'
    if (talk?.busy && !detached) talk.abort()
    await (talk ?? client).close()
    off()
    quiet()
    if (talk?.session !== undefined) io.note(io.paintNote('dim', detached ? `the turn goes on in the daemon; follow it with: hx attach ${talk.session}` : `go on with: hx chat --session ${talk.session}`))
  }
}

/** A daemon that was told to restart is away for a moment; one that was stopped stays away, and one that crashed is brought up by whoever connects. */
async function successor(io: Io, waits: () => void): Promise<void> {
  const found = find(io)
  for (const end = performance.now() + RETURNS_WITHIN_MS; performance.now() < end; await sleep(LOOK_MS)) {
    const daemon = await daemonOf(io, found)
    await daemon?.close()
    if (daemon || await isFree(found.endpoint.lock) && existsSync(found.endpoint.mark)) return
    waits()
    waits = () => {}
  }
}

/** SIGTERM, a terminal that was closed, and Ctrl-C where it is no key. The second ends the process at once. */
function onEnd(end: (code: number) => void): () => void {
  let asked = false
  const handlers = ([['SIGTERM', 143], ['SIGHUP', 129]] as const).map(([name, code]) => {
    const handler = () => {
      if (asked) process.exit(code)
      asked = true
      end(code)
    }
    process.on(name, handler)
    return () => { process.off(name, handler) }
  })
  return () => { for (const off of handlers) off() }
}

/**
 * The screen belongs to the conversation. What plugins of this process print goes to a log, without secrets, as under a daemon (with -v it is shown too); what the host says is said beside the conversation.
 */
function keepStderr(io: Io, log: string, { say, hide }: { say: (text: string) => void; hide: (text: string) => string }): () => void {
  const { stderr } = process, { write } = stderr
  let failed = false
  const keep = (text: string) => {
    if (failed) return
    try { appendFileSync(log, hide(text), { mode: 0o600 }) } catch { failed = true }             // a full disk: what plugins print is lost, the conversation is not
  }
  makeFolder(places(io.env).logs)
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > MAX_LOG_BYTES) renameSync(log, `${log}.1`)
  stderr.write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
    const text = typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'), done = rest.find(part => typeof part === 'function') as (() => void) | undefined
    if (currentOwner()) keep(text)
    if ((!currentOwner() || io.globals.verbose) && text.trim() !== '') say(text.trimEnd())
    done?.()
    return true
  }) as typeof write
  return () => { stderr.write = write }
}

/** `hx sessions`: what was said, and what was done; archive, fork and export. Reading needs no daemon; writing goes through it when it runs, since a session has one writer. */
import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { HarnessError, messageOf } from '../errors.js'
import { dollars } from '../agent/cost.js'
import { forkSession } from '../agent/session-fork.js'
import type { SessionEvent, SessionStore, SessionSummary } from '../agent/session-events.js'
import { textOf } from '../agent/vocabulary.js'
import { runningDaemon, sessionStore } from './connect.js'
import type { Io } from './io.js'
import { markdown } from './session-markdown.js'
import { counted, elapsed, oneLine, printable, table, type Paint } from './terminal.js'

export async function list(io: Io): Promise<number> {
  const running = await runningNow(io), all = (await (await sessionStore(io)).list()).map(one => running.has(one.id) ? { ...one, running: true } : one)
  if (io.json) { io.line({ sessions: all }); return 0 }
  const rows = all.map(one => [one.id, one.updatedAt.slice(0, 16).replace('T', ' '), String(one.turns), running.has(one.id) ? 'running' : one.archived ? 'archived' : one.lastReason ?? '', oneLine(one.cwd, 40), oneLine(one.title, 60)])
  io.say(rows.length ? table([['SESSION', 'WHEN', 'TURNS', 'ENDED', 'FOLDER', 'FIRST PROMPT'], ...rows], io.paint) : 'no sessions yet; start one with: hx agent "TASK"')
  return 0
}

/** A log can't tell a turn that runs from one that was cut off; the daemon of this config can. The list is for those too whose daemon is stuck. */
async function runningNow(io: Io): Promise<ReadonlySet<string>> {
  try {
    const daemon = await runningDaemon(io)
    return new Set((await daemon?.status().finally(() => daemon.close()))?.running)
  } catch (error) {
    io.note(io.paintNote('yellow', `hx: what runs is not known: ${messageOf(error)}`))
    return new Set()
  }
}

export async function show(io: Io, id: string): Promise<number> {
  const sessions = await sessionStore(io)
  const { events, problems } = await sessions.read(await ofStore(sessions, id))
  if (io.json) for (const event of events) io.line(event)
  else io.say(events.flatMap(event => readable(event, io.paint)).join('\n'))
  for (const problem of problems) io.note(`line ${problem.line}: ${problem.message}`)
  return 0
}

export async function archive(io: Io, given: string): Promise<number> {
  const store = await sessionStore(io), session = await ofStore(store, given)
  const daemon = await runningDaemon(io)
  if (daemon) await daemon.archive(session).finally(() => daemon.close())
  else await archiveAlone(store, session)
  return done(io, { session, archived: true }, `session ${session} is archived: it can be read and forked, and takes no further prompt`)
}
async function archiveAlone(store: SessionStore, session: string): Promise<void> {
  const writer = await store.open(session)
  try {
    if (!writer.events.some(event => event.type === 'archived')) writer.append({ type: 'archived' })
    await writer.commit()
  } finally { await writer.close() }
}

export async function fork(io: Io, given: string, options: { at?: number }): Promise<number> {
  const store = await sessionStore(io), from = await ofStore(store, given)
  const at = options.at ?? (await store.read(from)).events.at(-1)!.seq
  const session = await forkSession(store, from, at)
  if (io.json) io.line({ session, from, at })
  else {
    io.say(session)
    io.note(`hx: it begins as ${from} was at line ${at}; go on with: hx agent --session ${session} "TASK"`)
  }
  return 0
}

export async function exportTo(io: Io, given: string, options: { format: 'jsonl' | 'markdown'; output?: string }): Promise<number> {
  const store = await sessionStore(io), session = await ofStore(store, given)
  const { events, problems } = await store.read(session)
  for (const problem of problems) io.note(`line ${problem.line} is left out: ${problem.message}`)
  const text = options.format === 'markdown' ? markdown(events) : events.map(event => `${JSON.stringify(event)}\n`).join('')
  if (options.output === undefined) io.say(text)
  else {
    const file = resolve(io.cwd, options.output)
    try { await writeFile(file, text, { flag: 'wx', mode: 0o600 }) } catch (error) { throw new HarnessError('usage', `"${file}" ${(error as NodeJS.ErrnoException).code === 'EEXIST' ? 'exists already; it is not written over' : `can not be written (${messageOf(error)})`}`, { cause: error }) }
    done(io, { session, file, events: events.length }, `${events.length} events of session ${session} are in ${file}`)
  }
  return 0
}

export async function abort(io: Io, given: string): Promise<number> {
  const daemon = await runningDaemon(io)
  if (!daemon) throw new HarnessError('daemon_missing', 'no daemon is running for this config, so no turn runs in it')
  try {
    const session = await sessionId(await daemon.sessions(), given, id => daemon.session(id)), aborted = await daemon.abort(session, 'stopped by hx sessions abort')
    return done(io, { session, aborted }, aborted ? `the turn of session ${session} is stopped` : `no turn of session ${session} runs`)
  } finally { await daemon.close() }
}

function done(io: Io, line: object, said: string): number {
  if (io.json) io.line(line)
  else io.note(`hx: ${said}`)
  return 0
}

/** The id itself, or the only session whose id begins with it. A session that no list shows is asked for by its id: `read` says what is wrong with it. */
export async function sessionId(all: readonly SessionSummary[], given: string, read: (id: string) => Promise<unknown>): Promise<string> {
  const found = all.some(one => one.id === given) ? [{ id: given }] : given === '' ? [] : all.filter(one => one.id.startsWith(given))
  if (found.length === 1) return found[0]!.id
  if (found.length === 0) {
    await read(given)
    return given
  }
  throw new HarnessError('session_missing', `"${given}" fits ${found.length} sessions (${found.slice(0, 3).map(one => one.id).join(', ')}${found.length > 3 ? ', …' : ''}); give more of the id`)
}
const ofStore = async (store: SessionStore, given: string): Promise<string> => sessionId(await store.list(), given, id => store.read(id))

const costly = ({ cost }: { readonly cost?: number | undefined }): string => cost === undefined ? '' : ` · ${dollars(cost)}`
/** The lines of one event, for a person; nothing for what only the machine needs. */
function readable(event: SessionEvent, paint: Paint): string[] {
  const note = (text: string) => paint('dim', `  ${text}`)
  switch (event.type) {
    case 'session': return [paint('bold', `session ${event.id}`), note(`in ${printable(event.cwd)}, ${event.ts}`)]
    case 'turn-start': return ['', paint('bold', `> ${printable(event.prompt)}`)]
    case 'message': {
      const said = printable(textOf(event))
      if (event.source.kind === 'user' && event.step > 0) return [paint('bold', `> ${said}`)]         // came while the turn ran
      const from = event.role === 'assistant' ? [] : event.source.kind === 'user' ? undefined : [note(`(${event.source.kind} ${event.source.id ?? ''}) ${oneLine(said, 200)}`)]
      if (from === undefined) return []
      if (from.length > 0) return from
      const calls = (event.toolCalls ?? []).map(call => note(`${call.name}(${oneLine(call.arguments, 160)})`))     // refused ones too, which have no intent
      return [...(said === '' ? [] : [said]), ...calls]
    }
    case 'tool-result': return [note(`${event.kind === 'ok' || event.content.startsWith(event.kind) ? '→' : `→ ${event.kind}:`} ${oneLine(event.content, 160)}`)]
    case 'approval': return [note(`asked: ${oneLine(event.reason)} → ${event.answer} (by ${event.by})`)]
    case 'compaction': return [note(`older messages were replaced by a summary (through ${event.through})`)]
    case 'error': return [paint('red', `  ${event.phase} failed: ${oneLine(event.message, 300)}`)]
    case 'warning': return [paint('yellow', `  ${oneLine(event.message, 300)}`)]
    case 'archived': return [note('archived')]
    case 'turn-end': return [note(`${event.reason}${event.message ? `: ${oneLine(event.message, 200)}` : ''} · ${counted(event.stats.steps, 'step')}, ${counted(event.stats.toolCalls, 'tool call')}, ${event.stats.blocked} blocked · ${event.usage.inputTokens + event.usage.outputTokens} tokens${costly(event.usage)} · ${elapsed(event.elapsedMs)}`)]
    case 'tool-intent': case 'system': case 'tools': case 'request': case 'decision': case 'usage': return []
  }
}

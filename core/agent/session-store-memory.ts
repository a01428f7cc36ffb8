/**
 * Sessions that end with the process: `--ephemeral`. The same contract as files, by the same records, repairs and summaries.
 * Only full outputs touch the disk, in one temporary folder that `dispose` removes.
 */
import { rmSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeFolder } from '../kernel/folder.js'
import type { SessionEvent, SessionEventBody, SessionHeader, SessionProblem, SessionStore, SessionSummary, SessionWriter } from './session-events.js'
import { busy, checkName, closed, missing, taken } from './session-id.js'
import { encode, headerBody, newestFirst, summarize } from './session-record.js'
import { closing } from './session-repair.js'

/** Closed sessions are kept up to so many, the last ones; a daemon would keep those of months. */
const MAX_CLOSED = 256

interface Kept { readonly events: SessionEvent[]; writer: MemoryWriter | undefined }

export class MemorySessionStore implements SessionStore {
  readonly #sessions = new Map<string, Kept>()
  /** Named when it is needed: by chance, since others could prepare a folder that they can guess. */
  #outputs: string | undefined
  readonly #now: () => Date

  constructor({ now = () => new Date() }: { now?: () => Date } = {}) { this.#now = now }

  async create(header: SessionHeader): Promise<SessionWriter> {
    checkName(header.id)
    if (this.#sessions.has(header.id)) throw taken(header.id)
    const session: Kept = { events: [], writer: undefined }
    this.#sessions.set(header.id, session)
    const writer = new MemoryWriter(header.id, session, this.#now, () => { this.#closed(header.id, session) })
    writer.append(headerBody(header))
    return writer
  }
  async open(id: string): Promise<SessionWriter> {
    const session = this.#get(id)
    if (session.writer) throw busy(id)
    const writer = new MemoryWriter(id, session, this.#now, () => { this.#closed(id, session) })
    for (const body of closing(session.events)) writer.append(body)
    return writer
  }
  async read(id: string): Promise<{ events: readonly SessionEvent[]; problems: readonly SessionProblem[] }> {
    return { events: [...this.#get(id).events], problems: [] }
  }
  async list(): Promise<readonly SessionSummary[]> {
    return newestFirst([...this.#sessions.values()].map(({ events }) => summarize(events)!))
  }
  async probe(): Promise<void> {}
  outputDir(id: string): string {
    const path = this.outputPath(id)
    makeFolder(path)
    return path
  }
  outputPath(id: string): string {
    checkName(id)
    return join(this.#outputs ??= join(tmpdir(), `hx-outputs-${randomBytes(8).toString('hex')}`), id)
  }
  dispose(): void { if (this.#outputs !== undefined) rmSync(this.#outputs, { recursive: true, force: true }) }

  /** The last closed stands last. */
  #closed(id: string, session: Kept): void {
    this.#sessions.delete(id)
    this.#sessions.set(id, session)
    const closed = [...this.#sessions].filter(([, { writer }]) => !writer)
    for (const [oldest] of closed.slice(0, -MAX_CLOSED)) {
      this.#sessions.delete(oldest)
      rmSync(this.outputPath(oldest), { recursive: true, force: true })
    }
  }
  #get(id: string): Kept {
    const session = this.#sessions.get(id)
    if (!session) throw missing(id)
    return session
  }
}

class MemoryWriter implements SessionWriter {
  readonly id: string
  readonly #session: Kept
  readonly #now: () => Date
  readonly #ended: () => void
  constructor(id: string, session: Kept, now: () => Date, ended: () => void) {
    this.#ended = ended
    this.id = id
    this.#session = session
    this.#now = now
    session.writer = this
  }
  get events(): readonly SessionEvent[] { return this.#session.events }
  append(body: SessionEventBody): SessionEvent {
    if (this.#session.writer !== this) throw closed(this.id)
    const { event } = encode(this.#session.events.length + 1, this.#now().toISOString(), body)
    this.#session.events.push(event)
    return event
  }
  async commit(): Promise<void> {}
  async close(): Promise<void> {
    if (this.#session.writer !== this) return
    this.#session.writer = undefined
    this.#ended()
  }
}

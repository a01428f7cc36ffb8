/**
 * Which session a conversation goes on in. Clients send all that was said, each time; a session is found by a digest of exactly that.
 * Invariants: a session is found only while it stands where the client thinks it does, and by one request only, so that an answer asked for anew, or an edited past, begins another.
 */
import { createHash } from 'node:crypto'
import type { Said } from './request.js'

/** The oldest are forgotten: their next prompt begins a new session that is told what was said. */
const MAX = 1000

export class Conversations {
  /** Sessions by what was said in them; the longest untouched first. */
  readonly #sessions: Map<string, string>
  /** `sessions` is kept by whoever makes this. */
  constructor(sessions: Map<string, string>) { this.#sessions = sessions }

  /** The session in which exactly this was said, taken: it is found again once `stands` has said where it stands. */
  take(system: string, said: readonly Said[]): string | undefined {
    const key = digest(system, said), session = this.#sessions.get(key)
    this.#sessions.delete(key)
    return session
  }
  stands(session: string, system: string, said: readonly Said[]): void {
    this.#sessions.set(digest(system, said), session)
    if (this.#sessions.size > MAX) for (const oldest of this.#sessions.keys()) { this.#sessions.delete(oldest); break }
  }
}

/** Blanks at the ends are left out: clients trim. */
const digest = (system: string, said: readonly Said[]): string => createHash('sha256').update(JSON.stringify([system, ...said.map(({ role, text }) => [role, text.trim()])])).digest('base64')

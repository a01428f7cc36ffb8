/** Ids of sessions: sorted by time as text, short enough to type, safe as a file name; and what every store says about one. Knows no store. */
import { HarnessError, show } from '../errors.js'

const LETTERS = '0123456789abcdefghjkmnpqrstvwxyz'                                                 // without i, l, o and u, which are mistaken for others

/** `20261130-174512-k3f9x2`: UTC, and 30 random bits, so that a thousand made in one second do not meet; no secret. */
export function newSessionId(now: Date = new Date()): string {
  const [day, time] = now.toISOString().replace(/[-:]|\..*/g, '').split('T')
  return `${day}-${time}-${Array.from({ length: 6 }, () => LETTERS[Math.floor(Math.random() * LETTERS.length)]).join('')}`
}

/** Any name of a store's user will do that can not be a path or a hidden file. */
export const isSessionId = (id: string): boolean => /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(id)

export function checkName(id: string): void {
  if (!isSessionId(id)) throw new HarnessError('unknown_id', `session id ${show(id)} must be 1 to 64 letters, digits, "-" or "_", the first a letter or digit`)
}

export const missing = (id: string): HarnessError => new HarnessError('session_missing', `there is no session ${show(id)}; "hx sessions" lists those there are`)
export const taken = (id: string): HarnessError => new HarnessError('session_busy', `session "${id}" exists already; open it, or take another id`)
export const busy = (id: string): HarnessError => new HarnessError('session_busy', `session "${id}" is being written by another process or turn; wait until it is done, or use another session`)
export const closed = (id: string): HarnessError => new HarnessError('internal', `session "${id}" was written after it was closed`)

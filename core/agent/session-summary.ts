/**
 * The summary of a session from the two ends of its file, so that a list of a thousand costs little: the head has the header and the first prompt, the tail the last turn.
 * Reads a descriptor that its caller owns, and no more lines than it needs; those that can not be read are passed over.
 */
import { fstatSync, readSync } from 'node:fs'
import type { SessionEvent, SessionSummary } from './session-events.js'
import { checkVersion, decode, summarize, type Unspill } from './session-record.js'
import { split } from './session-scan.js'

const FIRST = 4 * 1024, MOST = 1024 * 1024
const ARCHIVED = '"type":"archived"'

export function readSummary(id: string, fd: number, unspill: Unspill): SessionSummary | undefined {
  const { size } = fstatSync(fd)
  const head = grow(size, bytes => upTo(lines(fd, 0, bytes, size), unspill, event => event.type === 'turn-start'))
  checkVersion(id, head.events[0])
  const tail = grow(size, bytes => upTo(lines(fd, size - bytes, bytes, size).reverse(), unspill, event => event.type === 'turn-end' || event.type === 'turn-start'))
  return summarize([...head.events, ...tail.events.reverse()])
}

interface Piece { readonly events: SessionEvent[]; readonly enough: boolean }

/** Reads more and more of an end, until it says enough. */
function grow(size: number, read: (bytes: number) => Piece): Piece {
  for (let bytes = FIRST; ; bytes *= 4) {
    const piece = read(Math.min(bytes, size))
    if (piece.enough || bytes >= size || bytes >= MOST) return piece
  }
}

/** The events up to the one that is wanted, and of those behind it whatever says that the session is archived: that may have come while its last turn ran. */
function upTo(lines: readonly Buffer[], unspill: Unspill, wanted: (event: SessionEvent) => boolean): Piece {
  const events: SessionEvent[] = []
  let enough = false
  for (const line of lines) {
    if (enough && !line.includes(ARCHIVED)) continue
    const { event } = decode(line, unspill)
    if (!event || enough && event.type !== 'archived') continue
    events.push(event)
    enough ||= wanted(event)
  }
  return { events, enough }
}

/** The whole lines of a piece of the file; one that its edge cuts is left out. */
function lines(fd: number, from: number, bytes: number, size: number): Buffer[] {
  const buffer = Buffer.allocUnsafe(bytes), piece = buffer.subarray(0, readSync(fd, buffer, 0, bytes, from))
  const start = from > 0 ? piece.indexOf(0x0a) + 1 || piece.length : 0
  const end = from + bytes < size ? piece.lastIndexOf(0x0a) + 1 : piece.length
  return [...split(piece.subarray(start, Math.max(start, end)))]
}

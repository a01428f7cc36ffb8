/**
 * The summary of a session from the two ends of its file, so that a list of a thousand costs little: the head has the header and the first prompt, the tail the last turn.
 * Reads a descriptor that its caller owns; lines that can not be read are passed over.
 */
import { fstatSync, readSync } from 'node:fs'
import type { SessionEvent, SessionSummary } from './session-events.js'
import { checkVersion, decode, summarize, type Unspill } from './session-record.js'

const FIRST = 4 * 1024, MOST = 1024 * 1024

export function readSummary(id: string, fd: number, unspill: Unspill): SessionSummary | undefined {
  const { size } = fstatSync(fd)
  const head = grow(size, bytes => eventsOf(readAt(fd, 0, bytes), { cutEnd: bytes < size }, unspill), events => events.some(event => event.type === 'turn-start'))
  checkVersion(id, head[0])
  const tail = grow(size, bytes => eventsOf(readAt(fd, size - bytes, bytes), { cutStart: bytes < size }, unspill), events => events.some(event => event.type === 'turn-end' || event.type === 'turn-start'))
  const known = new Set(head.map(event => event.seq))
  return summarize([...head, ...tail.filter(event => !known.has(event.seq))])
}

/** Reads more and more of an end, until it says enough. */
function grow(size: number, read: (bytes: number) => SessionEvent[], enough: (events: readonly SessionEvent[]) => boolean): SessionEvent[] {
  for (let bytes = FIRST; ; bytes *= 4) {
    const events = read(Math.min(bytes, size))
    if (enough(events) || bytes >= size || bytes >= MOST) return events
  }
}
function readAt(fd: number, from: number, bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(bytes)
  return buffer.subarray(0, readSync(fd, buffer, 0, bytes, from))
}
/** The whole lines of a piece of the file. */
function eventsOf(piece: Buffer, { cutStart = false, cutEnd = false }: { cutStart?: boolean; cutEnd?: boolean }, unspill: Unspill): SessionEvent[] {
  const events: SessionEvent[] = []
  let from = cutStart ? piece.indexOf(0x0a) + 1 || piece.length : 0
  while (from < piece.length) {
    const newline = piece.indexOf(0x0a, from)
    if (newline < 0 && cutEnd) break
    const { event } = decode(piece.subarray(from, newline < 0 ? piece.length : newline), unspill)
    if (event) events.push(event)
    from = newline < 0 ? piece.length : newline + 1
  }
  return events
}

/**
 * Reads the bytes of a session file: which lines are records, which are not, and what an unfinished write left at the end. Changes nothing.
 * Lines end at "\n" alone, so U+2028 is data. The order of `seq` is held here: a record that does not fit between its neighbours is set aside like an unreadable one.
 */
import type { SessionEvent, SessionProblem } from './session-events.js'
import { decode, type Unspill } from './session-record.js'

export interface Scan {
  readonly events: readonly SessionEvent[]
  readonly problems: readonly SessionProblem[]
  /** The lines of the events, and the bad ones, as they stand in the file, without newlines. */
  readonly kept: readonly Uint8Array[]
  readonly bad: readonly Uint8Array[]
  /** Bytes at the end that an unfinished write left. */
  readonly torn: number
  /** The last record is whole, but its newline is missing. */
  readonly unended: boolean
}

export function scan(data: Uint8Array, unspill: Unspill): Scan {
  const lines = [...split(data)].map(bytes => ({ bytes, ...decode(bytes, unspill) }))
  const ended = data.length === 0 || data.at(-1) === 0x0a
  const torn = !ended && !lines.at(-1)?.event ? lines.pop()!.bytes.length : 0

  const events: SessionEvent[] = [], problems: SessionProblem[] = [], kept: Uint8Array[] = [], bad: Uint8Array[] = []
  const seqsAhead = ahead(lines)
  let last = 0, aside = 0
  for (const [index, { bytes, event, problem }] of lines.entries()) {
    const refusal = event ? misplaced(event.seq, last, seqsAhead[index]) : problem
    if (!event || refusal) {
      problems.push({ line: index + 1, message: `the line ${refusal}` })
      bad.push(bytes)
      aside++
      continue
    }
    if (event.seq - last - 1 > aside) problems.push({ line: index + 1, message: `events ${last + 1} to ${event.seq - 1} are missing before this one` })
    events.push(event)
    kept.push(bytes)
    last = event.seq
    aside = 0
  }
  if (torn > 0) problems.push({ line: lines.length + 1, message: `${torn} bytes of an unfinished record` })
  return { events, problems, kept, bad, torn, unended: !ended && torn === 0 }
}

/** Either this record breaks the order, or the next one does: it is this one when the next fits behind the last. */
function misplaced(seq: number, last: number, next: number | undefined): string | undefined {
  if (seq <= last) return `has seq ${seq} after ${last}`
  if (next !== undefined && next > last && next < seq) return `has seq ${seq} before ${next}`
  return undefined
}

/** For each line the seq of the next record behind it. */
function ahead(lines: readonly { readonly event?: SessionEvent | undefined }[]): (number | undefined)[] {
  let next: number | undefined
  return lines.map((_, back) => {
    const seq = next
    next = lines[lines.length - 1 - back]!.event?.seq ?? next
    return seq
  }).reverse()
}

/** Lines without their newlines; the last one may have had none. */
export function* split<Bytes extends Uint8Array>(data: Bytes): Iterable<Bytes> {
  for (let from = 0; from < data.length;) {
    const newline = data.indexOf(0x0a, from), to = newline < 0 ? data.length : newline
    yield data.subarray(from, to) as Bytes
    from = to + 1
  }
}

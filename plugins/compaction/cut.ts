/** Where a conversation is cut: at the start of a turn, so that no call loses its answer. Pure. */
import type { Message, SessionEvent } from 'harnessx'
import { tokensOf } from './meter.js'

/** What is replaced: the messages up to the event `through`. */
export interface Cut { readonly through: number; readonly messages: readonly Message[] }

/** The cut that leaves the most turns of at most `keep` tokens, and the running turn in any case. Undefined when nothing is before it, or only a summary. */
export function cutOf(events: readonly SessionEvent[], messages: readonly Message[], keep: number): Cut | undefined {
  const replaced = events.findLast(event => event.type === 'compaction')?.through ?? 0
  let best: Cut | undefined, later = 0
  for (let index = events.length - 1; index >= 0; index--) {
    const { type, seq } = events[index]!
    if (seq <= replaced) break
    if (type === 'message' || type === 'tool-result') later++
    if (type !== 'turn-start') continue
    const border = Math.max(0, messages.length - later)
    if (best && tokensOf(messages.slice(border)) > keep) break
    if (border > 1) best = { through: seq, messages: messages.slice(0, border) }
  }
  return best
}

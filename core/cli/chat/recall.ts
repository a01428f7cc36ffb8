/** Where a session stands, for somebody who comes back to it: its last prompt and what was said to it. Pure. */
import type { SessionEvent } from '../../agent/session-events.js'
import { textOf } from '../../agent/vocabulary.js'
import { oneLine, printable } from '../terminal.js'
import { blocksOf, renderBlocks } from './markdown.js'
import { chop, span, type Line } from './spans.js'

/** Of a long answer, its end. */
const MAX_LINES = 40

export function recalled(events: readonly SessionEvent[], width: number): Line[] {
  const [header] = events, start = events.findLastIndex(event => event.type === 'turn-start')
  const id = header?.type === 'session' ? header.id : '', turn = events[start]
  const head: Line = [span(`session ${id}`, 'dim')]
  if (turn?.type !== 'turn-start') return [head]
  const answer = events.slice(start).findLast(event => event.type === 'message' && event.role === 'assistant')
  const end = events.slice(start).find(event => event.type === 'turn-end')
  const said = answer?.type === 'message' ? renderBlocks(blocksOf(printable(textOf(answer)).replaceAll('\t', '    ')), width) : []
  const over = end?.type !== 'turn-end' ? 'its last turn has no end yet' : end.reason === 'completed' ? '' : `its last turn ended: ${end.reason}${end.message === undefined ? '' : ` (${oneLine(end.message)})`}`
  return [
    head, [], ...chop(printable(turn.prompt).replaceAll('\t', '    '), width - 2).slice(0, 10).map((line, row): Line => [span(row === 0 ? '› ' : '  ', 'cyan', 'bold'), span(line, 'bold')]), [],
    ...said.length > MAX_LINES ? [[span('…', 'dim')] as Line] : [], ...said.slice(-MAX_LINES), ...over === '' ? [] : [[span(over, 'yellow')] as Line],
  ]
}

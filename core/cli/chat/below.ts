/**
 * What stands below what was said: the turn that runs or the question that is open, what is queued, the text that is typed, and what could be meant by it. A function of the state; knows no screen.
 */
import { dollars } from '../../agent/cost.js'
import { oneLine, printable } from '../terminal.js'
import type { Completion } from './completion.js'
import type { Conversation } from './conversation.js'
import type { Draft } from './editor.js'
import type { Asked } from './question.js'
import { chop, cut, lineWidth, span, widthOf, type Line } from './spans.js'

export interface Below {
  readonly question: Asked | undefined
  /** What is seen of the turn that runs. */
  readonly turn: readonly Line[] | undefined
  /** A command that takes its time. */
  readonly busy: string | undefined
  readonly queue: readonly string[]
  readonly draft: Draft
  readonly hint: string | undefined
  readonly completion: Completion | undefined
  readonly talk: Pick<Conversation, 'model' | 'answered' | 'mode' | 'session' | 'client' | 'spent'>
}
export interface Shown { readonly lines: Line[]; readonly cursor: { readonly row: number; readonly column: number } }

const PROMPT = '› '
/** Lines of the text that is typed, and of what could be meant. */
const MAX_INPUT_LINES = 10, MAX_OPTIONS = 6

export function below(state: Below, width: number): Shown {
  const { question, turn, busy, queue, draft } = state
  const lines: Line[] = question ? [] : [...turn ?? []]
  if (busy !== undefined) lines.push([span(`${busy} …`, 'dim')])
  for (const queued of queue) lines.push([span('queued ', 'yellow'), span(cut(oneLine(queued, width * 2), width - 8), 'dim')])
  if (question) {
    const { lines: asked, column } = question.live(width)
    return { lines: [...lines, ...asked], cursor: { row: lines.length + asked.length - 1, column: column || lineWidth(asked.at(-1)!) } }
  }
  lines.push([])
  const typed = layout(draft, width - PROMPT.length)
  const from = Math.max(0, Math.min(typed.row - MAX_INPUT_LINES + 1, typed.lines.length - MAX_INPUT_LINES))
  const shown = typed.lines.slice(from, from + MAX_INPUT_LINES)
  const row = lines.length + typed.row - from
  lines.push(...shown.map((line, y): Line => [span(y === 0 ? (from > 0 ? '↑ ' : PROMPT) : '  ', 'cyan', 'bold'), span(line)]))
  lines.push(...meant(state, width))
  return { lines, cursor: { row, column: PROMPT.length + typed.column } }
}

/** Under the text: what could be meant, a hint, or where one is. */
function meant({ hint, completion: found, draft: { text }, turn, talk }: Below, width: number): Line[] {
  if (hint !== undefined) return [[span(cut(`  ${hint}`, width), 'yellow')]]
  if (found && !(found.options.length === 1 && found.options[0]!.value === text.slice(found.from, found.to))) {
    const options = found.options.slice(0, MAX_OPTIONS), wide = Math.max(...options.map(({ value }) => widthOf(value)))
    return [...options.map(({ value, about = '' }): Line => [span(cut(`  ${value.padEnd(wide)}  ${about}`.trimEnd(), width), 'dim')]), ...found.options.length > MAX_OPTIONS ? [[span(`  … ${found.options.length - MAX_OPTIONS} more`, 'dim')]] : []]
  }
  if (turn) return [[span(cut(`  ${text.startsWith('>') ? 'Enter hands this to the running turn' : text === '' ? '' : 'Enter queues this; a ">" before it hands it to the running turn'}`, width), 'dim')]]
  const { model, answered, mode, session, client, spent } = talk
  return [[span(cut(`  ${[printable(model ?? answered ?? 'the config\'s model'), ...mode === 'default' ? [] : [`mode ${mode}`], client.where === 'daemon' ? 'daemon' : 'in this process', session === undefined ? 'new session' : session.slice(0, 12), ...spent === undefined ? [] : [dollars(spent)], '/help'].join(' · ')}`, width), 'dim')]]
}

/** What was typed, once it is sent; of a long text the beginning. */
export function echoed(text: string, width: number): Line[] {
  const lines = chop(printable(text).replaceAll('\t', '    '), width - 2)
  const shown = lines.length > 40 ? [...lines.slice(0, 38), `… ${lines.length - 38} more lines`] : lines
  return [[], ...shown.map((line, row): Line => [span(row === 0 ? PROMPT : '  ', 'cyan', 'bold'), span(line, 'bold')])]
}

/** The text on rows, and where the cursor is among them. */
function layout({ text, cursor }: Draft, width: number): { lines: string[]; row: number; column: number } {
  const shown = (part: string) => part.replaceAll('\t', '    ')
  const lines = chop(shown(text), width), before = chop(shown(text.slice(0, cursor)), width)
  const column = widthOf(before.at(-1)!)
  return column >= width ? { lines: before.length >= lines.length ? [...lines, ''] : lines, row: before.length, column: 0 } : { lines, row: before.length - 1, column }
}

/**
 * Markdown as lines of a terminal: the tokens of `marked`, laid out for a width. Pure. Knows no stream; markdown-stream.ts decides what is complete.
 * Invariant: no control character comes out, not even one that was written as an entity. A link shows where it leads, in plain sight; what can't be laid out is shown as it was written.
 */
import { Lexer, type Token, type Tokens } from 'marked'
import { printable } from '../terminal.js'
import { chop, lineWidth, span, wrap, type Line, type Span, type StyleName } from './spans.js'

/** What would be narrower is not laid out: a block is broken at the edge, one that is nested so deep (a model can nest without end, a stack can't) is shown as it was written. */
const MIN_WIDTH = 10

export function blocksOf(text: string): Token[] {
  try { return new Lexer({ gfm: true }).lex(text) } catch { return [{ type: 'text', raw: text, text } as Token] }     // nested deeper than its stack: shown as it was written
}
export function renderBlocks(tokens: readonly Token[], width: number): Line[] {
  const blocks = tokens.filter(({ type }) => type !== 'space').map(token => block(token, Math.max(width, MIN_WIDTH))).filter(lines => lines.length > 0)
  return blocks.flatMap((lines, index) => index === 0 ? lines : [[], ...lines])
    .map(line => line.map(part => ({ ...part, text: printable(part.text) }))).flatMap(line => lineWidth(line) > width ? wrap(line, width) : [line])
}
export const renderCode = (text: string, width: number): Line[] => chop(text.replaceAll('\t', '    '), Math.max(width - 2, MIN_WIDTH)).map(line => [span('  '), span(line, 'cyan')])

function block(token: Token, width: number): Line[] {
  switch (token.type) {
    case 'heading': return wrap(inline((token as Tokens.Heading).tokens, ['bold', ...(token['depth'] === 1 ? ['underline' as const] : [])]), width)
    case 'code': return renderCode((token as Tokens.Code).text, width)
    case 'hr': return [[span('─'.repeat(Math.min(width, 40)), 'dim')]]
    case 'blockquote': return width - 2 < MIN_WIDTH ? written(token, width) : renderBlocks((token as Tokens.Blockquote).tokens, width - 2).map(line => [span('│ ', 'dim'), ...line])
    case 'list': return list(token as Tokens.List, width)
    case 'table': return table(token as Tokens.Table, width)
    case 'html': return written(token, width)
    case 'def': return wrap([span(token.raw.trimEnd(), 'dim')], width)
    default: return wrap('tokens' in token && token.tokens ? inline(token.tokens) : [span(decoded('text' in token ? String(token['text']) : token.raw))], width)
  }
}

const written = ({ raw }: { readonly raw: string }, width: number): Line[] => wrap([span(raw.trimEnd())], width)

function list({ ordered, start, items, loose }: Tokens.List, width: number): Line[] {
  const first = typeof start === 'number' ? start : 1
  const last = ordered ? String(first + items.length - 1).length + 2 : 2
  if (width - last < MIN_WIDTH) return items.flatMap(item => written(item, width))
  return items.flatMap((item, index) => {
    const mark = ordered ? `${first + index}.`.padEnd(last) : '• '
    const task = item.task ? [span(item.checked ? '[x] ' : '[ ] ')] : []
    // The words of a tight item and what follows them (a list inside) are neighbours, not paragraphs.
    const own = item.tokens.filter(({ type }) => type !== 'space' && type !== 'checkbox')
    const parts = own.map(part => block(part, width - last))
    const lines = loose ? parts.flatMap((lines, place) => place === 0 ? lines : [[], ...lines]) : parts.flat()
    const shown = (lines.length > 0 ? lines : [[]]).map((line, row): Line => row === 0 ? [span(mark, 'dim'), ...task, ...line] : line.length === 0 ? line : [span(' '.repeat(mark.length)), ...line])
    return loose && index > 0 ? [[], ...shown] : shown
  })
}

/** Columns as wide as they need to be; where that is too much, the widest give way and their cells are wrapped. */
function table({ header, rows, align }: Tokens.Table, width: number): Line[] {
  const cells = [header.map(cell => inline(cell.tokens, ['bold'])), ...rows.map(row => row.map(cell => inline(cell.tokens)))]
  const widths = header.map((_, column) => Math.max(1, ...cells.map(row => lineWidth(row[column] ?? []))))
  const room = width - 2 * (widths.length - 1)
  if (room < 4 * widths.length) return cells.slice(1).flatMap((row, place) => [...place > 0 ? [[]] : [], ...row.flatMap((cell, column) => wrap([...cells[0]![column]!, span(': '), ...cell], width))])
  for (let over = widths.reduce((a, b) => a + b, 0) - room; over > 0; over--) widths[widths.indexOf(Math.max(...widths))]!--
  const padded = (line: Line, column: number): Span[] => {
    const free = Math.max(0, widths[column]! - lineWidth(line))
    const left = align[column] === 'right' ? free : align[column] === 'center' ? free >> 1 : 0
    return [span(' '.repeat(left)), ...line, span(' '.repeat(free - left))]
  }
  const laid = cells.map(row => {
    const wrapped = widths.map((width, column) => wrap(row[column] ?? [], width))
    const height = Math.max(...wrapped.map(lines => lines.length))
    return Array.from({ length: height }, (_, y): Line => wrapped.flatMap((lines, column) => [...column > 0 ? [span('  ')] : [], ...padded(lines[y] ?? [], column)]))
  })
  return [...laid[0]!, [span(widths.map(width => '─'.repeat(width)).join('  '), 'dim')], ...laid.slice(1).flat()]
}

function inline(tokens: readonly Token[], style: readonly StyleName[] = []): Span[] {
  return tokens.flatMap((token): Span[] => {
    const more = (name: StyleName) => inline((token as Tokens.Strong).tokens, [...style, name])
    switch (token.type) {
      case 'strong': return more('bold')
      case 'em': return more('italic')
      case 'del': return more('strikethrough')
      case 'codespan': return [{ text: (token as Tokens.Codespan).text, style: [...style, 'cyan'] }]
      case 'br': return [{ text: '\n' }]
      case 'link': case 'image': return link(token as Tokens.Link, style)
      case 'checkbox': return []
      case 'escape': return [{ text: (token as Tokens.Escape).text, style }]
      case 'text': return 'tokens' in token && token.tokens ? inline(token.tokens, style) : [{ text: decoded(String((token as Tokens.Text).text)), style }]
      default: return [{ text: token.raw, style }]
    }
  })
}
function link({ text, href, tokens }: Tokens.Link, style: readonly StyleName[]): Span[] {
  const label = tokens && tokens.length > 0 ? inline(tokens, [...style, 'underline']) : [{ text, style: [...style, 'underline' as const] }]
  return href === text || href === `mailto:${text}` || text === '' ? [{ text: href, style: [...style, 'underline'] }] : [...label, { text: ` (${href})`, style: [...style, 'dim'] }]
}

/** The names that models write; others stay as they are. */
const ENTITIES: Readonly<Record<string, string>> = { '&lt;': '<', '&gt;': '>', '&quot;': '"', '&#39;': "'", '&nbsp;': ' ', '&amp;': '&' }
const decoded = (text: string): string => text.replace(/&(?:lt|gt|quot|#39|nbsp|amp);/g, name => ENTITIES[name]!)

/**
 * Markdown that is still being written: what of it is complete, and what the rest looks like for now. Takes text in any pieces.
 *
 *   open text ──a further block begins──▶ complete lines        open fence ──each line──▶ complete lines
 *
 * Invariants: what is complete depends on the whole lines alone, never on where the stream was cut; no control character of the text comes out.
 */
import { printable } from '../terminal.js'
import { blocksOf, renderBlocks, renderCode } from './markdown.js'
import { span, wrap, type Line } from './spans.js'

interface Fence { readonly mark: string; readonly indent: number }

const OPENING = /^( {0,3})(`{3,}(?=[^`]*$)|~{3,})/
const ITEM = /^ {0,3}(?:[-*+]|\d{1,9}[.)])(?: |$)/
/** An open block of more characters is taken for complete where its line ends; a longer line is shown as it was written. What takes longer to lay out is shown plain until it is complete. */
const MAX_BLOCK = 8000, MAX_LINE = 4000, MAX_TAIL_MS = 25

export class MarkdownStream {
  readonly #width: () => number
  #partial = ''
  #open: string[] = []
  #size = 0
  #fence: Fence | undefined
  /** Something was said already: the next block stands apart from it. */
  #begun = false
  #apart = false
  #slow = false

  constructor(width: () => number) { this.#width = width }

  /** Lines that are complete with this piece. */
  push(piece: string): Line[] {
    const lines = (this.#partial + piece).split('\n')
    this.#partial = lines.pop()!
    return lines.flatMap(line => this.#whole(line))
  }
  /** Nothing more comes: all the rest. */
  end(): Line[] {
    const rest = this.#partial === '' ? [] : this.#whole(this.#partial)
    this.#partial = ''
    this.#fence = undefined
    return [...rest, ...this.#settle()]
  }
  /** What is not complete, as it looks now. */
  tail(): Line[] {
    const partial = clean(this.#partial)
    if (this.#fence) return partial[0] === '' ? [] : this.#spaced(partial.flatMap(line => renderCode(this.#outdent(line), this.#width())))
    if (this.#open.length === 0 && partial.join('').trim() === '') return []
    const lines = [...this.#open, ...partial], started = performance.now()
    const tail = this.#slow ? this.#asWritten(lines) : this.#render(lines)
    this.#slow ||= performance.now() - started > MAX_TAIL_MS
    return this.#spaced(tail)
  }

  #whole(raw: string): Line[] { return clean(raw).flatMap(line => this.#fence ? this.#inFence(line, this.#fence) : this.#take(line)) }

  #inFence(line: string, { mark }: Fence): Line[] {
    const closing = /^ {0,3}(`{3,}|~{3,})\s*$/.exec(line)?.[1]
    if (closing?.[0] === mark[0] && closing!.length >= mark.length) {
      this.#fence = undefined
      this.#apart = true
      return []
    }
    return this.#said(renderCode(this.#outdent(line), this.#width()))
  }
  #outdent(line: string): string { return line.replace(new RegExp(`^ {0,${this.#fence?.indent ?? 0}}`), '') }

  #take(line: string): Line[] {
    const [, indent = '', mark] = OPENING.exec(line) ?? []
    if (mark !== undefined && (indent === '' || this.#open.length === 0)) {       // an indented one belongs to the list above it
      const before = this.#settle()
      this.#fence = { mark, indent: indent.length }
      this.#apart = this.#begun
      return before
    }
    if (line.trim() === '' && this.#open.length === 0) return []
    const first = this.#open[0]
    this.#open.push(line)
    this.#size += line.length + 1
    if (this.#size > MAX_BLOCK) return this.#settle()
    if (first === undefined || line.trim() === '' || goesOn(first, line)) return []
    const tokens = blocksOf(this.#open.join('\n')), blocks = tokens.filter(({ type }) => type !== 'space')
    if (blocks.length < 2) return []
    const last = blocks.at(-1)!
    const done = this.#said(renderBlocks(tokens.slice(0, tokens.lastIndexOf(last)), this.#width()))
    this.#apart = true
    this.#open = last.raw.split('\n')
    this.#size = last.raw.length
    this.#slow = false
    return done
  }
  #settle(): Line[] {
    const lines = this.#open
    this.#open = []
    this.#size = 0
    this.#slow = false
    if (lines.every(line => line.trim() === '')) return []
    const done = this.#said(this.#render(lines))
    this.#apart = true
    return done
  }
  #render(lines: readonly string[]): Line[] { return lines.some(line => line.length > MAX_LINE) ? this.#asWritten(lines) : renderBlocks(blocksOf(lines.join('\n')), this.#width()) }
  #asWritten(lines: readonly string[]): Line[] { return lines.flatMap(line => wrap([span(line)], this.#width())) }
  #said(lines: Line[]): Line[] {
    const spaced = this.#spaced(lines)
    if (lines.length > 0) { this.#begun = true; this.#apart = false }
    return spaced
  }
  #spaced(lines: Line[]): Line[] { return this.#begun && this.#apart && lines.length > 0 ? [[], ...lines] : lines }
}

/** Lines of which it is plain that they belong to the block that `first` began. */
function goesOn(first: string, line: string): boolean {
  if (first.startsWith('|')) return line.startsWith('|')
  if (first.startsWith('>')) return line.startsWith('>')
  return ITEM.test(first) && (ITEM.test(line) || line.startsWith('  '))
}
/** One line of the stream without control characters; a lone carriage return breaks it. */
const clean = (raw: string): string[] => printable(raw.endsWith('\r') ? raw.slice(0, -1) : raw).replaceAll('\t', '    ').split('\n')

/**
 * The lower end of a terminal: lines that are said for good, and below them a few that change. Writes to one stream; knows nothing of what the lines mean.
 * Lines come painted and narrower than the terminal. What changes is written as the difference, in one write, so that nothing flickers and what was said is never touched again.
 */
import { stripVTControlCharacters } from 'node:util'
import { widthOf } from './spans.js'

export interface Out { write(text: string): unknown; readonly columns?: number | undefined; readonly rows?: number | undefined; /** Asks the terminal itself, which may have changed a moment ago. */ getWindowSize?(): [number, number] }
export interface Cursor { readonly row: number; readonly column: number }

const ESC = '\u001b['
/** Shown at once by terminals that know it, ignored by others. */
const BEGIN = `${ESC}?2026h${ESC}?25l`, END = `${ESC}?25h${ESC}?2026l`
/** All below, from the begin of a line on. Not from its first cell: in that of the whole screen tmux takes it for a screen to keep, and what should be gone stands in what scrolled by. */
const WIPE = ` ${ESC}J\r`
const up = (rows: number): string => rows > 0 ? `${ESC}${rows}A` : ''

export class Screen {
  readonly #out: Out
  /** The changing lines as they stand on the terminal, and where the cursor is among them. */
  #shown: readonly string[] = []
  #at: Cursor = { row: 0, column: 0 }
  #columns: number

  constructor(out: Out) {
    this.#out = out
    this.#columns = this.columns
  }
  get columns(): number { return Math.max(this.#size()[0] || 80, 4) }
  /** For a line: the last column stays free, since terminals disagree on what a full line does. */
  get width(): number { return this.columns - 1 }
  get rows(): number { return Math.max(this.#size()[1] || 24, 4) }

  /** Says `lines` for good and shows `live` below them. Of more than fits, the end is shown. */
  frame(lines: readonly string[], live: readonly string[], cursor: Cursor): void {
    const above = Math.max(0, live.length - (this.rows - 1))
    const shown = live.slice(above), at = { row: Math.max(0, cursor.row - above), column: Math.min(cursor.column, this.width) }
    const resized = this.#columns !== this.columns
    const before = resized || lines.length > 0 ? [] : this.#shown
    let text = resized ? this.#home() : '\r' + up(this.#at.row)
    if (lines.length > 0 || resized) text += `${WIPE}${lines.map(line => `${line}\r\n`).join('')}`
    let row = 0, height = Math.max(1, before.length)          // where the writing is, of how many rows there are
    const go = (to: number) => {
      const down = Math.min(to, height - 1) - row
      text += `${down > 0 ? `${ESC}${down}B` : ''}${'\r\n'.repeat(Math.max(0, to - (height - 1)))}`
      height = Math.max(height, to + 1)
      row = to
    }
    shown.forEach((line, y) => {
      if (y < before.length && before[y] === line) return
      go(y)
      text += `\r${line}${y < before.length ? `${ESC}K` : ''}`
    })
    if (shown.length < before.length) {
      go(shown.length)
      text += `\r${WIPE}`
    }
    text += `\r${row > at.row ? up(row - at.row) : row < at.row ? `${ESC}${at.row - row}B` : ''}${at.column > 0 ? `${ESC}${at.column}C` : ''}`
    const same = lines.length === 0 && !resized && shown.length === before.length && shown.every((line, y) => line === before[y]) && at.row === this.#at.row && at.column === this.#at.column
    this.#shown = shown
    this.#at = at
    this.#columns = this.columns
    if (!same) this.#out.write(`${BEGIN}${text}${END}`)
  }
  /** Takes the changing lines away; the cursor stands at the begin of a line. */
  clear(): void {
    this.#out.write(`${this.#columns !== this.columns ? this.#home() : `\r${up(this.#at.row)}`}${WIPE}`)
    this.#shown = []
    this.#at = { row: 0, column: 0 }
    this.#columns = this.columns
  }
  /** Begins on an empty screen; what was said has scrolled by. */
  erase(): void {
    this.clear()
    this.#out.write(`${ESC}H${ESC}2J`)
  }

  /** Somebody else wrote to the terminal: the next frame begins where the cursor is. */
  forget(): void {
    this.#shown = []
    this.#at = { row: 0, column: 0 }
  }

  #size(): readonly [number | undefined, number | undefined] { return this.#out.getWindowSize?.() ?? [this.#out.columns, this.#out.rows] }
  /** To the first changing line, after the terminal has broken them anew at its new width. */
  #home(): string {
    const rows = this.#shown.slice(0, this.#at.row).reduce((sum, line) => sum + Math.max(1, Math.ceil(widthOf(stripVTControlCharacters(line)) / this.columns)), 0)
    return `\r${up(rows + Math.floor(this.#at.column / this.columns))}`
  }
}

/** As much of a terminal as the chat uses: rows of cells, a cursor, scrolling, the sequences that move and erase. What it does not know fails the test. */
import stringWidth from 'string-width'
import { until, type Place } from './hx.js'
import { terminal, type Terminal } from './terminal.js'

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

export class TestTerminal {
  readonly columns: number
  readonly rows: number
  /** Everything from the first line on; the last `rows` are the screen. */
  #lines: string[][] = [[]]
  #y = 0
  #x = 0
  constructor(columns = 60, rows = 20) { this.columns = columns; this.rows = rows }

  write = (text: string): boolean => {
    for (const [piece] of text.matchAll(/\u001b\[[?\d;]*[A-Za-z]|\r|\n|[^\u001b\r\n]+|\u001b/g)) {
      if (piece === '\r') this.#x = 0
      else if (piece === '\n') this.#down()
      else if (piece.startsWith('\u001b')) this.#sequence(piece)
      else for (const { segment } of graphemes.segment(piece)) this.#put(segment)
    }
    return true
  }
  get cursor(): { row: number; column: number } { return { row: this.#y, column: this.#x } }
  /** What scrolled away and what is on the screen, without spaces at the end of lines and empty lines at the end. */
  get text(): string { return this.#lines.map(cells => Array.from(cells, cell => cell ?? ' ').join('').trimEnd()).join('\n').trimEnd() }

  #top(): number { return Math.max(0, this.#lines.length - this.rows) }
  #down(): void {
    this.#y++
    while (this.#lines.length <= this.#y) this.#lines.push([])
  }
  #put(character: string): void {
    const width = stringWidth(character)
    if (/[\u0000-\u001f\u007f-\u009f]/.test(character)) throw new Error(`a control character was written: ${JSON.stringify(character)}`)
    if (this.#x + width > this.columns) throw new Error(`a line is wider than the terminal: ${JSON.stringify(this.text.split('\n')[this.#y])}`)
    this.#lines[this.#y]![this.#x] = character
    if (width === 2) this.#lines[this.#y]![this.#x + 1] = ''
    this.#x += width
  }
  #sequence(sequence: string): void {
    const [, count = '', kind] = /^\u001b\[(\d*)([A-Za-z])$/.exec(sequence) ?? []
    const n = Number(count || 1)
    if (/^\u001b\[\?(?:2026|25|2004)[hl]$/.test(sequence) || /^\u001b\[[\d;]*m$/.test(sequence)) return
    switch (kind) {
      case 'A': this.#y = Math.max(this.#top(), this.#y - n); return
      case 'B': this.#y = Math.min(this.#lines.length - 1, this.#y + n); return
      case 'C': this.#x = Math.min(this.columns - 1, this.#x + n); return
      case 'K': this.#lines[this.#y]!.length = Math.min(this.#lines[this.#y]!.length, this.#x); return
      case 'J':
        this.#lines[this.#y]!.length = Math.min(this.#lines[this.#y]!.length, this.#x)
        for (let y = this.#y + 1; y < this.#lines.length; y++) this.#lines[y] = []
        return
      default: throw new Error(`unknown sequence ${JSON.stringify(sequence)}`)
    }
  }
}

export interface OnScreen extends Omit<Terminal, 'text' | 'shows'> {
  /** What a person sees, with what has scrolled away. */
  readonly text: string
  /** The bytes. */
  readonly raw: string
  /** Waits until it is seen; the test's own time limit ends the wait. */
  sees(what: string | RegExp): Promise<void>
}

/** A built `hx` whose screen is read, not its bytes. */
export function onScreen(here: Pick<Place, 'folder' | 'env'>, args: readonly string[], env: Record<string, string> = {}): OnScreen {
  const { text: raw, type, code } = terminal(here, args, { NO_COLOR: '', TERM: 'xterm-256color', ...env })
  const screen = new TestTerminal(80, 24)                    // what hx takes a terminal for that does not know its size
  let fed = 0
  const text = () => {
    const whole = raw().slice(fed).replace(/\u001b(?:\[[?\d;]*)?$/, '')                  // a sequence that has come by half
    screen.write(whole.replaceAll('\u0007', ''))
    fed += whole.length
    return screen.text
  }
  return {
    type, code,
    get text() { return text() },
    get raw() { return raw() },
    sees: async what => { await until(() => typeof what === 'string' ? text().includes(what) : what.test(text())) },
  }
}

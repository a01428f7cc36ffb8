/**
 * An ask to the person of a chat: the call as it will run, and the keys that answer it. Pure; the keys come from elsewhere.
 *
 *   open ──y, s, a──▶ answered        open ──n──▶ why ──Enter──▶ answered        any ──withdrawn──▶ gone
 *
 * Invariant: what is allowed is what was shown, whole; a key that was pressed before a person can have read it answers nothing.
 */
import type { ApprovalAnswer, ApprovalRequest } from '../../agent/services.js'
import { exactRule } from '../always.js'
import { printable } from '../terminal.js'
import { EMPTY, edit, type Draft, type Key } from './editor.js'
import { chop, span, wrap, type Line } from './spans.js'

/** Of a person who was typing when the ask came up. */
export const UNREAD_MS = 400

/** A question on the screen of a chat. */
export interface Asked {
  /** It is shown from now on. */
  begin(now?: number): void
  /** What is asked, said for good. */
  shown(width: number): Line[]
  /** What can be pressed, and where the cursor is. */
  live(width: number): { readonly lines: Line[]; readonly column: number }
  /** False when the key is none of its, but of what the person types. */
  press(key: Key, now?: number): boolean
  /** Ctrl-C, where that stops nothing else: leaves everything as it is. */
  dismiss?(): void
}

export class Question implements Asked {
  readonly request: ApprovalRequest
  readonly rule: string | undefined
  readonly #settle: (answer: ApprovalAnswer | undefined) => void
  #since = Infinity
  #why: Draft | undefined

  constructor(request: ApprovalRequest, settle: (answer: ApprovalAnswer | undefined) => void) {
    this.request = request
    this.rule = exactRule(request)
    this.#settle = settle
  }

  begin(now = performance.now()): void { this.#since = now }
  shown(width: number): Line[] {
    const { call, reason, plugin } = this.request
    const command = call.name === 'bash' ? call.arguments['command'] : undefined
    const text = typeof command === 'string' ? command : JSON.stringify(call.arguments, null, Object.keys(call.arguments).length > 1 ? 2 : 0)
    return [[], ...wrap([span(`${printable(plugin)} asks: `, 'yellow', 'bold'), span(printable(reason))], width), [span(`  ${printable(call.name)}`, 'bold')], ...chop(printable(text).replaceAll('\t', '    '), Math.max(10, width - 4)).map((line): Line => [span('    '), span(line)])]
  }
  live(width: number): { readonly lines: Line[]; readonly column: number } {
    if (this.#why) {
      const head = '  why? (Enter alone: no reason) > ', said = this.#why.text.replaceAll('\n', ' ')
      return { lines: [[span(head, 'dim'), span(said.slice(-(width - head.length)))]], column: head.length + Math.min(said.length, width - head.length) }
    }
    const keys = `  [y] once  [s] this session, this very call  ${this.rule === undefined ? '' : '[a] always  '}[n] no, tell the model why `
    const lines = wrap([span(keys.trimEnd(), 'bold')], width - 2).map((line, row): Line => row === 0 ? [span('  '), ...line] : [span('  '), ...line])
    return { lines, column: 0 }
  }
  press(key: Key, now = performance.now()): boolean {
    if (now - this.#since >= UNREAD_MS) this.#press(key)
    return true
  }
  #press(key: Key): void {
    if (this.#why) {
      if (key.name === 'return') this.#settle({ answer: 'denied', note: this.#why.text.trim() || undefined })
      else if (key.name === 'escape') this.#why = undefined
      else this.#why = edit(this.#why, key) ?? this.#why
      return
    }
    if (key.ctrl || key.meta) return
    switch (key.text.toLowerCase()) {
      case 'y': this.#settle({ answer: 'once' }); return
      case 's': this.#settle({ answer: 'session' }); return
      case 'a': if (this.rule !== undefined) this.#settle({ answer: 'always' }); return
      case 'n': this.#why = EMPTY; return
      default: return
    }
  }
}

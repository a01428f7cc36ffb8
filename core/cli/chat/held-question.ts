/**
 * Whether to load what a tool may have changed, put to the person of a chat: y loads it, d shows it first, anything else leaves it.
 * Pure; the keys come from elsewhere. Invariant: a key that was pressed before a person can have read it, or that begins other words, is no yes, and goes to the text.
 */
import type { HeldFile } from '../../loader/held-changes.js'
import { heldLines } from '../held.js'
import type { Key } from './editor.js'
import { UNREAD_MS, type Asked } from './question.js'
import { span, wrap, type Line } from './spans.js'

type Settle = (answer: 'load' | 'leave' | 'diff') => void

export class HeldQuestion {
  readonly #held: readonly HeldFile[]
  #said = false
  constructor(held: readonly HeldFile[]) { this.#held = held }

  /** What was changed, said once. */
  shown(width: number): Line[] {
    if (this.#said) return []
    this.#said = true
    return heldLines(this.#held).flatMap(line => wrap([span(`a tool may have changed ${line}`, 'yellow')], width))
  }
  /** Puts it, again after the difference was shown. */
  asked(settle: Settle): Asked {
    let since = Infinity, open = true
    const end = (answer: Parameters<Settle>[0]) => { open = false; settle(answer) }
    return {
      shown: width => this.shown(width),
      begin: (now = performance.now()) => { since = now },
      live: () => ({ lines: [[span(`  load ${this.#held.length > 1 ? 'them' : 'it'}? [y/N/d diff] `, 'bold')]], column: 0 }),
      dismiss: () => { if (open) end('leave') },
      press: (key: Key, now = performance.now()) => {
        if (!open) return false
        const said = key.ctrl || key.meta || key.name === 'paste' || now - since < UNREAD_MS ? '' : key.text.toLowerCase()
        end(said === 'y' ? 'load' : said === 'd' ? 'diff' : 'leave')
        return said === 'y' || said === 'd' || said === 'n' || key.name === 'escape' || key.ctrl
      },
    }
  }
}

/**
 * The effects of one generation: everything that has to be taken back when it goes. Knows no cordis, whose fibers run their disposers all at once.
 * Invariants: taken back in reverse order, one after another, each awaited up to a limit; each exactly once; a failure is reported and the rest still goes.
 */
import { messageOf } from '../errors.js'
import type { Disposer } from './hooks.js'
import { isThenable, within } from './limits.js'
import type { Log } from './log.js'
import type { Owner, Scope } from './owners.js'

interface Effect { readonly undo: () => unknown; readonly label: string }

export class Effects {
  readonly #list = new Set<Effect>()
  readonly #report: (message: string) => void
  constructor(report: (message: string) => void) { this.#report = report }

  get size(): number { return this.#list.size }
  /** How many there are of a kind: labels read `tool "bash"`. */
  count(kind: string): number {
    let count = 0
    for (const { label } of this.#list) if (label.startsWith(`${kind} "`)) count++
    return count
  }

  /** The disposer takes it back early; it may be called any number of times. */
  add(undo: () => unknown, label: string): Disposer {
    const effect = { undo, label }
    this.#list.add(effect)
    return () => { if (this.#list.delete(effect)) void this.#early(effect) }
  }
  /** Takes everything back. */
  async empty(limitMs: number): Promise<void> {
    while (this.#list.size > 0) {
      for (const effect of [...this.#list].reverse()) {
        if (!this.#list.delete(effect)) continue                     // one that was undone took it back meanwhile
        try {
          await within(limitMs, effect.undo(), () => new Error(`it did not end within ${Math.round(limitMs)} ms`))
        } catch (error) {
          this.#failed(effect, error)
        }
      }
    }
  }

  /** A disposer doesn't wait, but whoever empties the list meanwhile does. */
  async #early(effect: Effect): Promise<void> {
    let pending: Effect | undefined
    try {
      const ending = effect.undo()
      if (!isThenable(ending)) return
      pending = { undo: () => ending, label: effect.label }
      this.#list.add(pending)
      await ending
    } catch (error) {
      if (!pending || this.#list.has(pending)) this.#failed(effect, error)
    } finally {
      if (pending) this.#list.delete(pending)
    }
  }
  #failed(effect: Effect, error: unknown): void { this.#report(`${effect.label} could not be taken back: ${messageOf(error)}`) }
}

/** Where core itself registers, before all plugins; never undone. */
export function coreScope(log: Log): Scope {
  const owner: Owner = { id: 'core', generation: 0, row: -1, stage: 'live' }
  const effects = new Effects(message => { log.warn(`core: ${message}`) })
  let places = 0
  return { owner, path: () => [++places], effect: (undo, label) => effects.add(undo, label) }
}

/**
 * The timers of one generation. Knows no plugin: `run` is how one of its functions is called (owner, async context, containment), `effect` how it is taken back.
 *
 *   recorded ──start()──▶ running ──fired (one-shot)──▶ gone
 *                            └──endIntervals()──▶ intervals gone, one-shots run on: a call in flight may wait for one
 */
import type { Disposer } from './hooks.js'

export interface TimerPort {
  /** Calls a function of the plugin. Never throws or rejects. */
  run(work: () => unknown): void
  effect(undo: () => unknown, label: string): Disposer
}

/** Beyond this Node fires at once. */
export const LONGEST_MS = 2 ** 31 - 1

export class Timers {
  readonly #port: TimerPort
  readonly #waiting = new Set<() => void>()
  readonly #intervals = new Set<Disposer>()
  #count = 0
  #started = false
  constructor(port: TimerPort) { this.#port = port }

  get count(): number { return this.#count }
  get running(): number { return this.#started ? this.#count : 0 }

  once(run: () => unknown, ms: number): Disposer {
    let timer: NodeJS.Timeout | undefined
    const fire = () => { off(); this.#port.run(run) }                // gives its effect back first, or a timer that renews itself would fill the list
    const begin = () => { timer = setTimeout(fire, ms) }
    const off = this.#add(begin, () => { clearTimeout(timer) }, 'a timeout')
    return off
  }
  every(run: () => unknown, ms: number): Disposer {
    let timer: NodeJS.Timeout | undefined
    const begin = () => { timer = setInterval(() => { this.#port.run(run) }, ms) }
    const off = this.#add(begin, () => { clearInterval(timer); this.#intervals.delete(off) }, 'an interval')
    this.#intervals.add(off)
    return off
  }
  /** At the switch. */
  start(): void {
    this.#started = true
    for (const begin of this.#waiting) begin()
    this.#waiting.clear()
  }
  endIntervals(): void { for (const off of [...this.#intervals]) off() }

  #add(begin: () => void, end: () => void, label: string): Disposer {
    this.#count++
    const off = this.#port.effect(() => { this.#count--; this.#waiting.delete(begin); end() }, label)
    if (this.#started) begin()
    else this.#waiting.add(begin)
    return off
  }
}

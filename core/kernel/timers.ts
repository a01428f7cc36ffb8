/**
 * The timers of one generation. Knows no plugin: `run` is how one of its functions is called (owner, async context, containment), `effect` how it is taken back.
 *
 *   recorded ──start()──▶ running ──fired (one-shot)──▶ gone
 *                            └──endIntervals()──▶ intervals gone, one-shots run on: a call in flight may wait for one
 */
import type { Disposer } from './hooks.js'
import { labelOf, type Origin } from './owners.js'

export interface TimerPort {
  /** Calls a function of the plugin. Never throws or rejects. */
  run(work: () => unknown, seat: number): void
  effect(undo: () => unknown, label: string): Disposer
  origin(below: (...args: never[]) => unknown): Origin
}

/** Beyond this Node fires at once. */
export const LONGEST_MS = 2 ** 31 - 1

export class Timers {
  readonly #port: TimerPort
  readonly #waiting = new Set<() => void>()
  readonly #intervals = new Set<Disposer>()
  readonly #origins = new Set<Origin>()
  #started = false
  constructor(port: TimerPort) { this.#port = port }

  get count(): number { return this.#origins.size }
  get running(): number { return this.#started ? this.count : 0 }
  *labels(): Generator<[seat: number, label: string]> { for (const origin of this.#origins) yield [origin.seat, labelOf('timer', origin)] }

  /** `below`: the function on the stack that the plugin called. */
  once(run: () => unknown, ms: number, below: (...args: never[]) => unknown = this.once): Disposer {
    const origin = this.#port.origin(below)
    let timer: NodeJS.Timeout | undefined
    const fire = () => { off(); this.#port.run(run, origin.seat) }                // gives its effect back first, or a timer that renews itself would fill the list
    const begin = () => { timer = setTimeout(fire, ms) }
    const off = this.#add(begin, () => { clearTimeout(timer) }, 'a timeout', origin)
    return off
  }
  every(run: () => unknown, ms: number, below: (...args: never[]) => unknown = this.every): Disposer {
    const origin = this.#port.origin(below)
    let timer: NodeJS.Timeout | undefined
    const begin = () => { timer = setInterval(() => { this.#port.run(run, origin.seat) }, ms) }
    const off = this.#add(begin, () => { clearInterval(timer); this.#intervals.delete(off) }, 'an interval', origin)
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

  #add(begin: () => void, end: () => void, label: string, origin: Origin): Disposer {
    this.#origins.add(origin)
    const off = this.#port.effect(() => { this.#origins.delete(origin); this.#waiting.delete(begin); end() }, label)
    if (this.#started) begin()
    else this.#waiting.add(begin)
    return off
  }
}

/** How long the event loop of this process is held up, as the 99th percentile of the last minute or two. Off until it is started, since each look wakes the process. */
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'

/** How often it is looked at; rarely. After how long what was seen is old. */
const SAMPLE_MS = 100, WINDOW_MS = 60_000

export class LoopDelay {
  #seen: IntervalHistogram | undefined
  /** Of the window before this one. */
  #before = 0
  #window: NodeJS.Timeout | undefined

  start(): void {
    const seen = this.#seen = monitorEventLoopDelay({ resolution: SAMPLE_MS })
    seen.enable()
    this.#window = setInterval(() => {
      this.#before = this.#now()
      seen.reset()
    }, WINDOW_MS).unref()
  }
  stop(): void {
    this.#seen?.disable()
    clearInterval(this.#window)
  }
  get p99Ms(): number { return Math.max(this.#before, this.#now()) }
  /** A sample is the time between two looks. */
  #now(): number { return this.#seen ? Math.max(0, Math.round((this.#seen.percentile(99) / 1e6 - SAMPLE_MS) * 10) / 10) || 0 : 0 }
}

/**
 * Keeps a search from holding anything up: an end after which it is given up with a sentence, and rests so that the event loop is never blocked for long.
 */
import { setImmediate } from 'node:timers/promises'

/** Runs `search` with a signal that also ends it after `ms`. */
export async function withLimit<T>(signal: AbortSignal, ms: number, search: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const limit = new AbortController()
  const timer = setTimeout(() => { limit.abort(new Error(`the search was given up after ${ms / 1000} s; search a smaller folder, or narrow the pattern`)) }, ms)
  try {
    return await search(AbortSignal.any([signal, limit.signal]))
  } finally {
    clearTimeout(timer)
  }
}

/** How long a search may compute between two rests. */
const SLICE_MS = 10

export class Slices {
  #began = performance.now()
  readonly #signal: AbortSignal
  constructor(signal: AbortSignal) { this.#signal = signal }
  get over(): boolean { return performance.now() - this.#began > SLICE_MS }
  /** Lets everything else run; throws when the search was stopped meanwhile. */
  async rest(): Promise<void> {
    await setImmediate()
    this.#signal.throwIfAborted()
    this.#began = performance.now()
  }
}

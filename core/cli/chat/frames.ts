/** When a screen is drawn anew: at once where it is asked to, else at most so often, and now and then while a clock on it runs. Knows not what is drawn. */

/** Between two frames, while something moves; and how often the clock is looked at. */
const FRAME_MS = 30, TICK_MS = 100

export class Frames {
  readonly #draw: () => void
  readonly #tick: NodeJS.Timeout
  #timer: NodeJS.Timeout | undefined
  #last = 0

  /** `moves`: does something change by itself? */
  constructor(draw: () => void, moves: () => boolean) {
    this.#draw = draw
    this.#tick = setInterval(() => { if (moves()) this.now() }, TICK_MS)
  }
  now(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#last = performance.now()
    this.#draw()
  }
  soon(): void { this.#timer ??= setTimeout(() => { this.now() }, Math.max(0, FRAME_MS - (performance.now() - this.#last))) }
  end(): void {
    clearInterval(this.#tick)
    clearTimeout(this.#timer)
  }
}

/**
 * When calls ran whose effects are not confined to the workspace: what changed on disk meanwhile may be theirs. Knows no tool and no file; times are those of the wall clock, as files carry them.
 * Invariants: old spans grow together rather than be forgotten; a clock that is put back meanwhile makes a span wider, never empty.
 */
interface Span { readonly from: number; readonly to: number }

/** The clock of a file system ticks less often than ours. */
const TICK_MS = 25
const MOST = 1000

export class UnconfinedSpans {
  /** Of calls that have ended. */
  readonly #spans: Span[] = []
  #running = 0
  /** When the first of those that run began, on the wall and on a clock that nobody sets. */
  #since = 0
  #started = 0

  /** Calls that run now. */
  get running(): number { return this.#running }
  /** A call begins; what is returned ends it. */
  begin(now: number = Date.now()): (now?: number) => void {
    if (this.#running++ === 0) {
      this.#since = now
      this.#started = performance.now()
    }
    let over = false
    return (end = Date.now()) => {
      if (over) return
      over = true
      if (--this.#running === 0) this.#add({ from: this.#earliest(end), to: Math.max(this.#since, end) + TICK_MS })
    }
  }
  /** Did one run at this moment? */
  covers(at: number): boolean {
    return this.#spans.some(({ from, to }) => from <= at && at <= to) || this.#running > 0 && at >= this.#earliest(Date.now())
  }
  /** Has any run yet? */
  get any(): boolean { return this.#spans.length > 0 || this.#running > 0 }

  /** What changed since they began may carry, when it is `now`. */
  #earliest(now: number): number { return Math.min(this.#since, now - (performance.now() - this.#started)) - TICK_MS }
  #add(span: Span): void {
    const last = this.#spans.at(-1)
    if (last && span.from <= last.to && last.from <= span.to) this.#spans.splice(-1, 1, around(last, span))
    else this.#spans.push(span)
    if (this.#spans.length > MOST) this.#spans.splice(0, 2, around(this.#spans[0]!, this.#spans[1]!))
  }
}
const around = (a: Span, b: Span): Span => ({ from: Math.min(a.from, b.from), to: Math.max(a.to, b.to) })

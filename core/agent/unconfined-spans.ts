/**
 * When calls ran whose effects are not confined to the workspace: what changed on disk meanwhile may be theirs. Knows no tool and no file; times are those of the wall clock, as files carry them.
 * Invariants: spans don't overlap and stand in order; old ones grow together rather than be forgotten.
 */
interface Span { readonly from: number; to: number }

/** The clock of a file system ticks less often than ours. */
const TICK_MS = 25
const MOST = 1000

export class UnconfinedSpans {
  readonly #spans: Span[] = []
  #running = 0

  /** Calls that run now. */
  get running(): number { return this.#running }
  /** A call begins; what is returned ends it. */
  begin(now: number = Date.now()): (now?: number) => void {
    if (this.#running++ === 0) this.#open(now - TICK_MS)
    let over = false
    return (end = Date.now()) => {
      if (over) return
      over = true
      if (--this.#running === 0) this.#spans.at(-1)!.to = end + TICK_MS
    }
  }
  /** Did one run at this moment? */
  covers(at: number): boolean { return this.#spans.some(({ from, to }) => from <= at && at <= to) }
  /** Has any run yet? */
  get any(): boolean { return this.#spans.length > 0 }

  #open(from: number): void {
    const last = this.#spans.at(-1)
    if (last && from <= last.to) { last.to = Infinity; return }
    this.#spans.push({ from, to: Infinity })
    if (this.#spans.length > MOST) this.#spans.splice(0, 2, { from: this.#spans[0]!.from, to: this.#spans[1]!.to })
  }
}

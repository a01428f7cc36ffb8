/**
 * The terminal is lent by a shell: it is taken, given back while this process is stopped (Ctrl-Z, or from outside), and taken again, since the shell leaves it as it likes. Knows no key and no screen.
 *
 *   taken ──stop──▶ given back ──continued, or nothing stopped it──▶ taken        any ──end──▶ given back
 */

/** A process that was stopped has not come this far when it goes on. */
const STOPS_WITHIN_MS = 100

export class ShellJob {
  readonly #take: () => () => void
  readonly #back: () => void
  #give: () => void
  /** The terminal is the shell's. */
  stopped = false

  /** `take` takes the terminal and gives what gives it back; `back` is called when it was taken again. */
  constructor(take: () => () => void, back: () => void) {
    this.#take = take
    this.#back = back
    this.#give = take()
    process.on('SIGCONT', this.#resume)
  }
  stop(): void {
    this.stopped = true
    this.#give()
    process.kill(process.pid, 'SIGTSTP')
    setTimeout(() => { if (this.stopped) this.#resume() }, STOPS_WITHIN_MS)          // without a shell that could continue it, nothing stops it
  }
  end(): void {
    process.off('SIGCONT', this.#resume)
    this.#give()
  }
  readonly #resume = (): void => {
    this.stopped = false
    this.#give()
    this.#give = this.#take()
    this.#back()
  }
}

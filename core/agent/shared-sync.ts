/** One sync serves all who wait for it: who comes while one runs shares the next. Knows no file. */
export class SharedSync {
  readonly #sync: () => Promise<void>
  #running: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(sync: () => Promise<void>) { this.#sync = sync }

  /** Resolves when a sync that began after this call has ended; rejects when that one failed. */
  request(): Promise<void> {
    if (!this.#running) return this.#running = this.#sync().finally(() => { this.#running = undefined })
    return this.#next ??= this.#running.catch(() => {}).then(() => {           // its own callers have its failure
      this.#next = undefined
      return this.request()
    })
  }
}

/** What a job of the host came to. */
export interface ReloadReport {
  /** Entries whose running version was replaced. */
  readonly reloaded: readonly string[]
  readonly failed: readonly { readonly id: string; readonly message: string }[]
  /** From the beginning of the job to its end. */
  readonly ms: number
}

/** The report while it is written. */
export class Report {
  readonly #started = performance.now()
  readonly #reloaded = new Set<string>()
  readonly #failed = new Map<string, string>()
  elapsed(): number { return performance.now() - this.#started }
  reloaded(id: string): void { this.#reloaded.add(id) }
  failed(id: string, message: string): void { this.#failed.set(id, message) }
  done(): ReloadReport { return { reloaded: [...this.#reloaded], failed: [...this.#failed].map(([id, message]) => ({ id, message })), ms: this.elapsed() } }
}

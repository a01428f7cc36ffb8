/**
 * Are unloaded versions really gone? Holds each one's ctx weakly and looks again after a minute. A version that is still there is kept by something outside `ctx`: a raw timer, a listener, a cache.
 * "Still there" may only mean that nothing was collected yet. So beside each ctx stands a witness of the same age that nobody else holds: only when the witness is gone does a living ctx mean anything.
 */

interface Parted { readonly plugin: string; readonly ctx: WeakRef<object>; readonly witness: WeakRef<object>; readonly since: number }

export class Releases {
  readonly #parted = new Set<Parted>()
  readonly #gone = new FinalizationRegistry<Parted>(parted => { this.#parted.delete(parted) })
  readonly #told = new Map<string, number>()
  readonly #report: (plugin: string, versions: number) => void
  readonly #graceMs: number
  #timer: NodeJS.Timeout | undefined
  constructor(report: (plugin: string, versions: number) => void, graceMs = 60_000) { this.#report = report; this.#graceMs = graceMs }

  /** To be called when the last reference of the kernel goes. `witness` was made together with `ctx`. */
  watch(plugin: string, ctx: object, witness: object): void {
    const parted = { plugin, ctx: new WeakRef(ctx), witness: new WeakRef(witness), since: performance.now() }
    this.#parted.add(parted)
    this.#gone.register(ctx, parted)
    this.#timer ??= setInterval(() => { this.look() }, this.#graceMs).unref()
  }
  /** Reports per plugin how many versions are held, once for each number. */
  look(): void {
    const held = new Map<string, number>()
    for (const parted of this.#parted) {
      if (parted.ctx.deref() === undefined || parted.witness.deref() !== undefined || performance.now() - parted.since < this.#graceMs) continue
      held.set(parted.plugin, (held.get(parted.plugin) ?? 0) + 1)
    }
    for (const [plugin, versions] of held) {
      if (versions > (this.#told.get(plugin) ?? 0)) this.#report(plugin, versions)
      this.#told.set(plugin, versions)
    }
    if (this.#parted.size === 0) this.stop()
  }
  /** Versions that were unloaded and are not known to be gone. */
  get size(): number { return this.#parted.size }
  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}

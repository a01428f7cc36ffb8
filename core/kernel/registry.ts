/**
 * The one kind of table for everything a plugin registers: hooks, tools, models, commands, services. Ordered, owned, generational.
 * Knows owners and places, not what it holds. Invariants: a published list never changes, it is replaced; place = prepend, config row, path inside the plugin;
 * only what a live owner registered is seen.
 */
import { HarnessError } from '../errors.js'
import type { Gate } from './gate.js'
import type { Disposer } from './hooks.js'
import { labelOf, type Member, type Origin, type Owner, type Owners, type Scope } from './owners.js'

export type { Owner, Scope, Stage } from './owners.js'

export interface Entry<T> { readonly owner: Owner; readonly slot: string; readonly prepend: boolean; readonly path: readonly number[]; readonly origin: Origin | undefined; readonly value: T }
/** What is seen of one slot. Immutable but for `holds`, the number of dispatches that walk it. */
export interface Listing<T> { readonly slot: string; readonly entries: readonly Entry<T>[]; readonly values: readonly T[]; readonly owners: ReadonlySet<Owner>; holds: number }
/** Throws to refuse `entry` beside `present`. */
export type Unique<T> = (entry: Entry<T>, present: Entry<T>) => void
export interface RegistryOptions<T> {
  readonly unique?: Unique<T> | undefined
  /** Do gates stand before this slot? All, unless said otherwise. */
  readonly gated?: ((slot: string) => boolean) | undefined
}
interface Closed<T> { readonly gate: Gate; readonly listing: Listing<T> }

export class Registry<T> implements Member {
  readonly kind: string
  readonly #owners: Owners
  readonly #unique: Unique<T> | undefined
  readonly #gated: (slot: string) => boolean
  readonly #all = new Map<string, Set<Entry<T>>>()
  readonly #seen = new Map<string, Listing<T>>()
  /** Replaced, while dispatches still walk them. */
  readonly #past = new Set<Listing<T>>()
  readonly #closed = new Map<string, readonly Closed<T>[]>()
  readonly #empty: Listing<T> = { slot: '', entries: [], values: [], owners: new Set(), holds: 0 }
  #ordered: readonly Entry<T>[] | undefined

  constructor(kind: string, owners: Owners, { unique, gated }: RegistryOptions<T> = {}) {
    this.kind = kind
    this.#owners = owners
    this.#unique = unique
    this.#gated = gated ?? (() => true)
    owners.attach(this)
  }

  /** Of what a plugin registers here by calling `below`. */
  origin(scope: Scope, below: (...args: never[]) => unknown): Origin { return this.#owners.origin(scope.owner, below) }
  /** Registers through a scope: seen while the owner is live, gone with it. Throws `already_registered` when `unique` refuses it. */
  add(scope: Scope, slot: string, value: T, { prepend = false, origin }: { prepend?: boolean; origin?: Origin } = {}): Disposer {
    const { owner } = scope
    if (owner.stage === 'retired' || owner.stage === 'disposed') throw new HarnessError('stale_context', `plugin "${owner.id}" is being unloaded and can not register ${this.kind} "${slot}"`)
    const entry: Entry<T> = { owner, slot, prepend, path: scope.path(), origin, value }
    for (const present of this.#all.get(slot) ?? []) if (present.owner === owner || owner.stage === 'live' && present.owner.stage === 'live') this.#unique?.(entry, present)
    const disposer = scope.effect(() => this.#remove(entry), `${this.kind} "${slot}"`)
    this.#all.set(slot, (this.#all.get(slot) ?? new Set()).add(entry))
    if (owner.stage === 'live') this.#compile(slot)
    return disposer
  }
  /** The first visible entry of a slot. Behind a closed gate what stood there is shown until it opens: it is about to be back, and whoever uses it waits. */
  get(slot: string): Entry<T> | undefined { return this.#shown(slot)?.entries[0] }
  /** All visible entries, in order. */
  entries(): readonly Entry<T>[] {
    return this.#ordered ??= this.slots().flatMap(slot => this.#shown(slot)?.entries ?? []).sort(byPlace)
  }
  /** Of each visible entry its number among those of its plugin, in the order of registration; 1… */
  numbers(): ReadonlyMap<Entry<T>, number> {
    const counts = new Map<string, number>()
    return new Map([...this.#seen.values()].flatMap(({ entries }) => entries).sort((a, b) => byPath(a.path, b.path)).map(entry => {
      const nth = (counts.get(entry.owner.id) ?? 0) + 1
      counts.set(entry.owner.id, nth)
      return [entry, nth]
    }))
  }
  slots(): readonly string[] { return [...new Set([...this.#seen.keys(), ...this.#closed.keys()])] }
  /** Everything registered, staged ones too. */
  get size(): number {
    let count = 0
    for (const slot of this.#all.values()) count += slot.size
    return count
  }

  /**
   * Runs `work` with the first entry of `slot` as a call of its owner: waits at a closed gate, counts as in flight, enters the owner's async context.
   * Undefined when nobody has the slot.
   */
  use<R>(slot: string, work: (value: T, entry: Entry<T>) => R | PromiseLike<R>, signal?: AbortSignal): Promise<R> | undefined {
    const taken = this.take(slot, signal)
    if (taken instanceof Promise) return taken.then(listing => this.#use(slot, listing, work))
    return taken.entries.length === 0 ? undefined : this.#use(slot, taken, work)
  }
  /** The list that a call beginning now works on, held until `release`: at once, or when the gates before it have opened. */
  take(slot: string, signal?: AbortSignal): Listing<T> | Promise<Listing<T>> {
    return this.#closed.has(slot) ? this.#pass(slot, signal) : this.#hold(this.look(slot))
  }
  /** What is seen of the slot now, not held. */
  look(slot: string): Listing<T> { return this.#seen.get(slot) ?? this.#empty }
  release(listing: Listing<T>): void {
    if (--listing.holds > 0) return
    this.#past.delete(listing)
    this.#owners.settle()
  }
  /** Is there anything a call would meet: an entry, or a closed gate? */
  has(slot: string): boolean { return this.#seen.has(slot) || this.#closed.has(slot) }

  // ---- as a member of the owners
  check(ins: ReadonlySet<Owner>, outs: ReadonlySet<Owner>): void {
    if (this.#unique === undefined) return
    for (const slot of this.#all.values()) {
      const after = [...slot].filter(({ owner }) => ins.has(owner) || owner.stage === 'live' && !outs.has(owner))
      for (const entry of after) if (ins.has(entry.owner)) for (const present of after) if (present.owner !== entry.owner) this.#unique(entry, present)
    }
  }
  publish(owners: ReadonlySet<Owner>): void {
    for (const [name, slot] of this.#all) for (const { owner } of slot) if (owners.has(owner)) { this.#compile(name); break }
  }
  *labels(): Generator<[seat: number, label: string]> {
    for (const slot of this.#all.values()) for (const { origin, slot: name } of slot) if (origin) yield [origin.seat, labelOf(`${this.kind} "${name}"`, origin)]
  }
  holds(owner: Owner): number {
    let count = 0
    for (const listing of [...this.#seen.values(), ...this.#past]) if (listing.owners.has(owner)) count += listing.holds
    return count
  }
  close(gate: Gate): () => void {
    const mine: [slot: string, closed: Closed<T>][] = []
    for (const [slot, listing] of this.#seen) {
      if (!this.#gated(slot) || ![...gate.owners].some(owner => listing.owners.has(owner))) continue
      const closed = { gate, listing }
      mine.push([slot, closed])
      this.#closed.set(slot, [...this.#closed.get(slot) ?? [], closed])
    }
    return () => {
      for (const [slot, closed] of mine) {
        const rest = (this.#closed.get(slot) ?? []).filter(other => other !== closed)
        if (rest.length > 0) this.#closed.set(slot, rest)
        else this.#closed.delete(slot)
      }
      this.#ordered = undefined
    }
  }

  #shown(slot: string): Listing<T> | undefined { return this.#closed.get(slot)?.[0]?.listing ?? this.#seen.get(slot) }
  async #pass(slot: string, signal: AbortSignal | undefined): Promise<Listing<T>> {
    let end: number | undefined
    for (let closed; (closed = this.#closed.get(slot)?.[0]) !== undefined;) {
      if (closed.gate.admits()) return this.#hold(closed.listing)
      end ??= performance.now() + closed.gate.limitMs
      await closed.gate.wait(`${this.kind} "${slot}"`, end - performance.now(), signal)
    }
    return this.#hold(this.look(slot))
  }
  async #use<R>(slot: string, listing: Listing<T>, work: (value: T, entry: Entry<T>) => R | PromiseLike<R>): Promise<R> {
    const entry = listing.entries[0]
    try {
      if (entry === undefined) throw new HarnessError('unknown_id', `${this.kind} "${slot}" is gone: its plugin did not come back from a reload`)
      if (entry.owner.stage === 'disposed') throw new HarnessError('stale_context', `${this.kind} "${slot}": its plugin "${entry.owner.id}" was unloaded while this call ran`)
      return this.#owners.call(entry.owner, () => work(entry.value, entry), entry.origin?.seat)          // counted before the list is let go
    } finally { this.release(listing) }
  }
  #hold(listing: Listing<T>): Listing<T> {
    listing.holds++
    return listing
  }
  #remove(entry: Entry<T>): void {
    const slot = this.#all.get(entry.slot)
    if (!slot?.delete(entry)) return
    if (slot.size === 0) this.#all.delete(entry.slot)
    if (entry.owner.stage === 'live') this.#compile(entry.slot)
  }
  #compile(slot: string): void {
    this.#ordered = undefined
    const before = this.#seen.get(slot)
    if (before && before.holds > 0) this.#past.add(before)
    const entries = [...this.#all.get(slot) ?? []].filter(({ owner }) => owner.stage === 'live').sort(byPlace)
    if (entries.length === 0) this.#seen.delete(slot)
    else this.#seen.set(slot, { slot, entries, values: entries.map(({ value }) => value), owners: new Set(entries.map(({ owner }) => owner)), holds: 0 })
  }
}

function byPlace(a: Entry<unknown>, b: Entry<unknown>): number {
  return Number(b.prepend) - Number(a.prepend) || a.owner.row - b.owner.row || byPath(a.path, b.path)
}
function byPath(a: readonly number[], b: readonly number[]): number {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i]! - b[i]!
  return a.length - b.length
}

/**
 * The services: core's own, made per plugin by a view, and those that plugins provide. A name belongs to one owner.
 * Invariants: an offer is recorded when it is made and seen once it is published; a clash is found before anything is published; whoever withdraws takes only his own.
 */
import { HarnessError } from '../errors.js'
import type { Owner, Scope } from './registry.js'

/** A service that a plugin offers, seen or not. */
export interface Offer { readonly name: string; readonly value: unknown; readonly owner: Owner }

export class Services {
  readonly #core = new Map<string, (scope: Scope) => unknown>()
  readonly #published = new Map<string, Offer>()

  /** A service of core: `view` makes what the plugin of a scope sees. */
  addCore(name: string, view: (scope: Scope) => unknown): void {
    if (this.owner(name) !== undefined) throw new HarnessError('internal', `service "${name}" is there already`)
    this.#core.set(name, view)
  }
  get coreViews(): ReadonlyMap<string, (scope: Scope) => unknown> { return this.#core }

  /** Whose service it is: an entry's id, or "core"; undefined while nobody provides it. */
  owner(name: string): string | undefined { return this.#core.has(name) ? 'core' : this.#published.get(name)?.owner.id }
  has(name: string): boolean { return this.owner(name) !== undefined }
  names(): string[] { return [...this.#core.keys(), ...this.#published.keys()] }
  offer(name: string): Offer | undefined { return this.#published.get(name) }

  /** Throws `already_registered` when one of these offers would meet another that stays. */
  check(offers: Iterable<Offer>, leaving: ReadonlySet<Owner> = new Set()): void {
    const coming = new Map<string, Offer>()
    for (const offer of offers) {
      const other = coming.get(offer.name) ?? this.#published.get(offer.name)
      if (this.#core.has(offer.name) || (other && other !== offer && !leaving.has(other.owner))) {
        throw new HarnessError('already_registered', `plugin "${offer.owner.id}" offers service "${offer.name}", which belongs to ${other ? `plugin "${other.owner.id}"` : 'core'}; choose another name, or disable one of them`)
      }
      coming.set(offer.name, offer)
    }
  }
  publish(offer: Offer): void { this.#published.set(offer.name, offer) }
  withdraw(offer: Offer): void { if (this.#published.get(offer.name) === offer) this.#published.delete(offer.name) }
}

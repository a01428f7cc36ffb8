/**
 * Owners of registrations, and the one step that switches them. The stage stands on the owner, not on what it registered, so that a switch changes all registries at once.
 * Knows registries only as members. Invariants: whatever can refuse a switch does so before anything has changed; a switch is synchronous;
 * an owner is idle when no call of it runs and no dispatch in flight holds a list that contains it.
 */
import { at, HarnessError, type Place } from '../errors.js'
import { type Activity, current, enter, leave, seatWithin } from './async-context.js'
import { callSite, type Locate } from './call-site.js'
import { Gate } from './gate.js'
import type { Disposer } from './hooks.js'

/** staged: registered, unseen. live: seen. retired: old calls end on it, new ones don't see it. disposed: gone. */
export type Stage = 'staged' | 'live' | 'retired' | 'disposed'
/** What owns registrations: one mounted version of one entry, one of its optional scopes, or core itself. */
export interface Owner { readonly id: string; readonly generation: number; row: number; stage: Stage; /** Where its code stands. */ readonly file?: string | undefined; /** Its number in the async context. */ readonly seat?: number }
/** Of one registration: its number in the async context, and the line of the plugin that made it. */
export interface Origin { readonly seat: number; readonly site: () => Place | undefined }
/** What the watchdog says when nothing can say where the code is: `what` of a plugin it is in, and where that was registered. */
export function labelOf(what: string, { site }: Origin): string {
  const place = site()
  return `its ${what}${place === undefined ? '' : ` (${at(place)})`}`
}
/** Where a registration is made: its owner, its place inside the plugin, and the effect list that takes it back. */
export interface Scope {
  readonly owner: Owner
  /** The place of the registration that is made now: numbers of the calls that lead to it. */
  readonly path: () => readonly number[]
  effect(undo: () => unknown, label: string): Disposer
}

/** What takes part in a switch. */
export interface Member {
  /** Throws when the switch would give a name two owners. */
  check(ins: ReadonlySet<Owner>, outs: ReadonlySet<Owner>): void
  /** The stage or row of these owners has changed. */
  publish(owners: ReadonlySet<Owner>): void
  /** How many dispatches in flight hold this owner. */
  holds(owner: Owner): number
  /** Closes the gate before what the gate's owners offer here; returns the opener. */
  close(gate: Gate): () => void
  /** What to call each registration, by its number. */
  labels(): Iterable<readonly [seat: number, label: string]>
}

export class Owners {
  readonly #members: Member[] = []
  readonly #calls = new WeakMap<Owner, number>()
  /** From the script position of a registration to the place in its source. */
  locate: Locate = raw => raw
  #drains: { readonly owner: Owner; readonly done: () => void }[] = []

  attach(member: Member): void { this.#members.push(member) }
  /** Of what the plugin registers by calling `below`, a function on the stack. */
  origin(owner: Owner, below: (...args: never[]) => unknown): Origin { return { seat: seatWithin(owner.seat ?? 0), site: callSite(below, raw => this.locate(raw)) } }
  /** What to call each registration of all plugins, staged ones too. */
  labels(): (readonly [seat: number, label: string])[] { return this.#members.flatMap(member => [...member.labels()]) }

  /** `ins` become live and `outs` retired, in all registries, for every call that begins afterwards. Throws, with nothing changed, when a name would clash. */
  switch(ins: readonly Owner[], outs: readonly Owner[] = []): void {
    for (const owner of ins) if (owner.stage !== 'staged') throw new HarnessError('internal', `plugin "${owner.id}": only a staged version can be switched in, this one is ${owner.stage}`)
    const coming = new Set(ins), going = new Set(outs)
    for (const member of this.#members) member.check(coming, going)
    for (const owner of outs) if (owner.stage === 'live') owner.stage = 'retired'
    for (const owner of ins) owner.stage = 'live'
    this.#publish([...outs, ...ins])
  }
  /** New calls don't see it any more; running ones end on it. */
  retire(owner: Owner): void {
    if (owner.stage !== 'live') return
    owner.stage = 'retired'
    this.#publish([owner])
  }
  /** Nothing of it is called any more, and handlers of it that still run are let go. */
  dispose(owner: Owner): void {
    if (owner.stage === 'disposed') return
    owner.stage = 'disposed'
    this.#publish([owner])
  }
  /** Editing the YAML order is the one thing that changes places. */
  reorder(rows: ReadonlyMap<Owner, number>): void {
    for (const [owner, row] of rows) owner.row = row
    this.#publish([...rows.keys()])
  }

  /** Runs `work` as a call of `owner`: on its account and counted as in flight until it ends. `seat`: the number of what is called. */
  async call<R>(owner: Owner, work: () => R | PromiseLike<R>, seat = owner.seat ?? 0): Promise<R> {
    const activity: Activity = { owner, seat, parent: current(), over: false }
    this.#calls.set(owner, this.#running(owner) + 1)
    try { return await enter(activity, work) } finally {
      leave(activity)
      this.#calls.set(owner, this.#running(owner) - 1)
      this.settle()
    }
  }
  /** Calls of it that run, and dispatches in flight that hold it. */
  inFlight(owner: Owner): number { return this.#members.reduce((sum, member) => sum + member.holds(owner), this.#running(owner)) }
  idle(owner: Owner): boolean { return this.inFlight(owner) === 0 }
  /** Resolves once the owner is idle. Bounding the wait is the caller's. */
  drained(owner: Owner): Promise<void> {
    return this.idle(owner) ? Promise.resolve() : new Promise(done => { this.#drains.push({ owner, done }) })
  }
  /** To be called by members whenever something has let go of its owners. */
  settle(): void {
    if (this.#drains.length === 0) return
    const idle = this.#drains.filter(({ owner }) => this.idle(owner))
    if (idle.length === 0) return
    this.#drains = this.#drains.filter(drain => !idle.includes(drain))
    for (const { done } of idle) done()
  }

  /**
   * Closes the gates before what these owners decide, amend, stand around and offer: a call that begins now waits, `limitMs` at most, until the opener is called.
   * A call begun inside one that their drain waits for passes, on what was there when the gate closed; else both would wait for each other.
   */
  close(owners: readonly Owner[], limitMs: number): () => void {
    const gate = new Gate(owners, limitMs)
    const openers = this.#members.map(member => member.close(gate))
    return () => {
      for (const open of openers) open()
      gate.open()
    }
  }

  #running(owner: Owner): number { return this.#calls.get(owner) ?? 0 }
  #publish(owners: readonly Owner[]): void {
    const changed = new Set(owners)
    for (const member of this.#members) member.publish(changed)
  }
}

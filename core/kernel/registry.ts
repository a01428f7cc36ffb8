/** CONTRACT STUB, to be replaced by the implementation with these signatures. */
import type { Disposer } from './hooks.js'

/** staged: registered, unseen. live: seen. retired: old calls end on it, new ones don't see it. disposed: gone. */
export type Stage = 'staged' | 'live' | 'retired' | 'disposed'
/** What owns registrations: one mounted version of one entry (kernel/generation.ts), or core itself. */
export interface Owner { readonly id: string; readonly generation: number; row: number; stage: Stage }
export interface Entry<T> { readonly owner: Owner; readonly slot: string; readonly prepend: boolean; readonly path: readonly number[]; readonly value: T }
/** Where a registration is made: its owner, its place inside the plugin, and the effect list that takes it back. */
export interface Scope { readonly owner: Owner; readonly path: () => readonly number[]; effect(undo: () => unknown, label: string): Disposer }

export declare class Registry<T> {
  readonly kind: string
  /** Registers through a scope: visible while the owner is live, gone with it. Throws `already_registered` when `unique` refuses it. */
  add(scope: Scope, slot: string, value: T, options?: { prepend?: boolean }): Disposer
  /** The first visible entry of a slot. */
  get(slot: string): Entry<T> | undefined
  /** All visible entries, in order. */
  entries(): readonly Entry<T>[]
  slots(): readonly string[]
  /** Runs `work` with the entry of `slot` as a call of its owner: waits at a closed gate, counts as in flight, enters the owner's async context. Undefined when nobody has the slot. */
  use<R>(slot: string, work: (value: T, entry: Entry<T>) => Promise<R>): Promise<R> | undefined
  /** Everything registered, staged ones too: what the leak tests compare. */
  readonly size: number
}

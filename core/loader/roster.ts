/**
 * The entries and what is known of each: state, reason, last error. Tells the kernel about required ones, the log and subscribers about the rest. Starts and stops nothing.
 * Invariant: a required entry that should be active and is not is known to the kernel from the very moment its state says so.
 */
import { at, didYouMean, HarnessError, messageOf } from '../errors.js'
import type { Kernel, Leak } from '../kernel/kernel.js'
import { flatten, placeIn } from '../kernel/report.js'
import type { EntrySpec, EntryState } from './entry.js'
import { Hosted } from './hosted.js'
import type { Report } from './report.js'
import { explain } from './waiting.js'

export interface HostEvents {
  loaded: { readonly id: string; readonly version: number }
  unloaded: { readonly id: string; readonly reason: string }
  reloaded: { readonly id: string; readonly version: number; readonly ms: number }
  /** `active`: an older version goes on. */
  failed: { readonly id: string; readonly message: string; readonly active: boolean }
  leaked: Leak
  /** A job of the queue is done: files to follow may have changed. */
  settled: Record<string, never>
}
export type Inactive = Exclude<EntryState, 'active'>

/** What a refused prompt or call is told: no path and no config. */
const CAUSES: Readonly<Record<Inactive, string>> = { waiting: 'it is waiting', failed: 'it failed to load', disabled: 'it is disabled', quarantined: 'it is quarantined' }

export class Roster {
  readonly #kernel: Kernel
  readonly #entries = new Map<string, Hosted>()
  readonly #subscribers = new Map<keyof HostEvents, Set<(event: never) => void>>()
  constructor(kernel: Kernel) { this.#kernel = kernel }

  inOrder(): Hosted[] { return [...this.#entries.values()].sort((a, b) => a.spec.row - b.spec.row) }
  find(id: string): Hosted | undefined { return this.#entries.get(id) }
  get(id: string): Hosted {
    const entry = this.#entries.get(id)
    if (!entry) throw new HarnessError('unknown_id', `there is no plugin "${id}"${didYouMean(id, this.#entries.keys())}`)
    return entry
  }
  /** Takes over what the file wants. */
  adopt(spec: EntrySpec): void {
    const entry = this.#entries.get(spec.id) ?? new Hosted(spec)
    entry.spec = spec
    this.#entries.set(spec.id, entry)
    this.#guard(entry)
  }
  remove({ id }: Hosted): void {
    this.#entries.delete(id)
    this.#kernel.hooks.guard(id, undefined)
  }

  set(entry: Hosted, state: EntryState, reason?: string): void {
    entry.state = state
    entry.reason = reason
    this.#guard(entry)
  }
  /** It runs no more. `data` is its state, for when it comes back. */
  stopped(entry: Hosted, state: Inactive, reason: string | undefined, data: Record<string, unknown>): void {
    entry.generation = undefined
    entry.running = undefined
    entry.data = data
    this.set(entry, state, reason)
  }
  /** Services it injects that nobody provides. */
  missing({ module }: Hosted): string[] { return this.#kernel.missing(module?.inject ?? []) }
  /** Says of each entry that waits what for, and in the log when that is news. */
  explain(): void {
    const entries = this.inOrder()
    for (const entry of entries) entry.waiting = entry.state === 'waiting' && entry.module ? this.missing(entry) : []
    const reasons = explain(entries.map(({ id, state, waiting, provides }) => ({ id, state, missing: waiting, provides })))
    for (const entry of entries) {
      const reason = reasons.get(entry.id)
      if (reason === undefined || reason === entry.reason) continue
      this.set(entry, 'waiting', reason)
      this.#kernel.log.write('warn', reason, undefined, entry.id)
    }
  }

  failed(entry: Hosted, error: unknown, report: Report): void {
    const message = `plugin "${entry.id}" could not be ${entry.generation ? 'reloaded and keeps running as before' : 'loaded'}: ${reasonOf(entry, error)}`
    if (!entry.generation) this.set(entry, 'failed', message)
    this.#tellFailure(entry, message)
    report.failed(entry.id, message)
  }
  /** It ran, and could not be put back after a failure. */
  lost(entry: Hosted, error: unknown): void {
    const message = `plugin "${entry.id}" could not be put back and is not active: ${reasonOf(entry, error)}`
    this.stopped(entry, 'failed', message, entry.generation?.state ?? {})
    this.#tellFailure(entry, message)
  }

  on<K extends keyof HostEvents>(event: K, handle: (event: HostEvents[K]) => void): () => void {
    const handlers = this.#subscribers.get(event) ?? new Set()
    this.#subscribers.set(event, handlers.add(handle))
    return () => { handlers.delete(handle) }
  }
  emit<K extends keyof HostEvents>(event: K, value: HostEvents[K]): void {
    for (const handle of this.#subscribers.get(event) ?? []) {
      try { (handle as (event: HostEvents[K]) => void)(value) } catch (error) { this.#kernel.log.error(`a subscriber of the plugin host failed at "${event}": ${messageOf(error)}`) }
    }
  }

  #guard({ id, spec, state, waiting }: Hosted): void {
    if (!spec.required || !spec.enabled || state === 'active') return this.#kernel.hooks.guard(id, undefined)
    this.#kernel.hooks.guard(id, state === 'waiting' && waiting.length > 0 ? `it waits for service "${waiting[0]}"` : CAUSES[state])
  }
  #tellFailure(entry: Hosted, message: string): void {
    if (entry.lastError !== message) this.#kernel.log.write('error', message, undefined, entry.id)   // the same text is told once
    entry.lastError = message
    this.emit('failed', { id: entry.id, message, active: entry.generation !== undefined })
  }
}

/** The message without the plugin's name, which the sentence around it says already; with the line, where the plugin's own code threw at its top level. */
function reasonOf({ id, spec }: Hosted, error: unknown): string {
  const message = messageOf(error), place = error instanceof HarnessError ? undefined : placeIn(flatten(error).stack, spec.from)
  if (place) return `${message} (${at(place)})`
  const own = `plugin "${id}"`
  return message.startsWith(own) ? message.slice(own.length).replace(/^[:,]? /, '') : message
}

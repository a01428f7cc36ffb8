/** CONTRACT STUB, to be replaced by the implementation with these signatures. */
import type { Log } from './log.js'
import type { Dispatcher } from './dispatch.js'
import type { PluginModule, Services } from './hooks.js'
import type { Owner, Registry, Scope, Stage } from './registry.js'

export interface MountOptions {
  readonly id: string
  readonly row: number
  readonly version: number
  /** Validated already. */
  readonly config: unknown
  /** Cloned when mounted; `state_not_plain` when it can not be. */
  readonly state?: Record<string, unknown> | undefined
  readonly dataDir: string
  /** `apply` has to end within this many milliseconds (10,000). */
  readonly mountMs?: number | undefined
  /** Its services are published as soon as it is mounted, before its dependents mount. */
  readonly exclusive?: boolean | undefined
}
/** One mounted version of one entry. */
export interface Generation extends Owner {
  readonly module: PluginModule
  config: unknown
  readonly state: Record<string, unknown>
  readonly stage: Stage
  readonly signal: AbortSignal
  /** Services it provides (recorded; published at the switch). */
  readonly provides: readonly string[]
  /** Holds a raw `ctx.effect` or returned a disposer. */
  readonly holds: boolean
  /** Calls and dispatches that still hold it. */
  readonly inFlight: number
  counts(): { handlers: number; tools: number; models: number; commands: number; services: number; timers: number; effects: number }
}
/** What a plugin left behind outside `ctx`. */
export interface Leak { readonly plugin: string; readonly kind: string; readonly count: number }

export declare class Kernel {
  readonly log: Log
  readonly hooks: Dispatcher
  constructor(options: { log: Log })
  /** A table of things that plugins register under a name: tools, models, commands. `unique` throws to refuse a second owner. */
  registry<T>(kind: string, unique?: (entry: { slot: string; owner: Owner; value: T }, present: { owner: Owner; value: T }) => void): Registry<T>
  /** A service of core: `view` makes what the plugin of that scope sees as `ctx.<name>`. */
  service<K extends keyof Services & string>(name: K, view: (scope: Scope) => Services[K]): void
  /** A scope of core itself, before all plugins: for core's own handlers (the archived session's). */
  readonly core: Scope
  /** Mounts staged: registered, unseen. A failing or hanging `apply` is rolled back whole and rethrown (`plugin_failed`, `plugin_timeout`). */
  mount(module: PluginModule, options: MountOptions): Promise<Generation>
  /** One synchronous switch over all registries, hooks, services and timers. Throws `already_registered` before anything has changed. */
  switch(ins: readonly Generation[], outs: readonly Generation[]): void
  /** Editing the YAML order is the one thing that changes places. */
  reorder(rows: ReadonlyMap<Generation, number>): void
  /** Closes gates on what these generations decide, amend, stand around and offer: new calls wait, bounded. Returns the opener. */
  close(generations: readonly Generation[], limitMs: number): () => void
  /** New calls don't see it any more. */
  retire(generation: Generation): void
  /** Resolves true when nothing holds it, false after `ms`. */
  drain(generation: Generation, ms: number): Promise<boolean>
  /** Aborts its signal. */
  abort(generation: Generation): void
  /** Empties its effects one by one in reverse, awaited and bounded; failures go to the log. */
  dispose(generation: Generation): Promise<readonly Leak[]>
  /** Is this service there now, and whose is it? Core's owner is "core". */
  serviceOwner(name: string): string | undefined
  /** Optional scopes (`ctx.inject`) whose services have come are mounted; to be called after every switch. */
  settle(): Promise<void>
  /** Every live generation, in order. */
  generations(): readonly Generation[]
}

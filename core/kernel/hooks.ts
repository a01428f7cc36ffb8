/**
 * The public words of the kernel: kinds of hooks, the open maps `Hooks` and `Services`, and the `Context` a plugin gets.
 * Types only. Knows no cordis, no agent and no file; the agent and plugins extend the maps by declaration merging.
 */
import type { Logger } from './log.js'

// ---- kinds. One shape per kind: payload, what `next()` gives, what a handler may return, what it may hand to `next`.

/** Judges: returns a tagged decision or nothing. The strictest stands; see DESIGN of each hook. */
export interface Decide<Payload, Next, Own = Next> { kind: 'decide'; payload: Payload; next: Next; own: Own; change: never }
/** Changes a value on its way: returns the changed value or nothing. */
export interface Amend<Payload, Next, Own = Next> { kind: 'amend'; payload: Payload; next: Next; own: Own; change: never }
/** Stands around an act: may run it not at all, once, or again after it settled. */
export interface Around<Payload, Next, Own = Next, Change = never> { kind: 'around'; payload: Payload; next: Next; own: Own; change: Change }
/** Is told. What it returns is ignored; what it throws is contained. */
export interface Watch<Payload> { kind: 'watch'; payload: Payload; next: never; own: unknown; change: never }
export type HookKind = 'decide' | 'amend' | 'around' | 'watch'
export type HookShape = { kind: HookKind; payload: unknown; next: unknown; own: unknown; change: unknown }

/** Every hook by name. Core's own stand in `core/agent/hooks.ts`; add yours with `declare module 'harnessx' { interface Hooks { 'my/hook': Watch<{…}> } }`. */
export interface Hooks {}
/** Every service by name, as `ctx.<name>`. Add yours with `declare module 'harnessx' { interface Services { store: Store } }`. */
export interface Services {}

export type HookName = keyof Hooks & string
export type HookOf<K extends HookName> = Hooks[K] extends HookShape ? Hooks[K] : never
export type Payload<K extends HookName> = HookOf<K>['payload']
type Opinion<T> = T | void | undefined | null
export type Next<S extends HookShape> = [S['change']] extends [never] ? () => Promise<S['next']> : (change?: S['change']) => Promise<S['next']>
/** A handler of hook `K`: `(payload)` for watch, `(payload, next)` for the rest. Returning nothing is "no opinion". */
export type Handler<K extends HookName> = HookOf<K>['kind'] extends 'watch'
  ? (payload: Payload<K>) => unknown
  : (payload: Payload<K>, next: Next<HookOf<K>>) => Opinion<HookOf<K>['own']> | Promise<Opinion<HookOf<K>['own']>>

export interface CommonOptions {
  /** Before all handlers that are not prepended; among prepended ones the order of the config rows. */
  prepend?: boolean
  /** Milliseconds of the handler's own time, without what it waits for in `next()` or in an approval. 5000 for decide, amend and watch; none for around. */
  timeout?: number
}
export type HandlerOptions<K extends HookName> = CommonOptions
  /** What a failure of this handler does, in the four hooks that fail closed: refuse (default) or be skipped. */
  & (HookOf<K>['kind'] extends 'decide' ? { onError?: 'block' | 'pass' } : {})
  /** Only for these tools: exact names, or patterns that must match the whole name. */
  & (Payload<K> extends { call: unknown } ? { tools?: readonly (string | RegExp)[] } : {})

/** Takes a registration back. May be called any number of times. */
export type Disposer = () => void

export interface BaseContext {
  /** The entry's id: the identity of this plugin everywhere. */
  readonly id: string
  /** Aborted when the plugin has to let go: disabled, removed, exclusively reloaded, shut down. */
  readonly signal: AbortSignal
  /** Plain data of this plugin, cloned into its next version when that is mounted, gone when the entry is disabled. */
  readonly state: Record<string, unknown>
  /** A folder of this plugin's own in the state directory (mode 0700), made when first read. */
  readonly dataDir: string
  readonly logger: Logger
  /** Hangs a handler on a hook. Throws on an unknown hook, a wrong option, or a ctx whose plugin is unloaded. */
  on<K extends HookName>(hook: K, handler: Handler<K>, options?: HandlerOptions<K>): Disposer
  /** Offers a service. It becomes visible when the plugin is switched in, and leaves with it. */
  provide<K extends keyof Services & string>(name: K, value: Services[K]): Disposer
  /** A service, or undefined while it is absent. */
  get<K extends keyof Services & string>(name: K): Services[K] | undefined
  /** Runs `start` with a child context whenever all `names` are there, and disposes it before one of them leaves. */
  inject(names: readonly (keyof Services & string)[], start: (ctx: Context) => unknown): Disposer
  setTimeout(run: () => unknown, ms: number): Disposer
  setInterval(run: () => unknown, ms: number): Disposer
  /** Registers `start()`'s undo: run on unload, in reverse order of registration, awaited. */
  effect(start: () => void | (() => unknown), label?: string): Disposer
}
/** What `apply` gets: registrations through it belong to the plugin and go with it. Services of core are always there; a plugin's need `inject`. */
export interface Context extends BaseContext, Services {}

/** The exports of a plugin module. */
export interface PluginModule<Config = unknown> {
  name: string
  /** Services it waits for. */
  inject?: readonly string[]
  /** Services it will provide; lets the host explain who waits for whom before anything is mounted. */
  provides?: readonly string[]
  /** Any Standard Schema (https://standardschema.dev); zod ones also give JSON Schema. */
  Config?: StandardSchema
  /** `exclusive`: the old version is stopped before the new one starts. */
  reload?: 'staged' | 'exclusive'
  apply(ctx: Context, config: Config): unknown
  /** Takes a config change in place; false asks for a restart. */
  reconfigure?(ctx: Context, config: Config): unknown
}
/** The part of Standard Schema v1 that the host uses. */
export interface StandardSchema {
  readonly '~standard': {
    readonly version: 1
    readonly vendor: string
    validate(value: unknown): SchemaResult | Promise<SchemaResult>
  }
}
export type SchemaResult = { readonly value: unknown; readonly issues?: undefined } | { readonly issues: readonly { readonly message: string; readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined }[] }

/**
 * One mounted version of one entry, or one optional scope of it (`ctx.inject`), with all that hangs on it. A record: the kernel moves it, the facade fills it.
 *
 *   staged ──switch──▶ live ──switch, retire──▶ retired ──▶ disposed          any stage ──dispose──▶ disposed
 *
 * Invariant: everything it registered is in `effects`, so that emptying them leaves nothing behind.
 */
import { HarnessError, messageOf } from '../errors.js'
import { runAs, seatFor } from './async-context.js'
import type { Mount } from './context.js'
import { Effects } from './effects.js'
import type { Context, Disposer, PluginModule } from './hooks.js'
import type { Footprint } from './leaks.js'
import type { Log } from './log.js'
import type { Owner, Owners, Scope, Stage } from './owners.js'
import type { Offer } from './services.js'
import { Timers } from './timers.js'

/** What a plugin waits for beside its `inject`: `ctx.inject(names, start)`. */
export interface Optional {
  readonly names: readonly string[]
  readonly start: (ctx: Context) => unknown
  /** The place of the call: what `start` registers stands there, whenever the services come. */
  readonly path: readonly number[]
  child: Generation | undefined
  /** The providers with which it failed; it is not tried again with the same. */
  failedWith: string | undefined
}
export interface GenerationOptions {
  readonly id: string
  readonly row: number
  readonly version: number
  readonly module: PluginModule
  readonly config: unknown
  readonly state: Record<string, unknown>
  readonly dataDir: string
  readonly file: string | undefined
  readonly parent?: Generation | undefined
  readonly path?: readonly number[] | undefined
}
export interface Counts { readonly handlers: number; readonly tools: number; readonly models: number; readonly commands: number; readonly services: number; readonly timers: number; readonly effects: number }

export class Generation implements Owner {
  readonly id: string
  readonly seat: number
  readonly generation: number
  row: number
  stage: Stage = 'staged'
  readonly module: PluginModule
  config: unknown
  readonly state: Record<string, unknown>
  readonly dataDir: string
  readonly file: string | undefined
  /** The plugin's own generation, when this is an optional scope of it. */
  readonly parent: Generation | undefined
  readonly children = new Set<Generation>()
  readonly optionals = new Set<Optional>()
  readonly effects: Effects
  readonly timers: Timers
  readonly offers = new Map<string, Offer>()
  /** Its offers are seen: it is live, or it is mounted exclusively and its dependents are next. */
  published = false
  /** Raw effects and returned disposers: the old has to go before the new may come. */
  raw = 0
  footprint: Footprint | undefined
  /** As old as `ctx`, and nobody else's: see releases.ts. */
  readonly witness = {}
  mount: Mount | undefined
  /** `apply` has ended, well or not. */
  applied = false
  disposing: Promise<void> | undefined
  /** Its effects are taken back. Until then an undo may use the services it was given. */
  ended = false
  readonly scope: Scope
  /** Made for the first who asks: most plugins don't, and it costs as much as a handler. */
  #controller: AbortController | undefined
  #aborted = false
  readonly #log: Log
  readonly #owners: Owners
  readonly #path: readonly number[]
  #places = 0

  constructor(options: GenerationOptions, owners: Owners, log: Log) {
    this.id = options.id
    this.seat = seatFor(options.id)
    this.generation = options.version
    this.row = options.row
    this.module = options.module
    this.config = options.config
    this.state = options.state
    this.dataDir = options.dataDir
    this.file = options.file
    this.parent = options.parent
    this.#path = options.path ?? []
    this.#owners = owners
    this.#log = log
    this.effects = new Effects(message => { this.warn(message) })
    this.timers = new Timers({ run: (work, seat) => { this.#fire(work, seat) }, effect: (undo, label) => this.effect(undo, label), origin: below => owners.origin(this, below) })
    this.scope = { owner: this, path: () => this.place(), effect: (undo, label) => this.effect(undo, label) }
  }

  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#aborted) this.abort()
    return this.#controller.signal
  }
  get ctx(): Context {
    if (!this.mount) throw new HarnessError('internal', `plugin "${this.id}" version ${this.generation} has no ctx, it is ${this.stage}`)
    return this.mount.ctx
  }
  /** Itself and its optional scopes, outer ones first. */
  get family(): readonly Generation[] { return [this, ...[...this.children].flatMap(child => child.family)] }
  get provides(): readonly string[] { return this.family.flatMap(({ offers }) => [...offers.keys()]) }
  get holds(): boolean { return this.family.some(({ raw }) => raw > 0) }
  get inFlight(): number { return this.family.reduce((sum, member) => sum + this.#owners.inFlight(member), 0) }
  counts(): Counts {
    const sum = (count: (member: Generation) => number) => this.family.reduce((total, member) => total + count(member), 0)
    const kind = (name: string) => sum(({ effects }) => effects.count(name))
    return { handlers: kind('handler of'), tools: kind('tool'), models: kind('model'), commands: kind('command'), services: sum(({ offers }) => offers.size), timers: sum(({ timers }) => timers.count), effects: sum(({ effects }) => effects.size) }
  }

  /** The next place inside the plugin. */
  place(): readonly number[] { return [...this.#path, ++this.#places] }
  /** Nothing may be added once it is disposed; while it is retired, only what a call in flight still needs. */
  effect(undo: () => unknown, label: string): Disposer {
    this.assertStage('staged', 'live', 'retired')
    return this.effects.add(() => runAs(this, undo), label)
  }
  assertStage(...stages: readonly Stage[]): void {
    if (!stages.includes(this.stage)) throw this.stale()
  }
  assertNotEnded(): void {
    if (this.ended) throw this.stale()
  }
  stale(): HarnessError {
    const version = this.parent ? `an optional scope of version ${this.generation}` : `version ${this.generation}`
    return new HarnessError('stale_context', `plugin "${this.id}": this ctx belongs to ${version}, which was unloaded, and can do nothing any more; drop what still uses it (a timer, listener or promise made outside ctx?)`)
  }
  abort(): void {
    this.#aborted = true
    const controller = this.#controller
    if (controller?.signal.aborted === false) runAs(this, () => { controller.abort(new HarnessError('aborted', `plugin "${this.id}" is being unloaded`)) })      // who hears it is the plugin
  }
  warn(message: string): void { this.#log.write('warn', `plugin "${this.id}": ${message}`, undefined, this.id) }

  #fire(work: () => unknown, seat: number): void {
    this.#owners.call(this, work, seat).catch(error => { this.#log.write('error', `plugin "${this.id}": a timer failed: ${messageOf(error)}`, undefined, this.id) })
  }
}

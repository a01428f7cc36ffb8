/**
 * The kernel: mounts plugins on cordis contexts, switches them, and takes them down. Puts together what has a file of its own: owners and registries, hooks, services, generations.
 * Knows no file, no config and no order of loading: the host (core/loader) decides what is mounted when, one thing at a time.
 * Invariants: a staged generation is unseen; a switch is one synchronous step over everything; a failed mount leaves nothing; whatever a plugin does not end is waited for up to a limit.
 */
import { HarnessError, messageOf } from '../errors.js'
import { runAs } from './async-context.js'
import type { Locate } from './call-site.js'
import { Contexts } from './context.js'
import { dependents } from './dependents.js'
import { Dispatcher } from './dispatch.js'
import { coreScope } from './effects.js'
import { facade, hold } from './facade.js'
import { Generation, type Optional } from './generation.js'
import { changedGlobals, whatChanged } from './globals.js'
import type { Context, PluginModule, Services as ServiceMap } from './hooks.js'
import { Footprint, type Leak } from './leaks.js'
import { isThenable, within } from './limits.js'
import type { Log } from './log.js'
import { Owners, type Owner, type Scope } from './owners.js'
import { cloneState } from './plain-state.js'
import { Registry, type Unique } from './registry.js'
import { Releases } from './releases.js'
import { loadFailure } from './report.js'
import { Services } from './services.js'

export type { Generation } from './generation.js'
export type { Leak } from './leaks.js'

export interface MountOptions {
  readonly id: string
  readonly row: number
  readonly version: number
  /** Validated already. */
  readonly config: unknown
  /** Cloned when mounted; `state_not_plain` when it can not be. */
  readonly state?: Record<string, unknown> | undefined
  readonly dataDir: string
  /** Where its code stands, for messages. */
  readonly file?: string | undefined
  /** `apply` has to end within this many milliseconds (10,000). */
  readonly mountMs?: number | undefined
  /** Its services are seen as soon as it is mounted, before its dependents mount. */
  readonly exclusive?: boolean | undefined
}

export const MOUNT_MS = 10_000
/** For each effect of a plugin, and for the end of its `apply`. */
export const DISPOSE_MS = 3000
/** How long calls get to end after their plugin's signal was aborted. */
const ABORTED_MS = 100

export class Kernel {
  readonly log: Log
  readonly hooks: Dispatcher
  /** A scope of core itself, before all plugins: for core's own handlers. */
  readonly core: Scope
  /** Set by the host. Told what a plugin left behind, up to 100 ms after it was disposed. */
  leaked: (leaks: readonly Leak[]) => void = () => {}
  /** Set by the host. Told when a running plugin asks for or offers something: `settle` may have work. */
  changed: () => void = () => {}
  readonly #owners = new Owners()
  readonly #services = new Services()
  readonly #contexts: Contexts
  readonly #releases: Releases
  readonly #mounted = new Set<Generation>()

  constructor({ log }: { readonly log: Log }) {
    this.log = log
    this.hooks = new Dispatcher(this.#owners, ({ level, plugin, message, ...fields }) => { log.write(level, message, fields, plugin) })
    this.#contexts = new Contexts(log)
    this.#releases = new Releases((plugin, versions) => { log.write('warn', `plugin "${plugin}": ${versions} unloaded ${versions === 1 ? 'version is' : 'versions are'} still in memory; something outside ctx holds on to it (a raw timer, a listener, a cache)`, undefined, plugin) })
    this.core = coreScope(log)
  }

  /** A table of things that plugins register under a name: tools, models, commands. `unique` throws to refuse a second owner. */
  registry<T>(kind: string, unique?: Unique<T>): Registry<T> { return new Registry<T>(kind, this.#owners, { unique }) }
  /** A service of core: `view` makes what the plugin of that scope sees as `ctx.<name>`. */
  service<K extends keyof ServiceMap & string>(name: K, view: (scope: Scope) => ServiceMap[K]): void { this.#services.addCore(name, view) }
  /** From the script position of a registration to the place in its source. */
  set locate(locate: Locate) { this.#owners.locate = locate }
  /** What to call each thing that plugins have registered, by its number in the async context. */
  labels(): ReadonlyMap<number, string> { return new Map([...this.#owners.labels(), ...[...this.#mounted].flatMap(({ timers }) => [...timers.labels()])]) }
  /** Is this service there now, and whose is it? Core's owner is "core". */
  serviceOwner(name: string): string | undefined { return this.#services.owner(name) }

  /** Mounts staged: registered, unseen. A failing or hanging `apply` is rolled back whole and rethrown (`plugin_failed`, `plugin_timeout`). */
  async mount(module: PluginModule, options: MountOptions): Promise<Generation> {
    const absent = this.missing(module.inject ?? [])
    if (absent.length > 0) throw new HarnessError('service_missing', `plugin "${options.id}" waits for service ${absent.map(name => `"${name}"`).join(', ')}`)
    const state = cloneState(options.id, options.state ?? {})
    const generation = new Generation({ ...options, module, state, file: options.file }, this.#owners, this.log)
    await this.#start(generation, module.apply, options.exclusive ?? false, options.mountMs ?? MOUNT_MS)
    return generation
  }
  /** One synchronous switch over all registries, hooks, services and timers. Throws `already_registered` before anything has changed. */
  switch(ins: readonly Generation[], outs: readonly Generation[] = []): void {
    const coming = families(ins), going = families(outs).filter(({ stage }) => stage === 'live')
    this.#services.check(coming.flatMap(({ offers }) => [...offers.values()]), new Set<Owner>(going))
    this.#owners.switch(coming, going)
    for (const generation of going) this.#leave(generation)
    for (const generation of coming) this.#publish(generation)
    for (const { timers } of coming) timers.start()
  }
  /** Takes a changed config in place, if the module can: false asks for a restart. */
  async reconfigure(generation: Generation, config: unknown, limitMs = MOUNT_MS): Promise<boolean> {
    const { module, ctx, id } = generation
    if (!module.reconfigure) return false
    const taken = await within(limitMs, this.#owners.call(generation, () => module.reconfigure!(ctx, config)), () => new HarnessError('plugin_timeout', `plugin "${id}" did not take its new config within ${limitMs} ms`))
    if (taken === false) return false
    generation.config = config
    return true
  }
  /** Editing the YAML order is the one thing that changes places. */
  reorder(rows: ReadonlyMap<Generation, number>): void {
    this.#owners.reorder(new Map([...rows].flatMap(([generation, row]) => generation.family.map(member => [member, row] as const))))
  }

  /** Closes gates on what these generations decide, amend, stand around and offer: new calls wait, bounded. Returns the opener. */
  close(generations: readonly Generation[], limitMs: number): () => void { return this.#owners.close(families(generations), limitMs) }
  /** New calls don't see it any more. */
  retire(generation: Generation): void {
    for (const member of generation.family) {
      this.#owners.retire(member)
      member.timers.endIntervals()
    }
  }
  /** Resolves true when nothing holds it, false after `ms`. */
  async drain(generation: Generation, ms: number): Promise<boolean> {
    const idle = Promise.all(generation.family.map(member => this.#owners.drained(member))).then(() => true)
    if (ms === Infinity) return idle
    return within(ms, idle, () => new DrainTimeout()).catch(error => {
      if (error instanceof DrainTimeout) return false
      throw error
    })
  }
  /** Aborts its signal. */
  abort(generation: Generation): void { for (const member of generation.family) member.abort() }
  /** Lets its calls end, aborts them after `ms`, and disposes it. */
  async end(generation: Generation, ms: number): Promise<void> {
    if (!await this.drain(generation, ms)) {
      const calls = generation.inFlight
      generation.warn(`still had ${calls} call${calls === 1 ? '' : 's'} running after ${ms} ms; aborted`)
      this.abort(generation)
      await this.drain(generation, ABORTED_MS)
    }
    await this.dispose(generation)
  }
  /** Empties its effects one by one in reverse, each awaited up to `limitMs`; failures go to the log. The same promise for everybody who asks. */
  dispose(generation: Generation, limitMs = DISPOSE_MS): Promise<void> { return generation.disposing ??= this.#dispose(generation, limitMs) }

  /** Of these services, those that nobody provides. */
  missing(names: readonly string[]): string[] { return names.filter(name => !this.#services.has(name)) }
  /** Optional scopes (`ctx.inject`) whose services have come are mounted and switched in. To be called after every change; true when something came. */
  async settle(): Promise<boolean> {
    let came = false
    for (const generation of this.generations().flatMap(({ family }) => family)) {
      for (const optional of generation.optionals) {
        if (generation.stage !== 'live') continue
        const child = await this.#startOptional(generation, optional, false)
        if (!child) continue
        try {
          this.switch([child])
          came = true
        } catch (error) {
          this.#optionalFailed(generation, optional, error)
          await this.dispose(child)
        }
      }
    }
    return came
  }
  /** These and all that has to stop before they may, providers first: the reverse is the order to stop in. An optional scope comes by itself only when its plugin stays. */
  dependents(of: readonly Generation[]): Generation[] { return dependents(of, this.#mounted) }
  /** Every live generation, in order. */
  generations(): readonly Generation[] {
    return [...this.#mounted].filter(({ stage, parent }) => stage === 'live' && parent === undefined).sort((a, b) => a.row - b.row)
  }
  /** What is mounted, in numbers, staged and leaving ones too: what the leak tests compare. */
  get size(): { generations: number; fibers: number; services: number; unreleased: number } {
    return { generations: this.#mounted.size, fibers: this.#contexts.size, services: this.#services.names().length, unreleased: this.#releases.size }
  }

  async #start(generation: Generation, start: (ctx: Context, config: never) => unknown, exclusive: boolean, limitMs: number): Promise<void> {
    this.#mounted.add(generation)
    try {
      const undo = await this.#apply(generation, start, limitMs).finally(() => {
        generation.footprint?.mounted()
        const changed = changedGlobals()
        if (changed !== undefined) generation.warn(`once it had loaded, ${whatChanged(changed)}`)
      })
      hold(generation, undo, 'the disposer that apply returned')
      if (exclusive) {
        this.#services.check(generation.offers.values())
        this.#publish(generation)
      }
      for (const optional of generation.optionals) await this.#startOptional(generation, optional, exclusive)
    } catch (error) {
      await this.dispose(generation)
      throw loadFailure(generation, error)
    }
  }
  /** Opens the context and waits for `apply`, which is called as a plain function whatever it is. */
  async #apply(generation: Generation, start: (ctx: Context, config: never) => unknown, limitMs: number): Promise<unknown> {
    const { id } = generation
    const logger = this.log.of(id)
    const members = facade(generation, { services: this.#services, hooks: this.hooks, logger, changed: () => { this.changed() }, drop: child => this.#drop(child) })
    let waits = true
    const applied = new Promise<unknown>((resolve, reject) => {
      generation.mount = this.#contexts.open(generation.parent?.ctx, id, members, async ctx => {
        try {
          const footprint = generation.footprint = new Footprint(id, () => [...this.#mounted].reduce((sum, { timers }) => sum + timers.running, 0))
          const result = runAs(generation, () => footprint.during(() => start(ctx, generation.config as never)))
          waits = isThenable(result)
          resolve(await result)
        } catch (error) {
          reject(error)
        } finally {
          generation.applied = true
        }
      })
    })
    applied.then(undo => { if (generation.stage === 'disposed' && typeof undo === 'function') void this.#late(generation, undo as () => unknown) }, () => {})   // a late failure has been reported as a timeout
    await Promise.resolve()                                  // it has been called: one that does not wait has ended and needs no limit
    if (!waits) return applied
    const where = generation.file === undefined ? '' : ` (${generation.file})`
    return within(limitMs, applied, () => new HarnessError('plugin_timeout', `plugin "${id}"${where} did not finish loading within ${limitMs} ms: apply has not ended; what takes long belongs into a handler or a timer (timers of ctx start when apply has ended)`))
  }
  /** `apply` ended after it was given up: what it has opened is closed all the same. */
  async #late(generation: Generation, undo: () => unknown): Promise<void> {
    try { await undo() } catch (error) { generation.warn(`the disposer that apply returned too late failed: ${messageOf(error)}`) }
  }

  async #startOptional(generation: Generation, optional: Optional, exclusive: boolean): Promise<Generation | undefined> {
    const providers = optional.names.map(name => `${name}:${this.#services.offer(name)?.owner.generation ?? this.#services.owner(name)}`).join()
    if (optional.child || this.missing(optional.names).length > 0 || optional.failedWith === providers) return undefined
    const module: PluginModule = { name: generation.module.name, inject: optional.names, apply: optional.start }
    const child = new Generation({ id: generation.id, row: generation.row, version: generation.generation, module, config: undefined, state: generation.state, dataDir: generation.dataDir, file: generation.file, parent: generation, path: optional.path }, this.#owners, this.log)
    optional.child = child
    generation.children.add(child)
    try {
      await this.#start(child, module.apply, exclusive, MOUNT_MS)
      return child
    } catch (error) {
      optional.failedWith = providers
      this.#optionalFailed(generation, optional, error)
      return undefined
    }
  }
  #optionalFailed(generation: Generation, { names }: Optional, error: unknown): void {
    this.log.write('error', `plugin "${generation.id}": ctx.inject(${names.map(name => `"${name}"`).join(', ')}) failed: ${messageOf(error)}`, undefined, generation.id)
  }
  async #drop(child: Generation): Promise<void> {
    this.retire(child)
    await this.end(child, DISPOSE_MS)
  }

  #publish(generation: Generation): void {
    generation.published = true
    for (const offer of generation.offers.values()) this.#services.publish(offer)
  }
  /** It was switched out: what it offers and repeats ends now, the rest with its disposal. */
  #leave({ offers, timers }: Generation): void {
    for (const offer of offers.values()) this.#services.withdraw(offer)
    timers.endIntervals()
  }

  async #dispose(generation: Generation, limitMs: number): Promise<void> {
    for (const child of [...generation.children].reverse()) await this.dispose(child, limitMs)
    const leftovers = generation.footprint?.leaving()
    this.#owners.dispose(generation)
    generation.abort()
    await generation.effects.empty(limitMs)
    generation.ended = true
    await this.#close(generation, limitMs)
    this.#forget(generation)
    void leftovers?.().then(leaks => { if (leaks.length > 0) this.#tell(generation, leaks) })
  }
  async #close(generation: Generation, limitMs: number): Promise<void> {
    const closing = generation.mount?.close()
    if (!closing) return
    if (!generation.applied) return void closing.catch(error => { generation.warn(`its context could not be closed: ${messageOf(error)}`) })   // cordis waits for the end of apply, which may never come
    try {
      await within(limitMs, closing, () => new Error(`it did not end within ${Math.round(limitMs)} ms`))
    } catch (error) {
      generation.warn(`its context could not be closed: ${messageOf(error)}`)
    }
  }
  /** Lets go of everything that could keep the version in memory, and looks later whether it is gone. */
  #forget(generation: Generation): void {
    this.#mounted.delete(generation)
    generation.parent?.children.delete(generation)
    for (const optional of generation.parent?.optionals ?? []) if (optional.child === generation) optional.child = undefined
    if (generation.mount) this.#releases.watch(generation.id, generation.mount.ctx, generation.witness)
    generation.mount = undefined
  }
  #tell(generation: Generation, leaks: readonly Leak[]): void {
    for (const { kind, count } of leaks) generation.warn(`left ${count} ${kind}${count > 1 ? 's' : ''} behind; make it through ctx, or give its undo to ctx.effect`)
    this.leaked(leaks)
  }
}

class DrainTimeout extends Error {}

const families = (generations: readonly Generation[]): Generation[] => generations.flatMap(({ family }) => family)

/**
 * cordis, and the only file that imports it at run time. It gives the tree of contexts, one fiber per mounted version, and the seams at which a way around the facade is refused.
 * What it does at once or all at the same time (events, effects, services) is done by the kernel instead, in order and awaited: see the contract tests in test/kernel.
 * Invariants: `start` never throws into cordis, which would dispose concurrently and stay failed; cordis gets no config and no inject; its log ends in ours.
 */
import { Context as Cordis, type Fiber } from 'cordis'
import { HarnessError, messageOf } from '../errors.js'
import type { Context } from './hooks.js'
import type { Level, Log } from './log.js'

/** On the ctx of a plugin: the words for a property that is not there. */
export const MISSING: unique symbol = Symbol('harnessx.missing')
/** What a ctx of the kernel carries beside its public members. */
export interface Facade { readonly [MISSING]: (property: string) => HarnessError }

/** One fiber of cordis. */
export interface Mount { readonly ctx: Context; close(): Promise<void> }

export class Contexts {
  readonly #root = new Cordis()
  /** Where one was closed another will be opened, in the middle of a reload: the next one is made before it. */
  #spare: Blank | undefined

  constructor(log: Log) {
    const root = this.#root
    root.logger.exporters.clear()                        // its buffer keeps the last thousand messages, and with each error the code that threw it
    root.logger.exporter({ export: ({ type, args }) => { log.write(LEVELS[type] ?? 'info', `cordis: ${args.map(messageOf).join(' ')}`) } })
    const seams = root as unknown as Seams
    seams.on('internal/get', (ctx, property, error, next) => {
      const missing = (ctx as Partial<Facade>)[MISSING]
      if (missing) throw missing(property)
      return next()
    }, { global: true })
    seams.on('internal/listener', function (name) {
      if (ownerOf(this)) throw bypass(this, `listens to "${String(name)}" beside the host`, 'use ctx.on, whose order and containment the host keeps')
    }, { global: true, prepend: true })
    seams.on('internal/dispatch', (_type, name) => {
      throw new HarnessError('hook_invalid', `event "${String(name)}" was sent on the bus of cordis, where nobody listens; define a hook of your own with ctx.hooks.define`)
    }, { global: true })
  }

  /** Opens a context below `parent`; `start` is called with it a moment later and must not throw or reject. */
  open(parent: Context | undefined, name: string, facade: PropertyDescriptorMap, start: (ctx: Context) => Promise<void>): Mount {
    const { scope, fiber, end } = parent ? this.#make(parent) : this.#spare ?? this.#make(this.#root)
    if (!parent) this.#spare = undefined
    Object.defineProperties(scope, facade)
    fiber.runtime!.name = name
    const ctx = fiber.ctx as unknown as Context
    void Promise.resolve().then(() => start(ctx)).finally(() => { setImmediate(end) })       // cordis' own notes on it can wait until whoever waits for the mount has gone on
    return { ctx, close: () => unstacked(() => fiber.dispose()).finally(() => { this.#spare ??= this.#make(this.#root) }) }
  }
  /** Fibers that are open: what the leak tests compare. */
  get size(): number { return this.#root.registry.size - (this.#spare ? 1 : 0) }

  #make(parent: Context | Cordis): Blank {
    return unstacked(() => {
      let end = () => {}
      const applied = new Promise<void>(resolve => { end = resolve })
      const scope = (parent as Cordis).extend({})
      return { scope, end, fiber: Object.getPrototypeOf(scope.registry.plugin({ name: '', apply: () => applied }, undefined, () => [])) as Fiber }
    })
  }
}

/** A context of nobody yet, whose fiber is started until `end`. */
interface Blank { readonly scope: Cordis; readonly fiber: Fiber; readonly end: () => void }

/** cordis makes an Error for each of its own members that it looks up, a dozen to open a context; nobody reads where. */
function unstacked<T>(work: () => T): T {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try { return work() } finally { Error.stackTraceLimit = stackTraceLimit }
}
const LEVELS: Readonly<Record<string, Level>> = { debug: 'debug', info: 'info', warn: 'warn', error: 'error' }

/** The part of cordis' internal events that is used, typed as it is called. */
interface Seams {
  on(name: 'internal/get', handle: (ctx: object, property: string, error: Error, next: () => unknown) => unknown, options: object): void
  on(name: 'internal/listener', handle: (this: object, name: unknown) => unknown, options: object): void
  on(name: 'internal/dispatch', handle: (type: string, name: unknown) => void, options: object): void
}
const ownerOf = (ctx: object): string | undefined => MISSING in ctx ? (ctx as unknown as { id: string }).id : undefined
const bypass = (ctx: object, what: string, instead: string): HarnessError => new HarnessError('hook_invalid', `plugin "${ownerOf(ctx)}" ${what}; ${instead}`)

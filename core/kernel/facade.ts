/**
 * What a plugin's `ctx` is made of: the members of BaseContext, the services of core, and those the plugin injects. They stand in front of cordis' own, and child contexts inherit them.
 * Every member is bound to its generation, so that `const { on } = ctx` works and the owner is always right. A member that registers refuses a stale ctx in a recognisable sentence.
 */
import { didYouMean, HarnessError, messageOf, show } from '../errors.js'
import { MISSING } from './context.js'
import type { Dispatcher } from './dispatch.js'
import { makeFolder } from './folder.js'
import type { Generation, Optional } from './generation.js'
import type { BaseContext, Context, Disposer } from './hooks.js'
import { isThenable } from './limits.js'
import type { Logger } from './log.js'
import type { Services } from './services.js'
import { LONGEST_MS } from './timers.js'

export interface FacadePort {
  readonly services: Services
  readonly hooks: Dispatcher
  readonly logger: Logger
  /** Something is asked for or offered while the plugin runs: somebody may have to start or stop. */
  changed(): void
  /** Stops an optional scope whose plugin takes it back. */
  drop(child: Generation): Promise<void>
}

/** Members of a cordis context that a plugin could reach, and what to use instead. */
const REFUSED: Readonly<Record<string, string>> = {
  plugin: 'give the other plugin an entry of its own in the config, or use ctx.inject for a part that depends on a service',
  once: 'use ctx.on and its disposer',
  set: 'use ctx.provide',
  mixin: 'use ctx.provide',
  accessor: 'use ctx.provide',
}
/** A service of this name would change what `await ctx` means. */
const RESERVED = ['then', 'prototype']

export function facade(generation: Generation, port: FacadePort): PropertyDescriptorMap {
  return {
    ...Object.getOwnPropertyDescriptors(Object.freeze(base(generation, port))),
    ...refusals(generation),
    ...coreServices(generation, port.services),
    ...injected(generation, port.services),
    [MISSING]: { value: (property: string) => missing(generation, port.services, property) },
  }
}

function base(generation: Generation, { services, hooks, logger, changed, drop }: FacadePort): BaseContext {
  const { id } = generation
  const registering = () => { generation.assertStage('staged', 'live') }
  const invalid = (what: string) => new HarnessError('hook_invalid', `plugin "${id}": ${what}`)
  let folder: string | undefined
  const on: BaseContext['on'] = (hook, handler, options) => {
    registering()
    return hooks.registerHandler(generation.scope, hook, handler, options, on)         // the line shown is that of whoever called `on`
  }

  const setTimeout: BaseContext['setTimeout'] = (run, ms) => {
    generation.assertStage('staged', 'live', 'retired')            // a call that ends on the old version may have to wait
    return generation.timers.once(timed(run, ms, 'setTimeout', invalid), ms, setTimeout)
  }
  const setInterval: BaseContext['setInterval'] = (run, ms) => {
    registering()
    return generation.timers.every(timed(run, ms, 'setInterval', invalid), ms, setInterval)
  }

  return {
    id,
    get signal() { return generation.signal },
    get state() { return generation.state },
    get dataDir() {
      if (folder === undefined) makeFolder(folder = generation.dataDir)
      return folder
    },
    logger: tolerant(logger),

    on,
    provide: (name, value) => {
      registering()
      const service: string = name
      if (typeof service !== 'string' || !/^[a-z]\w*$/i.test(service) || RESERVED.includes(service)) throw invalid(`a service is called by a word such as "store", received ${show(service)}`)
      if (value === undefined || value === null) throw invalid(`service "${service}" must have a value, received ${show(value)}`)
      const offer = { name: service, value, owner: generation }
      if (generation.offers.has(service)) throw new HarnessError('already_registered', `plugin "${id}" offers service "${service}" twice`)
      services.check([offer])
      if (!generation.module.inject?.includes(service) && service in generation.ctx) throw new HarnessError('already_registered', `plugin "${id}": "${service}" is a member of every ctx and can not be the name of a service`)
      const off = generation.effect(() => {
        if (generation.offers.get(service) === offer) generation.offers.delete(service)
        services.withdraw(offer)
        if (generation.stage === 'live') changed()
      }, `service "${service}"`)
      generation.offers.set(service, offer)
      if (generation.published) { services.publish(offer); changed() }
      return off
    },
    get: name => {
      generation.assertNotEnded()
      const view = services.coreViews.get(name)
      return (view ? view(generation.scope) : services.offer(name)?.value) as never
    },
    inject: (names, start) => {
      registering()
      if (!Array.isArray(names) || names.length === 0 || names.some(name => typeof name !== 'string')) throw invalid(`ctx.inject takes a list of service names, received ${show(names)}`)
      if (typeof start !== 'function') throw invalid(`ctx.inject takes a function to start with, received ${show(start)}`)
      const optional: Optional = { names: [...names], start, path: generation.place(), child: undefined, failedWith: undefined }
      generation.optionals.add(optional)
      if (generation.stage === 'live') changed()
      return generation.effect(() => {
        generation.optionals.delete(optional)
        return optional.child && drop(optional.child)
      }, `ctx.inject(${names.join(', ')})`)
    },

    setTimeout,
    setInterval,
    effect: (start, label) => {
      generation.assertStage('staged', 'live', 'retired')
      if (typeof start !== 'function') throw invalid(`ctx.effect takes a function that starts something and returns its undo, received ${show(start)}`)
      return hold(generation, start(), label ?? 'an effect')
    },
  }
}

/** Keeps a raw undo; while there is one, the next version may not start beside this one. */
export function hold(generation: Generation, undo: unknown, label: string): Disposer {
  const last = isThenable(undo) ? async () => { const late = await undo; return typeof late === 'function' ? late() : undefined } : undo
  if (typeof last !== 'function') return () => {}
  if (isThenable(undo)) undo.then(undefined, error => { generation.warn(`${label} failed: ${messageOf(error)}`) })
  generation.raw++
  return generation.effect(() => {
    generation.raw--
    return last()
  }, label)
}

function timed(run: unknown, ms: unknown, name: string, invalid: (what: string) => HarnessError): () => unknown {
  if (typeof run !== 'function') throw invalid(`ctx.${name} takes a function, received ${show(run)}`)
  if (typeof ms !== 'number' || !(ms >= 0 && ms <= LONGEST_MS)) throw invalid(`ctx.${name} takes 0 to ${LONGEST_MS} milliseconds, received ${show(ms)}`)
  return run as () => unknown
}

/** Plugins in JavaScript log errors and objects too. */
function tolerant(logger: Logger): Logger {
  const text = (message: unknown) => typeof message === 'string' ? message : messageOf(message)
  return {
    debug: (message, fields) => { logger.debug(text(message), fields) },
    info: (message, fields) => { logger.info(text(message), fields) },
    warn: (message, fields) => { logger.warn(text(message), fields) },
    error: (message, fields) => { logger.error(text(message), fields) },
  }
}

const refusals = ({ id }: Generation): PropertyDescriptorMap => Object.fromEntries(Object.entries(REFUSED).map(([name, instead]) => [name, {
  value: () => { throw new HarnessError('hook_invalid', `plugin "${id}": ctx.${name} is not there; ${instead}`) },
}]))

function coreServices(generation: Generation, services: Services): PropertyDescriptorMap {
  return Object.fromEntries([...services.coreViews].map(([name, view]) => {
    let made: unknown
    return [name, { get: () => {
      generation.assertNotEnded()
      return made ??= view(generation.scope)
    } }]
  }))
}
/** Read anew each time: a service may have been replaced, and one that has left is said so. */
function injected(generation: Generation, services: Services): PropertyDescriptorMap {
  const names = (generation.module.inject ?? []).filter(name => !services.coreViews.has(name))
  return Object.fromEntries(names.map(name => [name, { get: () => {
    generation.assertNotEnded()
    const offer = services.offer(name)
    if (!offer) throw new HarnessError('service_missing', `plugin "${generation.id}": service "${name}" has left`)
    return offer.value
  } }]))
}

function missing(generation: Generation, services: Services, property: string): HarnessError {
  if (generation.ended) return generation.stale()
  const owner = services.owner(property)
  if (owner !== undefined) return new HarnessError('service_missing', `plugin "${generation.id}" reads ctx.${property}, a service of plugin "${owner}", without asking for it; write: export const inject = ['${property}'], or use ctx.get('${property}')`)
  return new HarnessError('service_missing', `plugin "${generation.id}" reads ctx.${property}, which is not there${didYouMean(property, [...MEMBERS, ...services.names()]) || `; if it is a service of a plugin, write: export const inject = ['${property}']`}`)
}
const MEMBERS: readonly (keyof BaseContext | keyof Context)[] = ['id', 'signal', 'state', 'dataDir', 'logger', 'on', 'provide', 'get', 'inject', 'setTimeout', 'setInterval', 'effect']

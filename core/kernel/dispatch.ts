/**
 * The hooks of the host: which there are, who hangs on them, and their dispatch. Order and visibility come from the registry, meaning from the rules, the walk is chain.ts.
 * Knows no agent: core declares its hooks with their rules, plugins define theirs. Invariants: decide and amend never reject because of a handler;
 * a dispatch works on the list as it was when it began; payloads are frozen before a handler sees them.
 */
import { HarnessError, nearest, show } from '../errors.js'
import { current, enclosing, enter } from './async-context.js'
import { around, decide, tell } from './chain.js'
import { type Act, Run } from './frame.js'
import { adopt, freeze } from './frozen.js'
import { GateTimeout } from './gate.js'
import { checkRegistration, Handler, type HandlerFunction, type HookInfo, misfit, type Options } from './handler.js'
import type { Disposer, HookKind, HookName, HookOf, Payload } from './hooks.js'
import { isThenable } from './limits.js'
import type { Owners, Scope } from './owners.js'
import { Pending } from './pending.js'
import { type Listing, Registry } from './registry.js'
import { flatten, type Report } from './report.js'
import type { Opinion, Rule, Trace, Verdict } from './rules.js'

export type { HandlerInfo, HookInfo } from './handler.js'
export type { Report } from './report.js'
export type { Trace, Verdict } from './rules.js'

export interface DispatchOptions<K extends HookName> {
  /** The act of an around hook. Give it `act.signal`, which is also aborted when a handler around it has given up waiting. */
  readonly inner?: ((payload: Payload<K>, act: Pick<Act, 'signal'>) => unknown) | undefined
  /** A sentence when a value that a handler gave doesn't fit where it goes. */
  readonly check?: ((value: unknown) => string | undefined) | undefined
  /** Told what handlers did when the act failed; else it stands in the verdict. */
  readonly failed?: ((trace: readonly Trace[]) => void) | undefined
}
/** Dispatches a plugin's own hook. `inner` is the act of an around hook, or the default of a decide or amend one. */
export type Fire = (payload: object, inner?: (payload: object) => unknown) => Promise<unknown>
/** What the dispatcher looks at in a payload; the rest is for the rules and handlers. */
interface Envelope { readonly signal?: unknown; readonly call?: { readonly name?: string } }
type Input = { readonly inner: ((payload: unknown, act: Act) => unknown) | undefined; readonly check: ((value: unknown) => string | undefined) | undefined; readonly failed?: DispatchOptions<never>['failed'] }

/** So many names of tools stand in a warning. */
const SHOWN_TOOLS = 12

export class Dispatcher {
  readonly #report: (report: Report) => void
  readonly #handlers: Registry<Handler>
  readonly #own: Registry<HookKind>
  readonly #rules = new Map<string, Rule>()
  readonly #ownRules = new Map<HookKind, Rule>()
  /** Other tools' names, folded. */
  readonly #otherNames = new Map<string, string>()
  readonly #absent = new Map<string, string>()
  readonly #pending = new Pending()
  readonly #told = new WeakSet<Handler>()

  constructor(owners: Owners, report: (report: Report) => void) {
    this.#report = report
    this.#own = new Registry('hook', owners, { gated: () => false, unique: (entry, present) => {
      throw new HarnessError('already_registered', `hook "${entry.slot}" of plugin "${entry.owner.id}" is already defined by plugin "${present.owner.id}"; choose another name`)
    } })
    this.#handlers = new Registry('handler of', owners, { gated: hook => this.#rule(hook)?.kind !== 'watch' })
    owners.attach({
      check: () => {}, holds: () => 0, close: () => () => {}, labels: () => [],
      publish: changed => {
        for (const owner of changed) if (owner.stage === 'disposed') this.#pending.unload(owner)
        for (const hook of this.#own.slots()) this.#tellMisfits(hook)
      },
    })
  }

  // ---- which hooks there are
  /** Makes a hook of core known, and what other tools call it. */
  declare(hook: string, rule: Rule, otherNames: readonly string[] = []): void {
    this.#rules.set(hook, rule)
    for (const name of [hook.slice(hook.indexOf('/') + 1), ...otherNames]) this.#otherNames.set(fold(name), hook)
  }
  /** The rule of plugins' own hooks of a kind. */
  declareOwn(kind: HookKind, rule: Rule): void { this.#ownRules.set(kind, rule) }
  /** A plugin's own hook: there while its owner is live. Handlers registered earlier wait for it. */
  define(scope: Scope, hook: string, { kind }: { readonly kind: HookKind }): Fire {
    const { owner } = scope, rule = this.#ownRules.get(kind)
    if (typeof hook !== 'string' || hook === '') throw new HarnessError('hook_invalid', `plugin "${owner.id}": a hook's name must be a string, received ${show(hook)}`)
    if (rule === undefined) throw new HarnessError('hook_invalid', `plugin "${owner.id}", hook "${hook}": kind must be decide, amend, around or watch, received ${show(kind)}`)
    if (this.#isCore(hook)) throw new HarnessError('hook_invalid', `plugin "${owner.id}": hook "${hook}" would be core's by its name; call it "${owner.id}/${hook.slice(hook.indexOf('/') + 1)}"`)
    this.#own.add(scope, hook, kind)
    return async (payload, inner) => {
      if (owner.stage === 'staged') throw new HarnessError('hook_invalid', `plugin "${owner.id}": hook "${hook}" can be fired once apply has ended, not before`)
      if (owner.stage === 'disposed') throw new HarnessError('stale_context', `plugin "${owner.id}" is unloaded; its hook "${hook}" is gone`)
      const { value } = await this.#dispatch(hook, rule, ownPayload(hook, payload), { inner: inner as Input['inner'], check: undefined })
      return value
    }
  }

  // ---- who hangs on them
  /** Hangs a handler on a hook. `below`: the function on the stack that the plugin called, for the line shown. */
  registerHandler(scope: Scope, hook: string, run: unknown, options: unknown = {}, below: (...args: never[]) => unknown = this.registerHandler): Disposer {
    const { owner } = scope
    if (typeof hook !== 'string') throw new HarnessError('hook_invalid', `plugin "${owner.id}": a hook's name must be a string, received ${show(hook)}`)
    const rule = this.#rule(hook)
    if (rule === undefined && this.#isCore(hook)) throw new HarnessError('hook_unknown', `plugin "${owner.id}": ${this.#insteadOf(hook)}`)
    checkRegistration(owner.id, hook, run, options, rule)
    const given = options as Options, kept: Options = { ...given, tools: given.tools && [...given.tools] }
    const origin = this.#handlers.origin(scope, below)
    return this.#handlers.add(scope, hook, new Handler(hook, owner, run, kept, origin), { prepend: kept.prepend ?? false, origin })
  }
  /** Warns, once per handler, of entries of `tools` that match none of the tools there are. To be called when plugins have been loaded. */
  unmatchedTools(tools: readonly string[]): void {
    for (const { value: handler, owner, slot: hook } of this.#handlers.entries()) {
      const unmatched = handler.unmatched(tools)
      if (unmatched.length === 0 || this.#told.has(handler)) continue
      this.#told.add(handler)
      this.#report({ level: 'warn', plugin: owner.id, hook, what: 'unmatched', message: `plugin "${owner.id}", hook "${hook}": tools ${unmatched.map(entry => typeof entry === 'string' ? `"${entry}"` : String(entry)).join(', ')} matches none of the known tools (${tools.length === 0 ? 'there are none' : tools.slice(0, SHOWN_TOOLS).join(', ')}${tools.length > SHOWN_TOOLS ? ', …' : ''}), so the handler is never called for it` })
    }
  }
  /** Is there anything a dispatch would meet? For hot paths that would build a payload for nobody. */
  has(hook: HookName): boolean { return this.#handlers.has(hook) || this.#absent.size > 0 && this.#rule(hook)?.guarded === true }
  /** Hooks with handlers: core's in their order, then plugins' own by name. */
  list(): readonly HookInfo[] {
    const core = [...this.#rules.keys()].filter(hook => this.#handlers.look(hook).values.length > 0)
    const own = this.#handlers.slots().filter(hook => !this.#rules.has(hook)).sort()
    const nth = this.#handlers.numbers()
    return [...core, ...own].map(hook => ({ hook, kind: this.#rule(hook)?.kind ?? 'undefined', handlers: this.#handlers.look(hook).entries.map(entry => entry.value.info(nth.get(entry)!)) }))
  }
  /** Handlers of all plugins, staged ones too. */
  get size(): number { return this.#handlers.size }

  // ---- dispatch
  /**
   * decide and amend never reject because of a handler. around rejects with what the act or a handler threw. All reject with `signal.reason` when the payload's signal is aborted;
   * a watch that begins afterwards is told in full, since it is the news of the end.
   */
  dispatch<K extends HookName>(hook: K, payload: Payload<K>, how: DispatchOptions<K> = {}): Promise<Verdict<HookOf<K>['next']>> {
    const rule = this.#rule(hook)
    if (rule === undefined) return Promise.reject(new HarnessError('hook_unknown', `hook "${hook}" is not defined`))
    return this.#dispatch(hook, rule, payload, { inner: how.inner as Input['inner'], check: how.check, failed: how.failed }) as Promise<Verdict<HookOf<K>['next']>>
  }
  /** A synchronous watch hook: called, not awaited. No list is held, since nothing is pending when it returns. */
  tell<K extends HookName>(hook: K, payload: Payload<K>): void {
    const { values } = this.#handlers.look(hook)
    if (values.length === 0) return
    freeze(payload)
    for (const handler of values) {
      const sampled = (handler.calls++ & 15) === 0, start = sampled ? performance.now() : 0
      try {
        const told = enter(handler, handler.run, payload)
        if (isThenable(told)) told.then(undefined, error => this.#tellFailed(handler, error))
      } catch (error) {
        this.#tellFailed(handler, error)
      }
      if (sampled) handler.took(performance.now() - start)
    }
  }
  /** Waiting for a person is nobody's own time: stops the clock of every enclosing handler. */
  async waiting<T>(work: () => Promise<T>): Promise<T> {
    const enclosed = [...enclosing()], begin = performance.now()
    for (const activity of enclosed) activity.pause?.(begin)
    try { return await work() } finally {
      const end = performance.now()
      for (const activity of enclosed) activity.resume?.(end)
    }
  }
  /** A required guard that is not active: `cause` says why; undefined once it is. */
  guard(id: string, cause: string | undefined): void {
    if (cause === undefined) this.#absent.delete(id)
    else this.#absent.set(id, cause)
  }

  #dispatch(hook: string, rule: Rule, payload: unknown, input: Input): Promise<Verdict> {
    const { signal: given } = payload as Envelope
    const aborted = given instanceof AbortSignal ? given : undefined
    const signal = rule.kind === 'watch' && aborted?.aborted ? undefined : aborted
    const taken = this.#handlers.take(hook, signal)
    return taken instanceof Promise ? this.#afterGate(taken, hook, rule, payload, signal, input) : this.#begin(taken, hook, rule, payload, signal, input)
  }
  async #afterGate(taken: Promise<Listing<Handler>>, hook: string, rule: Rule, payload: unknown, signal: AbortSignal | undefined, input: Input): Promise<Verdict> {
    let listing
    try { listing = await taken } catch (error) {
      if (!(error instanceof GateTimeout) || rule.kind !== 'decide') throw error
      const plugin = error.plugins.join(', ')
      return verdict(rule.refuse?.(plugin, error.why, 'hook_failed') ?? rule.start(payload), [{ plugin, kind: 'hook_failed', reason: error.why }])
    }
    return this.#begin(listing, hook, rule, payload, signal, input)
  }
  async #begin(listing: Listing<Handler>, hook: string, rule: Rule, payload: unknown, signal: AbortSignal | undefined, { inner, check, failed }: Input): Promise<Verdict> {
    try {
      signal?.throwIfAborted()
      if (rule.guarded && rule.refuse) for (const [id, cause] of this.#absent) return verdict(rule.refuse(id, cause, 'guard_inactive'), [{ plugin: id, kind: 'guard_inactive', reason: cause }])
      if (listing.values.length === 0 && inner === undefined) return verdict(rule.start(payload))
      freeze(payload)
      const run = new Run({ hook, rule, handlers: listing.values, holding: listing.owners, tool: (payload as Envelope).call?.name, signal, inner, check, pending: this.#pending, report: this.#report }, current())
      try {
        if (rule.kind === 'watch') await tell(run, payload)
        else await (rule.kind === 'around' ? around : decide)(run, run, 0, payload, performance.now())
      } catch (error) {
        if (run.stopped) throw run.stopped.reason
        if (run.trace) failed?.(run.trace)
        throw error
      } finally { run.end() }
      if (run.stopped) throw run.stopped.reason
      return verdict(run.opinion ?? rule.start(payload), run.trace)
    } finally { this.#handlers.release(listing) }
  }

  // ---- names
  #rule(hook: string): Rule | undefined {
    const core = this.#rules.get(hook)
    if (core) return core
    const own = this.#own.get(hook)
    return own && this.#ownRules.get(own.value)
  }
  /** Would this name be core's: by its prefix, or as another spelling or other tool's name of one of its hooks? */
  #isCore(hook: string): boolean {
    const prefix = hook.slice(0, hook.indexOf('/') + 1)
    if (prefix === '') return this.#otherNames.has(fold(hook))
    for (const name of this.#rules.keys()) if (name.startsWith(prefix)) return true
    return this.#otherNames.has(fold(hook.slice(prefix.length))) && nearest(prefix, [...this.#rules.keys()].map(name => name.slice(0, name.indexOf('/') + 1))) !== undefined
  }
  #insteadOf(hook: string): string {
    const other = this.#otherNames.get(fold(hook.slice(hook.indexOf('/') + 1)))
    if (other !== undefined) return `"${hook}" is called "${other}" here`
    const near = nearest(hook, this.#rules.keys())
    return `hook "${hook}" does not exist; ${near === undefined ? `there are ${[...this.#rules.keys()].join(', ')}` : `did you mean "${near}"?`}`
  }

  #tellMisfits(hook: string): void {
    const rule = this.#rule(hook)
    if (rule === undefined) return
    for (const handler of this.#handlers.look(hook).values) {
      const problem = misfit(handler.options, rule)
      if (problem === undefined || this.#told.has(handler)) continue
      this.#told.add(handler)
      this.#report({ level: 'warn', plugin: handler.owner.id, hook, what: 'misfit', message: `plugin "${handler.owner.id}", hook "${hook}": ${problem}` })
    }
  }
  #tellFailed(handler: Handler, error: unknown): void {
    handler.errors++
    const flat = flatten(error)
    this.#report({ level: 'error', plugin: handler.owner.id, hook: handler.hook, what: 'failed', message: `plugin "${handler.owner.id}": its handler of "${handler.hook}" failed: ${flat.message}${handler.where(flat)}`, error: flat })
  }
}

const NONE: readonly Trace[] = Object.freeze([])
/** Written out: a spread would cost as much as a handler. */
const verdict = ({ value, plugin, failure, answer, context }: Opinion, trace: readonly Trace[] = NONE): Verdict => ({ value, plugin, failure, answer, context, trace })

/** Names of other tools in one spelling: case and separators don't count. */
const fold = (name: string): string => name.toLowerCase().replace(/[^a-z0-9]/g, '')

/** The payload of a plugin's own hook is copied, so that the plugin's objects stay its own; the signal and the session, which core made, go along as they are. */
function ownPayload(hook: string, payload: unknown): object {
  if (typeof payload !== 'object' || payload === null) throw new HarnessError('hook_invalid', `hook "${hook}" is fired with an object, received ${show(payload)}`)
  const { signal, session, ...rest } = payload as Record<string, unknown>
  return { ...adopt(rest, 'the payload'), ...(signal instanceof AbortSignal && { signal }), ...(session !== undefined && { session }) }
}

/**
 * What one turn carries along: its session, its place, its counts, and the two ways it speaks: to the log and to the hooks. The order of things is in loop.ts.
 * Knows no tool and no model.
 * Invariants: every payload has the base; what a dispatch decided is in the log before its effect; who is told of an end is told even when the turn was aborted.
 */
import { HarnessError, messageOf } from '../errors.js'
import type { Dispatcher, Trace, Verdict } from '../kernel/dispatch.js'
import { heardController } from '../kernel/heard-signal.js'
import type { HookName, HookOf, Payload } from '../kernel/hooks.js'
import type { Log } from '../kernel/log.js'
import { onAbort } from './abort.js'
import type { Approvals } from './approvals.js'
import { addUsage, NO_USAGE, priced, priceOf, type Prices, type Purse } from './cost.js'
import type { Base } from './hooks.js'
import type { Models } from './models.js'
import type { Confinement, RunEvent } from './services.js'
import type { Session } from './session.js'
import type { SessionEventBody } from './session-events.js'
import type { Tools } from './tools.js'
import type { FailureKind, SessionView, Source, Stats, TurnReason, Usage } from './vocabulary.js'

export interface AgentConfig {
  /** `<id>/<model>` or `<id>`; the first ready model when it is left out. */
  readonly model?: string | undefined
  /** Takes the place of the built-in system prompt. */
  readonly system?: string | undefined
  readonly maxSteps: number
  readonly maxContinuations: number
  readonly askTimeoutMs: number
  /** Read-only calls that run together. */
  readonly maxParallel: number
  readonly prices: Prices
  /** Ids of plugins that may answer asks in the user's name. */
  readonly approvers: readonly string[]
  /** A turn that has cost so much, with those inside it, takes no further step. */
  readonly maxCost?: number | undefined
}
export const AGENT_DEFAULTS: AgentConfig = { maxSteps: 50, maxContinuations: 8, askTimeoutMs: 300_000, maxParallel: 8, prices: {}, approvers: [] }

/** What the loop needs of the world. */
export interface Ports {
  readonly hooks: Dispatcher
  readonly tools: Tools
  readonly models: Models
  readonly approvals: Approvals
  readonly workspace: CallAccess
  readonly log: Log
  config(): AgentConfig
}
/** The part of the workspace that follows a call: its own view, a yes, how its programs are started, its end. */
export interface CallAccess {
  callView(session: SessionView, callId: string): SessionView
  approve(session: SessionView, callId: string): void
  confinement(session: SessionView, callId: string): Confinement | undefined
  forget(session: SessionView, callId: string): void
}

/** Words, and whose they are. */
export interface Prompt { readonly prompt: string; readonly source: Source }
export interface TurnInput extends Prompt {
  /** `<id>/<model>`. */
  readonly model: string
  readonly maxSteps?: number | undefined
  readonly signal: AbortSignal
  readonly purse: Purse
  /** Takes the prompts that came for this turn while it runs. */
  steering?(): readonly Prompt[]
  /** What is told and not logged. */
  emit(event: RunEvent): void
}
export interface TurnEnd { readonly reason: TurnReason; readonly kind?: FailureKind | undefined; readonly message?: string | undefined }

/** What a turn's signal aborts with: somebody stopped it, or the process ends. */
export class Halt extends HarnessError {
  readonly reason: 'aborted' | 'interrupted'
  constructor(reason: 'aborted' | 'interrupted', message: string) {
    super('aborted', message)
    this.reason = reason
  }
}

export type Phase = Payload<'agent/error'>['phase']
type More<K extends HookName> = Omit<Payload<K>, keyof Base>
type How<K extends HookName> = Parameters<typeof Dispatcher.prototype.dispatch<K>>[2]

/** Watchers of ends have this long after an abort, all together. */
const CLOSE_MS = 2000

export class Turn {
  readonly ports: Ports
  readonly session: Session
  readonly input: TurnInput
  readonly number: number
  step = 0
  /** What goes on, for the report of a failure. */
  phase: Phase = 'prompt'
  /** Text of the last reply. */
  text = ''
  /** Text that has come of a reply whose end has not. */
  partial = ''
  /** An ask was denied because nobody could be asked. */
  unanswered = false
  readonly #started = performance.now()
  readonly #stats = { steps: 0, toolCalls: 0, blocked: 0 }
  #usage: Usage = NO_USAGE
  #stepUsage: Usage = NO_USAGE
  /** Models that were used and have no price. */
  readonly #unpriced = new Set<string>()
  readonly #closing = heardController()
  readonly #dispose: () => void

  constructor(ports: Ports, session: Session, input: TurnInput) {
    this.ports = ports
    this.session = session
    this.input = input
    this.number = session.turns + 1
    let timer: NodeJS.Timeout | undefined
    const off = onAbort(input.signal, () => { timer = setTimeout(() => { this.#closing.abort(input.signal.reason) }, CLOSE_MS) })
    this.#dispose = () => { off(); clearTimeout(timer) }
  }

  get signal(): AbortSignal { return this.input.signal }
  get elapsedMs(): number { return sinceMs(this.#started) }
  get usage(): Usage { return this.#usage }
  get stepUsage(): Usage { return this.#stepUsage }
  get stats(): Stats { return { ...this.#stats } }
  count(what: keyof Stats): void { this.#stats[what]++ }
  /** Counts what a reply used, and gives it with its cost. */
  spend(used: Usage, model: string): Usage {
    const { prices, maxCost } = this.ports.config(), usage = priced(used, priceOf(prices, model))
    this.#usage = addUsage(this.#usage, usage)
    this.#stepUsage = addUsage(this.#stepUsage, usage)
    this.input.purse.spend(usage.cost ?? 0)
    if (maxCost !== undefined && usage.cost === undefined && !this.#unpriced.has(model)) {
      this.#unpriced.add(model)
      this.warn(`model "${model}" has no price, so what it costs does not count towards agent.maxCost; add one under agent.prices`)
    }
    return usage
  }
  /** The next step; it counts as taken once its request is sent. */
  beginStep(): void {
    this.step = this.#stats.steps
    this.#stepUsage = NO_USAGE
    this.phase = 'step'
  }
  dispose(): void { this.#dispose() }

  // ---- the log

  log(body: SessionEventBody): void { this.session.append(body) }
  /** The place of an event. */
  get at(): { readonly turn: number; readonly step: number } { return { turn: this.number, step: this.step } }
  warn(message: string): void { this.log({ type: 'warning', ...this.at, message }) }
  commit(): Promise<void> { return this.session.commit() }
  /** Logs what handlers decided. */
  record(hook: string, trace: readonly Trace[], callId?: string): void {
    for (const { plugin, kind, reason, change, ms } of trace) {
      this.log({ type: 'decision', ...this.at, hook, plugin, kind, ...(reason !== undefined && { reason }), ...(change !== undefined && { change }), ...(callId !== undefined && { callId }), ...(ms !== undefined && { elapsedMs: Math.round(ms * 10) / 10 }) })
    }
  }

  // ---- the hooks

  base(signal: AbortSignal = this.signal): Base { return { session: this.session.view(), ...this.at, signal } }
  dispatch<K extends HookName>(hook: K, more: More<K>, how?: How<K>): Promise<Verdict<HookOf<K>['next']>> {
    return this.ports.hooks.dispatch(hook, this.#payload(hook, more), how)
  }
  /** A dispatch whose decisions are logged. */
  async ask<K extends HookName>(hook: K, more: More<K>, how?: How<K>): Promise<Verdict<HookOf<K>['next']>> {
    const record = (trace: readonly Trace[]) => { this.record(hook, trace, (more as { call?: { id: string } }).call?.id) }
    const verdict = await this.dispatch(hook, more, { ...how, failed: record })
    record(verdict.trace)
    return verdict
  }
  /** Tells watchers. */
  tell<K extends HookName>(hook: K, more: More<K>): Promise<void> { return this.#tell(hook, more, this.signal.aborted ? this.#closing.signal : this.signal) }
  /** Tells watchers of an end, whatever became of the turn. */
  ended<K extends HookName>(hook: K, more: More<K>): Promise<void> { return this.#tell(hook, more, this.#closing.signal) }

  /** Never throws: watchers are contained, an abort shows at the next act, and an end must not hide what it ends. */
  async #tell<K extends HookName>(hook: K, more: More<K>, signal: AbortSignal): Promise<void> {
    try {
      const { trace } = await this.ports.hooks.dispatch(hook, this.#payload(hook, more, signal))
      if (hook !== 'agent/turn-end') this.record(hook, trace, (more as { call?: { id: string } }).call?.id)      // that one is told when the turn's last line is written
    } catch (error) {
      if (!signal.aborted) this.ports.log.error(`${hook} could not be told: ${messageOf(error)}`)
    }
  }
  /** The base and the rest make the payload; that it does is the meaning of `More`, which TypeScript can't see through a type parameter. */
  #payload<K extends HookName>(_hook: K, more: More<K>, signal?: AbortSignal): Payload<K> { return { ...this.base(signal), ...more } as unknown as Payload<K> }
}

export const sinceMs = (start: number): number => Math.round((performance.now() - start) * 10) / 10

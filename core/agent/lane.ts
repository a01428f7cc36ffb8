/**
 * One open session and its turns, one after another in the order they were asked for. Knows no store: it gets the session open, and closes it.
 *
 *   open ──first turn: session-start──▶ begun ──close──▶ closing (turns asked for before still run) ──session-end──▶ closed
 *
 * Invariants: one turn at a time; session-start and session-end once each, and the end only after the start; what a run asked for always gets a result.
 */
import { setMaxListeners } from 'node:events'
import { enter, leave, current, type Activity } from '../kernel/async-context.js'
import { heardController } from '../kernel/heard-signal.js'
import type { Payload } from '../kernel/hooks.js'
import { messageOf } from '../errors.js'
import { onAbort } from './abort.js'
import { runTurn } from './loop.js'
import { RunStream } from './run-stream.js'
import type { Run, RunEvent, RunResult } from './services.js'
import type { Purse } from './cost.js'
import type { Session } from './session.js'
import type { Person } from './approvals.js'
import { Halt, type Ports, type Prompt, type TurnInput } from './turn.js'

/** A turn as it was asked for. */
export interface Order extends Pick<TurnInput, 'prompt' | 'source' | 'model' | 'maxSteps' | 'purse'>, Person {
  readonly signal?: AbortSignal | undefined
}
/** A run, for whoever asked for it: stopped by itself, wherever it stands in the line. */
export interface OwnRun extends Run { abort(reason: string): void }
export type Opened = Payload<'agent/session-start'>['source']
export type Closed = Payload<'agent/session-end'>['reason']

interface Job { readonly order: Order; readonly stream: RunStream; readonly controller: AbortController; readonly activity: TurnActivity }

/** What a turn runs in: whoever asks for another turn of the same session in there, and waits for it, would wait for himself. */
export class TurnActivity implements Activity {
  readonly owner = undefined
  readonly session: string
  parent: Activity | undefined = current()
  over = false
  constructor(session: string) { this.session = session }
}

export class Lane {
  readonly session: Session
  readonly #ports: Ports
  readonly #opened: Opened
  readonly #tell: (event: RunEvent) => void
  /** Its payloads outside of turns carry this signal. */
  readonly #controller = heardController()
  /** The turn that runs, and those that wait. */
  readonly #jobs: Job[] = []
  /** Prompts for the turn that runs, until it takes them. */
  #steering: Prompt[] = []
  #tail: Promise<void> = Promise.resolve()
  #begun = false
  #step = 0
  #closing: Promise<void> | undefined

  /** `tell` hears of everything that happens in the session, whichever turn it belongs to. */
  constructor(ports: Ports, session: Session, opened: Opened, tell: (event: RunEvent) => void = () => {}) {
    this.#ports = ports
    this.session = session
    this.#opened = opened
    this.#tell = tell
    session.onEvent = tell
  }

  get busy(): boolean { return this.#jobs.length > 0 }
  /** Of the turn that runs. */
  get purse(): Purse | undefined { return this.#jobs[0]?.order.purse }
  get closing(): boolean { return this.#closing !== undefined }
  get status(): { readonly session: string; readonly turn: number; readonly step: number; readonly queued: number } {
    return { session: this.session.id, turn: this.session.turns, step: this.#step, queued: Math.max(0, this.#jobs.length - 1) }
  }

  /** Puts a turn behind those there are. */
  run(order: Order): OwnRun {
    const { session } = this
    const job: Job = { order, stream: new RunStream(), controller: heardController(), activity: new TurnActivity(session.id) }
    if (this.#opened === 'new' && !this.#begun && !this.busy) for (const event of session.events) job.stream.push(event)      // the first lines of a new session belong to its first run
    setMaxListeners(0, job.controller.signal)                          // each dispatch and call of the turn listens
    this.#jobs.push(job)
    const result = this.#tail.then(() => enter(job.activity, () => this.#turn(job)))
    this.#tail = result.then(() => {}, () => {})                      // a failure is the result's; the next turn runs all the same
    return { session: session.id, events: job.stream, result, abort: reason => { job.controller.abort(new Halt('aborted', reason)) } }
  }
  /** Hands a prompt to the turn that runs, for its next step. False when none runs. */
  steer(prompt: Prompt): boolean {
    if (!this.busy) return false
    this.#steering.push(prompt)
    return true
  }
  /** What no turn has taken before it ended: orders for turns of their own. */
  takeSteering(): readonly Prompt[] {
    const taken = this.#steering
    this.#steering = []
    return taken
  }
  /** Stops the turn that runs. */
  abort(halt: Halt): boolean {
    const [running] = this.#jobs
    running?.controller.abort(halt)
    return running !== undefined
  }
  /** Stops the turn that runs and those that wait. */
  halt(halt: Halt): void { for (const { controller } of this.#jobs) controller.abort(halt) }
  /** Resolves when no turn runs or waits. */
  async idle(): Promise<void> { while (this.busy) await this.#tail }
  /** Ends the session once its turns have ended. */
  close(reason: Closed): Promise<void> { return this.#closing ??= this.#close(reason) }

  async #turn(job: Job): Promise<RunResult> {
    const { session } = this, { order, stream, controller } = job
    const off = order.signal && onAbort(order.signal, () => { controller.abort(new Halt('aborted', `stopped by its caller: ${messageOf(order.signal?.reason)}`)) })
    const left = this.#ports.approvals.attend(session.id, order)
    const emit = (event: RunEvent) => {
      stream.push(event)
      this.#tell(event)
    }
    session.mode = order.mode
    session.onEvent = event => {
      if ('step' in event) this.#step = event.step
      emit(event)
    }
    try {
      await this.#begin()
      return await runTurn(this.#ports, session, { ...order, signal: controller.signal, emit, steering: () => this.takeSteering() })
    } finally {
      session.onEvent = this.#tell
      left()
      off?.()
      leave(job.activity)
      this.#jobs.shift()
      stream.end()
    }
  }
  async #begin(): Promise<void> {
    if (this.#begun) return
    this.#begun = true
    await this.#dispatch('agent/session-start', { source: this.#opened })
  }
  async #close(reason: Closed): Promise<void> {
    await this.idle()
    if (this.#begun) await this.#dispatch('agent/session-end', { reason })
    this.#controller.abort(new Halt('aborted', `the session is closed (${reason})`))
    this.#ports.approvals.forget(this.session.id)
    await this.session.close()
  }
  async #dispatch<K extends 'agent/session-start' | 'agent/session-end'>(hook: K, more: Omit<Payload<K>, 'session' | 'turn' | 'step' | 'signal'>): Promise<void> {
    const base = { session: this.session.view(), turn: 0, step: 0, signal: this.#controller.signal }
    await this.#ports.hooks.dispatch(hook, { ...base, ...more } as unknown as Payload<K>)
  }
}

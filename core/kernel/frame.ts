/**
 * One dispatch (Run) and one call of one handler in it (Frame). They are the activities of the async context: run → frame → run of a nested dispatch → …
 * Knows how a call's time is counted, not when it is up (pending.ts) nor what its result means (chain.ts).
 *
 *   Frame: running ⇄ waiting (in next(), or for a person) → over
 *
 * Invariants: time in next() or in an approval is nobody's own time; once a frame is over nothing its handler does has an effect; what is over pins no other plugin.
 */
import { type Activity, enter, leave } from './async-context.js'
import { Wrong } from './frozen.js'
import { changedGlobals, whatChanged } from './globals.js'
import type { Handler } from './handler.js'
import { heardController } from './heard-signal.js'
import type { Owner } from './owners.js'
import type { Pending } from './pending.js'
import type { Report } from './report.js'
import type { Opinion, Rule, Trace } from './rules.js'

/** `next` was used in a way it isn't meant for. */
export class Misuse extends Wrong { override readonly why = 'it misused next()' }
/** Core ended the call. */
export class Ended extends Error {
  readonly why: string
  readonly timedOut: boolean
  constructor(why: string, timedOut = false) {
    super(why)
    this.why = why
    this.timedOut = timedOut
  }
}

/** What the handlers from one on came to goes to the frame whose `next()` asked, or to the run. */
export interface Asker {
  rested(opinion: Opinion, now: number): void
  /** around: it threw instead. */
  failed(error: unknown, now: number): void
}
export interface Thrown { readonly error: unknown }
type Inner = (payload: unknown, act: Act) => unknown

/** What the act of an around hook gets beside the payload. */
export class Act {
  /** Kept by pending. */
  index = -1
  readonly run: Run
  #controller: AbortController | undefined
  constructor(run: Run) { this.run = run }
  /** Aborted with the signal of the dispatch, and when the handlers around the act end without waiting for it (a timeout). Made when first read. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = heardController()
      this.run.pending.begun(this)
    }
    return this.#controller.signal
  }
  abort(reason: unknown): void { this.#controller?.abort(reason) }
}

export interface RunInput {
  readonly hook: string
  readonly rule: Rule
  readonly handlers: readonly Handler[]
  readonly holding: ReadonlySet<Owner>
  readonly tool: string | undefined
  readonly signal: AbortSignal | undefined
  readonly inner: Inner | undefined
  readonly check: ((value: unknown) => string | undefined) | undefined
  readonly pending: Pending
  readonly report: (report: Report) => void
}

export class Run implements Activity, Asker {
  readonly hook: string
  readonly rule: Rule
  readonly tool: string | undefined
  readonly signal: AbortSignal | undefined
  readonly inner: Inner | undefined
  readonly check: ((value: unknown) => string | undefined) | undefined
  readonly pending: Pending
  readonly report: (report: Report) => void
  handlers: readonly Handler[]
  holding: ReadonlySet<Owner> | undefined
  /** What runs inside but in no handler, the act above all, is on the account of who began the dispatch. */
  readonly owner: Owner | undefined
  parent: Activity | undefined
  over = false
  trace: Trace[] | undefined = undefined
  /** around: the act that runs. */
  act: Act | undefined = undefined
  opinion: Opinion | undefined = undefined
  #stopped: { readonly reason: unknown } | undefined = undefined

  constructor(input: RunInput, parent: Activity | undefined) {
    this.hook = input.hook
    this.rule = input.rule
    this.tool = input.tool
    this.signal = input.signal
    this.inner = input.inner
    this.check = input.check
    this.pending = input.pending
    this.report = input.report
    this.handlers = input.handlers
    this.holding = input.holding
    this.owner = parent?.owner
    this.parent = parent
  }
  /** Set when the dispatch comes to nothing, and throws `reason`: its signal was aborted, or the default of a plugin's own hook threw. */
  get stopped(): { readonly reason: unknown } | undefined {
    return this.#stopped ??= this.signal?.aborted ? { reason: this.signal.reason } : undefined
  }
  stop(reason: unknown): void { this.#stopped ??= { reason } }
  rested(opinion: Opinion): void { this.opinion = opinion }
  failed(): void {}                                                              // the promise of the chain says it
  log(trace: Trace): void { (this.trace ??= []).push(trace) }
  end(): void {
    this.handlers = []
    this.holding = undefined
    leave(this)
  }
}

export class Frame implements Activity, Asker {
  readonly handler: Handler
  readonly owner: Owner
  parent: Run | undefined
  readonly limit: number
  over = false
  /** Named in the log as slow. */
  slow = false
  /** How often it called `next()`. */
  asked = 0
  /** The last `next()`, and what it came to. */
  rest: Promise<unknown> | undefined = undefined
  settled = false
  opinion: Opinion | undefined = undefined
  /** around: what `next()` threw. */
  thrown: Thrown | undefined = undefined
  misuse: Misuse | undefined = undefined
  /** Kept by pending. */
  index = -1
  /** Ends the call from outside; there once the handler awaits. */
  expire: ((error: unknown) => void) | undefined = undefined
  /** Time that the whole process stood still: it is the handler's own in the figures, but doesn't count against its limit. */
  credit = 0
  /** Its own time in the end, in milliseconds. */
  took = 0
  #own = 0
  #since = 0
  #waits = 0

  constructor(run: Run, handler: Handler) {
    this.handler = handler
    this.owner = handler.owner
    this.parent = run
    this.limit = handler.limit(run.rule.kind)
  }
  get seat(): number { return this.handler.seat }
  /** The one place where a handler is entered. */
  call(now: number, payload: unknown, next?: (change?: unknown) => Promise<unknown>): unknown {
    this.#since = now
    if (this.owner.stage === 'disposed') throw new Ended('its plugin was unloaded')
    this.handler.calls++
    return next === undefined ? enter(this, this.handler.run, payload) : enter(this, this.handler.run, payload, next)
  }
  /** The handler's function has returned or thrown; when it awaits, this was its synchronous part, which no deadline can end. */
  returned(now: number): void {
    const own = this.spent(now)
    if (own > this.limit) this.parent?.report({ level: 'warn', plugin: this.owner.id, hook: this.handler.hook, what: 'slow', message: `plugin "${this.owner.id}": its handler of "${this.handler.hook}" held the whole process up for ${Math.round(own)} ms; only one that awaits can be timed out` })
  }
  /** The handler has ended, or been let go. */
  end(): number {
    const now = performance.now()
    if (this.over) return now
    if (this.expire) this.parent?.pending.forget(this)
    else this.returned(now)
    this.handler.took(this.took = this.spent(now))
    const changed = changedGlobals()
    if (changed !== undefined) this.parent?.report({ level: 'warn', plugin: this.owner.id, hook: this.handler.hook, what: 'global', message: `plugin "${this.owner.id}": after its handler of "${this.handler.hook}" ${whatChanged(changed)}` })
    leave(this)
    return now
  }
  get waiting(): boolean { return this.#waits > 0 }
  pause(now: number): void { if (this.#waits++ === 0) this.#own += now - this.#since }
  resume(now: number): void {
    if (--this.#waits > 0) return
    this.#since = now
    if (this.expire && !this.over) this.parent?.pending.arm(this, now)
  }
  spent(now: number): number { return this.#waits > 0 ? this.#own : this.#own + now - this.#since }
  rested(opinion: Opinion, now: number): void {
    this.opinion = opinion
    this.#settle(now)
  }
  failed(error: unknown, now: number): void {
    this.thrown = { error }
    this.#settle(now)
  }
  /** `next()` begins. */
  asks(now: number): void {
    this.pause(now)
    this.asked++
    this.settled = false
    this.opinion = undefined
    this.thrown = undefined
  }
  #settle(now: number): void {
    this.settled = true
    this.resume(now)
  }
}

/**
 * The handlers and acts that are being awaited, and what can end the wait from outside: a handler's own time is up, the signal of the dispatch is aborted, the plugin is unloaded.
 * One timer for all deadlines, none while nothing is awaited; one listener per signal, however many dispatches follow it. Knows no rule and no result.
 * Membership is an index in an array, not a Set: tables of a Set that changes with every call keep each other, and what they held, alive until the next full collection.
 */
import { enter } from './async-context.js'
import { type Act, Ended, type Frame, type Run } from './frame.js'
import type { Owner } from './owners.js'

/** A handler that still runs after this much of its own time is named in the log. */
const SLOW_MS = 1000
/** A sweep this late means that the process stood still (a blocked loop, a sleeping machine): nobody's own time. */
const LATE_MS = 50

export class Pending {
  readonly #frames = new Bag<Frame>()
  readonly #acts = new Bag<Act>()
  /** Followed until a sweep finds that nobody needs them any more: following anew for each call would cost more than the call. */
  readonly #signals = new Set<AbortSignal>()
  #timer: NodeJS.Timeout | undefined
  #due = Infinity

  /** The result of a handler that awaits; rejects when the wait is ended from outside. What comes later is dropped. */
  settle(run: Run, frame: Frame, result: PromiseLike<unknown>): Promise<unknown> {
    return new Promise((resolve, reject) => {
      result.then(resolve, reject)
      const now = performance.now()
      frame.returned(now)
      if (run.stopped) return reject(new Ended('the dispatch was aborted'))
      frame.expire = reject
      if (this.#frames.size === 0) this.#timer?.ref()
      this.#frames.add(frame)
      this.#follow(run.signal, now)
      if (!frame.waiting) this.arm(frame, now)
    })
  }
  forget(frame: Frame): void {
    this.#frames.delete(frame)
    if (this.#frames.size === 0) this.#timer?.unref()
  }
  /** From here to `ended` the act is aborted with the signal of its run. */
  begun(act: Act): void {
    this.#acts.add(act)
    this.#follow(act.run.signal, performance.now())
  }
  ended(act: Act): void { this.#acts.delete(act) }
  /** Handlers of an unloaded plugin are let go. */
  unload(owner: Owner): void { this.#expire(frame => frame.owner === owner, 'its plugin was unloaded') }

  /** Sees to it that somebody looks when the frame's time is up. A waiting frame is left out; it comes back when it runs on. */
  arm(frame: Frame, now: number): void { this.#armAt(now + left(frame, now)) }

  #follow(signal: AbortSignal | undefined, now: number): void {
    if (!signal || this.#signals.has(signal)) return
    this.#signals.add(signal)
    signal.addEventListener('abort', this.#aborted)
    this.#armAt(now + SLOW_MS)
  }
  readonly #aborted = ({ target }: Event): void => {
    const signal = target as AbortSignal
    this.#unfollow(signal)
    for (const act of this.#acts.copy()) if (act.run.signal === signal) act.abort(signal.reason)
    this.#expire(frame => frame.parent?.signal === signal, 'the dispatch was aborted')
  }
  #unfollow(signal: AbortSignal): void {
    this.#signals.delete(signal)
    signal.removeEventListener('abort', this.#aborted)
  }
  #armAt(at: number): void {
    if (at >= this.#due) return
    clearTimeout(this.#timer)
    this.#due = at
    this.#timer = enter(undefined, () => setTimeout(this.#sweep, Math.max(1, at - performance.now())))     // on nobody's account: it outlives who armed it
    if (this.#frames.size === 0) this.#timer.unref()
  }
  readonly #sweep = (): void => {
    const now = performance.now(), late = now - this.#due
    this.#due = Infinity
    let next = Infinity
    for (const frame of this.#frames.copy()) {
      if (frame.waiting) continue
      if (late > LATE_MS) frame.credit += Math.min(late, frame.spent(now))
      if (left(frame, now) <= 0) this.#timeUp(frame, now)
      if (frame.index >= 0) next = Math.min(next, now + left(frame, now))
    }
    const needed = new Set([...this.#frames.copy().map(({ parent }) => parent?.signal), ...this.#acts.copy().map(({ run }) => run.signal)])
    for (const signal of [...this.#signals]) if (!needed.has(signal)) this.#unfollow(signal)
    this.#armAt(this.#signals.size > 0 ? Math.min(next, now + SLOW_MS) : next)
  }
  #timeUp(frame: Frame, now: number): void {
    const { handler, limit } = frame, spent = frame.spent(now) - frame.credit
    if (spent >= limit) {
      this.#end(frame, new Ended(`timed out after ${limit} ms`, true))
      return
    }
    frame.slow = true
    const level = limit === Infinity ? 'info' : 'warn'        // around may take its time: a retry waits, a cache fetches
    frame.parent?.report({ level, plugin: handler.owner.id, hook: handler.hook, what: 'slow', message: `plugin "${handler.owner.id}": its handler of "${handler.hook}" still runs after ${Math.round(spent)} ms` })
  }
  #expire(which: (frame: Frame) => boolean, why: string): void {
    for (const frame of this.#frames.copy()) if (which(frame)) this.#end(frame, new Ended(why))
  }
  #end(frame: Frame, error: Ended): void {
    this.forget(frame)
    frame.expire?.(error)
  }
}

/** Milliseconds until the frame has to be looked at. */
const left = (frame: Frame, now: number): number => (frame.slow ? frame.limit : Math.min(frame.limit, SLOW_MS)) - frame.spent(now) + frame.credit

/** An unordered collection whose members know their place in it (-1: in none). */
class Bag<T extends { index: number }> {
  readonly #members: T[] = []
  get size(): number { return this.#members.length }
  copy(): T[] { return [...this.#members] }
  add(member: T): void { member.index = this.#members.push(member) - 1 }
  delete(member: T): void {
    const { index } = member
    if (index < 0) return
    member.index = -1
    const last = this.#members.pop()!
    if (last === member) return
    this.#members[index] = last
    last.index = index
  }
}

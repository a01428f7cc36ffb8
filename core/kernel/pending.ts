/**
 * The handlers that are being awaited, and what can end the wait from outside: their own time is up, the signal of their dispatch is aborted, their plugin is unloaded.
 * One timer for all deadlines, none while nothing is awaited; one listener per signal, however many dispatches follow it. Knows no rule and no result.
 */
import { Ended, type Frame, type Run } from './frame.js'
import type { Owner } from './owners.js'

/** A handler that still runs after this much of its own time is named in the log. */
const SLOW_MS = 1000
/** A sweep this late means that the process stood still (a blocked loop, a sleeping machine): nobody's own time. */
const LATE_MS = 50

export class Pending {
  readonly #frames = new Set<Frame>()
  readonly #signals = new Map<AbortSignal, Set<Run>>()
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
      this.follow(run)
      if (this.#frames.size === 0) this.#timer?.ref()
      this.#frames.add(frame)
      if (!frame.waiting) this.arm(frame, now)
    })
  }
  forget(frame: Frame): void {
    if (this.#frames.delete(frame) && this.#frames.size === 0) this.#timer?.unref()
  }
  /** Until `unfollow` the run, its awaited handlers and its act end with its signal. */
  follow(run: Run): void {
    const { signal } = run
    if (!signal) return
    const runs = this.#signals.get(signal)
    if (runs) { runs.add(run); return }
    this.#signals.set(signal, new Set([run]))
    signal.addEventListener('abort', this.#aborted)
  }
  unfollow(run: Run): void {
    const { signal } = run, runs = signal && this.#signals.get(signal)
    if (!signal || !runs?.delete(run) || runs.size > 0) return
    this.#signals.delete(signal)
    signal.removeEventListener('abort', this.#aborted)
  }
  /** Handlers of an unloaded plugin are let go. */
  unload(owner: Owner): void { this.#expire(frame => frame.owner === owner, () => new Ended('its plugin was unloaded')) }

  /** Sees to it that somebody looks when the frame's time is up. A waiting frame is left out; it comes back when it runs on. */
  arm(frame: Frame, now: number): void { this.#armAt(now + left(frame, now)) }

  readonly #aborted = ({ target }: Event): void => {
    const runs = this.#signals.get(target as AbortSignal)
    for (const run of runs ?? []) {
      run.act?.abort(run.signal?.reason)
      this.#expire(frame => frame.parent === run, () => new Ended('the dispatch was aborted'))
    }
  }
  #armAt(at: number): void {
    if (at >= this.#due) return
    clearTimeout(this.#timer)
    this.#due = at
    this.#timer = setTimeout(this.#sweep, Math.max(1, at - performance.now()))
    if (this.#frames.size === 0) this.#timer.unref()
  }
  readonly #sweep = (): void => {
    const now = performance.now(), late = now - this.#due
    this.#due = Infinity
    let next = Infinity
    for (const frame of this.#frames) {
      if (frame.waiting) continue
      if (late > LATE_MS) frame.credit += Math.min(late, frame.spent(now))
      if (left(frame, now) <= 0) this.#timeUp(frame, now)
      if (this.#frames.has(frame)) next = Math.min(next, now + left(frame, now))
    }
    this.#armAt(next)
  }
  #timeUp(frame: Frame, now: number): void {
    const { handler, limit } = frame, spent = frame.spent(now) - frame.credit
    if (spent >= limit) { this.forget(frame); frame.expire?.(new Ended(`timed out after ${limit} ms`, true)); return }
    frame.slow = true
    frame.parent?.report({ level: 'warn', plugin: handler.owner.id, hook: handler.hook, what: 'slow', message: `plugin "${handler.owner.id}": its handler of "${handler.hook}" still runs after ${Math.round(spent)} ms` })
  }
  #expire(which: (frame: Frame) => boolean, why: () => Ended): void {
    for (const frame of [...this.#frames]) if (which(frame)) { this.forget(frame); frame.expire?.(why()) }
  }
}

/** Milliseconds until the frame has to be looked at. */
function left(frame: Frame, now: number): number {
  return (frame.slow ? frame.limit : Math.min(frame.limit, SLOW_MS)) - frame.spent(now) + frame.credit
}

/**
 * Who is running: the one AsyncLocalStorage of the process (each one ever entered slows every promise for good, so there is no second).
 * An activity is one call of plugin code or one dispatch; its parents are what it was begun in. Knows no hook and no plugin.
 * Invariant: an activity that has ended lets go of its parent, so that what outlives it (a timer, a socket) pins nothing else.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { isThenable } from './limits.js'
import type { Owner } from './owners.js'

export interface Activity {
  /** On whose account it runs; undefined for core's own. */
  readonly owner: Owner | undefined
  parent: Activity | undefined
  /** It has ended; what it has left running goes on, but inside nothing. */
  over: boolean
  /** Whose entries the list holds that a dispatch walks: their drain waits for it. */
  readonly holding?: ReadonlySet<Owner> | undefined
  /** Stops and restarts the clock of the handler's own time. */
  pause?(now: number): void
  resume?(now: number): void
}

const storage = new AsyncLocalStorage<Activity | undefined>()

export const current = (): Activity | undefined => storage.getStore()
export const currentOwner = (): Owner | undefined => storage.getStore()?.owner

/** Runs `fn` inside an activity whose end the caller declares by `leave`. */
export const enter = <A extends unknown[], R>(activity: Activity | undefined, fn: (...args: A) => R, ...args: A): R => storage.run(activity, fn, ...args)
export const leave = (activity: Activity): void => {
  activity.over = true
  activity.parent = undefined
}

/** Runs `fn` on the account of `owner`, up to the end of what it returns: `apply`, a timer, an undo. */
export function runAs<R>(owner: Owner | undefined, fn: () => R): R {
  const activity: Activity = { owner, parent: current(), over: false }
  const end = () => leave(activity)
  let result: R
  try { result = enter(activity, fn) } catch (error) { end(); throw error }
  if (isThenable(result)) result.then(end, end)
  else end()
  return result
}

/** The activities that the current code runs in, innermost first. */
export function* enclosing(): Generator<Activity> {
  for (let at = current(); at !== undefined && !at.over; at = at.parent) yield at
}

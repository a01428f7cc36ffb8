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

/** Who is being called, as a number that another thread can read; 0 is nobody. Stands only until a call first awaits, and is exact as long as it stands. */
let seat: Int32Array | undefined
const numbers = new Map<string, number>()
/** From now on, or no more. */
export const seats = (shared: Int32Array | undefined): void => { seat = shared }
/** The number of a plugin. */
export function seatFor(id: string): number {
  const number = numbers.get(id) ?? numbers.size + 1
  numbers.set(id, number)
  return number
}

/** Runs `fn` inside an activity whose end the caller declares by `leave`. */
export function enter<A extends unknown[], R>(activity: Activity | undefined, fn: (...args: A) => R, ...args: A): R {
  if (seat === undefined) return storage.run(activity, fn, ...args)
  const shared = seat, before = shared[0]!
  shared[0] = activity?.owner?.seat ?? 0
  try { return storage.run(activity, fn, ...args) } finally { shared[0] = before }
}
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

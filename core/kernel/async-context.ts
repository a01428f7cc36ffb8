/**
 * Who is running: the one AsyncLocalStorage of the process (each one ever entered slows every promise for good, so there is no second).
 * An activity is one call of plugin code or one dispatch; its parents are what it was begun in. Knows no hook and no plugin.
 * Invariant: an activity that has ended lets go of its parent, so that what outlives it (a timer, a socket) pins nothing else.
 */
import { AsyncLocalStorage, createHook } from 'node:async_hooks'
import { isThenable } from './limits.js'
import type { Owner } from './owners.js'

export interface Activity {
  /** On whose account it runs; undefined for core's own. */
  readonly owner: Owner | undefined
  /** Its number, where it has one finer than its owner's. */
  readonly seat?: number
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

/**
 * Who is at work, as a number that another thread can read, also while native code does not come back; 0 is nobody. Written where plugin code is entered and where it goes on after an await:
 * a hook before each callback costs some tens of nanoseconds, and is there only while somebody watches.
 */
let seat: Int32Array | undefined
const seatOf = (activity: Activity | undefined): number => activity === undefined ? 0 : activity.seat ?? activity.owner?.seat ?? 0
const resumed = createHook({ before() { seat![0] = seatOf(storage.getStore()) } })
/** From now on, or no more. */
export function seats(shared: Int32Array | undefined): void {
  seat = shared
  if (shared) resumed.enable()
  else resumed.disable()
}
/** A number holds the plugin's in its upper bits; in its lower ones that of what the plugin registered: a handler, a tool, a timer. */
const OWN_BITS = 18, MOST_PLUGINS = 2 ** (31 - OWN_BITS) - 1
export const pluginSeat = (number: number): number => number >> OWN_BITS << OWN_BITS
const numbers = new Map<string, number>()
let given = 0
/** The number of a plugin; beyond thousands of them nobody's. */
export function seatFor(id: string): number {
  const number = numbers.get(id) ?? numbers.size + 1
  if (number > MOST_PLUGINS) return 0
  numbers.set(id, number)
  return number << OWN_BITS
}
/** The next number within a plugin's. */
export const seatWithin = (plugin: number): number => plugin === 0 ? 0 : plugin | ++given & 2 ** OWN_BITS - 1
/** How many of them were given: whether there is something new to tell of. */
export const seatsGiven = (): number => given

/** Runs `fn` inside an activity whose end the caller declares by `leave`. */
export function enter<A extends unknown[], R>(activity: Activity | undefined, fn: (...args: A) => R, ...args: A): R {
  if (seat === undefined) return storage.run(activity, fn, ...args)
  const shared = seat, before = shared[0]!
  shared[0] = seatOf(activity)
  try { return storage.run(activity, fn, ...args) } finally { shared[0] = before }
}
/** `fn`, on the account of the plugin that runs now, whoever calls it later. */
export function bound<A extends unknown[], R>(fn: (...args: A) => R): (...args: A) => R {
  const activity = current()
  return activity?.owner === undefined ? fn : (...args) => enter(activity, fn, ...args)
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

/** The same for a plugin that has no version yet: the top level of its modules, the check of its config. */
export const runFor = <R>(id: string, fn: () => R): R => runAs({ id, generation: 0, row: -1, stage: 'staged', seat: seatFor(id) }, fn)

/** The activities that the current code runs in, innermost first. */
export function* enclosing(): Generator<Activity> {
  for (let at = current(); at !== undefined && !at.over; at = at.parent) yield at
}

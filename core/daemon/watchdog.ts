/**
 * Sees to it that a plugin which never gives the process back is named, and the process ended: everything runs in one thread, so a loop without end stops every session.
 * This side beats twice a second and says who runs when it is asked, from inside the loop; watchdog-thread.ts watches, in a thread of its own. Knows the app by what it tells of its plugins.
 */
import inspector from 'node:inspector'
import { basename, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { App } from '../app.js'
import { currentOwner, seatFor, seats, seatsGiven } from '../kernel/async-context.js'
import { configDigest } from '../kernel/quarantine.js'
import type { Endpoint } from './endpoint.js'

/** How often this side says that it is alive. */
export const BEAT_MS = 500
/** Silence for which nobody can be blamed ends the process after this long. */
export const NOBODY_MS = 30_000
/** Asked in the stuck thread by the other one. */
export const WHO = 'harnessx.who'

/** What both threads see: when the last beat was, on the clock that all threads share; whether somebody debugs. Who runs stands in `seat`. */
export interface Shared { readonly beat: BigInt64Array; readonly debugged: Int32Array; readonly seat: Int32Array }
export interface Watched { readonly id: string; readonly seat: number; readonly files: readonly string[]; readonly digest: string }
/** What the thread is told of whom it may name; what they registered by its number in the async context. */
export interface Told { readonly plugins: readonly Watched[]; readonly labels: ReadonlyMap<number, string> }
export interface Start extends Shared {
  readonly beatMs: number
  readonly nobodyMs: number
  readonly who: string
  readonly quarantine: string
  readonly logs: string
  /** The name of the daemon's files there. */
  readonly daemon: string
}
/** What the stuck thread answers. */
export interface Who { readonly plugin: string | undefined; readonly stack: string; readonly debugged: boolean }

/** Starts watching; what is returned ends it. Only the built daemon has the thread's file. */
export function startWatchdog(app: App, { socket }: Endpoint): () => Promise<void> {
  const { installation, quarantine, logs } = app.watched
  if (!installation.built) return async () => {}
  const shared: Shared = { beat: new BigInt64Array(new SharedArrayBuffer(8)), debugged: new Int32Array(new SharedArrayBuffer(4)), seat: new Int32Array(new SharedArrayBuffer(4)) }
  const beat = () => {
    Atomics.store(shared.debugged, 0, inspector.url() === undefined ? 0 : 1)
    Atomics.store(shared.beat, 0, process.hrtime.bigint())
  }
  beat()
  const start: Start = { ...shared, beatMs: BEAT_MS, nobodyMs: NOBODY_MS, who: WHO, quarantine, logs, daemon: basename(socket, '.sock') }
  const worker = new Worker(join(installation.root, 'dist', 'watchdog.cjs'), { workerData: start, name: 'watchdog', stderr: false, resourceLimits: { maxYoungGenerationSizeMb: 1, maxOldGenerationSizeMb: 8 } })
  worker.unref()
  worker.on('error', error => { app.warn(`the watchdog ended (${error.message}); a plugin that never gives the process back is not found any more`) })
  Object.defineProperty(globalThis, Symbol.for(WHO), { value: who, configurable: true })
  seats(shared.seat)
  let last = '', given = 0
  const tell = () => {
    given = seatsGiven()
    const { plugins, labels } = app.watched
    const told: Told = { plugins: plugins.map(({ id, files, config }) => ({ id, files, seat: seatFor(id), digest: configDigest(config) })), labels }
    const text = JSON.stringify([told.plugins, [...labels]])
    if (text !== last) worker.postMessage(told)
    last = text
  }
  tell()
  const timer = setInterval(() => {
    beat()
    if (seatsGiven() !== given) tell()                         // a timer, or what else was registered while it ran
  }, BEAT_MS).unref()
  const off = app.on(event => { if (event.type === 'settled' || event.type === 'config-read') tell() })
  return async () => {
    off()
    clearInterval(timer)
    seats(undefined)
    Reflect.deleteProperty(globalThis, Symbol.for(WHO))
    await worker.terminate()
  }
}

function who(): string {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 60
  const { stack = '' } = new Error('stuck')
  Error.stackTraceLimit = stackTraceLimit
  return JSON.stringify({ plugin: currentOwner()?.id, stack, debugged: inspector.url() !== undefined } satisfies Who)
}

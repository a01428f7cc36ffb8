/**
 * What a plugin leaves behind outside `ctx`: raw timers, handles and process listeners that came while it was mounted and are still there after it is gone.
 * Handles are counted by kind, for the whole process, so this is a strong hint and never a reason to act; listeners are known one by one. No private API of Node, no async_hooks.
 */

import { isThenable } from './limits.js'

/** What a plugin left behind. */
export interface Leak { readonly plugin: string; readonly kind: string; readonly count: number }

/** Handles go a moment after they are closed. */
const GRACE_MS = 100
const NAMES: Readonly<Record<string, string>> = {
  Timeout: 'timer', TCPServerWrap: 'TCP server', TCPSocketWrap: 'TCP socket', PipeWrap: 'pipe', UDPWrap: 'UDP socket', FSEventWrap: 'file watcher', StatWatcher: 'file watcher', ProcessWrap: 'child process', MessagePort: 'message port',
}
/** Requests end by themselves, the terminal is the host's, and a signal's handle belongs to its listener. */
const PASSING = /Req|^Immediate$|^TickObject$|^TTYWrap$|^SignalWrap$/

type Census = ReadonlyMap<string, number>
type Hearing = { readonly event: string | symbol; readonly listener: Function }

/** Taken right before `apply` is called, told when the plugin is mounted, and asked after it is disposed. */
export class Footprint {
  readonly #plugin: string
  readonly #census: () => Census
  readonly #before: Census
  readonly #heard = new Set<Function>()
  #grown: Census = new Map()
  /** Of the moment in which an `apply` that does not wait has ended. */
  #after: Census | undefined
  readonly #listeners: { readonly event: string | symbol; readonly listener: WeakRef<Function> }[] = []
  /** `ctxTimers`: how many timers of plugins run that were made through ctx; they are taken back in any case. */
  constructor(plugin: string, ctxTimers: () => number) {
    this.#plugin = plugin
    this.#census = () => census(ctxTimers())
    this.#before = this.#census()
    for (const { listener } of hearings()) this.#heard.add(listener)
  }

  /** Calls `apply`. As long as it does not wait nobody else runs, so what a plugin that never waits has made is known for sure: timers of turns come and go all the time. */
  during<T>(start: () => T): T {
    const result = start()
    if (!isThenable(result)) this.#after = this.#census()
    return result
  }
  mounted(): void {
    this.#grown = minus(this.#after ?? this.#census(), this.#before)
    this.#after = undefined
    for (const { event, listener } of hearings()) if (!this.#heard.has(listener)) this.#listeners.push({ event, listener: new WeakRef(listener) })
    this.#heard.clear()                                    // others' functions are not ours to keep
  }
  /** To be called right before disposal; the answer is to be asked for after it. */
  leaving(): () => Promise<readonly Leak[]> {
    const then = this.#census()
    return async () => {
      if (this.#left(then).length === 0) return []
      await new Promise<void>(resolve => { setTimeout(resolve, GRACE_MS).unref() })
      return this.#left(then)
    }
  }

  /** Of what grew: less what went with the disposal, and never more than there is now beyond the time before it was mounted. */
  #left(then: Census): Leak[] {
    const now = this.#census()
    const leaks: Leak[] = []
    for (const [type, grown] of this.#grown) {
      const gone = (then.get(type) ?? 0) - (now.get(type) ?? 0)
      const count = Math.min(grown - Math.max(0, gone), (now.get(type) ?? 0) - (this.#before.get(type) ?? 0))
      if (count > 0) leaks.push({ plugin: this.#plugin, kind: NAMES[type] ?? type, count })
    }
    const still = this.#listeners.filter(({ event, listener }) => (process.rawListeners(event) as Function[]).includes(listener.deref() as Function))
    for (const event of new Set(still.map(({ event }) => event))) {
      leaks.push({ plugin: this.#plugin, kind: `process listener for "${String(event)}"`, count: still.filter(one => one.event === event).length })
    }
    return leaks
  }
}

function census(ctxTimers: number): Census {
  const counts = new Map([['Timeout', -ctxTimers]])
  for (const type of process.getActiveResourcesInfo()) if (!PASSING.test(type)) counts.set(type, (counts.get(type) ?? 0) + 1)
  return counts
}
function* hearings(): Generator<Hearing> {
  for (const event of process.eventNames()) for (const listener of process.rawListeners(event as 'exit')) yield { event, listener }
}

function minus(after: Census, before: Census): Census {
  const grown = new Map<string, number>()
  for (const [type, count] of after) if (count > (before.get(type) ?? 0)) grown.set(type, count - (before.get(type) ?? 0))
  return grown
}

/**
 * Signals that plugins are given. Whoever hangs something on one is named when it is aborted: an abort calls all of them from core's own call, so without this nobody would be at work in the watchdog's eyes, nor to blame for a throw.
 * Knows no turn. Invariant: whoever adds and removes a function sees no difference; costs nothing until somebody hangs one on it.
 */
import { bound, currentOwner } from './async-context.js'

type Heard = (event: Event) => unknown
type Listener = Heard | { handleEvent: Heard } | null

/** A controller of such a signal. */
export function heardController(): AbortController {
  const controller = new AbortController()
  heard(controller.signal)
  return controller
}

/** Makes one of this signal. What `AbortSignal.any` derives from it is Node's own. */
export function heard(signal: AbortSignal): void {
  const { addEventListener: add, removeEventListener: remove } = signal
  let stands: WeakMap<object, Heard> | undefined
  /** What stands on the signal in its place. */
  const stand = (listener: NonNullable<Listener>): Heard => {
    const made = (stands ??= new WeakMap<object, Heard>()).get(listener) ?? bound((event: Event) => typeof listener === 'function' ? listener.call(signal, event) : listener.handleEvent(event))
    stands.set(listener, made)
    return made
  }
  Object.defineProperties(signal, {
    addEventListener: { configurable: true, value: (type: string, listener: Listener, options?: object) => { add.call(signal, type, (listener && currentOwner() ? stand(listener) : listener) as Heard, options) } },
    removeEventListener: { configurable: true, value: (type: string, listener: Listener, options?: object) => { remove.call(signal, type, (listener && stands?.get(listener) || listener) as Heard, options) } },
  })
}

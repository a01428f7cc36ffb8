/**
 * Letting go of work that doesn't listen: a model or tool may ignore its signal, the turn must not wait for it.
 * Pure waiting; knows no turn. What let-go work does later is dropped, its late failures too.
 */
import { setMaxListeners } from 'node:events'
import { bound } from '../kernel/async-context.js'
import { heardController } from '../kernel/heard-signal.js'
import type { Owner } from '../kernel/registry.js'

/** Settles as `work` does, or rejects with the signal's reason as soon as it aborts. */
export function untilAborted<T>(work: PromiseLike<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const letGo = () => { reject(signal.reason) }
    if (signal.aborted) letGo()
    else signal.addEventListener('abort', letGo, { once: true })
    work.then(resolve, reject).then(() => { signal.removeEventListener('abort', letGo) })
  })
}

/** `untilAborted` for waits one after another, with one place on the signal's list for all. `off` gives that up. */
export function waitsUntilAborted(signal: AbortSignal): { readonly wait: <T>(work: PromiseLike<T>) => Promise<T>; readonly off: () => void } {
  let letGo = () => {}
  const off = onAbort(signal, () => { letGo() })
  return {
    off,
    wait: work => new Promise((resolve, reject) => {
      letGo = () => { reject(signal.reason) }
      if (signal.aborted) letGo()
      work.then(resolve, reject)
    }),
  }
}

/** One signal that aborts with the first of several. `unlink` takes it off them: some live as long as the host (AbortSignal.any would stay on their lists, and lets a timeout that nobody else holds be collected before its time). */
export function link(...signals: readonly (AbortSignal | undefined)[]): { readonly signal: AbortSignal; readonly unlink: () => void } {
  const controller = heardController()
  const offs = signals.map(signal => signal && onAbort(signal, () => { controller.abort(signal.reason) }))
  return { signal: controller.signal, unlink: () => { for (const off of offs) off?.() } }
}

/** Calls `run` when the signal aborts, at once if it has, on the account of who asks now. Returns what takes it back. */
export function onAbort(signal: AbortSignal, run: () => void): () => void {
  if (signal.aborted) { run(); return () => {} }
  const heard = bound(run)
  signal.addEventListener('abort', heard, { once: true })
  return () => { signal.removeEventListener('abort', heard) }
}

/** A plugin that has to let go says so by its own signal; core has none. Any number of its calls may follow it. */
export function ownerSignal(owner: Owner): AbortSignal | undefined {
  const { signal } = owner as Owner & { readonly signal?: AbortSignal }
  if (signal) setMaxListeners(0, signal)
  return signal
}

/**
 * What the whole process shares and any plugin can change under all others: looked at when a plugin has loaded and when one of its handlers has ended.
 * Nothing is put back and nobody is stopped, since some mean it (a tracer around `fetch`): each change is named once, so that a search for odd behaviour begins in the right place.
 * Only what shows in every `for … in` is hidden there: code of others, the host's bundle too, breaks on it.
 * Off until a process that is the host's own asks for it. Invariant: a look is a few comparisons, and calls nothing of a plugin's.
 */

const LIST: object = []
/** Nothing may be enumerable in what all lists, and so all objects, have: the name of what was added is a value too. */
function added(): string | undefined {
  for (const key in LIST) return key
  return undefined
}
function hide(): void {
  for (const holder of [Object.prototype, Array.prototype]) {
    for (const key of Object.keys(holder)) {
      const found = Object.getOwnPropertyDescriptor(holder, key)!
      if (found.configurable) Object.defineProperty(holder, key, Object.assign(Object.create(null) as PropertyDescriptor, found, { enumerable: false }))
    }
  }
}
const shared = () => ({
  'Object.prototype or Array.prototype': added(), 'Array.prototype.push': Array.prototype.push, 'Array.prototype.map': Array.prototype.map, 'JSON.parse': JSON.parse, 'JSON.stringify': JSON.stringify,
  Promise, 'Promise.prototype.then': Promise.prototype.then, fetch: globalThis.fetch, setTimeout: globalThis.setTimeout, setInterval: globalThis.setInterval, queueMicrotask: globalThis.queueMicrotask,
  Date, 'Date.now': Date.now, 'Math.random': Math.random, 'console.log': globalThis.console?.log, 'console.error': globalThis.console?.error,
})
type Shared = ReturnType<typeof shared>
/** Spelled out: a loop over the names takes twenty times as long, and this stands behind every handler. */
const isStill = (was: Shared): boolean =>
  added() === was['Object.prototype or Array.prototype'] && Array.prototype.push === was['Array.prototype.push'] && Array.prototype.map === was['Array.prototype.map'] && JSON.parse === was['JSON.parse'] && JSON.stringify === was['JSON.stringify'] &&
  Promise === was.Promise && Promise.prototype.then === was['Promise.prototype.then'] && globalThis.fetch === was.fetch && globalThis.setTimeout === was.setTimeout && globalThis.setInterval === was.setInterval && globalThis.queueMicrotask === was.queueMicrotask &&
  Date === was.Date && Date.now === was['Date.now'] && Math.random === was['Math.random'] && globalThis.console?.log === was['console.log'] && globalThis.console?.error === was['console.error']

let first: Shared | undefined, last: Shared | undefined

/** From now on, measured by how things are now; the disposer ends it. */
export function watchGlobals(): () => void {
  first = last = shared()
  return () => { first = last = undefined }
}
/** The names of those that were changed since the last look; going back to what it was at first is no change. */
export function changedGlobals(): string | undefined {
  if (first === undefined || last === undefined || isStill(last)) return undefined
  const was: Readonly<Record<string, unknown>> = last, origin: Readonly<Record<string, unknown>> = first, now: Readonly<Record<string, unknown>> = last = shared()
  if (added() !== undefined) {
    hide()
    last = shared()
  }
  const names = Object.keys(now).filter(name => now[name] !== was[name] && now[name] !== origin[name])
  return names.length > 0 ? names.join(', ') : undefined
}
/** For the end of a sentence about who was looked at. */
export const whatChanged = (names: string): string => `${names} is not what it was: that changes it for the host and every plugin, until the process ends; keep it to your own code, or put it back in an undo (ctx.effect)`

/**
 * What the whole process shares and any plugin can change under all others: looked at when a plugin has loaded and when one of its handlers has ended.
 * Nothing is put back and nobody is stopped, since some mean it (a tracer around `fetch`): each change is named once, so that a search for odd behaviour begins in the right place.
 * Off until a process that is the host's own asks for it. Invariant: a look is a few comparisons, and calls nothing of a plugin's.
 */

const LIST: object = []
/** What is found where everybody looks. The name of an added property is a value too: nothing may be enumerable in what all lists, and so all objects, have. */
const SHARED: readonly (readonly [name: string, read: () => unknown])[] = [
  ['Object.prototype or Array.prototype', () => firstOf(LIST)], ['Array.prototype.push', () => Array.prototype.push], ['Array.prototype.map', () => Array.prototype.map],
  ['JSON.parse', () => JSON.parse], ['JSON.stringify', () => JSON.stringify], ['Promise', () => Promise], ['Promise.prototype.then', () => Promise.prototype.then],
  ['fetch', () => globalThis.fetch], ['setTimeout', () => globalThis.setTimeout], ['setInterval', () => globalThis.setInterval], ['queueMicrotask', () => globalThis.queueMicrotask],
  ['Date', () => globalThis.Date], ['Date.now', () => Date.now], ['Math.random', () => Math.random], ['console.log', () => console.log], ['console.error', () => console.error],
  ['process.env', () => process.env], ['process.emit', () => process.emit], ['process.cwd', () => process.cwd],
]
let known: { readonly first: readonly unknown[]; readonly last: unknown[] } | undefined

/** From now on, measured by how things are now; the disposer ends it. */
export function watchGlobals(): () => void {
  const first = SHARED.map(([, read]) => read())
  known = { first, last: [...first] }
  return () => { known = undefined }
}
/** The name of one that was changed since the last look; going back to what it was at first is no change. */
export function changedGlobal(): string | undefined {
  if (known === undefined) return undefined
  const { first, last } = known
  for (let i = 0; i < SHARED.length; i++) {
    const value = SHARED[i]![1]()
    if (value === last[i]) continue
    last[i] = value
    if (value !== first[i]) return SHARED[i]![0]
  }
  return undefined
}
/** For the end of a sentence about who was looked at. */
export const whatChanged = (name: string): string => `${name} is not what it was: that changes it for the host and every plugin, until the process ends; keep it to your own code, or put it back in an undo (ctx.effect)`

function firstOf(object: object): string | undefined {
  for (const key in object) return key
  return undefined
}

/**
 * `ctx.state` on its way into the next version: plain data, copied. A function or class instance in it would keep the old version alive, so it is refused by its path.
 * structuredClone alone is not enough: it refuses functions, but flattens class instances without a word. Pure.
 */
import { HarnessError, messageOf } from '../errors.js'

/** Whole values, copied as they are. */
const LEAVES: ReadonlySet<object | null> = new Set([Date.prototype, RegExp.prototype, ArrayBuffer.prototype])

/** A copy of the state of plugin `id`, or `state_not_plain` with the path of the first thing that can't go along. */
export function cloneState(id: string, state: Record<string, unknown>): Record<string, unknown> {
  let odd
  try {
    if (Reflect.ownKeys(state).length === 0) return {}
    odd = firstOdd(state)
    if (!odd) return structuredClone(state)
  } catch (error) {                                        // a proxy, a getter that throws, or nested beyond the stack
    throw new HarnessError('state_not_plain', `plugin "${id}": ctx.state can not be copied (${messageOf(error)}); keep plain data in it`, { cause: error })
  }
  throw new HarnessError('state_not_plain', `plugin "${id}": ${odd.path} is ${odd.what}, which would keep the old version alive; keep plain data in ctx.state, and the rest in variables`)
}

/** Breadth first: the nearest of several is named. */
function firstOdd(root: unknown): { path: string; what: string } | undefined {
  const seen = new Set<object>()
  const queue: { value: unknown; path: string }[] = [{ value: root, path: 'ctx.state' }]
  for (const { value, path } of queue) {
    if (typeof value === 'function' || typeof value === 'symbol') return { path, what: `a ${typeof value}` }
    if (typeof value !== 'object' || value === null || seen.has(value)) continue
    seen.add(value)
    const proto: object | null = Object.getPrototypeOf(value)
    if (value instanceof Map && proto === Map.prototype) {
      for (const [key, item] of value) queue.push({ value: key, path: `${path} (a key)` }, { value: item, path: `${path}.get(${typeof key === 'object' ? '…' : String(key)})` })
    } else if (value instanceof Set && proto === Set.prototype) {
      for (const item of value) queue.push({ value: item, path: `${path} (an item)` })
    } else if (Array.isArray(value)) {
      for (const [index, item] of value.entries()) queue.push({ value: item, path: `${path}[${index}]` })
    } else if (proto === Object.prototype || proto === null) {
      for (const [key, item] of Object.entries(value)) queue.push({ value: item, path: `${path}.${key}` })
    } else if (!LEAVES.has(proto) && !ArrayBuffer.isView(value)) {
      return { path, what: `an instance of ${proto?.constructor?.name || 'a class without a name'}` }
    }
  }
  return undefined
}

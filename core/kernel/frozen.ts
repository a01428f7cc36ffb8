/**
 * Plain, deeply frozen data. `freeze` is for data that core owns, where frozen means deeply frozen. `adopt` reads what a plugin handed in: it copies, so that the plugin's
 * own objects are never frozen under it and can't change afterwards, shares parts that are deeply frozen already, and refuses what is not plain. Knows no hook.
 */
import { types } from 'node:util'

/** What a plugin returned or handed in does not fit. `why` is what the model may read of it. */
export class Wrong extends TypeError { readonly why: string = 'it returned a wrong value' }

export function freeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value) || !isPlain(value)) return value     // an AbortSignal stays as it is
  Object.freeze(value)
  for (const key in value) freeze(value[key])
  return value
}

const DEEPEST = 64

export function adopt<T>(value: T, path = 'value', depth = 0): T {
  if (typeof value === 'function' || typeof value === 'symbol') throw new Wrong(`${path} must be plain data, received a ${typeof value}`)
  if (typeof value !== 'object' || value === null) return value
  if (depth > DEEPEST) throw new Wrong(`${path.slice(0, 60)}… is nested over ${DEEPEST} deep, or contains itself`)
  if (types.isProxy(value) || !isPlain(value)) throw new Wrong(`${path} must be plain data, received ${nameOf(value)}`)
  const frozen = Object.isFrozen(value)
  let same = frozen
  const parts = Object.keys(value).map(key => {
    const part: unknown = (value as Record<string, unknown>)[key]
    const kept = adopt(part, `${path}.${key}`, depth + 1)
    same &&= Object.is(kept, part) && !isAccessor(value, key)
    return [key, kept] as const
  })
  if (same) return value
  return Object.freeze(Array.isArray(value) ? parts.map(([, part]) => part) : Object.fromEntries(parts)) as T      // fromEntries: a key "__proto__" stays a key
}

/** Did this error come from writing to frozen data? */
export const isFrozenWrite = (error: { readonly name: string; readonly message: string }): boolean => error.name === 'TypeError' && /read only property|object is not extensible|Cannot delete property|Cannot redefine property/.test(error.message)

function isPlain(value: object): boolean {
  const proto: unknown = Object.getPrototypeOf(value)
  return proto === Object.prototype || proto === Array.prototype || proto === null
}
const isAccessor = (value: object, key: string): boolean => Object.getOwnPropertyDescriptor(value, key)?.get !== undefined
const nameOf = (value: object): string => types.isProxy(value) ? 'a proxy' : types.isPromise(value) ? 'a promise (a missing await?)' : `an instance of ${value.constructor?.name || 'a class without a name'}`

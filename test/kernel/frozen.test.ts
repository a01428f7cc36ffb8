import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { adopt, freeze, isFrozenWrite, Wrong } from '../../core/kernel/frozen.js'

const deeplyFrozen = (value: unknown): boolean => typeof value !== 'object' || value === null || Object.isFrozen(value) && Object.values(value).every(deeplyFrozen)
const plain = fc.object({ withNullPrototype: true, maxDepth: 4 })

describe('adopt', () => {
  it('copies any plain data into an equal, deeply frozen value, and leaves the original alone', () => {
    fc.assert(fc.property(plain, value => {
      const before = JSON.stringify(value)
      const copy = adopt(value)
      expect(deeplyFrozen(copy)).toBe(true)
      expect(JSON.stringify(copy)).toBe(before)
      expect(Object.isFrozen(value)).toBe(false)
      expect(adopt(copy)).toBe(copy)
    }))
  })
  it('shares parts that are deeply frozen already, and copies what only looks so', () => {
    const shared = freeze({ deep: { list: [1] } })
    expect(adopt({ shared }).shared).toBe(shared)
    const shallow = Object.freeze({ inner: { a: 1 } })
    const copy = adopt(shallow)
    expect([copy === shallow, copy.inner === shallow.inner, copy]).toEqual([false, false, shallow])
  })
  it('does not keep a getter that could answer differently later', () => {
    let calls = 0
    const copy = adopt(Object.freeze({ get value() { return ++calls } }))
    expect([copy.value, copy.value]).toEqual([1, 1])
  })
  it('keeps a key "__proto__" a key', () => {
    const copy = adopt(JSON.parse('{"__proto__": {"polluted": true}}') as object)
    expect([Object.keys(copy), Object.getPrototypeOf(copy), (copy as { polluted?: boolean }).polluted]).toEqual([['__proto__'], Object.prototype, undefined])
  })
  const circle: Record<string, unknown> = {}
  circle['self'] = circle
  it.each([
    ['a function', { f: () => {} }, 'value.f must be plain data, received a function'],
    ['a symbol', [Symbol('x')], 'value.0 must be plain data, received a symbol'],
    ['a promise', { p: Promise.resolve() }, 'value.p must be plain data, received a promise (a missing await?)'],
    ['a class instance', { deep: { date: new Date() } }, 'value.deep.date must be plain data, received an instance of Date'],
    ['a class without a name', new (class {})(), 'an instance of a class without a name'],
    ['a map', new Map(), 'an instance of Map'],
    ['a proxy', Object.freeze(new Proxy({}, {})), 'received a proxy'],
    ['a cycle', circle, 'nested over 64 deep, or contains itself'],
  ])('refuses %s by its path', (_, value, says) => {
    expect(() => adopt(value)).toThrow(Wrong)
    expect(() => adopt(value)).toThrow(says)
  })
  it('lets a getter’s own error through', () => {
    expect(() => adopt({ get a() { throw new RangeError('mine') } })).toThrow('mine')
  })
})

describe('freeze', () => {
  it('freezes plain data deeply and leaves instances usable', () => {
    const { signal } = new AbortController()
    const value = freeze({ signal, list: [{ a: 1 }], map: new Map([['a', 1]]) })
    expect([deeplyFrozen(value.list), Object.isFrozen(value), Object.isFrozen(signal), Object.isFrozen(value.map)]).toEqual([true, true, false, false])
  })
  it('makes writes recognisable', () => {
    const value = freeze({ a: 1, list: [1] }) as { a?: number; b?: number; list: number[] }
    const writes = [() => { value.a = 2 }, () => { value.b = 1 }, () => { delete value.a }, () => { value.list.push(2) }, () => { Object.defineProperty(value, 'a', { value: 3 }) }]
    for (const write of writes) {
      try { write(); expect.unreachable() } catch (error) { expect(isFrozenWrite(error as Error)).toBe(true) }
    }
    expect(isFrozenWrite(new TypeError('x is not a function'))).toBe(false)
    expect(isFrozenWrite(new Error('read only property'))).toBe(false)
  })
})

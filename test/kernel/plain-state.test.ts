import { describe, expect, it } from 'vitest'
import { cloneState } from '../../core/kernel/plain-state.js'
import { failure } from '../support/kernel.js'

class Session { id = 1 }
class Table extends Map<string, number> {}

describe('the clone of ctx.state', () => {
  it('is deep, and keeps maps, sets, dates, expressions, buffers and cycles', () => {
    const state: Record<string, unknown> = { list: [{ n: 1 }], map: new Map([[{ key: 1 }, new Set(['a'])]]), at: new Date(5), re: /x/g, bytes: new Uint8Array([1, 2]), none: undefined, bare: Object.create(null) }
    state['self'] = state
    const copy = cloneState('p', state)
    expect(copy).toEqual(state)
    expect(copy['self']).toBe(copy)
    expect(copy['list']).not.toBe(state['list'])
  })
  it.each<[string, Record<string, unknown>, string]>([
    ['a function', { on: { tick: () => {} } }, 'ctx.state.on.tick is a function'],
    ['a symbol', { tag: Symbol('x') }, 'ctx.state.tag is a symbol'],
    ['a class instance', { sessions: [new Session()] }, 'ctx.state.sessions[0] is an instance of Session'],
    ['an instance of a class that extends Map', { table: new Table() }, 'ctx.state.table is an instance of Table'],
    ['a promise', { soon: Promise.resolve() }, 'ctx.state.soon is an instance of Promise'],
    ['an error', { last: new Error('x') }, 'ctx.state.last is an instance of Error'],
    ['a function in a map', { m: new Map([['k', () => {}]]) }, 'ctx.state.m.get(k) is a function'],
    ['a function as a key', { m: new Map([[() => {}, 1]]) }, 'ctx.state.m (a key) is a function'],
    ['a function in a set', { s: new Set([() => {}]) }, 'ctx.state.s (an item) is a function'],
  ])('refuses %s by its path', async (_, state, message) => {
    const error = await failure(() => cloneState('guard', state))
    expect(error.code).toBe('state_not_plain')
    expect(error.message).toBe(`plugin "guard": ${message}, which would keep the old version alive; keep plain data in ctx.state, and the rest in variables`)
  })
  it('refuses what can not be read', async () => {
    expect(await failure(() => cloneState('p', { get x() { throw new Error('no') } }))).toMatchObject({ code: 'state_not_plain' })
  })
  it('refuses what is nested beyond all measure, instead of ending the process', async () => {
    let list: unknown
    for (let i = 0; i < 20_000; i++) list = { list }
    expect(await failure(() => cloneState('p', { list }))).toMatchObject({ code: 'state_not_plain' })
  })
})

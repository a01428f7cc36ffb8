import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Wrong } from '../../core/kernel/frozen.js'
import { amend, around, judge, type Opinion, watch } from '../../core/kernel/rules.js'

const bare = ({ kind }: { kind: string }) => ({ kind })
const traffic = judge({
  kinds: { red: ({ kind, reason }) => ({ kind, reason }), amber: bare, spare: bare, green: bare }, refusal: 'red', subject: 'crossing', spare: { kind: 'spare', beside: 'amber' }, start: () => ({ kind: 'green' }),
})
const opinion = (kind: string, plugin: string): Opinion => traffic.read({ kind, ...(kind === 'red' && { reason: 'r' }) }, {}, undefined, plugin)
const kindOf = ({ value }: Opinion) => (value as { kind: string }).kind

describe('judge', () => {
  it('knows only the kinds it was given', () => {
    expect(kindOf(traffic.start({}))).toBe('green')
    expect(() => traffic.read({ kind: 'block' }, {}, undefined, 'a')).toThrow('a decision is one of red, amber, spare, green, or nothing')
    expect(traffic.refuse?.('a', 'why', 'hook_failed')).toEqual({ value: { kind: 'red', reason: 'plugin "a" could not judge this crossing (why)' }, plugin: 'a', failure: 'hook_failed' })
  })
  it('merges to the strictest, of equals the outermost, in whatever groups', () => {
    const kinds = fc.array(fc.constantFrom('red', 'amber', 'spare', 'green', 'failure'), { minLength: 1, maxLength: 7 })
    fc.assert(fc.property(kinds, fc.nat(6), (list, at) => {
      const opinions = list.map((kind, i) => kind === 'failure' ? traffic.refuse!(`p${i}`, 'why', 'hook_failed') : opinion(kind, `p${i}`))
      const fold = (some: readonly Opinion[]) => some.slice(0, -1).reduceRight((rest, own) => traffic.merge(own, rest, true), some.at(-1)!)
      const whole = fold(opinions), cut = 1 + at % opinions.length
      const rank = (kind: string) => ['red', 'failure', 'amber', 'spare', 'green'].indexOf(kind)
      const strictest = list.reduce((best, kind, i) => rank(kind) < rank(list[best]!) ? i : best, 0)
      expect(whole.plugin).toBe(`p${strictest}`)
      if (kindOf(whole) === 'amber') expect(whole.answer?.plugin).toBe(list.includes('spare') ? `p${list.indexOf('spare')}` : undefined)
      const grouped = cut < opinions.length ? traffic.merge(fold(opinions.slice(0, cut)), fold(opinions.slice(cut)), true) : whole
      expect([grouped.plugin, kindOf(grouped)]).toEqual([whole.plugin, kindOf(whole)])
    }))
  })
  it('gives frozen decisions, of its own', () => {
    const own = { kind: 'red', reason: 'r' }
    const { value } = traffic.read(own, {}, undefined, 'a')
    own.reason = 'changed'
    expect([value, Object.isFrozen(value), Object.isFrozen(own)]).toEqual([{ kind: 'red', reason: 'r' }, true, false])
  })
  it('without a refusal never ends a chain and refuses nothing', () => {
    const poll = judge({ kinds: { yes: bare, no: bare }, start: () => ({ kind: 'no' }) })
    expect([poll.closed, poll.refuse, poll.ends({ value: { kind: 'yes' } })]).toEqual([false, undefined, false])
  })
})

describe('amend', () => {
  const rule = amend({ get: ({ n }) => n, put: (payload, n) => ({ ...payload, n }), read: own => { if (typeof own.n !== 'number') throw new Wrong('n'); return own.n }, context: own => own.beside })
  it('takes an equal value for no change, but keeps what is beside it', () => {
    expect(rule.read({ n: 1 }, { n: 1 }, undefined, 'a')).toEqual({ value: 1 })
    const quiet = rule.read({ n: 1, beside: ['x'] }, { n: 1 }, undefined, 'a')
    expect(rule.merge(quiet, { value: 2, plugin: 'b', context: ['y'] }, true)).toEqual({ value: 2, plugin: 'b', context: ['x', 'y'] })
  })
  it('carries a value on, and leaves the sum to the later ones', () => {
    const own = rule.read({ n: 2 }, { n: 1 }, undefined, 'a')
    expect(rule.carry({ n: 1, other: true }, own)).toEqual({ n: 2, other: true })
    expect(rule.merge(own, { value: 5, plugin: 'b' }, false)).toEqual({ value: 5, plugin: 'b' })
    expect(rule.merge(own, { value: 2 }, false)).toEqual({ value: 2, plugin: 'a' })
  })
})

it('around and watch have no decision to merge', () => {
  expect(around(own => own).read([1], {}, undefined, 'a')).toEqual({ value: [1], plugin: 'a' })
  expect([around(own => own).change, watch().kind, watch({ ofCall: true }).ofCall]).toEqual([undefined, 'watch', true])
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { changedArguments, changedResult, changedSections } from '../../core/agent/change-summary.js'

describe('what a handler changed', () => {
  it('of arguments is named with both values, cut where they are long', () => {
    expect(changedArguments({ a: 1, b: 'x', c: [1] }, { a: 1, b: 'y', d: null })).toBe('b "x" → "y", c dropped [1], d added null')
    expect(changedArguments({ a: 'x'.repeat(10_000) }, { a: 'y'.repeat(10_000) }).length).toBeLessThan(700)
  })
  it('of a result is told by sizes that add up, and by no character of it', () => {
    const text = fc.string({ unit: fc.constantFrom('q', 'z', '\u{1f600}') })
    fc.assert(fc.property(text, text, fc.boolean(), fc.boolean(), (before, after, was, is) => {
      fc.pre(before !== after || was !== is)
      const said = changedResult({ content: before, isError: was }, { content: after, isError: is })
      const [, removed, at, added] = /^(\d+) characters at (\d+) → (\d+)/.exec(said) ?? [said, '0', '0', '0']
      expect(before.length - Number(removed) + Number(added)).toBe(after.length)
      expect(after.startsWith(before.slice(0, Number(at)))).toBe(true)
      expect(said.includes('now an error')).toBe(!was && is)
      expect(said).not.toMatch(/[qz\u{1f600}]/u)
    }))
  })
  it('of sections is told by their names', () => {
    const section = (id: string, text: string) => ({ id, text })
    expect(changedSections([section('core', 'a'), section('old', 'b')], [section('core', 'c'), section('tone', 'd')])).toBe('core changed, old dropped, tone added')
    expect(changedSections([section('a', '1'), section('b', '2')], [section('b', '2'), section('a', '1')])).toBe('another order')
  })
})

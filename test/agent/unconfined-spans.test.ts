import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { UnconfinedSpans } from '../../core/agent/unconfined-spans.js'

describe('the spans of unconfined calls', () => {
  it('cover what changed while one ran, and nothing before or after', () => {
    const spans = new UnconfinedSpans(), end = spans.begin(1000)
    expect([spans.covers(900), spans.covers(1000), spans.covers(99_999)]).toEqual([false, true, true])
    end(2000)
    expect([spans.covers(900), spans.covers(1500), spans.covers(2000), spans.covers(2100)]).toEqual([false, true, true, false])
  })
  it('cover it also when the clock was put back or forward by a day while the call ran', () => {
    for (const jump of [-86_400_000, 86_400_000]) {
      const spans = new UnconfinedSpans(), end = spans.begin(1000)
      end(1000 + jump + 50)
      expect([jump, spans.covers(1000), spans.covers(1000 + jump + 40)]).toEqual([jump, true, true])
    }
  })
  it('cover every moment of every call, however the clock jumps, also when thousands grow together', () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.integer({ min: -1e6, max: 1e6 }), fc.nat(1000)), { minLength: 1, maxLength: 30 }), fc.constantFrom(1, 100), (calls, times) => {
      const spans = new UnconfinedSpans()
      for (let n = 0; n < times; n++) for (const [at, ms] of calls) spans.begin(at)(at + ms)
      return calls.every(([at, ms]) => spans.covers(at) && spans.covers(at + ms))
    }))
  })
})

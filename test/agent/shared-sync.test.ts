import { describe, expect, it } from 'vitest'
import { SharedSync } from '../../core/agent/shared-sync.js'

describe('a shared sync', () => {
  it('serves all who wait, and never one who came while it ran', async () => {
    const ends: (() => void)[] = [], told: string[] = []
    const shared = new SharedSync(() => new Promise(resolve => { ends.push(resolve) }))
    const ask = (who: string) => shared.request().then(() => { told.push(who) })
    const all = [ask('first'), ask('second'), ask('third')]
    expect(ends).toHaveLength(1)
    ends[0]!()
    await all[0]
    expect(told).toEqual(['first'])
    await new Promise(setImmediate)
    expect(ends).toHaveLength(2)
    ends[1]!()
    await Promise.all(all)
    expect(told).toEqual(['first', 'second', 'third'])
  })
  it('that fails fails those who waited for it, and the next one is tried', async () => {
    let times = 0
    const shared = new SharedSync(async () => { if (++times === 1) throw new Error('full') })
    const first = shared.request(), second = shared.request()
    await expect(first).rejects.toThrow('full')
    await second
    expect(times).toBe(2)
  })
})

import { describe, expect, it } from 'vitest'
import { inTurn } from '../../core/daemon/in-turn.js'

describe('requests that come in the same instant', () => {
  it('are begun in their order, each in a turn of the event loop of its own, so that others get theirs between', async () => {
    const turn = inTurn(), begun: string[] = []
    let loops = 0, counting = true
    const count = () => { loops++; if (counting) setImmediate(count) }
    setImmediate(count)
    await Promise.all(Array.from({ length: 50 }, async (_, n) => { await turn(); begun.push(`${n}`) }))
    counting = false
    expect(begun).toEqual(Array.from({ length: 50 }, (_, n) => `${n}`))
    expect(loops).toBeGreaterThanOrEqual(49)
    await turn()                                             // and it goes on after a rest
  })
  it('hold up none that comes alone: it begins at once, and so does the next after a rest', async () => {
    const turn = inTurn()
    expect(turn()).toBeUndefined()
    expect(turn(), 'in the same instant').toBeInstanceOf(Promise)
    for (let loops = 0; loops < 3; loops++) await new Promise(setImmediate)
    expect(turn()).toBeUndefined()
  })
})

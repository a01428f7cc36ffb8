/** The short forms of `npm run soak`. */
import { describe, expect, it } from 'vitest'
import { grown, reloadManyTimes } from '../soak/reloads.js'
import { saveAtRandom } from '../soak/saves.js'

describe('many saves', () => {
  it('in every way editors have, at random, end with the last text and none is told as a failure', { timeout: 60_000 }, async () => {
    const { saves, wrong, complaints } = await saveAtRandom({ saves: 60 })
    expect({ saves, wrong, complaints }).toEqual({ saves: 60, wrong: [], complaints: [] })
  })
  it('leave handles, listeners, handlers and tools as many as they were', { timeout: 60_000 }, async () => {
    const { first, last, complaints } = await reloadManyTimes({ reloads: 400, warmUp: 200 })
    expect(grown(first, last)).toEqual([])
    expect(complaints).toEqual([])
  })
})

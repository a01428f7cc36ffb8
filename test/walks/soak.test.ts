/** The short forms of `npm run soak`. */
import { describe, expect, it } from 'vitest'
import { grown, reloadManyTimes } from '../soak/reloads.js'
import { saveAtRandom } from '../soak/saves.js'
import { manySessions } from '../soak/sessions.js'

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

describe('many sessions while a plugin is rewritten', () => {
  it('all end well, each call judged once and run once, and leave handles and descriptors as they were', { timeout: 60_000 }, async () => {
    const { sessions, failed, wrong, reloads, first, last, complaints } = await manySessions({ sessions: 400, looks: 4 })
    expect({ sessions, failed, wrong, complaints }).toEqual({ sessions: 400, failed: [], wrong: [], complaints: [] })
    expect(reloads).toBeGreaterThan(2)
    expect(grown(first, last)).toEqual([])
    expect(last.descriptors - first.descriptors).toBeLessThanOrEqual(2)
  })
})

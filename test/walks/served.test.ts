/** The short forms of the soaks of the daemon: counts alone are judged, times are the business of `npm run soak`. */
import { describe, expect, it } from 'vitest'
import { abortEach } from '../soak/aborts.js'
import { crowd } from '../soak/descriptors.js'
import { canMount, fullDisk, limitedFiles } from '../soak/disk.js'
import { killAtRandom } from '../soak/kills.js'
import { manyAndLarge } from '../soak/large.js'
import { load } from '../soak/load.js'
import { breakAtRandom } from '../soak/resumes.js'
import { startTwice } from '../soak/rivals.js'
import { stall } from '../soak/stalled.js'
import { stopAtRandom } from '../soak/stops.js'

const LONG = { timeout: 180_000 }
const linux = process.platform === 'linux'

describe.runIf(linux)('a daemon under load', () => {
  it('that is killed at random loses nothing that it told, breaks no line, and its sessions go on', LONG, async () => {
    const { kills, acknowledged, lost, unreadable, stuck } = await killAtRandom({ kills: 2 })
    expect({ kills, lost, unreadable, stuck }).toEqual({ kills: 2, lost: 0, unreadable: 0, stuck: 0 })
    expect(acknowledged).toBeGreaterThan(0)
  })
  it('that is started twice at the same moment is one', LONG, async () => {
    expect((await startTwice({ rounds: 2 })).wrong).toEqual([])
  })
  it('serves many sessions at once without an error', LONG, async () => {
    const { errors, got } = await load({ sessions: 30, seconds: 2 })
    expect(errors).toBe(0)
    expect(got).toBeGreaterThan(0)
  })
  it('takes in all of six hundred clients that come in the same instant', LONG, async () => {
    expect((await load({ sessions: 600, seconds: 0.2, withinMs: 0 })).errors).toBe(0)
  })
  it('that is stopped at random ends every turn, and leaves neither a file nor a process', LONG, async () => {
    const { turns, wrong } = await stopAtRandom({ stops: 1 })
    expect([turns, wrong]).toEqual([5, []])
  })
})

describe.runIf(linux)('clients of a daemon', () => {
  it('that stand still and come back miss nothing and get nothing twice', LONG, async () => {
    expect(await stall({ readers: 8, stalledMs: 1500 })).toMatchObject({ wrong: 0 })
  })
  it('whose connection breaks at random have the whole log in the end', LONG, async () => {
    expect(await breakAtRandom({ breaks: 8 })).toMatchObject({ wrong: 0, resets: 0 })
  })
  it('that stop a turn reach its model, its tool and its handlers', LONG, async () => {
    const { model, tool, hook } = await abortEach({ times: 2 })
    expect([model.length, tool.length, hook.length]).toEqual([2, 2, 2])
  })
  it('of which there are more than descriptors are told so, and disturb no turn that runs', LONG, async () => {
    const { wrong, first, after } = await crowd({ clients: 80, limit: 90, tokens: 60 })
    expect({ wrong, first, after }).toEqual({ wrong: [], first: 'completed', after: 'completed' })
  })
})

describe.runIf(linux)('the disk of a daemon', () => {
  it('lists many sessions and goes on with a large one', LONG, async () => {
    expect(await manyAndLarge({ sessions: 100, sessionKB: 40, largeMB: 4 })).toMatchObject({ listed: 101, large: { reason: 'completed' } })
  })
  it('may limit the size of files: the turn fails and says so, other sessions go on', LONG, async () => {
    expect(await limitedFiles()).toEqual({ refused: ['failed (storage_failed)', 'failed (storage_failed)'], after: 'completed', lost: 0, unreadable: 0 })
  })
  it('may get full: turns fail and say so, and it goes on by itself when there is space', LONG, async () => {
    if (!canMount()) return                                             // the limit on files above is the same to the daemon
    const { refused, ...rest } = await fullDisk()
    expect(refused.every(end => end.includes('storage_failed'))).toBe(true)
    expect(rest).toEqual({ ready: { full: 503, free: 200 }, after: 'completed', lost: 0, unreadable: 0 })
  })
})

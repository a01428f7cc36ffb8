import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Activity, current, currentOwner, enclosing, enter, seatWithin, leave, pluginSeat, runAs, runFor, seatFor, seats } from '../../core/kernel/async-context.js'
import type { Owner } from '../../core/kernel/owners.js'
import { deferred, sleep } from '../support/hooks.js'

const owner = (id: string): Owner => ({ id, generation: 1, row: 0, stage: 'live' })
const ids = () => [...enclosing()].map(({ owner }) => owner?.id)

describe('runAs', () => {
  it('runs on the account of an owner, through awaits and timers, and gives back what came', async () => {
    expect(await runAs(owner('a'), async () => { await sleep(1); return currentOwner()?.id })).toBe('a')
    expect(runAs(owner('a'), () => currentOwner()?.id)).toBe('a')
    expect(currentOwner()).toBeUndefined()
  })
  it('nests, and ends with what it returns', async () => {
    const go = deferred()
    let left: Promise<unknown> | undefined
    const run = runAs(owner('a'), async () => {
      expect(runAs(owner('b'), ids)).toEqual(['b', 'a'])
      left = go.promise.then(() => [currentOwner()?.id, ids()])
      await null
      return ids()
    })
    expect(await run).toEqual(['a'])
    go.resolve()
    expect(await left).toEqual(['a', []])                    // still known by name, but inside nothing
  })
  it('passes a throw and a rejection on, and ends with them', async () => {
    let activity: Activity | undefined
    expect(() => runAs(owner('a'), () => { activity = current(); throw new Error('sync') })).toThrow('sync')
    expect(activity?.over).toBe(true)
    await expect(runAs(owner('a'), async () => { activity = current(); throw new Error('async') })).rejects.toThrow('async')
    expect(activity?.over).toBe(true)
  })
  it('of a timer that renews itself does not grow a chain', async () => {
    const done = deferred<number>()
    let depth = 0
    const tick = (left: number): void => runAs(owner('a'), () => {
      depth = 0
      for (let at = current(); at; at = at.parent) depth++
      if (left === 0) done.resolve(depth)
      else setTimeout(tick, 0, left - 1)
    })
    tick(20)
    expect(await done.promise).toBeLessThanOrEqual(2)
  })
})

it('an activity that was left encloses nothing and pins no parent', () => {
  const parent: Activity = { owner: owner('p'), parent: undefined, over: false }, child: Activity = { owner: owner('c'), parent, over: false }
  expect(enter(child, ids)).toEqual(['c', 'p'])
  leave(child)
  expect([enter(child, ids), child.parent]).toEqual([[], undefined])
  expect(enter(undefined, currentOwner)).toBeUndefined()
})

describe('who is at work, for another thread', () => {
  const shared = new Int32Array(new SharedArrayBuffer(4))
  const busy = (id: string): Owner => ({ ...owner(id), seat: seatFor(id) })
  beforeEach(() => { seats(shared) })
  afterEach(() => { seats(undefined) })

  it('stands there in each part of what runs, between awaits, in timers and in promises, and not before or after', async () => {
    const seen: string[] = [], look = (where: string) => { seen.push(`${where} ${shared[0] === seatFor('a') ? 'a' : shared[0]}`) }
    look('before')
    await runAs(busy('a'), async () => {
      look('called')
      await null
      look('after a promise')
      await sleep(1)
      look('after a timer')
      runAs(undefined, () => { look('inside, nobody') })
      look('back')
      await new Promise<void>(done => { setImmediate(() => { look('in a callback'); done() }) })
    })
    look('after')
    expect(seen).toEqual(['before 0', 'called a', 'after a promise a', 'after a timer a', 'inside, nobody 0', 'back a', 'in a callback a', 'after 0'])
  })
  it('names what was registered and, by it, the plugin; and a plugin that has no version yet', async () => {
    const handler = seatWithin(seatFor('a'))
    expect([pluginSeat(handler), pluginSeat(seatFor('a')), handler === seatWithin(seatFor('a'))]).toEqual([seatFor('a'), seatFor('a'), false])
    enter({ owner: busy('a'), seat: handler, parent: undefined, over: false }, () => { expect(shared[0]).toBe(handler) })
    await runFor('fresh', async () => {
      await null
      expect([shared[0], currentOwner()?.id]).toEqual([seatFor('fresh'), 'fresh'])
    })
  })
})

import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { testHost, type TestHost } from '../support/host.js'
import { until } from '../support/kernel.js'

const full = (v: number, more = '') => `
import { probe, z } from 'harnessx'
export const Config = z.object({ list: z.array(z.string()).default([]) })
const bulk = new Array(1000).fill(${v})
export const reload = 'staged'
export const apply = ctx => {
  ctx.on('agent/pre-tool-use', () => { probe.bulk = bulk.length })
  ctx.on('agent/turn-end', () => {})
  ctx.numbers.register('one', ${v})
  ctx.inject(['numbers'], child => { child.on('agent/stop', () => {}); child.setTimeout(() => {}, 60_000) })
  ctx.setInterval(() => {}, 1000)
  ctx.effect(() => () => {})
  ctx.state.n = (ctx.state.n ?? 0) + 1
  ${more}
}`
const snapshot = ({ kernel, numbers, host }: TestHost) => ({
  handlers: kernel.hooks.size, hooks: kernel.hooks.list().length, numbers: numbers.size, entries: host.list().length, kernel: { ...kernel.size, unreleased: 0 },
  listeners: process.eventNames().map(name => process.listenerCount(name)).join(),
})
const timers = () => process.getActiveResourcesInfo().filter(type => type === 'Timeout').length
const collect = async () => { for (let i = 0; i < 4; i++) { globalThis.gc!(); await sleep(1) } }

describe('after 100 reloads and an unload', () => {
  it('every table, timer and listener is as before, and no old version is in memory', async () => {
    const host = testHost({ 'a.ts': full(0), 'b.ts': full(0).replace(`'one'`, `'two'`) })
    const before = snapshot(host), timersBefore = timers()
    await host.load('a.ts', 'b.ts')
    const during = snapshot(host), timersDuring = timers()
    for (let v = 1; v <= 100; v++) expect((await host.save('a.ts', full(v))).failed).toEqual([])
    expect(host.info('a')).toMatchObject({ version: 101, reloads: 100 })
    await until(() => host.kernel.size.generations === during.kernel.generations)
    expect(snapshot(host)).toEqual(during)
    expect(timers()).toBeLessThanOrEqual(timersDuring)                  // the test runner has one that comes and goes
    await collect()
    expect(host.importer.alive(host.at('a.ts'))).toBe(1)

    await host.load()
    await sleep(120)
    expect(snapshot(host)).toEqual(before)
    expect(timers()).toBeLessThanOrEqual(timersBefore)
    expect(host.leaks).toEqual([])
    await collect()
    expect(host.importer.alive(host.at('a.ts')) + host.importer.alive(host.at('b.ts'))).toBe(0)
  })
})

describe('a version that something outside ctx holds', () => {
  it.each<[string, string]>([
    ['a raw interval', `const timer = setInterval(() => { void bulk }, 60_000); probe.undo = () => clearInterval(timer)`],
    ['a process listener', `const listener = () => { void bulk }; process.on('exit', listener); probe.undo = () => process.off('exit', listener)`],
  ])('is reported when its plugin is unloaded: %s', async (_, more) => {
    const host = testHost({ 'a.ts': full(0, more) })
    await host.load('a.ts')
    await host.load()
    await until(() => host.leaks.length > 0)
    expect(host.leaks[0]).toMatchObject({ plugin: 'a', count: 1 })
    host.probe['undo']()
  })
  it('is not one that only threw: an error is flattened before it is kept', async () => {
    const host = testHost({ 'a.ts': full(0) })
    await host.load('a.ts')
    for (let v = 1; v <= 5; v++) expect((await host.save('a.ts', full(v, `throw new Error('boom ' + bulk.length)`))).failed).toHaveLength(1)
    await collect()
    expect(host.importer.alive(host.at('a.ts'))).toBe(1)
    expect(host.info('a').lastError).toContain('boom 1000')
  })
})

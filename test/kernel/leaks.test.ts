import { once } from 'node:events'
import { createServer } from 'node:net'
import { watch } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { block } from '../../core/agent/hooks.js'
import type { Context } from '../../core/kernel/hooks.js'
import { Releases } from '../../core/kernel/releases.js'
import { folder } from '../support/folder.js'
import { failure, testKernel, until } from '../support/kernel.js'

const collect = async () => {
  for (let i = 0; i < 3; i++) { globalThis.gc!(); await sleep(1) }
}
/** Closes what a test leaves on purpose. */
const left: (() => unknown)[] = []
afterEach(async () => { for (const close of left.splice(0)) await close() })

describe('what a plugin leaves behind outside ctx', () => {
  it.each<[string, () => unknown, { kind: string; count: number }]>([
    ['a raw interval', () => { const timer = setInterval(() => {}, 60_000); left.push(() => { clearInterval(timer) }) }, { kind: 'timer', count: 1 }],
    ['two raw timeouts', () => { for (const timer of [setTimeout(() => {}, 60_000), setTimeout(() => {}, 60_000)]) left.push(() => { clearTimeout(timer) }) }, { kind: 'timer', count: 2 }],
    ['a server', async () => { const server = createServer().listen(0); await once(server, 'listening'); left.push(() => new Promise(resolve => { server.close(resolve) })) }, { kind: 'TCP server', count: 1 }],
    ['a file watcher', () => { const watcher = watch(folder().path); left.push(() => { watcher.close() }) }, { kind: 'file watcher', count: 1 }],
    ['a process listener', () => { const listener = () => {}; process.on('exit', listener); left.push(() => { process.off('exit', listener) }) }, { kind: 'process listener for "exit"', count: 1 }],
  ])('is reported with the plugin and the kind: %s', async (_, leave, found) => {
    const { live, kernel, leaks, text } = testKernel()
    await kernel.dispose(await live(async () => { await leave() }, { id: 'leaky' }))
    await until(() => leaks.length > 0)
    expect(leaks).toEqual([{ plugin: 'leaky', ...found }])
    expect(text()).toContain(`plugin "leaky": left ${found.count} ${found.kind}${found.count > 1 ? 's' : ''} behind; make it through ctx, or give its undo to ctx.effect`)
  })
  it('is reported of a plugin that failed to load, too', async () => {
    const { mount, leaks } = testKernel()
    await failure(mount(() => { const timer = setInterval(() => {}, 60_000); left.push(() => { clearInterval(timer) }); throw new Error('boom') }, { id: 'leaky' }))
    await until(() => leaks.length > 0)
    expect(leaks).toEqual([{ plugin: 'leaky', kind: 'timer', count: 1 }])
  })
  it('is nothing when everything was made through ctx or undone', async () => {
    const { live, kernel, leaks } = testKernel()
    await kernel.dispose(await live(async ctx => {
      ctx.setInterval(() => {}, 60_000)
      ctx.setTimeout(() => {}, 60_000)
      ctx.effect(() => { const timer = setInterval(() => {}, 60_000); return () => { clearInterval(timer) } })
      ctx.effect(() => { const listener = () => {}; process.on('exit', listener); return () => { process.off('exit', listener) } })
      const server = createServer().listen(0)
      await once(server, 'listening')
      return () => new Promise(resolve => { server.close(resolve) })
    }))
    await sleep(150)
    expect(leaks).toEqual([])
  })
  it('is not a timer of a turn that begins while it loads', async () => {
    const { live, kernel, leaks } = testKernel()
    const loading = live(ctx => { ctx.setInterval(() => {}, 60_000) })
    for (let i = 0; i < 3; i++) left.push(clearTimeout.bind(null, setTimeout(() => {}, 60_000)))
    await kernel.dispose(await loading)
    await sleep(150)
    expect(leaks).toEqual([])
  })
  it('is not a timer of another plugin that starts while it loads', async () => {
    const { live, kernel, leaks } = testKernel()
    const other = await live(() => {}, { id: 'other' })
    await kernel.dispose(await live(async () => { for (let i = 0; i < 3; i++) other.ctx.setTimeout(() => {}, 60_000) }, { row: 1 }))
    await sleep(150)
    expect(leaks).toEqual([])
  })
  it('is not a timer that has fired meanwhile', async () => {
    const { live, kernel, leaks } = testKernel()
    let fired = false
    const generation = await live(() => { setTimeout(() => { fired = true }, 5) })
    await until(() => fired)
    await kernel.dispose(generation)
    await sleep(150)
    expect(leaks).toEqual([])
  })
})

describe('a plugin that is unloaded', () => {
  const full = (ctx: Context) => {
    ctx.on('agent/pre-tool-use', () => block('no'))
    ctx.on('agent/turn-end', () => {})
    ctx.numbers.register('one', 1)
    ctx.provide('store' as never, {} as never)
    ctx.inject(['numbers'], child => { child.on('agent/stop', () => {}); child.setInterval(() => {}, 1000) })
    ctx.setInterval(() => {}, 1000)
    ctx.setTimeout(() => {}, 1000)
    ctx.effect(() => () => {})
    return () => {}
  }
  it('leaves every table as it was before, also after 100 reloads', async () => {
    const { kernel, numbers, mount, leaks } = testKernel()
    const snapshot = () => ({ numbers: numbers.size, handlers: kernel.hooks.size, hooks: kernel.hooks.list().length, kernel: { ...kernel.size, unreleased: 0 }, resources: process.getActiveResourcesInfo().filter(type => type === 'Timeout').length, listeners: process.eventNames().length })
    await sleep(100)                                         // a timer of the test runner's own runs out
    const before = snapshot()
    let running = await mount(full, { exclusive: true })
    kernel.switch([running])
    const during = snapshot()
    for (let version = 2; version < 102; version++) {
      await kernel.dispose(running)
      running = await mount(full, { version, exclusive: true })
      kernel.switch([running])
    }
    expect(snapshot()).toEqual(during)
    await kernel.dispose(running)
    expect(snapshot()).toEqual(before)
    expect(leaks).toEqual([])
  })
  it('is collected, with its handlers and its config', async () => {
    const { kernel, mount } = testKernel()
    const gone: WeakRef<object>[] = []
    await (async () => {
      for (let version = 1; version <= 5; version++) {
        const config = { version }
        gone.push(new WeakRef(config))
        const generation = await mount(ctx => { full(ctx); ctx.setInterval(() => { void config }, 1000) }, { version, config })
        kernel.switch([generation])
        await kernel.dispose(generation)
      }
    })()
    await collect()
    expect(gone.filter(ref => ref.deref() !== undefined)).toHaveLength(0)
  })
})

describe('the look at unloaded versions', () => {
  it('reports those that something holds, once, and is silent about those that are gone', async () => {
    const report = vi.fn(), releases = new Releases(report, 5)
    const held: object[] = []
    for (let i = 0; i < 2; i++) {
      const ctx = {}
      held.push(ctx)
      releases.watch('kept', ctx, {})
      releases.watch('gone', {}, {})
    }
    await sleep(10)
    await collect()
    await until(() => report.mock.calls.length > 0)
    await sleep(20)
    expect(report.mock.calls).toEqual([['kept', 2]])
    expect(releases.size).toBe(2)
    expect(held).toHaveLength(2)
    releases.stop()
  })
  it('says nothing while nothing has been collected', async () => {
    const report = vi.fn(), releases = new Releases(report, 1)
    const ctx = {}, witness = {}
    releases.watch('kept', ctx, witness)
    await sleep(10)
    releases.look()
    expect(report).not.toHaveBeenCalled()
    expect([ctx, witness]).toHaveLength(2)
    releases.stop()
  })
})

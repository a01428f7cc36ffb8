import { describe, expect, it, vi } from 'vitest'
import { block } from '../../core/agent/hooks.js'
import type { Context } from '../../core/kernel/hooks.js'
import { deferred, failure, payloadOf, testKernel, until } from '../support/kernel.js'

const blocking = (reason: string) => (ctx: Context) => { ctx.on('agent/pre-tool-use', () => block(reason)) }

describe('mounting', () => {
  it.each<[string, (undone: () => void) => (ctx: Context) => unknown]>([
    ['an arrow', undone => () => undone],
    ['a function', undone => function apply() { return undone }],
    ['an async function', undone => async function apply() { return undone }],
    ['a method', undone => ({ apply() { return undone } }).apply],
  ])('takes apply as %s, without new, and runs the disposer it returns', async (_, make) => {
    const undone = vi.fn()
    const { live, kernel } = testKernel()
    const generation = await live(make(undone))
    expect(generation.holds).toBe(true)
    await kernel.dispose(generation)
    expect(undone).toHaveBeenCalledTimes(1)
  })
  it('ignores anything else that apply returns', async () => {
    const { live } = testKernel()
    const generation = await live(() => [1].push(2))
    expect(generation.holds).toBe(false)
  })
  it('is unseen until the switch', async () => {
    const { mount, kernel, judge } = testKernel()
    const generation = await mount(blocking('no'))
    expect(await judge()).toMatchObject({ kind: 'allow' })
    kernel.switch([generation])
    expect(await judge()).toMatchObject({ kind: 'block', reason: 'no', plugin: 'test' })
  })
  it('switches the new in and the old out in one step', async () => {
    const { live, mount, kernel, judge } = testKernel()
    const old = await live(blocking('old'))
    const fresh = await mount(blocking('new'), { version: 2 })
    expect((await judge()).reason).toBe('old')
    kernel.switch([fresh], [old])
    expect((await judge()).reason).toBe('new')
    expect(old.stage).toBe('retired')
  })
  it('leaves a call that has begun to the old version', async () => {
    const { live, mount, kernel, judge } = testKernel()
    const gate = deferred()
    const old = await live(ctx => { ctx.on('agent/pre-tool-use', async () => { await gate.promise; return block('old') }) })
    const running = judge()
    const fresh = await mount(blocking('new'), { version: 2 })
    kernel.switch([fresh], [old])
    expect(await kernel.drain(old, 5)).toBe(false)
    gate.resolve()
    expect((await running).reason).toBe('old')
    expect(await kernel.drain(old, 1000)).toBe(true)
  })
  it('changes nothing when a name would clash at the switch', async () => {
    const { live, mount, kernel, numbers } = testKernel()
    await live(ctx => { ctx.numbers.register('one', 1) }, { id: 'first' })
    const second = await mount(ctx => { ctx.numbers.register('one', 2); ctx.on('agent/pre-tool-use', () => block('half')) }, { id: 'second', row: 1 })
    expect(await failure(() => { kernel.switch([second]) })).toMatchObject({ code: 'already_registered' })
    expect(second.stage).toBe('staged')
    expect(numbers.get('one')?.value).toBe(1)
    await kernel.dispose(second)
    expect(numbers.size).toBe(1)
  })
  it('lets two plugins swap a name in one switch', async () => {
    const { live, mount, kernel, numbers } = testKernel()
    const names = (name: string) => (ctx: Context) => { ctx.numbers.register(name, 1) }
    const a = await live(names('x'), { id: 'a' }), b = await live(names('y'), { id: 'b', row: 1 })
    const a2 = await mount(names('y'), { id: 'a', version: 2 }), b2 = await mount(names('x'), { id: 'b', row: 1, version: 2 })
    kernel.switch([a2, b2], [a, b])
    expect([numbers.get('x')?.owner.id, numbers.get('y')?.owner.id]).toEqual(['b', 'a'])
  })
  it('takes everything back when apply throws late', async () => {
    const { mount, kernel, numbers } = testKernel()
    const undone = vi.fn()
    const before = kernel.size
    const error = await failure(mount(async ctx => {
      ctx.numbers.register('one', 1)
      ctx.on('agent/pre-tool-use', () => block('half'))
      ctx.effect(() => undone)
      ctx.setInterval(() => {}, 1)
      await new Promise(resolve => { setTimeout(resolve, 3) })
      throw new Error('boom')
    }))
    expect(error).toMatchObject({ code: 'plugin_failed', message: 'plugin "test" threw while it was loaded: boom' })
    expect(undone).toHaveBeenCalledTimes(1)
    expect(numbers.size).toBe(0)
    expect(kernel.hooks.size).toBe(0)
    expect(kernel.size).toEqual({ ...before, unreleased: 1 })
  })
  it.each([undefined, 'text', { odd: true }, null])('survives an apply that throws %s', async thrown => {
    const { mount } = testKernel()
    expect(await failure(mount(() => { throw thrown }))).toMatchObject({ code: 'plugin_failed' })
  })
  it('says where in the file of the plugin it threw', async () => {
    const { mount } = testKernel()
    const error = await failure(mount(() => { throw new Error('boom') }, { file: import.meta.filename }))
    expect(error.message).toMatch(/boom \(.*mount\.test\.ts:\d+:\d+\)$/)
    expect(error.place?.line).toBeGreaterThan(1)
  })
  it('gives up an apply that hangs, names plugin and file, and leaves nothing', async () => {
    const { mount, kernel, numbers } = testKernel()
    let ctx!: Context
    const error = await failure(mount(own => { ctx = own; own.numbers.register('one', 1); return new Promise(() => {}) }, { mountMs: 20, file: '/plugins/slow.ts' }))
    expect(error).toMatchObject({ code: 'plugin_timeout' })
    expect(error.message).toContain('plugin "test" (/plugins/slow.ts) did not finish loading within 20 ms')
    expect(numbers.size).toBe(0)
    expect(kernel.generations()).toEqual([])
    expect(await failure(() => ctx.on('agent/stop', () => {}))).toMatchObject({ code: 'stale_context' })
  })
  it('closes what an apply that was given up opens too late', async () => {
    const { mount } = testKernel()
    const late = deferred(), undone = vi.fn()
    await failure(mount(async () => { await late.promise; return undone }, { mountMs: 10 }))
    late.resolve()
    await until(() => undone.mock.calls.length === 1)
  })
  it('refuses a plugin whose services are not there', async () => {
    const { mount } = testKernel()
    expect(await failure(mount(() => {}, { module: { inject: ['store'] } }))).toMatchObject({ code: 'service_missing', message: 'plugin "test" waits for service "store"' })
  })
  it('mounts one module twice under two ids, with two configs', async () => {
    const { live, kernel } = testKernel()
    const seen: unknown[] = []
    const apply = (ctx: Context, config: { v: number }) => { seen.push([ctx.id, config.v]) }
    await live(apply, { id: 'a', config: { v: 1 } })
    await live(apply, { id: 'b', row: 1, config: { v: 2 } })
    expect(seen).toEqual([['a', 1], ['b', 2]])
    expect(kernel.generations().map(({ id }) => id)).toEqual(['a', 'b'])
  })
  it('orders handlers by row, whoever was mounted first', async () => {
    const { live, kernel } = testKernel()
    const seen: string[] = []
    const noting = (ctx: Context) => { ctx.on('agent/pre-tool-use', () => { seen.push(ctx.id) }); ctx.on('agent/pre-tool-use', () => { seen.push(`${ctx.id} first`) }, { prepend: true }) }
    const c = await live(noting, { id: 'c', row: 2 }), a = await live(noting, { id: 'a', row: 0 })
    await live(noting, { id: 'b', row: 1 })
    await kernel.hooks.dispatch('agent/pre-tool-use', payloadOf())
    expect(seen.splice(0)).toEqual(['a first', 'b first', 'c first', 'a', 'b', 'c'])
    kernel.reorder(new Map([[c, 0], [a, 2]]))
    await kernel.hooks.dispatch('agent/pre-tool-use', payloadOf())
    expect(seen).toEqual(['c first', 'b first', 'a first', 'c', 'b', 'a'])
  })
})

describe('disposing', () => {
  it('takes effects back in reverse, one after another, awaited', async () => {
    const { live, kernel } = testKernel()
    const seen: string[] = []
    const generation = await live(ctx => {
      for (const name of ['first', 'second']) ctx.effect(() => async () => { seen.push(`${name} begins`); await new Promise(resolve => { setTimeout(resolve, 2) }); seen.push(`${name} ends`) })
      return () => { seen.push('returned') }
    })
    await kernel.dispose(generation)
    expect(seen).toEqual(['returned', 'second begins', 'second ends', 'first begins', 'first ends'])
  })
  it('goes on after an undo that throws or hangs, and names it', async () => {
    const { live, kernel, text } = testKernel()
    const last = vi.fn()
    const generation = await live(ctx => {
      ctx.effect(() => last, 'the last')
      ctx.effect(() => () => { throw new Error('boom') }, 'the file')
      ctx.effect(() => () => new Promise(() => {}), 'the socket')
    })
    await kernel.dispose(generation, 20)
    expect(last).toHaveBeenCalledTimes(1)
    expect(text()).toContain('plugin "test": the file could not be taken back: boom')
    expect(text()).toContain('plugin "test": the socket could not be taken back: it did not end within 20 ms')
  })
  it('refuses what an undo registers, and leaves nothing of it', async () => {
    const { live, kernel, numbers, text } = testKernel()
    await kernel.dispose(await live(ctx => { ctx.effect(() => () => { ctx.on('agent/stop', () => {}) }, 'the first'); ctx.effect(() => () => { ctx.numbers.register('late', 1) }, 'the second') }))
    expect([kernel.hooks.size, numbers.size]).toEqual([0, 0])
    expect(text()).toContain('the second could not be taken back: plugin "test"')
    expect(text()).toContain('the first could not be taken back: plugin "test": this ctx belongs to version 1, which was unloaded')
  })
  it('is one disposal, whoever asks for it', async () => {
    const { live, kernel } = testKernel()
    let undone = false
    const generation = await live(ctx => { ctx.effect(() => async () => { await new Promise(resolve => { setTimeout(resolve, 5) }); undone = true }) })
    void kernel.dispose(generation)
    await kernel.dispose(generation)
    expect(undone).toBe(true)
  })
  it('is not reached by a dispatch of the same tick', async () => {
    const { live, kernel, judge } = testKernel()
    const generation = await live(blocking('still there'))
    const gone = kernel.dispose(generation)
    expect((await judge()).kind).toBe('allow')
    await gone
  })
  it('waits for an undo that was asked for early', async () => {
    const { live, kernel } = testKernel()
    let closed = false
    const generation = await live(ctx => { ctx.effect(() => async () => { await new Promise(resolve => { setTimeout(resolve, 5) }); closed = true })() })
    await kernel.dispose(generation)
    expect(closed).toBe(true)
  })
  it('aborts the signal of calls that do not end in time, and goes on', async () => {
    const { live, kernel, judge, text } = testKernel()
    let aborted = false
    const generation = await live(ctx => { ctx.on('agent/pre-tool-use', () => new Promise(resolve => { ctx.signal.addEventListener('abort', () => { aborted = true; resolve(block('aborted')) }) })) })
    const running = judge()
    await kernel.end(generation, 5)
    expect(aborted).toBe(true)
    expect(await running).toMatchObject({ kind: 'block', reason: 'aborted' })
    expect(text()).toContain('plugin "test": still had 1 call running after 5 ms; aborted')
  })
  it('lets go of a handler that never ends, which counts as a failure', async () => {
    const { live, kernel, judge } = testKernel()
    const generation = await live(ctx => { ctx.on('agent/pre-tool-use', () => new Promise(() => {})) })
    const running = judge()
    await kernel.end(generation, 5)
    expect(await running).toMatchObject({ kind: 'block', failure: 'hook_failed' })
  })
  it('does not run into itself when a plugin ends its own generation', async () => {
    const { live, kernel, judge } = testKernel()
    const generation = await live(ctx => { ctx.on('agent/pre-tool-use', async () => { await kernel.end(generation, 10); return block('after all') }) })
    expect(await judge()).toMatchObject({ kind: 'block' })
    await until(() => generation.stage === 'disposed')
  })
})

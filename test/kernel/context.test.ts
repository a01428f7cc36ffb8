import { existsSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { describe, expect, it, vi } from 'vitest'
import { block } from '../../core/agent/hooks.js'
import type { Context } from '../../core/kernel/hooks.js'
import { failure, testKernel, until } from '../support/kernel.js'

/** A ctx with names that TypeScript would refuse. */
type Loose = Omit<Context, 'provide' | 'inject'> & Record<string, any>

describe('ctx', () => {
  it('knows its id and a folder of its own, made with mode 0700 when it is first read', async () => {
    const { live, dataDir } = testKernel()
    const { ctx } = await live(() => {}, { id: 'guard' })
    expect(ctx.id).toBe('guard')
    expect(existsSync(dataDir)).toBe(false)
    expect(ctx.dataDir).toBe(dataDir)
    expect(statSync(dataDir).mode & 0o777).toBe(0o700)
  })
  it('may be taken apart: its members need no `this`', async () => {
    const { live, judge } = testKernel()
    await live(({ on }) => { on('agent/pre-tool-use', () => block('no')) })
    expect((await judge()).kind).toBe('block')
  })
  it('writes log lines in the name of the plugin, of errors too', async () => {
    const { live, lines } = testKernel()
    await live(ctx => { ctx.logger.info('hello', { n: 1 }); ctx.logger.error(new Error('boom') as never) })
    expect(lines.map(({ level, message, plugin }) => [level, message, plugin])).toEqual([['info', 'hello', 'test'], ['error', 'boom', 'test']])
  })
  it('has a signal that aborts when the plugin has to let go', async () => {
    const { live, kernel } = testKernel()
    const generation = await live(() => {})
    const { signal } = generation.ctx
    expect(signal.aborted).toBe(false)
    await kernel.dispose(generation)
    expect(signal.aborted).toBe(true)
  })
  it('gives a disposer that may be called any number of times', async () => {
    const { live, judge, kernel } = testKernel()
    let off!: () => void
    const generation = await live(ctx => { off = ctx.on('agent/pre-tool-use', () => block('no')) })
    off(); off()
    expect((await judge()).kind).toBe('allow')
    expect(generation.counts().handlers).toBe(0)
    await kernel.dispose(generation)
    off()
  })
  it('counts what hangs on it', async () => {
    const { live } = testKernel()
    const generation = await live(ctx => {
      ctx.on('agent/stop', () => {}); ctx.on('agent/turn-start', () => {})
      ctx.setInterval(() => {}, 60_000)
      ctx.provide('store' as never, { v: 1 } as never)
    })
    expect(generation.counts()).toMatchObject({ handlers: 2, timers: 1, services: 1, tools: 0 })
    expect(generation.holds).toBe(false)
  })
  it('reads a hook that does not exist as a mistake of the plugin', async () => {
    const { mount } = testKernel()
    expect(await failure(mount(ctx => { ctx.on('PreToolUse' as never, () => {}) }))).toMatchObject({ code: 'hook_unknown' })
    expect((await failure(mount(ctx => { ctx.on('PreToolUse' as never, () => {}) }))).message).toContain('"PreToolUse" is called "agent/pre-tool-use" here')
  })
  it('says where a handler stands', async () => {
    const { live, kernel } = testKernel()
    await live(ctx => { ctx.on('agent/stop', () => {}) })
    expect(kernel.hooks.list()[0]?.handlers[0]?.file).toMatch(/context\.test\.ts/)
  })
})

describe('the context that is opened ahead', () => {
  it('has nothing of the one whose end it was made at, and is counted once somebody has it', async () => {
    const { live, kernel } = testKernel()
    const first = await live(() => {}, { id: 'first' })
    const before = kernel.size.fibers, { ctx } = first
    await kernel.dispose(first)
    expect(kernel.size.fibers).toBe(before - 1)
    const second = await live(() => {}, { id: 'second' })
    expect(kernel.size.fibers).toBe(before)
    expect(second.ctx).not.toBe(ctx)
    expect(second.ctx.id).toBe('second')
    expect(String(inspect(second.ctx))).toContain('second')
    expect(ctx.id).toBe('first')
    expect(() => ctx.on('agent/pre-tool-use', () => undefined)).toThrow(/belongs to version 1, which was unloaded/)
  })
  it('is not shared by two that are mounted at once', async () => {
    const { live, kernel } = testKernel()
    await kernel.dispose(await live(() => {}, { id: 'gone' }))
    const [one, two] = await Promise.all([live(() => {}, { id: 'one' }), live(() => {}, { id: 'two' })])
    expect([one.ctx.id, two.ctx.id]).toEqual(['one', 'two'])
    await kernel.dispose(one)
    expect(two.ctx.signal.aborted).toBe(false)
  })
})

describe('a property that is not there', () => {
  it('names the missing inject when it is a service of a plugin', async () => {
    const { live, mount } = testKernel()
    await live(ctx => { ctx.provide('store' as never, { v: 1 } as never) }, { id: 'db' })
    expect(await failure(mount(ctx => { void (ctx as Loose).store }, { row: 1 }))).toMatchObject({
      code: 'service_missing', message: `plugin "test" reads ctx.store, a service of plugin "db", without asking for it; write: export const inject = ['store'], or use ctx.get('store')`,
    })
  })
  it('is met with "did you mean"', async () => {
    const { mount } = testKernel()
    expect((await failure(mount(ctx => { (ctx as Loose).numbres.register('x', 1) }))).message).toBe('plugin "test" reads ctx.numbres, which is not there; did you mean "numbers"?')
  })
  it('is undefined for get', async () => {
    const { live } = testKernel()
    const { ctx } = await live(() => {})
    expect(ctx.get('nothing' as never)).toBeUndefined()
    expect(ctx.get('numbers')).toBeDefined()
  })
})

describe('ways around the facade', () => {
  it.each<[string, (ctx: Loose) => unknown, RegExp]>([
    ['a child plugin', ctx => ctx.plugin({ apply() {} }), /ctx\.plugin is not there; give the other plugin an entry of its own/],
    ['once', ctx => ctx.once('agent/stop', () => {}), /ctx\.once is not there; use ctx\.on and its disposer/],
    ['a mixin', ctx => ctx.mixin('x', ['y']), /ctx\.mixin is not there/],
    ['a listener on the bus of cordis', ctx => ctx.events.on('x', () => {}), /listens to "x" beside the host; use ctx\.on/],
    ['an internal listener', ctx => ctx.events.on('internal/plugin', () => {}), /listens to "internal\/plugin" beside the host/],
    ['an event on the bus of cordis', ctx => ctx.emit('x'), /event "x" was sent on the bus of cordis/],
  ])('are refused: %s', async (_, attempt, message) => {
    const { mount } = testKernel()
    const error = await failure(mount(ctx => attempt(ctx as Loose)))
    expect(error.code).toBe('hook_invalid')
    expect(error.message).toMatch(message)
  })
  it('do not reach the members themselves', async () => {
    const { mount } = testKernel()
    expect((await failure(mount(ctx => { (ctx as unknown as Record<string, any>)['on'] = () => {} }))).message).toContain('on')
  })
})

describe('a stale ctx', () => {
  it.each<[string, (ctx: Loose) => unknown]>([
    ['on', ctx => ctx.on('agent/stop', () => {})], ['provide', ctx => ctx.provide('store', {})], ['get', ctx => ctx.get('numbers')], ['inject', ctx => ctx.inject(['store'], () => {})],
    ['setTimeout', ctx => ctx.setTimeout(() => {}, 1)], ['setInterval', ctx => ctx.setInterval(() => {}, 1)], ['effect', ctx => ctx.effect(() => () => {})],
    ['a service of core', ctx => ctx.numbers], ['an absent property', ctx => ctx.store],
  ])('refuses %s in a recognisable sentence', async (_, use) => {
    const { live, kernel } = testKernel()
    const generation = await live(() => {})
    const { ctx } = generation
    await kernel.dispose(generation)
    const error = await failure(() => use(ctx as Loose))
    expect(error).toMatchObject({ code: 'stale_context' })
    expect(error.message).toContain('plugin "test": this ctx belongs to version 1, which was unloaded')
  })
  it('refuses a registration through a service it has kept', async () => {
    const { live, kernel, numbers } = testKernel()
    const generation = await live(() => {})
    const kept = generation.ctx.numbers
    await kernel.dispose(generation)
    expect(await failure(() => kept.register('late', 1))).toMatchObject({ code: 'stale_context' })
    expect(numbers.size).toBe(0)
  })
  it('still logs, and knows its id', async () => {
    const { live, kernel, lines } = testKernel()
    const generation = await live(() => {})
    const { ctx } = generation
    await kernel.dispose(generation)
    ctx.logger.info('late')
    expect(lines.at(-1)).toMatchObject({ plugin: ctx.id, message: 'late' })
  })
  it('of a replaced version registers nothing, but lets a call that runs wait and clean up', async () => {
    const { live, mount, kernel } = testKernel()
    const old = await live(() => {}), undone = vi.fn()
    const { ctx } = old
    kernel.switch([await mount(() => {}, { version: 2 })], [old])
    expect(await failure(() => ctx.on('agent/stop', () => {}))).toMatchObject({ code: 'stale_context' })
    expect(await failure(() => ctx.setInterval(() => {}, 1))).toMatchObject({ code: 'stale_context' })
    await new Promise<void>(resolve => { ctx.setTimeout(resolve, 1) })
    ctx.effect(() => undone)
    await kernel.dispose(old)
    expect(undone).toHaveBeenCalledTimes(1)
  })
})

describe('ctx.effect', () => {
  it('keeps nothing when there is nothing to undo', async () => {
    const { live } = testKernel()
    const generation = await live(ctx => { ctx.effect(() => {}) })
    expect([generation.holds, generation.effects.size]).toEqual([false, 0])
  })
  it('undoes what an asynchronous start comes to', async () => {
    const { live, kernel } = testKernel()
    const undone = vi.fn()
    const generation = await live(ctx => { ctx.effect((async () => { await sleep(1); return undone }) as never) })
    await kernel.dispose(generation)
    expect(undone).toHaveBeenCalledTimes(1)
  })
  it('holds no longer once it is undone', async () => {
    const { live } = testKernel()
    const generation = await live(ctx => { ctx.effect(() => () => {})() })
    expect(generation.holds).toBe(false)
  })
})

describe('ctx.state', () => {
  it('is cloned into the next version', async () => {
    const { live, mount } = testKernel()
    const old = await live(ctx => { ctx.state['seen'] = new Map([['a', new Set([1])]]); ctx.state['at'] = new Date(0) })
    const fresh = await mount(() => {}, { version: 2, state: old.state })
    old.ctx.state['late'] = true
    expect(fresh.ctx.state).toEqual({ seen: new Map([['a', new Set([1])]]), at: new Date(0) })
  })
})

describe('ctx timers', () => {
  it('start at the switch', async () => {
    const { mount, kernel } = testKernel()
    const ticks: number[] = []
    const generation = await mount(ctx => { ctx.setInterval(() => { ticks.push(1) }, 1); ctx.setTimeout(() => { ticks.push(2) }, 1) })
    await sleep(10)
    expect(ticks).toEqual([])
    kernel.switch([generation])
    await until(() => ticks.includes(1) && ticks.includes(2))
  })
  it('end at the switch for the old version when they repeat, and run on once when they do not', async () => {
    const { live, mount, kernel } = testKernel()
    const ticks: string[] = []
    const old = await live(ctx => { ctx.setInterval(() => { ticks.push('tick') }, 1); ctx.setTimeout(() => { ticks.push('once') }, 15) })
    kernel.switch([await mount(() => {}, { version: 2 })], [old])
    ticks.length = 0
    await until(() => ticks.includes('once'))
    expect(ticks).toEqual(['once'])
  })
  it('give their effect back when they have fired', async () => {
    const { live } = testKernel()
    let rounds = 0
    const generation = await live(ctx => {
      const again = () => { if (++rounds < 5) ctx.setTimeout(again, 0) }
      ctx.setTimeout(again, 0)
    })
    await until(() => rounds === 5)
    expect(generation.effects.size).toBe(0)
  })
  it('contain what they throw and name the plugin', async () => {
    const { live, text } = testKernel()
    await live(ctx => {
      ctx.setTimeout(() => { throw new Error('sync') }, 0)
      ctx.setTimeout(async () => { throw new Error('async') }, 0)
    })
    await until(() => text().includes('plugin "test": a timer failed: sync') && text().includes('plugin "test": a timer failed: async'))
  })
  it('are gone with the plugin', async () => {
    const { live, kernel } = testKernel()
    let ticks = 0
    const generation = await live(ctx => { ctx.setInterval(() => { ticks++ }, 1) })
    await until(() => ticks > 0)
    await kernel.dispose(generation)
    const then = ticks
    await sleep(10)
    expect(ticks).toBe(then)
  })
  it('hold the version while they run', async () => {
    const { live, kernel } = testKernel()
    let done = false
    const generation = await live(ctx => { ctx.setTimeout(async () => { await sleep(10); done = true }, 0) })
    await until(() => generation.inFlight === 1)
    await kernel.end(generation, 1000)
    expect(done).toBe(true)
  })
  it.each([Number.NaN, -1, 2 ** 31, '5s'])('refuse %s milliseconds', async ms => {
    const { mount } = testKernel()
    expect(await failure(mount(ctx => { ctx.setTimeout(() => {}, ms as number) }))).toMatchObject({ code: 'hook_invalid' })
  })
  it('that apply waits for run into the deadline, which says so', async () => {
    const { mount } = testKernel()
    const error = await failure(mount(ctx => new Promise<void>(resolve => { ctx.setTimeout(resolve, 1) }), { mountMs: 15 }))
    expect(error.message).toContain('timers of ctx start when apply has ended')
  })
})

import { describe, expect, it, vi } from 'vitest'
import { block } from '../../core/agent/hooks.js'
import type { Context } from '../../core/kernel/hooks.js'
import { failure, payloadOf, testKernel, until } from '../support/kernel.js'

type Loose = Context & Record<string, any>
const store = (v: unknown) => (ctx: Context) => { ctx.provide('store' as never, { v } as never) }

describe('a service of a plugin', () => {
  it('is seen from the switch on, and gone with its plugin', async () => {
    const { mount, kernel } = testKernel()
    const generation = await mount(store(1), { id: 'db' })
    expect(kernel.serviceOwner('store')).toBeUndefined()
    kernel.switch([generation])
    expect(kernel.serviceOwner('store')).toBe('db')
    expect(generation.provides).toEqual(['store'])
    await kernel.dispose(generation)
    expect(kernel.serviceOwner('store')).toBeUndefined()
  })
  it('is seen right after an exclusive mount', async () => {
    const { mount, kernel } = testKernel()
    await mount(store(1), { id: 'db', exclusive: true })
    expect(kernel.serviceOwner('store')).toBe('db')
  })
  it('is read by name where it is injected', async () => {
    const { live } = testKernel()
    await live(store(7), { id: 'db' })
    const { ctx } = await live(() => {}, { id: 'notes', row: 1, module: { inject: ['store'] } })
    expect((ctx as Loose).store.v).toBe(7)
  })
  it('is said to have left where it was injected', async () => {
    const { live, kernel } = testKernel()
    const db = await live(store(7), { id: 'db' })
    const { ctx } = await live(() => {}, { id: 'notes', row: 1, module: { inject: ['store'] } })
    await kernel.dispose(db)
    expect(await failure(() => (ctx as Loose).store)).toMatchObject({ code: 'service_missing', message: 'plugin "notes": service "store" has left' })
  })
  it('belongs to one plugin: a second is refused by name, and the end of one does not take the other', async () => {
    const { live, mount, kernel } = testKernel()
    await live(store(1), { id: 'db' })
    expect(await failure(mount(store(2), { id: 'other', row: 1 }))).toMatchObject({ code: 'already_registered', message: expect.stringContaining('service "store", which belongs to plugin "db"') })
    expect(kernel.serviceOwner('store')).toBe('db')
  })
  it.each([['numbers', 'already_registered'], ['on', 'already_registered'], ['then', 'hook_invalid'], ['not a word', 'hook_invalid']])('may not be called "%s"', async (name, code) => {
    const { mount } = testKernel()
    expect(await failure(mount(ctx => { ctx.provide(name as never, {} as never) }))).toMatchObject({ code })
  })
  it('may be any object, with private fields too', async () => {
    class Counter { #n = 0; next() { return ++this.#n } }
    const { live } = testKernel()
    await live(ctx => { ctx.provide('store' as never, new Counter() as never) }, { id: 'db' })
    const { ctx } = await live(() => {}, { id: 'notes', row: 1, module: { inject: ['store'] } })
    expect((ctx as Loose).store.next()).toBe(1)
  })
  it('tells the host when it comes or goes while its plugin runs', async () => {
    const { live, kernel } = testKernel()
    const changed = kernel.changed = vi.fn()
    const { ctx } = await live(() => {}, { id: 'db' })
    const off = ctx.provide('store' as never, {} as never)
    expect(kernel.serviceOwner('store')).toBe('db')
    off()
    expect(kernel.serviceOwner('store')).toBeUndefined()
    expect(changed).toHaveBeenCalledTimes(2)
  })
  it('has dependents, in the order in which they may be stopped when reversed', async () => {
    const { live, kernel } = testKernel()
    const db = await live(store(1), { id: 'db', row: 5 })
    await live(ctx => { ctx.provide('index' as never, {} as never) }, { id: 'index', row: 3, module: { inject: ['store'] } })
    await live(() => {}, { id: 'search', row: 1, module: { inject: ['index'] } })
    await live(() => {}, { id: 'apart', row: 0 })
    expect(kernel.dependents([db]).map(({ id }) => id)).toEqual(['db', 'index', 'search'])
  })
})

describe('ctx.inject', () => {
  it('starts when the service comes, ends before it leaves, and starts again', async () => {
    const { live, kernel } = testKernel()
    const seen: string[] = []
    await live(ctx => { ctx.inject(['store' as never], child => { seen.push(`start ${(child as Loose).store.v}`); child.effect(() => () => { seen.push(`end ${(child as Loose).store.v}`) }) }) }, { id: 'notes' })
    expect(await kernel.settle()).toBe(false)
    const db = await live(store(1), { id: 'db', row: 1 })
    expect(await kernel.settle()).toBe(true)
    const [, scope] = kernel.dependents([db])
    expect(scope?.parent?.id).toBe('notes')
    await kernel.dispose(scope!)
    await kernel.dispose(db)
    await live(store(2), { id: 'db', row: 1, version: 2 })
    await kernel.settle()
    expect(seen).toEqual(['start 1', 'end 1', 'start 2'])
  })
  it('keeps the place of its call, whenever the service comes', async () => {
    const { live, kernel } = testKernel()
    const seen: string[] = []
    await live(ctx => {
      ctx.on('agent/pre-tool-use', () => { seen.push('before') })
      ctx.inject(['store' as never], child => { child.on('agent/pre-tool-use', () => { seen.push('inside') }) })
      ctx.on('agent/pre-tool-use', () => { seen.push('after') })
    })
    await live(store(1), { id: 'db', row: 1 })
    await kernel.settle()
    await kernel.hooks.dispatch('agent/pre-tool-use', payloadOf())
    expect(seen).toEqual(['before', 'inside', 'after'])
  })
  it('is staged and switched with its plugin', async () => {
    const { live, mount, kernel, judge } = testKernel()
    await live(store(1), { id: 'db' })
    const judging = (reason: string) => (ctx: Context) => { ctx.inject(['store' as never], child => { child.on('agent/pre-tool-use', () => block(reason)) }) }
    const old = await live(judging('old'), { row: 1 })
    expect((await judge()).reason).toBe('old')
    const fresh = await mount(judging('new'), { row: 1, version: 2 })
    expect((await judge()).reason).toBe('old')
    kernel.switch([fresh], [old])
    expect((await judge()).reason).toBe('new')
    await kernel.dispose(old)
    expect((await judge()).reason).toBe('new')
  })
  it('goes with its plugin, before the plugin\'s own effects', async () => {
    const { live, kernel } = testKernel()
    const seen: string[] = []
    await live(store(1), { id: 'db' })
    const generation = await live(ctx => {
      ctx.inject(['store' as never], child => { child.effect(() => () => { seen.push('scope') }) })
      ctx.effect(() => () => { seen.push('plugin') })
    }, { row: 1 })
    await kernel.dispose(generation)
    expect(seen).toEqual(['scope', 'plugin'])
    expect(generation.children.size).toBe(0)
  })
  it('may stand in another one, and shares state, id and services of the plugin', async () => {
    const { live, kernel } = testKernel()
    const seen: unknown[] = []
    await live(store(1), { id: 'db' })
    await live(ctx => { ctx.provide('index' as never, { i: 2 } as never) }, { id: 'index', row: 1 })
    const generation = await live(ctx => {
      ctx.inject(['index' as never], outer => { outer.inject(['store' as never], inner => { seen.push(inner.id, (inner as Loose).index.i, (inner as Loose).store.v); inner.state['n'] = 1 }) })
    }, { row: 2 })
    expect(seen).toEqual(['test', 2, 1])
    expect(generation.state).toEqual({ n: 1 })
    expect(kernel.dependents([generation]).map(({ id }) => id)).toEqual(['test'])
  })
  it('that fails says so, leaves the plugin running, and is tried again only with another provider', async () => {
    const { live, kernel, text } = testKernel()
    let tries = 0
    const db = await live(store(1), { id: 'db' })
    const generation = await live(ctx => { ctx.inject(['store' as never], () => { tries++; throw new Error('boom') }) }, { row: 1 })
    await kernel.settle()
    expect([generation.stage, tries]).toEqual(['live', 1])
    expect(text()).toContain('plugin "test": ctx.inject("store") failed: plugin "test" threw while it was loaded: boom')
    await kernel.dispose(db)
    await live(store(2), { id: 'db', version: 2 })
    await kernel.settle()
    expect(tries).toBe(2)
  })
  it('counts as disposed for a stale child ctx', async () => {
    const { live, kernel } = testKernel()
    let child!: Context
    const db = await live(store(1), { id: 'db' })
    await live(ctx => { ctx.inject(['store' as never], own => { child = own }) }, { row: 1 })
    await kernel.dispose(kernel.dependents([db])[1]!)
    expect(await failure(() => child.on('agent/stop', () => {}))).toMatchObject({ code: 'stale_context', message: expect.stringContaining('an optional scope of version 1') })
  })
  it('can be taken back', async () => {
    const { live, kernel, judge } = testKernel()
    let off!: () => void
    await live(store(1), { id: 'db' })
    const generation = await live(ctx => { off = ctx.inject(['store' as never], child => { child.on('agent/pre-tool-use', () => block('no')) }) }, { row: 1 })
    off()
    expect((await judge()).kind).toBe('allow')
    await until(() => generation.children.size === 0)
    await kernel.settle()
    expect((await judge()).kind).toBe('allow')
  })
})

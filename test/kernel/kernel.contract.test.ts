/**
 * What the kernel knows of cordis, on raw cordis: each trap that made us do something ourselves. A failing test here after an upgrade shows what has changed;
 * that our kernel is right in the same place is tested in mount, context, timers and services.
 */
import { Context, type Fiber } from 'cordis'
import { describe, expect, it, vi } from 'vitest'

const PENDING = 0, ACTIVE = 2, FAILED = 3
type Raw = Context & { emit(...args: unknown[]): void; on(name: string, listener: (...args: never[]) => unknown, options?: object): () => void }
const raw = () => new Context() as Raw
const sleep = (ms: number) => new Promise(resolve => { setTimeout(resolve, ms) })
const fiberOf = (wrapped: object) => Object.getPrototypeOf(wrapped) as Fiber

describe('cordis 4.0.0-rc.10', () => {
  it('calls `function apply` with new and drops the disposer it returns (trap 1)', async () => {
    const root = raw(), undone = vi.fn()
    let fresh = false
    const fiber = await root.plugin({ name: 'a', apply: function apply() { fresh = new.target !== undefined; return undone } as never })
    await fiber.dispose()
    expect(fresh).toBe(true)
    expect(undone).not.toHaveBeenCalled()
  })
  it('fails the load of an apply that returns a number (trap 2)', async () => {
    await expect(raw().plugin({ name: 'a', apply: () => 1 } as never, undefined as never)).rejects.toThrow('Invalid effect')
  })
  it('takes two plugins with one apply function for one (trap 3)', async () => {
    const root = raw(), apply = () => {}
    await root.plugin({ name: 'A', apply })
    expect((await root.plugin({ name: 'B', apply })).name).toBe('A')
  })
  it('waits for ever for inject in the object form of other versions (trap 4)', async () => {
    const fiber = fiberOf(raw().plugin({ name: 'a', inject: { required: ['x'], optional: ['y'] } as never, apply: () => {} }))
    await sleep(5)
    expect(fiber.state).toBe(PENDING)
  })
  it('resolves the load of a plugin that only waits (trap 5)', async () => {
    const fiber = await raw().plugin({ name: 'a', inject: ['absent'], apply: () => {} })
    expect(fiber.state).toBe(PENDING)
  })
  it('says nothing of a load error on its own (trap 6)', async () => {
    const said = vi.spyOn(console, 'error').mockImplementation(() => {})
    const fiber = fiberOf(raw().plugin({ name: 'a', apply: async () => { throw new Error('boom') } }))
    await fiber.await().catch(() => {})
    expect(said).not.toHaveBeenCalled()
    said.mockRestore()
  })
  it('never ends the disposal of a plugin whose apply hangs (trap 7)', async () => {
    const fiber = fiberOf(raw().plugin({ name: 'a', apply: async () => { await new Promise(() => {}) } }))
    await sleep(1)
    expect(await Promise.race([fiber.dispose().then(() => 'disposed'), sleep(30).then(() => 'still waiting')])).toBe('still waiting')
  })
  it('lets a plugin that only waits register, and calls it (trap 8)', async () => {
    const root = raw(), heard = vi.fn()
    const waiting = fiberOf(root.plugin({ name: 'a', inject: ['absent'], apply: () => {} }))
    ;(waiting.ctx as Raw).on('x', heard)
    root.emit('x')
    expect(heard).toHaveBeenCalledTimes(1)
  })
  it('loses an update that comes while the plugin loads (trap 9)', async () => {
    const root = raw(), ran: unknown[] = []
    const fiber = fiberOf(root.plugin({ name: 'a', apply: async (_: Context, config: { v: number }) => { await sleep(3); ran.push(config.v) } }, { v: 1 }))
    await sleep(1)
    await fiber.update({ v: 2 })
    await fiber.await()
    expect(fiber.config).toEqual({ v: 2 })
    expect(ran).toEqual([1])
  })
  it('restarts a plugin for an equal config (trap 10)', async () => {
    const ran = vi.fn()
    const fiber = await raw().plugin({ name: 'a', apply: () => { ran() } }, { v: 1 } as never)
    await fiber.update({ v: 1 })
    expect(ran).toHaveBeenCalledTimes(2)
  })
  it('does not revive a failed plugin by a restart (trap 11)', async () => {
    let fails = true
    const fiber = fiberOf(raw().plugin({ name: 'a', apply: async () => { if (fails) throw new Error('boom') } }))
    await fiber.await().catch(() => {})
    fails = false
    await fiber.restart().catch(() => {})
    expect(fiber.state).toBe(FAILED)
  })
  it('runs the disposers of one plugin all at the same time (trap 12)', async () => {
    const seen: string[] = []
    const fiber = await raw().plugin({ name: 'a', apply: ctx => {
      for (const name of ['first', 'second']) ctx.effect(() => async () => { seen.push(`${name} begins`); await sleep(2); seen.push(`${name} ends`) })
    } })
    await fiber.dispose()
    expect(seen).toEqual(['second begins', 'first begins', 'second ends', 'first ends'])
  })
  it('ends a second disposal before the first one has ended (trap 13)', async () => {
    let undone = false
    const fiber = await raw().plugin({ name: 'a', apply: ctx => { ctx.effect(() => async () => { await sleep(10); undone = true }) } })
    const first = fiber.dispose()
    await fiber.dispose()
    expect(undone).toBe(false)
    await first
  })
  it('lets a throwing listener of emit stop the others and the emitter (trap 15)', () => {
    const root = raw(), second = vi.fn()
    root.on('x', () => { throw new Error('boom') })
    root.on('x', second)
    expect(() => { root.emit('x') }).toThrow('boom')
    expect(second).not.toHaveBeenCalled()
  })
  it('throws for a property that is not there, even behind `?.` (trap 16)', async () => {
    let message = ''
    await raw().plugin({ name: 'a', apply: ctx => { try { void (ctx as never as { missing?: { x: 1 } }).missing?.x } catch (error) { message = (error as Error).message } } })
    expect(message).toBe('cannot get property "missing" without inject')
  })
  it('has no FiberState at run time that could be relied on, but keeps its numbers (trap 17)', async () => {
    expect((await raw().plugin({ name: 'a', apply: () => {} })).state).toBe(ACTIVE)
  })
  it('drops an injecting plugin the moment the service leaves, with its calls still running (trap 12, dependents)', async () => {
    const root = raw(), seen: string[] = []
    const provider = await root.plugin({ name: 'p', apply: ctx => { ctx.provide('store' as never, {} as never) } })
    await root.plugin({ name: 'd', inject: ['store'], apply: ctx => { ctx.effect(() => () => { seen.push('dependent gone') }) } })
    await provider.dispose()
    expect(seen).toEqual(['dependent gone'])
  })
  it('refuses a second provider of a service', async () => {
    const root = raw()
    await root.plugin({ name: 'p', apply: ctx => { ctx.provide('store' as never, {} as never) } })
    await expect(root.plugin({ name: 'q', apply: ctx => { ctx.provide('store' as never, {} as never) } })).rejects.toThrow('has been registered')
  })
  it('still reaches a plugin in the tick of its disposal (trap 21)', async () => {
    const root = raw(), heard = vi.fn()
    const fiber = await root.plugin({ name: 'a', apply: ctx => { (ctx as Raw).on('x', heard) } })
    const gone = fiber.dispose()
    root.emit('x')
    expect(heard).toHaveBeenCalledTimes(1)
    await gone
  })
  it('runs apply once although the plugin was disposed at once (trap 22)', async () => {
    const ran = vi.fn()
    await fiberOf(raw().plugin({ name: 'a', apply: () => { ran() } })).dispose()
    expect(ran).toHaveBeenCalledTimes(1)
  })
  it('mounts two fibers of one plugin side by side on extended contexts, and own members shadow its own', async () => {
    const root = raw(), seen: string[] = []
    const open = (name: string) => (root.extend({ on: () => { seen.push(name) } }) as Raw).plugin({ name: 'a', apply: ctx => { (ctx as Raw).on('x', () => {}) } })
    const first = await open('first')
    await open('second')
    await first.dispose()
    expect(seen).toEqual(['first', 'second'])
    expect(root.registry.size).toBe(1)
  })
  it('lets its seams refuse listeners, events and absent properties', async () => {
    const root = raw() as Raw & { on(name: string, listener: (...args: any[]) => unknown, options?: object): () => void }
    root.on('internal/listener', (name: string) => { if (!name.startsWith('internal/')) throw new Error(`no listener ${name}`) }, { global: true, prepend: true })
    root.on('internal/dispatch', (_type: string, name: string) => { throw new Error(`no event ${name}`) }, { global: true })
    root.on('internal/get', (_ctx: unknown, name: string) => { throw new Error(`no property ${name}`) }, { global: true })
    const messages: string[] = []
    const attempt = (work: () => unknown) => { try { work() } catch (error) { messages.push((error as Error).message) } }
    await root.plugin({ name: 'a', apply: own => {
      const ctx = own as Raw
      attempt(() => ctx.on('x', () => {}))
      attempt(() => { ctx.emit('x') })
      attempt(() => (ctx as never as { y: unknown }).y)
    } })
    expect(messages).toEqual(['no listener x', 'no event x', 'no property y'])
  })
})

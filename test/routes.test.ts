/** Routes of plugins, on a real kernel; that they stand behind the daemon's token is tested with the daemon. */
import { describe, expect, it } from 'vitest'
import type { Context, PluginModule } from '../core/kernel/hooks.js'
import { Kernel } from '../core/kernel/kernel.js'
import { Log } from '../core/kernel/log.js'
import { Routes, type Route } from '../core/routes.js'

async function host() {
  const kernel = new Kernel({ log: new Log() }), routes = new Routes(kernel)
  let version = 0
  const mount = async (id: string, ...all: Route[]) => {
    const module: PluginModule = { name: id, inject: ['routes'], apply: (ctx: Context) => { for (const route of all) ctx.routes.register(route) } }
    const generation = await kernel.mount(module, { id, row: 0, version: ++version, config: {}, dataDir: '/nowhere' })
    kernel.switch([generation])
    return generation
  }
  const ask = async (path: string, method = 'GET') => (await routes.handle(new Request(`http://hx${path}`, { method })))?.text()
  return { kernel, routes, mount, ask }
}
const says = (path: string, said: string, method: Route['method'] = 'GET'): Route => ({ method, path, handle: () => new Response(said) })

describe('routes of plugins', () => {
  it('answer what they are for: the exact path first, then the longest beginning', async () => {
    const { mount, ask } = await host()
    await mount('web', says('/v1/*', 'any'), says('/v1/models/*', 'one'), says('/v1/models', 'all'), says('/v1/models', 'made', 'POST'))
    expect([await ask('/v1/models'), await ask('/v1/models/x?y=1'), await ask('/v1/x'), await ask('/v1/models', 'POST'), await ask('/v2'), await ask('/v1/models', 'PUT')]).toEqual(['all', 'one', 'any', 'made', undefined, undefined])
  })
  it('belong to one plugin, and go with it', async () => {
    const { kernel, mount, ask } = await host()
    const web = await mount('web', says('/a', 'here'))
    await expect(mount('other', says('/a', 'there'))).rejects.toThrow('route "GET /a" of plugin "other" already belongs to plugin "web"')
    await kernel.dispose(web)
    expect(await ask('/a')).toBeUndefined()
  })
  it('hold their plugin until the last byte is sent, or the client has left', async () => {
    const { kernel, routes, mount } = await host()
    let cancelled = false
    const slow: Route = { method: 'GET', path: '/slow', handle: () => new Response(new ReadableStream({ start: controller => { controller.enqueue(new TextEncoder().encode('first')) }, cancel: () => { cancelled = true } })) }
    const web = await mount('web', slow)
    const reader = (await routes.handle(new Request('http://hx/slow')))!.body!.getReader()
    expect(new TextDecoder().decode((await reader.read()).value)).toBe('first')
    let drained = false
    kernel.retire(web)
    const draining = kernel.drain(web, 10_000).then(() => { drained = true })
    await new Promise(done => { setTimeout(done, 50) })
    expect(drained).toBe(false)
    await reader.cancel()
    await draining
    expect(cancelled).toBe(true)
    await kernel.dispose(web)
  })
  it('hand on what a plugin throws, and refuse what is no response or no route', async () => {
    const { mount, ask } = await host()
    await mount('web', { method: 'GET', path: '/throws', handle: () => { throw new Error('no luck') } }, { method: 'GET', path: '/odd', handle: () => 'text' as never })
    await expect(ask('/throws')).rejects.toThrow('no luck')
    await expect(ask('/odd')).rejects.toThrow('route "GET /odd" gave no Response, but "text"')
    await expect(mount('wrong', says('v1', 'x'))).rejects.toThrow('a route\'s path looks like "/v1/models"')
    await expect(mount('wrong', says('/a', 'x', 'PUT' as never))).rejects.toThrow('a route\'s method is GET or POST')
  })
})

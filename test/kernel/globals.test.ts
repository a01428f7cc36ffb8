import { describe, expect, it, onTestFinished } from 'vitest'
import { changedGlobals, watchGlobals } from '../../core/kernel/globals.js'
import { testKernel } from '../support/kernel.js'

/** A kernel in a process that is looked after; what a test changes is put back. */
function watched() {
  const { parse, stringify } = JSON
  const kernel = testKernel(), off = watchGlobals()
  onTestFinished(() => {
    off()
    Object.assign(JSON, { parse, stringify })
    Reflect.deleteProperty(Object.prototype, 'injected')
  })
  return kernel
}
const changed = (lines: readonly { readonly plugin?: string | undefined; readonly message: string }[]) => lines.filter(({ message }) => message.includes('is not what it was')).map(({ plugin, message }) => `${plugin}: ${message.split(':')[1]!.trim()}`)
const replace = (): void => { const { parse } = JSON; JSON.parse = (text: string) => parse(text) as unknown }

describe('something that the whole process shares', () => {
  it('is named with the plugin after whose handler it was another, once; the calls go on', async () => {
    const { live, judge, lines } = watched()
    await live(ctx => { ctx.on('agent/pre-tool-use', () => {}) }, { id: 'mild' })
    await live(ctx => { ctx.on('agent/pre-tool-use', async () => { await null; replace() }) }, { id: 'rude', row: 1 })
    expect((await judge()).kind).toBe('allow')
    expect(changed(lines)).toEqual(['rude: after its handler of "agent/pre-tool-use" JSON.parse is not what it was'])
    expect(lines.find(({ plugin }) => plugin === 'rude')!.message).toContain('or put it back in an undo (ctx.effect)')
  })
  it('is named when a plugin has loaded that changed it, also when it failed to', async () => {
    const { live, mount, lines } = watched()
    await live(() => { Object.assign(Object.prototype, { injected: true }) }, { id: 'rude' })
    expect(({} as { injected?: boolean }).injected).toBe(true)
    for (const key in {}) expect.fail(`${key} shows in every for … in`)
    await mount(() => { JSON.stringify = () => ''; throw new Error('boom') }, { id: 'worse' }).catch(() => {})
    expect(changed(lines)).toEqual(['rude: once it had loaded, Object.prototype or Array.prototype is not what it was', 'worse: once it had loaded, JSON.stringify is not what it was'])
  })
  it('may go back to what it was, which is nobody\'s change', async () => {
    const { live, kernel, judge, lines } = watched()
    await live(ctx => { ctx.on('agent/pre-tool-use', () => {}) }, { id: 'mild' })
    const tracer = await live(ctx => { ctx.effect(() => { const { parse } = JSON; replace(); return () => { JSON.parse = parse } }) }, { id: 'tracer', row: 1 })
    await kernel.dispose(tracer)
    await judge()
    expect(changed(lines)).toEqual(['tracer: once it had loaded, JSON.parse is not what it was'])
  })
  it.each<[string, object, string]>([
    ['Array.prototype.push', Array.prototype, 'push'], ['Array.prototype.map', Array.prototype, 'map'], ['JSON.parse', JSON, 'parse'], ['JSON.stringify', JSON, 'stringify'], ['Promise', globalThis, 'Promise'], ['Promise.prototype.then', Promise.prototype, 'then'],
    ['fetch', globalThis, 'fetch'], ['setTimeout', globalThis, 'setTimeout'], ['setInterval', globalThis, 'setInterval'], ['queueMicrotask', globalThis, 'queueMicrotask'], ['Date', globalThis, 'Date'], ['Date.now', Date, 'now'], ['Math.random', Math, 'random'], ['console.log', console, 'log'], ['console.error', console, 'error'],
  ])('is looked at: %s', (name, holder, key) => {
    const off = watchGlobals(), before = Object.getOwnPropertyDescriptor(holder, key)!
    Object.defineProperty(holder, key, { ...before, value: function other() {} })
    const found = [changedGlobals(), changedGlobals()]
    Object.defineProperty(holder, key, before)
    const back = changedGlobals()
    off()
    expect([found[0]?.split(', ')[0], found[1], back]).toEqual([name, undefined, undefined])
  })
  it('is nobody\'s business in a process that is not the host\'s own', async () => {
    const { live, judge, lines } = testKernel(), { parse } = JSON
    onTestFinished(() => { JSON.parse = parse })
    await live(ctx => { ctx.on('agent/pre-tool-use', replace) }, { id: 'rude' })
    await judge()
    expect(changed(lines)).toEqual([])
  })
})

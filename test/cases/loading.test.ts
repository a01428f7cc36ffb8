import { describe, expect, it } from 'vitest'
import { caseHost, tool } from '../support/case-host.js'

const states = (host: Awaited<ReturnType<typeof caseHost>>) => Object.fromEntries(host.plugins().map(({ id, state }) => [id, state]))
const errorOf = (host: Awaited<ReturnType<typeof caseHost>>, id: string) => { const one = host.plugins().find(plugin => plugin.id === id)!; return one.lastError ?? one.reason ?? '' }

describe('a plugin that does not load', () => {
  it.each([
    ['throws in apply', `throw new Error('no disk')`, /no disk/],
    ['throws nothing', `throw undefined`, /undefined was thrown/],
    ['rejects late', `await new Promise(done => { setTimeout(done, 5) }); throw new Error('late')`, /late/],
    ['reads a service that nobody provides', `(ctx as any).other.go()`, /other/],
    ['writes to its ctx', `(ctx as any).on = () => {}`, /./],
    ['registers a handler with a limit that no timer has', `ctx.on('agent/stop', () => {}, { timeout: Infinity })`, /could not be loaded: hook "agent\/stop": timeout must be milliseconds from 1 to 2147483647, received Infinity/],
    ['registers a tool whose schema holds itself', `const p: any = { type: 'object' }; p.p = p; ctx.tools.register({ name: 't', description: 'x', parameters: p, execute: () => '' } as never)`, /tool "t": parameters are nested over 64 levels, or hold themselves/],
    ['registers a tool without a name', `ctx.tools.register({ description: 'x', parameters: {}, execute: () => '' } as never)`, /name/],
  ])('because it %s is told by its name, and the others run', async (_, body, says) => {
    const host = await caseHost({ plugins: { before: tool('one'), bad: body, after: tool('two') }, replies: [{ calls: [{ name: 'two', arguments: {} }] }, 'done'] })
    expect(states(host)).toEqual({ before: 'active', bad: 'failed', after: 'active' })
    expect(errorOf(host, 'bad')).toMatch(says)
    expect((await host.run('go')).results).toEqual(['ran'])
  })
  it('leaves nothing of what it had registered before it threw', async () => {
    const host = await caseHost({ plugins: { bad: `${tool('one')}; ctx.on('agent/pre-tool-use', () => block('from the grave')); throw new Error('x')`, good: tool('two') }, replies: [{ calls: [{ name: 'two', arguments: {} }] }, 'done'] })
    expect(host.tools().map(({ name }) => name)).toEqual(['two'])
    expect((await host.run('go')).results).toEqual(['ran'])
  })
})

describe('a tool that two plugins offer', () => {
  it('belongs to the first; the second fails, naming both; the shipped one is not replaced in silence', async () => {
    const host = await caseHost({ plugins: { mine: tool('search'), yours: tool('search') + tool('more'), bash: tool('bash') }, shipped: ['tool-bash'] })
    expect(states(host)).toEqual({ mine: 'active', yours: 'failed', bash: 'active', 'tool-bash': 'failed' })
    expect(errorOf(host, 'yours')).toMatch(/"search".*"mine"|"mine".*"search"/)
    expect(host.tools().map(({ name, plugin }) => `${name} ${plugin}`)).toEqual(['search mine', 'bash bash'])
  })
  it('that takes itself back while it runs ends its call; the next one is told that it is gone, not that it never was', async () => {
    const host = await caseHost({ plugins: { fickle: `const off = ctx.tools.register({ name: 'once', description: 'd', parameters: { type: 'object' }, execute: async () => { off(); await sleep(5); return 'done' } } as never)` }, replies: [{ calls: [{ name: 'once', arguments: {} }, { name: 'once', arguments: {} }] }, 'ok'] })
    expect((await host.run('go')).results).toEqual(['done', 'tool "once" was there and is gone: its plugin took it back'])
  })
  it('may be taken over by one that says so, and comes back when that leaves', async () => {
    const host = await caseHost({ plugins: { bash: tool('bash', `'mine'`, 'override: true,') }, shipped: ['tool-bash'], replies: [{ calls: [{ name: 'bash', arguments: { command: 'echo theirs' } }] }, 'done', { calls: [{ name: 'bash', arguments: { command: 'echo theirs' } }] }, 'done'] })
    expect((await host.run('go')).results).toEqual(['mine'])
    await host.configure(['tool-bash'])
    expect((await host.run('go')).results).toEqual(['theirs\n[exit code 0]'])
  })
})

describe('a plugin that is reloaded', () => {
  it('offers its tools in the same words and at the same place, once, however often', async () => {
    const counts = `ctx.tools.register({ name: 'count', description: 'Counts.', readOnly: true, parameters: { type: 'object', properties: { n: { type: 'integer', description: 'To what.' } }, required: ['n'] }, execute: ({ n }: any) => String(n) })`
    const host = await caseHost({ plugins: { before: tool('one'), counts, after: tool('two') }, replies: [{ calls: [{ name: 'count', arguments: { n: 3 } }] }, 'done'] })
    const offered = host.tools()
    expect(offered.map(({ name }) => name)).toEqual(['one', 'count', 'two'])
    for (let version = 0; version < 3; version++) {
      host.save('counts', `${counts} // ${version}`)
      expect((await host.reload('counts')).failed).toEqual([])
      expect(host.tools()).toEqual(offered)
    }
    expect((await host.run('go')).results).toEqual(['3'])
  })
})

describe('services that wait for each other', () => {
  it('are named as a cycle, one that waits for itself too, and everybody else is up', async () => {
    const needs = (inject: string, provides: string) => `export const inject = ['${inject}']\nexport const provides = ['${provides}']\nexport function apply(ctx: any) { ctx.provide('${provides}', {}) }`
    const host = await caseHost({ plugins: { a: needs('beta', 'alpha'), b: needs('alpha', 'beta'), self: needs('gamma', 'gamma'), fine: tool('one') } })
    expect(states(host)).toEqual({ a: 'waiting', b: 'waiting', self: 'waiting', fine: 'active' })
    expect(errorOf(host, 'a')).toMatch(/cycle|each other/)
    expect(errorOf(host, 'self')).toMatch(/itself|cycle|own/)
  })
})

import { createServer, connect } from 'node:net'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { judging, testHost } from '../support/host.js'
import { deferred, judge as judgeOf, until } from '../support/kernel.js'

/** Registers a number, notes each judgement, and carries what `more` adds at the top. */
const versioned = (v: number | string, more = '', body = '') => `
import { probe } from 'harnessx'
${more}
export async function apply(ctx) {
  ctx.on('agent/pre-tool-use', () => { probe.seen.push('${v}') })
  ${body}
}
`
const seen = async (host: ReturnType<typeof testHost>) => {
  host.probe['seen'].length = 0
  await host.judge()
  return host.probe['seen'].join()
}

describe('a file edit', () => {
  it('replaces the version, at its place in the order', async () => {
    const host = testHost({ 'a.ts': judging('a1'), 'b.ts': judging('b1'), 'c.ts': judging('c1') })
    await host.load('a.ts', 'b.ts', 'c.ts')
    expect(await host.save('b.ts', judging('b2'))).toMatchObject({ reloaded: ['b'], failed: [] })
    expect(await seen(host)).toBe('a1,b2,c1')
    expect(host.info('b')).toMatchObject({ version: 2, reloads: 1 })
    expect(host.info('a')).toMatchObject({ version: 1, reloads: 0 })
    expect(host.events.at(-1)).toBe('reloaded b')
  })
  it('runs a handler once after three reloads', async () => {
    const host = testHost({ 'a.ts': judging('1') })
    await host.load('a.ts')
    for (const v of ['2', '3', '4']) await host.save('a.ts', judging(v))
    expect(await seen(host)).toBe('4')
  })
  it('of a shared helper reloads exactly those who import it, together', async () => {
    const using = (name: string) => `import { k } from './shared.ts'\n${judging(name).replace(`'${name}'`, `'${name}' + k`)}`
    const host = testHost({ 'shared.ts': 'export const k = 1', 'p.ts': using('p'), 'q.ts': using('q'), 'other.ts': judging('o') })
    await host.load('p.ts', 'q.ts', 'other.ts')
    expect((await host.save('shared.ts', 'export const k = 2')).reloaded).toEqual(['p', 'q'])
    expect(await seen(host)).toBe('p2,q2,o')
    expect(host.info('other').version).toBe(1)
  })
  it('that reaches nobody does nothing', async () => {
    const host = testHost({ 'a.ts': judging('a') })
    await host.load('a.ts')
    expect(await host.save('unrelated.ts', '')).toMatchObject({ reloaded: [], failed: [] })
  })
  it('of a disabled plugin does nothing', async () => {
    const host = testHost({ 'a.ts': judging('1') })
    await host.load('a.ts'); await host.load({ file: 'a.ts', enabled: false })
    expect(await host.save('a.ts', judging('2'))).toMatchObject({ reloaded: [], failed: [] })
    expect(host.states()).toEqual({ a: 'disabled' })
  })
  it('reloads both entries of one file', async () => {
    const host = testHost({ 'a.ts': judging('1') })
    await host.load({ file: 'a.ts', id: 'one' }, { file: 'a.ts', id: 'two' })
    expect((await host.save('a.ts', judging('2'))).reloaded).toEqual(['one', 'two'])
    expect(await seen(host)).toBe('2,2')
  })
  it('names its files for the watcher, those of a failed load too', async () => {
    const host = testHost({ 'a.ts': `import './helper.ts'\n${judging('a')}`, 'helper.ts': '' })
    await host.load('a.ts')
    expect([...host.host.files()].sort()).toEqual([host.at('a.ts'), host.at('helper.ts')])
    await host.save('a.ts', `import './new.ts'\n${judging('a')}`)
    expect([...host.host.files()]).toContain(host.at('new.ts'))
  })
  it('from another path replaces it', async () => {
    const host = testHost({ 'a.ts': judging('a'), 'b.ts': judging('b') })
    await host.load({ file: 'a.ts', id: 'x' })
    await host.load({ file: 'b.ts', id: 'x' })
    expect(await seen(host)).toBe('b')
    expect(host.info('x').version).toBe(2)
  })
})

describe('an edit that is wrong', () => {
  it.each<[string, string, RegExp]>([
    ['does not parse', 'export const apply = (', /^plugin "a" could not be reloaded and keeps running as before: a\.ts:1:\d+ /],
    ['exports no apply', 'export const x = 1', /keeps running as before: .*does not export apply/],
    ['throws', `export const apply = () => { throw new Error('boom') }`, /keeps running as before: threw while it was loaded: boom \(.*a\.ts:1:\d+\)$/],
    ['throws late', `export const apply = async ctx => { ctx.on('agent/pre-tool-use', () => {}); await null; throw new Error('late') }`, /late/],
    ['throws at the top', `throw new Error('top')`, /top/],
    ['imports what is not there', `import './missing.ts'; export const apply = () => {}`, /missing/],
    ['has a hook that does not exist', `export const apply = ctx => { ctx.on('agent/pre-tool-us', () => {}) }`, /did you mean "agent\/pre-tool-use"\? \(.*a\.ts:1:\d+\)$/],
    ['needs a service that is not there', `export const inject = ['vault']; export const apply = () => {}`, /keeps running as before: waits for service "vault", which no enabled plugin provides/],
    ['has a Config the config does not fit', `import { z } from 'harnessx'; export const Config = z.object({ token: z.string() }); export const apply = () => {}`, /config\.token is missing and must be a string \(harness\.config\.yaml:11\)/],
  ])('keeps the old version when it %s, says why, and a fix loads', async (_, text, message) => {
    const host = testHost({ 'a.ts': judging('1'), 'b.ts': judging('b') })
    await host.load('a.ts', 'b.ts')
    const before = host.kernel.size
    const { failed, reloaded } = await host.save('a.ts', text)
    expect(reloaded).toEqual([])
    expect(failed).toHaveLength(1)
    expect(failed[0]!.message).toMatch(message)
    expect(host.info('a')).toMatchObject({ state: 'active', version: 1, lastError: failed[0]!.message })
    expect(await seen(host)).toBe('1,b')
    expect({ ...host.kernel.size, unreleased: 0 }).toEqual({ ...before, unreleased: 0 })
    await host.save('a.ts', judging('2'))
    expect(await seen(host)).toBe('2,b')
    expect(host.info('a').lastError).toBeUndefined()
  })
  it('is told once however often it is tried', async () => {
    const host = testHost({ 'a.ts': judging('1') })
    await host.load('a.ts')
    for (let i = 0; i < 3; i++) await host.save('a.ts', 'export const apply = (')
    expect(host.text().match(/keeps running as before/g)).toHaveLength(1)
  })
  it('is mended by a new helper that it was looking for', async () => {
    const host = testHost({ 'a.ts': judging('1') })
    await host.load('a.ts')
    await host.save('a.ts', `import { name } from './new.ts'\n${versioned('x').replace(`'x'`, 'name')}`)
    await host.save('new.ts', `export const name = 'mended'`)
    expect(await seen(host)).toBe('mended')
  })
  it('does not lose a helper that was saved with it: the fix takes both', async () => {
    const using = (name: string, broken = '') => `import { k } from './shared.ts'\n${versioned(name).replace(`'${name}'`, `'${name}' + k`)}${broken}`
    const host = testHost({ 'shared.ts': 'export const k = 1', 'p.ts': using('p'), 'q.ts': using('q') })
    await host.load('p.ts', 'q.ts')
    const changed = [host.write('shared.ts', 'export const k = 2'), host.write('p.ts', using('p', ' (((')) ]
    expect((await host.host.reload(changed)).failed.map(({ id }) => id)).toEqual(['p', 'q'])
    expect(await seen(host)).toBe('p1,q1')
    expect((await host.save('p.ts', using('p'))).reloaded).toEqual(['p', 'q'])
    expect(await seen(host)).toBe('p2,q2')
  })
  it('holds back none but those that share its files', async () => {
    const host = testHost({ 'a.ts': judging('a1'), 'b.ts': judging('b1') })
    await host.load('a.ts', 'b.ts')
    const report = await host.host.reload([host.write('a.ts', 'export const apply = ('), host.write('b.ts', judging('b2'))])
    expect(report.reloaded).toEqual(['b'])
    expect(report.failed.map(({ id }) => id)).toEqual(['a'])
    expect(await seen(host)).toBe('a1,b2')
  })
  it('of one of two that share a helper keeps both', async () => {
    const using = (name: string) => `import { k } from './shared.ts'; import { probe } from 'harnessx'; export const apply = ctx => { if (k === 2 && '${name}' === 'q') throw new Error('q says no'); ctx.on('agent/pre-tool-use', () => { probe.seen.push('${name}' + k) }) }`
    const host = testHost({ 'shared.ts': 'export const k = 1', 'p.ts': using('p'), 'q.ts': using('q') })
    await host.load('p.ts', 'q.ts')
    const { failed } = await host.save('shared.ts', 'export const k = 2')
    expect(failed.map(({ message }) => message)).toEqual([expect.stringContaining('plugin "p" could not be reloaded and keeps running as before: plugin "q" threw'), expect.stringContaining('plugin "q" could not be reloaded and keeps running as before: threw')])
    expect(await seen(host)).toBe('p1,q1')
    await host.save('shared.ts', 'export const k = 3')
    expect(await seen(host)).toBe('p3,q3')
  })
  it('of state that is not plain is refused by path, and the old version goes on', async () => {
    const host = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const apply = ctx => { ctx.state.on = { tick: () => {} }; probe.state = ctx.state }` })
    await host.load('a.ts')
    const { failed } = await host.save('a.ts', judging('2'))
    expect(failed[0]!.message).toContain('keeps running as before: ctx.state.on.tick is a function, which would keep the old version alive')
    delete host.probe['state'].on.tick
    await host.save('a.ts', judging('3'))
    expect(await seen(host)).toBe('3')
  })
})

describe('a staged reload', () => {
  it('lets the old version serve while the new one applies, and undoes the new one when it fails', async () => {
    const host = testHost({ 'a.ts': versioned('v1') })
    await host.load('a.ts')
    const saving = host.save('a.ts', versioned('v2', '', `ctx.effect(() => () => { probe.seen.push('undone') }); await new Promise(done => { probe.go = done }); throw new Error('late')`))
    await until(() => host.probe['go'])
    expect(await seen(host)).toBe('v1')
    host.probe['go']()
    expect((await saving).failed).toHaveLength(1)
    expect(host.probe['seen'].join()).toBe('v1,undone')
  })
  it('is done at the switch: calls on the old version end there, and it is disposed after the last', async () => {
    const host = testHost({ 'a.ts': `import { probe, block } from 'harnessx'; export const apply = ctx => { ctx.on('agent/pre-tool-use', async () => { await probe.gate; return block('old') }); ctx.effect(() => () => { probe.seen.push('old down') }) }; export const reload = 'staged'` })
    const gate = deferred()
    host.probe['gate'] = gate.promise
    await host.load('a.ts')
    const running = host.judge()
    expect((await host.save('a.ts', versioned('new'))).reloaded).toEqual(['a'])
    expect(await seen(host)).toBe('new')
    gate.resolve()
    expect((await running).reason).toBe('old')
    await until(() => host.probe['seen'].includes('old down'))
  })
  it('names the calls that keep the old version after the time to drain', async () => {
    const host = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const apply = ctx => { ctx.on('agent/pre-tool-use', () => probe.gate) }` }, { drainMs: 10 })
    const gate = deferred()
    host.probe['gate'] = gate.promise
    await host.load('a.ts')
    const running = host.judge()
    await host.save('a.ts', versioned('new'))
    await until(() => host.text().includes('version 1 was replaced and still has'))
    gate.resolve()
    await running
  })
  it('clones the state when the new version is mounted, and drops what the old one writes later', async () => {
    const host = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const apply = async ctx => { ctx.state.n ??= 0; probe.now = ctx.state; ctx.on('agent/pre-tool-use', () => { ctx.state.n++ }); if (probe.go) await probe.go }` })
    await host.load('a.ts')
    await host.judge()
    const gate = deferred()
    host.probe['go'] = gate.promise
    const old = host.probe['now']
    const saving = host.save('a.ts', `${'\n'}import { probe } from 'harnessx'; export const apply = async ctx => { probe.now = ctx.state; await probe.go }`)
    await until(() => host.probe['now'] !== old)
    await host.judge()
    gate.resolve()
    await saving
    expect([old.n, host.probe['now'].n]).toEqual([2, 1])
  })
  it('reloads a plugin from inside its own handler without waiting for itself', async () => {
    const host = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const apply = ctx => { ctx.on('agent/pre-tool-use', async () => { await probe.reload?.() }) }` })
    host.probe['reload'] = () => host.save('a.ts', versioned('new'))
    await host.load('a.ts')
    expect((await host.judge()).kind).toBe('allow')
    expect(await seen(host)).toBe('new')
  })
})

describe('an exclusive reload', () => {
  it.each<[string, string, string]>([
    ['says so', `export const reload = 'exclusive'`, ''],
    ['holds a raw effect', '', `ctx.effect(() => () => {})`],
    ['returned a disposer', '', `return () => {}`],
    ['provides a service', '', `ctx.provide('store', {})`],
  ])('is what a plugin gets that %s: the old one ends before the new one starts', async (_, more, body) => {
    const text = (v: number) => `import { probe } from 'harnessx'; ${more}; export const apply = ctx => { probe.seen.push('up ${v}'); ctx.on('agent/stop', () => {}); ctx.signal.addEventListener('abort', () => probe.seen.push('down ${v}')); ${body} }`
    const host = testHost({ 'a.ts': text(1) })
    await host.load('a.ts')
    await host.save('a.ts', text(2))
    expect(host.probe['seen']).toEqual(['up 1', 'down 1', 'up 2'])
  })
  it('is not needed by a plugin that says staged', async () => {
    const text = (v: number) => `import { probe } from 'harnessx'; export const reload = 'staged'; export const apply = ctx => { probe.seen.push('up ${v}'); ctx.effect(() => () => { probe.seen.push('down ${v}') }) }`
    const host = testHost({ 'a.ts': text(1) })
    await host.load('a.ts')
    await host.save('a.ts', text(2))
    await until(() => host.probe['seen'].length === 3)
    expect(host.probe['seen']).toEqual(['up 1', 'up 2', 'down 1'])
  })
  it('puts the old version back when the new one fails, with its state and version', async () => {
    const text = (v: number, more = '') => `import { probe } from 'harnessx'; export const reload = 'exclusive'; export const apply = ctx => { ctx.state.n = (ctx.state.n ?? 0) + 1; probe.n = ctx.state.n; ctx.on('agent/pre-tool-use', () => { probe.seen.push('${v}') }); ${more} }`
    const host = testHost({ 'a.ts': text(1) })
    await host.load('a.ts')
    const { failed } = await host.save('a.ts', text(2, `throw new Error('boom')`))
    expect(failed[0]!.message).toContain('keeps running as before')
    expect(await seen(host)).toBe('1')
    expect(host.info('a')).toMatchObject({ state: 'active', version: 1 })
    expect(host.probe['n']).toBe(2)
    await host.save('a.ts', text(3))
    expect(await seen(host)).toBe('3')
  })
  it('says so when the old version can not be put back either, refuses if it was required, and a fix loads', async () => {
    const text = (v: number, more = '') => `import { probe } from 'harnessx'; export const reload = 'exclusive'; export const apply = ctx => { if (probe.broken) throw new Error('port taken'); ctx.on('agent/pre-tool-use', () => { probe.seen.push('${v}') }); ${more} }`
    const host = testHost({ 'a.ts': text(1), 'b.ts': judging('b') })
    await host.load({ file: 'a.ts', required: true }, 'b.ts')
    host.probe['broken'] = true
    await host.save('a.ts', text(2))
    expect(host.states()).toEqual({ a: 'failed', b: 'active' })
    expect(host.text()).toContain('plugin "a" could not be put back and is not active: threw while it was loaded: port taken')
    expect(await host.judge()).toMatchObject({ kind: 'block', failure: 'guard_inactive' })
    host.probe['broken'] = false
    await host.save('a.ts', text(3))
    expect(host.states()).toEqual({ a: 'active', b: 'active' })
    expect(await seen(host)).toBe('3,b')
  })
  it('makes new calls wait, and passes those that are part of a call it waits for', async () => {
    const host = testHost({ 'a.ts': `import { probe, block } from 'harnessx'; export const reload = 'exclusive'; export const apply = ctx => { ctx.on('agent/pre-tool-use', async ({ call }) => { if (call.name === 'outer') { await probe.nested(); return block('outer 1') } return block('inner 1') }) }` })
    await host.load('a.ts')
    const gate = deferred()
    let inner
    host.probe['nested'] = async () => { await gate.promise; inner = await judgeOf(host.kernel, { tool: 'inner' }) }
    const outer = host.judge({ tool: 'outer' })
    const saving = host.save('a.ts', versioned('2', '', `ctx.on('agent/pre-tool-use', () => ({ kind: 'block', reason: 'version 2' }))`))
    await sleep(10)
    const late = host.judge({ tool: 'late' })
    gate.resolve()
    expect(await outer).toMatchObject({ reason: 'outer 1' })
    expect(inner).toMatchObject({ reason: 'inner 1' })
    await saving
    expect(await late).toMatchObject({ reason: 'version 2' })
  })
  it('aborts calls that do not end in time and goes on', async () => {
    const host = testHost({ 'a.ts': `import { probe, block } from 'harnessx'; export const reload = 'exclusive'; export const apply = ctx => { ctx.on('agent/pre-tool-use', () => new Promise(() => {})) }` }, { drainMs: 20 })
    await host.load('a.ts')
    const hung = host.judge()
    await host.save('a.ts', versioned('2'))
    expect(await hung).toMatchObject({ kind: 'block', failure: 'hook_failed' })
    expect(await seen(host)).toBe('2')
  })
  it('reloads a plugin from inside its own handler without a deadlock', async () => {
    const host = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const reload = 'exclusive'; export const apply = ctx => { ctx.on('agent/pre-tool-use', async () => { await probe.reload?.() }) }` }, { drainMs: 20 })
    host.probe['reload'] = () => host.save('a.ts', versioned('new'))
    await host.load('a.ts')
    expect((await host.judge()).kind).toBe('block')
    await until(() => host.info('a').version === 2)
    expect(await seen(host)).toBe('new')
  })
})

describe('a port', () => {
  const server = (v: string, port: number, more = '', body = '') => `
import net from 'node:net'
${more}
export const apply = async ctx => {
  const server = net.createServer(socket => socket.end('${v}'))
  await new Promise((ready, failed) => { server.once('error', failed); server.listen(${port}, '127.0.0.1', ready) })
  ctx.effect(() => () => new Promise(done => server.close(done)), 'the server')
  ${body}
}`
  const freePort = async () => {
    const probe = createServer().listen(0, '127.0.0.1')
    await once(probe, 'listening')
    const { port } = probe.address() as { port: number }
    await new Promise(resolve => { probe.close(resolve) })
    return port
  }
  const answer = (port: number) => new Promise<string>(resolve => {
    let text = ''
    connect(port, '127.0.0.1').on('data', chunk => { text += chunk }).on('close', () => { resolve(text) }).on('error', error => { resolve((error as NodeJS.ErrnoException).code!) })
  })

  it('is handed over twenty times, and open at the end', async () => {
    const port = await freePort()
    const host = testHost({ 'port.ts': server('0', port) })
    await host.load('port.ts')
    for (let v = 1; v <= 20; v++) {
      expect((await host.save('port.ts', server(`${v}`, port))).failed).toEqual([])
      expect(await answer(port)).toBe(`${v}`)
    }
  })
  it('is handed over by a plugin that wrongly says staged', async () => {
    const port = await freePort(), staged = `export const reload = 'staged'`
    const host = testHost({ 'port.ts': server('1', port, staged) })
    await host.load('port.ts')
    expect((await host.save('port.ts', server('2', port, staged))).failed).toEqual([])
    expect(await answer(port)).toBe('2')
    expect(host.text()).toContain('plugin "port" can not run beside its old version')
  })
  it('is taken back by the old version when the new one fails', async () => {
    const port = await freePort()
    const host = testHost({ 'port.ts': server('1', port) })
    await host.load('port.ts')
    await host.save('port.ts', server('2', port, '', `throw new Error('bad')`))
    expect(await answer(port)).toBe('1')
  })
})

describe('several plugins in one transaction', () => {
  const provider = (v: number, more = '') => `import { probe } from 'harnessx'; export const provides = ['store']; export const apply = ctx => { ${more}; ctx.provide('store', { v: ${v} }); ctx.effect(() => () => { probe.seen.push('p${v} down') }) }`
  const dependent = (v = 1, more = '') => `import { probe } from 'harnessx'; export const inject = ['store']; export const apply = ctx => { ${more}; ctx.state.n = (ctx.state.n ?? 0) + 1; probe.n = ctx.state.n; probe.seen.push('d${v} up ' + ctx.store.v); ctx.effect(() => () => { probe.seen.push('d${v} down ' + ctx.store.v) }); ctx.on('agent/pre-tool-use', () => { probe.seen.push('judged ' + ctx.store.v) }) }`

  it('stops dependents before the provider and starts them after it, with their state', async () => {
    const host = testHost({ 'd.ts': dependent(), 'p.ts': provider(1) })
    await host.load('d.ts', 'p.ts')
    expect((await host.save('p.ts', provider(2))).reloaded).toEqual(['p'])
    expect(host.probe['seen']).toEqual(['d1 up 1', 'd1 down 1', 'p1 down', 'd1 up 2'])
    expect(host.probe['n']).toBe(2)
    expect(host.info('d')).toMatchObject({ state: 'active', version: 2, reloads: 0 })
    expect(await seen(host)).toBe('judged 2')
  })
  it('puts both back when the new provider fails', async () => {
    const host = testHost({ 'd.ts': dependent(), 'p.ts': provider(1) })
    await host.load('d.ts', 'p.ts')
    await host.save('p.ts', provider(2, `throw new Error('boom')`))
    expect(host.states()).toEqual({ d: 'active', p: 'active' })
    expect(await seen(host)).toBe('judged 1')
  })
  it('puts both back when a dependent can not live with the new provider', async () => {
    const host = testHost({ 'd.ts': dependent(1, `if (ctx.store.v === 2) throw new Error('too new')`), 'p.ts': provider(1) })
    await host.load('d.ts', 'p.ts')
    const { failed } = await host.save('p.ts', provider(2))
    expect(failed[0]!.message).toContain('plugin "p" could not be reloaded and keeps running as before: plugin "d" threw while it was loaded: too new')
    expect(host.states()).toEqual({ d: 'active', p: 'active' })
    expect(await seen(host)).toBe('judged 1')
  })
  it('lets dependents wait when the new version provides no more', async () => {
    const host = testHost({ 'd.ts': dependent(), 'p.ts': provider(1) })
    await host.load({ file: 'd.ts', required: true }, 'p.ts')
    await host.save('p.ts', 'export const apply = () => {}')
    expect(host.states()).toEqual({ d: 'waiting', p: 'active' })
    expect(await host.judge()).toMatchObject({ kind: 'block', failure: 'guard_inactive' })
    await host.save('p.ts', provider(3))
    expect(host.states()).toEqual({ d: 'active', p: 'active' })
    expect(host.probe['n']).toBe(2)
  })
  it('reloads a provider and its dependent saved together', async () => {
    const host = testHost({ 'd.ts': dependent(1), 'p.ts': provider(1) })
    await host.load('d.ts', 'p.ts')
    const { reloaded } = await host.host.reload([host.write('p.ts', provider(2)), host.write('d.ts', dependent(2))])
    expect([...reloaded].sort()).toEqual(['d', 'p'])
    expect(host.probe['seen']).toEqual(['d1 up 1', 'd1 down 1', 'p1 down', 'd2 up 2'])
  })
  it('takes a service that one begins to provide and another to need in one save', async () => {
    const host = testHost({ 'p.ts': judging('p1'), 'd.ts': judging('d1') })
    await host.load('d.ts', 'p.ts')
    const { failed } = await host.host.reload([host.write('p.ts', provider(2)), host.write('d.ts', dependent(2))])
    expect(failed).toEqual([])
    expect(host.states()).toEqual({ d: 'active', p: 'active' })
    expect(await seen(host)).toBe('judged 2')
  })
  it('fails whole when an exclusive one fails after a staged one was mounted: neither changes', async () => {
    const staged = (v: number) => `import './shared.ts'\n${judging(`s${v}`)}`
    const exclusive = (v: number, more = '') => `import './shared.ts'; import { probe } from 'harnessx'; export const reload = 'exclusive'; export const apply = ctx => { ctx.on('agent/pre-tool-use', () => { probe.seen.push('x${v}') }); ${more} }`
    const host = testHost({ 'shared.ts': '', 's.ts': staged(1), 'x.ts': exclusive(1) })
    await host.load('s.ts', 'x.ts')
    await host.host.reload([host.write('shared.ts', '// 2'), host.write('s.ts', staged(2)), host.write('x.ts', exclusive(2, `throw new Error('boom')`))])
    expect(await seen(host)).toBe('s1,x1')
    await host.host.reload([host.write('s.ts', staged(3)), host.write('x.ts', exclusive(3))])
    expect(await seen(host)).toBe('s3,x3')
  })
  it('swaps a name between two plugins saved together', async () => {
    const numbered = (name: string) => `export const apply = ctx => { ctx.numbers.register('${name}', 1) }`
    const host = testHost({ 'a.ts': numbered('x'), 'b.ts': numbered('y') })
    await host.load('a.ts', 'b.ts')
    expect((await host.host.reload([host.write('a.ts', numbered('y')), host.write('b.ts', numbered('x'))])).failed).toEqual([])
    expect([host.numbers.get('x')?.owner.id, host.numbers.get('y')?.owner.id]).toEqual(['b', 'a'])
  })
  it('keeps an optional scope of another plugin judging while its provider reloads', async () => {
    const host = testHost({
      'p.ts': `export const apply = async ctx => { ctx.provide('store', {}); await new Promise(done => setTimeout(done, 15)) }`,
      'q.ts': `import { probe } from 'harnessx'; export const apply = ctx => { ctx.inject(['store'], child => { child.on('agent/pre-tool-use', async () => { await new Promise(done => setTimeout(done, 5)); void child.store; probe.judged++ }) }) }`,
    })
    host.probe['judged'] = 0
    await host.load('p.ts', 'q.ts')
    let stopped = false, calls = 0, refused = 0
    const asking = (async () => { while (!stopped) { calls++; if ((await host.judge()).kind !== 'allow') refused++; await sleep(1) } })()
    for (let v = 0; v < 3 || calls < 10; v++) await host.save('p.ts', `export const apply = async ctx => { ctx.provide('store', { v: ${v} }); await new Promise(done => setTimeout(done, 15)) }`)
    stopped = true
    await asking
    expect({ unjudged: calls - host.probe['judged'], refused }).toEqual({ unjudged: 0, refused: 0 })
  })
})

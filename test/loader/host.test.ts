import { describe, expect, it } from 'vitest'
import { judging, testHost } from '../support/host.js'
import { failure, until } from '../support/kernel.js'

const provider = (v: number) => `
import { probe } from 'harnessx'
export const provides = ['store']
export function apply(ctx) { ctx.provide('store', { v: ${v}, use: () => ${v} }); ctx.effect(() => () => { probe.seen.push('store ${v} down') }) }
`
const dependent = `
import { probe } from 'harnessx'
export const inject = ['store']
export function apply(ctx) {
  probe.seen.push('up ' + ctx.store.v)
  ctx.effect(() => async () => { probe.seen.push('flush ' + ctx.store.use()); await null; probe.seen.push('flushed') })
  ctx.effect(() => async () => { probe.seen.push('close'); await new Promise(done => setTimeout(done, 3)); probe.seen.push('closed') })
}
`

describe('reconciling', () => {
  it('loads in order and tells of each', async () => {
    const { load, events, states, judge, probe, host } = testHost({ 'a.ts': judging('a'), 'b.ts': judging('b') })
    const report = await load('b.ts', 'a.ts')
    expect(report).toMatchObject({ reloaded: [], failed: [] })
    expect(events).toEqual(['loaded b', 'loaded a'])
    expect(states()).toEqual({ b: 'active', a: 'active' })
    await judge()
    expect(probe['seen']).toEqual(['b', 'a'])
    expect(host.list()[0]).toMatchObject({ id: 'b', name: 'b', state: 'active', handlers: 1, tools: 0, version: 1, reloads: 0 })
  })
  it('does nothing when nothing has changed', async () => {
    const { load, events } = testHost({ 'a.ts': judging('a') })
    await load('a.ts'); await load('a.ts')
    expect(events).toEqual(['loaded a'])
  })
  it('moves handlers when rows move, and reloads nothing', async () => {
    const { load, events, judge, probe } = testHost({ 'a.ts': judging('a'), 'b.ts': judging('b') })
    await load('a.ts', 'b.ts')
    await load('b.ts', 'a.ts')
    await judge()
    expect(probe['seen']).toEqual(['b', 'a'])
    expect(events).toEqual(['loaded a', 'loaded b'])
  })
  it('unloads what is disabled or removed, and loads it again at its place', async () => {
    const { load, judge, probe, states, events } = testHost({ 'a.ts': judging('a'), 'b.ts': judging('b'), 'c.ts': judging('c') })
    await load('a.ts', 'b.ts', 'c.ts')
    await load({ file: 'a.ts', enabled: false }, 'c.ts')
    expect(states()).toEqual({ a: 'disabled', c: 'active' })
    await load('a.ts', 'b.ts', 'c.ts')
    await judge()
    expect(probe['seen']).toEqual(['a', 'b', 'c'])
    expect(events.slice(3, 5)).toEqual(['unloaded b', 'unloaded a'])
  })
  it('mounts one file under two ids with two configs', async () => {
    const { load, probe } = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const apply = (ctx, config) => { probe.seen.push([ctx.id, config.v]) }` })
    await load({ file: 'a.ts', id: 'one', config: { v: 1 } }, { file: 'a.ts', id: 'two', config: { v: 2 } })
    expect(probe['seen']).toEqual([['one', 1], ['two', 2]])
  })
  it('keeps one bad plugin from the others, and the daemon from none', async () => {
    const { load, states, info, text } = testHost({ 'bad.ts': 'export const apply = (', 'throws.ts': `export const apply = () => { throw new Error('boom') }`, 'none.ts': 'export const x = 1', 'good.ts': judging('good') })
    const { failed } = await load('bad.ts', 'throws.ts', 'gone.ts', 'none.ts', 'good.ts')
    expect(states()).toEqual({ bad: 'failed', throws: 'failed', gone: 'failed', none: 'failed', good: 'active' })
    expect(failed.map(({ id }) => id).sort()).toEqual(['bad', 'gone', 'none', 'throws'])
    expect(info('bad').reason).toMatch(/^plugin "bad" could not be loaded: bad\.ts:1:\d+ /)
    expect(info('throws').reason).toMatch(/^plugin "throws" could not be loaded: threw while it was loaded: boom \(.*throws\.ts:1:\d+\)$/)
    expect(info('none').reason).toContain('does not export apply; write: export function apply(ctx)')
    expect(text().match(/plugin "bad" could not/g)).toHaveLength(1)
  })
  it('mends a failed plugin with the file, the config or the word', async () => {
    const { load, save, states, host, probe } = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const apply = () => { if (probe.broken) throw new Error('boom') }` })
    probe['broken'] = true
    await load('a.ts')
    expect(states()).toEqual({ a: 'failed' })
    probe['broken'] = false
    await host.reloadEntry('a')
    expect(states()).toEqual({ a: 'active' })
    probe['broken'] = true
    await load({ file: 'a.ts', enabled: false }); await load('a.ts')
    expect(states()).toEqual({ a: 'failed' })
    await save('a.ts', judging('a'))
    expect(states()).toEqual({ a: 'active' })
  })
  it('gives up an apply that hangs, with the rest up', async () => {
    const { load, states, info } = testHost({ 'slow.ts': 'export const apply = () => new Promise(() => {})', 'good.ts': judging('good') }, { mountMs: 30 })
    await load('slow.ts', 'good.ts')
    expect(states()).toEqual({ slow: 'failed', good: 'active' })
    expect(info('slow').reason).toContain('slow.ts) did not finish loading within 30 ms')
  })
  it('names an id that is not there', async () => {
    const { load, host } = testHost({ 'guard.ts': judging('g') })
    await load('guard.ts')
    expect(await failure(host.reloadEntry('gaurd'))).toMatchObject({ code: 'unknown_id', message: 'there is no plugin "gaurd"; did you mean "guard"?' })
  })
})

describe('the config of an entry', () => {
  const plugin = `
import { z, probe } from 'harnessx'
export const Config = z.object({ limit: z.int('must be a positive integer').positive('must be a positive integer').default(3), mode: z.enum(['x', 'y']).default('x') }).strict()
export const apply = (ctx, config) => { probe.config = config; probe.seen.push('apply ' + config.limit) }
`
  it('is validated, with defaults filled in', async () => {
    const { load, probe } = testHost({ 'guard.ts': plugin })
    await load('guard.ts')
    expect(probe['config']).toEqual({ limit: 3, mode: 'x' })
  })
  it('that is wrong fails the load with the place in the file', async () => {
    const { load, info } = testHost({ 'guard.ts': plugin })
    await load({ file: 'guard.ts', config: { limit: 'ten' } })
    expect(info('guard').reason).toBe('plugin "guard" could not be loaded: config.limit must be a positive integer, received "ten" (harness.config.yaml:11)')
  })
  it('that is wrong later keeps the old version, and the right one again needs no restart', async () => {
    const { load, info, probe } = testHost({ 'guard.ts': plugin })
    await load({ file: 'guard.ts', config: { limit: 5 } })
    await load({ file: 'guard.ts', config: { limit: 5, mode: 'z' } })
    expect(info('guard')).toMatchObject({ state: 'active', version: 1, lastError: 'plugin "guard" could not be reloaded and keeps running as before: config.mode must be one of "x", "y", received "z" (harness.config.yaml:11)' })
    await load({ file: 'guard.ts', config: { limit: 5 } })
    expect(info('guard')).toMatchObject({ state: 'active', version: 1 })
    expect(info('guard').lastError).toBeUndefined()
    await load({ file: 'guard.ts', config: { limit: 6 } })
    expect(probe['seen']).toEqual(['apply 5', 'apply 6'])
  })
  it('that an exclusive plugin fails with leaves it running with the old one, which is then no change', async () => {
    const { load, info, probe } = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const reload = 'exclusive'; export const apply = (ctx, config) => { probe.seen.push('apply ' + config.v); if (config.v === 2) throw new Error('no') }` })
    const to = (v: number) => load({ file: 'a.ts', config: { v } })
    await to(1); await to(2)
    expect(info('a')).toMatchObject({ state: 'active', version: 1, lastError: expect.stringContaining('keeps running as before') })
    await to(1)
    expect(probe['seen']).toEqual(['apply 1', 'apply 2', 'apply 1'])
    expect(info('a').lastError).toBeUndefined()
  })
  it('is taken in place by a plugin that can, and by a restart when it says no', async () => {
    const { load, probe, info } = testHost({ 'rc.ts': `
import { probe } from 'harnessx'
export const apply = (ctx, config) => { probe.seen.push('apply ' + config.v) }
export const reconfigure = (ctx, config) => { probe.seen.push('take ' + config.v); if (config.v === 9) throw new Error('no'); return config.v < 3 }
` })
    const to = (v: number) => load({ file: 'rc.ts', config: { v } })
    await to(1); await to(2); await to(3); await to(9)
    expect(probe['seen']).toEqual(['apply 1', 'take 2', 'take 3', 'apply 3', 'take 9', 'apply 9'])
    expect(info('rc').version).toBe(3)
  })
})

describe('the queue', () => {
  it('takes edits of the config and of files one after the other, whenever they come', async () => {
    const { host, entries, write, at, probe, info } = testHost({ 'a.ts': judging('1') })
    const slow = (v: string) => `import { probe } from 'harnessx'; export const apply = async ctx => { probe.seen.push('begin ${v}'); await new Promise(done => setTimeout(done, 3)); probe.seen.push('end ${v}') }`
    write('a.ts', slow('1'))
    const first = host.reconcile(entries('a.ts'))
    await until(() => probe['seen'].length === 1)
    write('a.ts', slow('2'))
    const second = host.reload([at('a.ts')]), third = host.reconcile(entries({ file: 'a.ts', config: { v: 3 } }))
    await Promise.all([first, second, third])
    expect(probe['seen']).toEqual(['begin 1', 'end 1', 'begin 2', 'end 2', 'begin 2', 'end 2'])
    expect(info('a').version).toBe(3)
  })
  it('goes on after a job that was wrong', async () => {
    const { load, host, states } = testHost({ 'a.ts': judging('a') })
    const wrong = failure(host.reloadEntry('nobody'))
    await load('a.ts')
    expect(await wrong).toMatchObject({ code: 'unknown_id' })
    expect(states()).toEqual({ a: 'active' })
  })
})

describe('services between plugins', () => {
  it('make a plugin wait for its provider, wherever that stands', async () => {
    const { load, probe, states } = testHost({ 'd.ts': dependent, 'p.ts': provider(1) })
    await load('d.ts', 'p.ts')
    expect(states()).toEqual({ d: 'active', p: 'active' })
    expect(probe['seen']).toEqual(['up 1'])
  })
  it('stop the dependents before the provider, each effect in turn, and say why they wait', async () => {
    const { load, probe, states, info } = testHost({ 'd.ts': dependent, 'p.ts': provider(1) })
    await load('d.ts', 'p.ts')
    await load('d.ts', { file: 'p.ts', enabled: false })
    expect(probe['seen']).toEqual(['up 1', 'close', 'closed', 'flush 1', 'flushed', 'store 1 down'])
    expect(states()).toEqual({ d: 'waiting', p: 'disabled' })
    expect(info('d')).toMatchObject({ waiting: ['store'], reason: 'plugin "d" waits for service "store", which no enabled plugin provides; enable one, or drop it from inject' })
    await load('d.ts', 'p.ts')
    expect(states()).toEqual({ d: 'active', p: 'active' })
  })
  it('keep the state of a plugin that waits, not of one that is disabled', async () => {
    const counting = `import { probe } from 'harnessx'; export const inject = ['store']; export const apply = ctx => { ctx.state.n = (ctx.state.n ?? 0) + 1; probe.n = ctx.state.n }`
    const { load, probe } = testHost({ 'd.ts': counting, 'p.ts': provider(1) })
    await load('d.ts', 'p.ts')
    await load('d.ts', { file: 'p.ts', enabled: false }); await load('d.ts', 'p.ts')
    expect(probe['n']).toBe(2)
    await load({ file: 'd.ts', enabled: false }, 'p.ts'); await load('d.ts', 'p.ts')
    expect(probe['n']).toBe(1)
  })
  it('are there exactly once for a plugin with several, in whatever order they come and go', async () => {
    const providing = (name: string) => `export const provides = ['${name}']; export const apply = ctx => { ctx.provide('${name}', {}) }`
    const { load, probe, states } = testHost({ 'd.ts': `import { probe } from 'harnessx'; export const inject = ['a', 'b', 'c']; export const apply = ctx => { probe.live = (probe.live ?? 0) + 1; ctx.effect(() => () => { probe.live-- }) }`, 'a.ts': providing('a'), 'b.ts': providing('b'), 'c.ts': providing('c') })
    const sets: [boolean, boolean, boolean][] = [[true, false, true], [true, true, true], [false, true, true], [true, true, false], [true, true, true]]
    for (const [a, b, c] of sets) {
      await load({ file: 'a.ts', enabled: a }, 'd.ts', { file: 'b.ts', enabled: b }, { file: 'c.ts', enabled: c })
      expect([probe['live'] ?? 0, states()['d']]).toEqual(a && b && c ? [1, 'active'] : [0, 'waiting'])
    }
  })
  it('in a cycle leave both waiting by name and everybody else up', async () => {
    const circle = (inject: string, provides: string) => `export const inject = ['${inject}']; export const provides = ['${provides}']; export const apply = ctx => { ctx.provide('${provides}', 1) }`
    const { load, info, states } = testHost({ 'a.ts': circle('y', 'x'), 'b.ts': circle('x', 'y'), 'self.ts': circle('s', 's'), 'good.ts': judging('good') })
    await load('a.ts', 'b.ts', 'self.ts', 'good.ts')
    expect(states()).toEqual({ a: 'waiting', b: 'waiting', self: 'waiting', good: 'active' })
    expect(info('a').reason).toContain('waits in a cycle: a > b > a')
    expect(info('self').reason).toContain('waits in a cycle: self > self')
  })
  it('fail the one that reads without asking, with the missing inject named', async () => {
    const { load, info, states } = testHost({ 'p.ts': provider(1), 'r.ts': `export const apply = ctx => { ctx.store.use() }`, 'good.ts': judging('good') })
    await load('p.ts', 'r.ts', 'good.ts')
    expect(states()).toEqual({ p: 'active', r: 'failed', good: 'active' })
    expect(info('r').reason).toContain(`reads ctx.store, a service of plugin "p", without asking for it; write: export const inject = ['store']`)
  })
  it('that come and go while their plugin runs start and stop others', async () => {
    const { load, probe, states } = testHost({ 'd.ts': dependent, 'p.ts': `import { probe } from 'harnessx'; export const apply = ctx => { probe.give = () => ctx.provide('store', { v: 5, use: () => 5 }) }` })
    await load('d.ts', 'p.ts')
    expect(states()['d']).toBe('waiting')
    const off = probe['give']()
    await until(() => states()['d'] === 'active')
    off()
    await until(() => states()['d'] === 'waiting')
  })
  it('are there for an optional scope that is asked for late', async () => {
    const { load, probe } = testHost({ 'p.ts': provider(1), 'n.ts': `import { probe } from 'harnessx'; export const apply = ctx => { probe.ask = () => ctx.inject(['store'], child => { probe.seen.push('start ' + child.store.v) }) }` })
    await load('p.ts', 'n.ts')
    probe['ask']()
    await until(() => probe['seen'].includes('start 1'))
  })
  it('of an optional scope start and stop with it', async () => {
    const { load, probe } = testHost({
      'n.ts': `import { probe } from 'harnessx'; export const apply = ctx => { ctx.inject(['store'], child => { probe.seen.push('start'); child.effect(() => () => { probe.seen.push('end ' + child.store.use()) }) }) }`,
      'p.ts': provider(1),
    })
    await load('n.ts', { file: 'p.ts', enabled: false })
    await load('n.ts', 'p.ts')
    await load('n.ts', { file: 'p.ts', enabled: false })
    expect(probe['seen']).toEqual(['start', 'end 1', 'store 1 down'])
  })
})

describe('names', () => {
  const numbered = (value: number) => `export const apply = ctx => { ctx.numbers.register('one', ${value}) }`
  it('belong to the first; the second fails naming both, and its end does not take the first', async () => {
    const { load, numbers, info } = testHost({ 'a.ts': numbered(1), 'b.ts': numbered(2) })
    await load('a.ts', 'b.ts')
    expect(info('b').reason).toContain('number "one" of plugin "b" belongs to plugin "a"')
    await load('a.ts')
    expect(numbers.get('one')?.value).toBe(1)
    expect(numbers.size).toBe(1)
  })
  it('move with an edit that takes them from one and gives them to another', async () => {
    const { load, numbers, states } = testHost({ 'a.ts': numbered(1), 'b.ts': numbered(2) })
    await load('a.ts')
    await load('b.ts')
    expect(states()).toEqual({ b: 'active' })
    expect(numbers.get('one')?.value).toBe(2)
  })
})

describe('a required entry', () => {
  it.each<[string, Record<string, string>, string]>([
    ['failed to load', { 'guard.ts': `export const apply = () => { throw new Error('secret /path') }` }, 'it failed to load'],
    ['waits', { 'guard.ts': `export const inject = ['vault']; export const apply = () => {}` }, 'it waits for service "vault"'],
  ])('that %s refuses, without telling the model why in detail', async (_, files, cause) => {
    const { load, judge } = testHost(files)
    await load({ file: 'guard.ts', required: true })
    const { kind, reason, failure } = await judge()
    expect({ kind, failure }).toEqual({ kind: 'block', failure: 'guard_inactive' })
    expect(reason).toContain(cause)
    expect(reason).not.toContain('secret')
  })
  it('refuses from the first moment of the first load', async () => {
    const { host, entries, judge, probe } = testHost({ 'guard.ts': `import { probe } from 'harnessx'; export const apply = () => new Promise(done => { probe.go = done })` })
    const loading = host.reconcile(entries({ file: 'guard.ts', required: true }))
    await until(() => probe['go'])
    expect(await judge()).toMatchObject({ kind: 'block', failure: 'guard_inactive' })
    probe['go']()
    await loading
    expect(await judge()).toMatchObject({ kind: 'allow' })
  })
  it('does not refuse when it is disabled on purpose, removed, or no longer required', async () => {
    const { load, judge } = testHost({ 'guard.ts': `export const apply = () => { throw new Error('boom') }` })
    for (const way of [[{ file: 'guard.ts', required: true, enabled: false }], [], [{ file: 'guard.ts' }]]) {
      await load({ file: 'guard.ts', required: true })
      expect((await judge()).kind).toBe('block')
      await load(...way)
      expect((await judge()).kind).toBe('allow')
      await load()
    }
  })
  it('refuses when its provider leaves, before it stops judging', async () => {
    const { load, judge } = testHost({ 'guard.ts': `import { block } from 'harnessx'; export const inject = ['store']; export const apply = ctx => { ctx.on('agent/pre-tool-use', () => block('judged')); ctx.effect(() => () => new Promise(done => setTimeout(done, 20))) }`, 'p.ts': provider(1) })
    await load({ file: 'guard.ts', required: true }, 'p.ts')
    const answers = new Set<string | undefined>()
    let stopped = false
    const asking = (async () => { while (!stopped) { const { kind, failure } = await judge(); answers.add(`${kind} ${failure}`); await new Promise(setImmediate) } })()
    await load({ file: 'guard.ts', required: true }, { file: 'p.ts', enabled: false })
    stopped = true
    await asking
    expect([...answers].sort()).toEqual(['block guard_inactive', 'block undefined'])
  })
  it('refuses when it is quarantined, until it changes', async () => {
    const { load, judge, host, states, save } = testHost({ 'guard.ts': judging('1') })
    await load({ file: 'guard.ts', required: true })
    await host.quarantine('guard', 'it threw three times in five minutes')
    expect(states()).toEqual({ guard: 'quarantined' })
    expect(await judge()).toMatchObject({ kind: 'block', failure: 'guard_inactive' })
    await load({ file: 'guard.ts', required: true })
    expect(states()).toEqual({ guard: 'quarantined' })
    await save('guard.ts', judging('2'))
    expect(states()).toEqual({ guard: 'active' })
    expect((await judge()).kind).toBe('allow')
  })
})

describe('stopping', () => {
  it('ends everything in reverse, dependents first, and takes nothing in afterwards', async () => {
    const { load, host, probe, kernel, numbers } = testHost({ 'd.ts': dependent, 'p.ts': provider(1) })
    const before = kernel.size
    await load('d.ts', 'p.ts')
    await host.stop()
    expect(probe['seen']).toEqual(['up 1', 'close', 'closed', 'flush 1', 'flushed', 'store 1 down'])
    expect({ ...kernel.size, unreleased: 0, numbers: numbers.size }).toEqual({ ...before, unreleased: 0, numbers: 0 })
    expect(await failure(load('d.ts'))).toMatchObject({ code: 'aborted' })
  })
  it('does not wait for a plugin that is just being loaded and hangs', async () => {
    const { host, entries, probe } = testHost({ 'slow.ts': `import { probe } from 'harnessx'; export const apply = () => { probe.began = true; return new Promise(() => {}) }` }, { mountMs: 1000 })
    const loading = host.reconcile(entries('slow.ts'))
    await until(() => probe['began'])
    let loaded = false
    void loading.then(() => { loaded = true })
    await host.stop(100)
    expect(loaded).toBe(false)
    await loading
  })
  it('does not wait for what hangs beyond its limit, and still ends the rest', async () => {
    const { load, host, probe, text } = testHost({ 'a.ts': `import { probe } from 'harnessx'; export const apply = ctx => { ctx.effect(() => () => { probe.seen.push('a down') }) }`, 'b.ts': `export const apply = ctx => { ctx.effect(() => () => new Promise(() => {}), 'the hung one') }` })
    await load('a.ts', 'b.ts')
    const started = performance.now()
    await host.stop(50)
    expect(performance.now() - started).toBeLessThan(1000)
    expect(probe['seen']).toEqual(['a down'])
    expect(text()).toContain('plugin "b": the hung one could not be taken back')
  })
})

import { describe, expect, it, vi } from 'vitest'
import { allow, block, proceed, stop } from '../../core/agent/hooks.js'
import { deferred, payloads, settled, testHooks } from '../support/hooks.js'

describe('in flight', () => {
  it('a dispatch works on the list as it was when it began', async () => {
    const { hooks, plugin } = testHooks()
    const seen: string[] = []
    const go = deferred()
    const a = plugin('a'), b = plugin('b')
    a.on('agent/pre-tool-use', () => go.promise)
    const off = b.on('agent/pre-tool-use', () => { seen.push('old') })
    const dispatch = hooks.dispatch('agent/pre-tool-use', payloads.call())
    off()
    b.on('agent/pre-tool-use', () => { seen.push('new') })
    go.resolve()
    await dispatch
    expect(seen).toEqual(['old'])
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    expect(seen).toEqual(['old', 'new'])
  })
  it('a retired plugin still judges in a running dispatch, and in no new one; drained says when it is done', async () => {
    const { owners, hooks, plugin } = testHooks()
    const go = deferred()
    plugin('a').on('agent/pre-tool-use', () => go.promise)
    const b = plugin('b')
    b.on('agent/pre-tool-use', () => block('b'))
    const running = hooks.dispatch('agent/pre-tool-use', payloads.call())
    owners.retire(b.owner)
    let drained = false
    const drain = owners.drained(b.owner).then(() => { drained = true })
    const next = hooks.dispatch('agent/pre-tool-use', payloads.call())
    await settled()
    expect([drained, owners.inFlight(b.owner)]).toEqual([false, 1])
    go.resolve()
    expect([(await running).value.kind, (await next).value.kind]).toEqual(['block', 'allow'])
    await drain
  })
  it('a handler that is reached after its plugin was disposed is not run and counts as failed', async () => {
    const { owners, hooks, plugin } = testHooks()
    const go = deferred()
    const seen: string[] = []
    plugin('a').on('agent/pre-tool-use', () => go.promise)
    const b = plugin('b')
    b.on('agent/pre-tool-use', () => { seen.push('b') })
    const dispatch = hooks.dispatch('agent/pre-tool-use', payloads.call())
    await settled()
    owners.dispose(b.owner)
    go.resolve()
    expect(await dispatch).toMatchObject({ value: block('plugin "b" could not judge this call (its plugin was unloaded)'), failure: 'hook_failed' })
    expect(seen).toEqual([])
  })
  it('a disposed amend handler is skipped, a disposed around fails the act', async () => {
    const { owners, hooks, plugin } = testHooks()
    const go = deferred()
    const a = plugin('a'), b = plugin('b')
    a.on('agent/post-tool-use', () => go.promise)
    a.on('agent/tool-use', () => go.promise)
    b.on('agent/post-tool-use', () => 'b')
    b.on('agent/tool-use', () => 'b')
    const amended = hooks.dispatch('agent/post-tool-use', payloads.result())
    const act = hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ({ content: 'ran', isError: false }) })
    await settled()
    owners.dispose(b.owner)
    go.resolve()
    expect((await amended).value.content).toBe('out')
    await expect(act).rejects.toThrow('its plugin was unloaded')
  })
  it('a hanging handler is let go when its plugin is disposed, and counts as failed', async () => {
    const { owners, hooks, plugin } = testHooks()
    const a = plugin('a')
    a.on('agent/pre-tool-use', () => new Promise<never>(() => {}))
    const dispatch = hooks.dispatch('agent/pre-tool-use', payloads.call())
    await settled()
    owners.retire(a.owner)
    owners.dispose(a.owner)
    expect((await dispatch).failure).toBe('hook_failed')
    expect(owners.idle(a.owner)).toBe(true)
  })
  it('a disposed child scope counts as unloaded while its plugin lives on', async () => {
    const { owners, hooks, plugin } = testHooks()
    const go = deferred()
    const a = plugin('a')
    a.on('agent/pre-tool-use', () => go.promise)
    const child = a.child()
    child.on('agent/pre-tool-use', () => allow())
    const dispatch = hooks.dispatch('agent/pre-tool-use', payloads.call())
    await settled()
    owners.dispose(child.owner)
    go.resolve()
    expect((await dispatch).failure).toBe('hook_failed')
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(allow())
  })
  it('a reload during a dispatch during a reload drains both old versions', async () => {
    const { owners, hooks, plugin } = testHooks()
    const versions = [plugin('a', { row: 0 }), plugin('a', { row: 0, stage: 'staged', generation: 2 }), plugin('a', { row: 0, stage: 'staged', generation: 3 })]
    const go = [deferred(), deferred()]
    const seen: number[] = []
    versions.forEach((version, i) => version.on('agent/pre-tool-use', async () => { seen.push(i); await go[i]?.promise }))
    const runs = []
    for (const i of [0, 1]) {
      runs.push(hooks.dispatch('agent/pre-tool-use', payloads.call()))
      owners.switch([versions[i + 1]!.owner], [versions[i]!.owner])
    }
    const drained = [0, 1].map(i => owners.drained(versions[i]!.owner))
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    go[1]!.resolve()
    await drained[1]
    expect(owners.idle(versions[0]!.owner)).toBe(false)
    go[0]!.resolve()
    await Promise.all([...drained, ...runs])
    expect(seen).toEqual([0, 1, 2])
  })
  it('leaves no moment in which nobody judges, through 200 reloads', async () => {
    const { owners, hooks, plugin } = testHooks()
    let now = plugin('guard', { row: 0 })
    now.on('agent/pre-tool-use', async () => { await null; return block('judged') })
    let stopped = false, calls = 0
    const judged = (async () => {
      while (!stopped) {
        calls++
        expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(block('judged'))
        if (calls % 10 === 0) await settled()
      }
    })()
    for (let generation = 2; generation < 200; generation++) {
      const next = plugin('guard', { row: 0, stage: 'staged', generation })
      next.on('agent/pre-tool-use', async () => { await null; return block('judged') })
      await settled()
      owners.switch([next.owner], [now.owner])
      await owners.drained(now.owner)
      owners.dispose(now.owner)
      now.undo()
      now = next
    }
    stopped = true
    await judged
    expect(calls).toBeGreaterThan(200)
    expect(hooks.size).toBe(1)
  })
  it('nothing of an unloaded version is kept in memory', async () => {
    const { owners, hooks, plugin } = testHooks()
    const refs: WeakRef<object>[] = []
    for (let generation = 1; generation <= 20; generation++) {
      const a = plugin('a', { row: 0, generation })
      const handler = async () => { await null; throw Object.assign(new Error('boom'), { big: new Array(1000).fill(handler) }) }
      refs.push(new WeakRef(handler))
      a.on('agent/pre-tool-use', handler, { onError: 'pass' })
      await hooks.dispatch('agent/pre-tool-use', payloads.call())
      owners.retire(a.owner)
      await owners.drained(a.owner)
      owners.dispose(a.owner)
      a.undo()
    }
    await vi.waitFor(() => { (globalThis as { gc?: () => void }).gc!(); expect(refs.filter(ref => ref.deref()).length).toBeLessThanOrEqual(1) }, 5000)
  })
})

describe('a closed gate', () => {
  it('makes new dispatches wait, except watches, until the new version judges', async () => {
    const { owners, hooks, plugin } = testHooks()
    const a = plugin('a', { row: 0 })
    const told: string[] = []
    a.on('agent/pre-tool-use', () => block('old'))
    a.on('agent/turn-start', () => { told.push('old') })
    const open = owners.close([a.owner], 10_000)
    const waiting = hooks.dispatch('agent/pre-tool-use', payloads.call())
    await hooks.dispatch('agent/turn-start', payloads.turn())
    owners.dispose(a.owner)
    expect(hooks.has('agent/pre-tool-use')).toBe(true)
    const fresh = plugin('a', { row: 0, stage: 'staged' })
    fresh.on('agent/pre-tool-use', () => block('new'))
    owners.switch([fresh.owner])
    open()
    expect([(await waiting).value, told]).toEqual([block('new'), ['old']])
  })
  it('on its limit makes decide fail closed, a stop go on, and the rest throw', async () => {
    const { owners, hooks, plugin } = testHooks()
    const a = plugin('a')
    a.on('agent/pre-tool-use', () => allow())
    a.on('agent/stop', () => proceed('go on'))
    a.on('agent/post-tool-use', () => 'x')
    a.on('agent/tool-use', () => 'x')
    const open = owners.close([a.owner], 20)
    expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ value: block('plugin "a" could not judge this call (it is being reloaded and did not come back within 20 ms)'), failure: 'hook_failed' })
    expect((await hooks.dispatch('agent/stop', payloads.stop())).value).toEqual(stop())
    await expect(hooks.dispatch('agent/post-tool-use', payloads.result())).rejects.toMatchObject({ code: 'plugin_timeout' })
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => 1 })).rejects.toMatchObject({ code: 'plugin_timeout' })
    open()
  })
  it('lets a dispatch pass that was begun inside a call which the drain waits for: in a handler, and in the act', async () => {
    const { owners, hooks, plugin } = testHooks()
    const a = plugin('a')
    const go = deferred()
    let depth = 0
    a.on('agent/pre-tool-use', async payload => {
      if (depth++ > 0) return block('inner')
      await go.promise
      return (await hooks.dispatch('agent/pre-tool-use', payload)).value
    })
    a.on('agent/tool-use', (_, next) => next())
    const judging = hooks.dispatch('agent/pre-tool-use', payloads.call())
    const running = hooks.dispatch('agent/tool-use', payloads.call(), { inner: async () => {
      await go.promise
      return (await hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ({ content: 'nested', isError: false }) })).value
    } })
    await settled()
    const open = owners.close([a.owner], 10_000)
    owners.retire(a.owner)
    const drained = owners.drained(a.owner)
    go.resolve()
    expect([(await judging).value, (await running).value.content]).toEqual([block('inner'), 'nested'])
    await drained
    open()
  })
  it('lets a nested dispatch fail closed, not pass unjudged, once the plugin is disposed', async () => {
    const { owners, hooks, plugin } = testHooks()
    const a = plugin('a')
    const go = deferred()
    a.on('agent/tool-use', (_, next) => next())
    a.on('agent/pre-tool-use', () => allow())
    let nested: unknown
    const running = hooks.dispatch('agent/tool-use', payloads.call(), { inner: async () => {
      await go.promise
      nested = await hooks.dispatch('agent/pre-tool-use', payloads.call())
    } })
    await settled()
    const open = owners.close([a.owner], 10_000)
    owners.dispose(a.owner)
    go.resolve()
    await expect(running).rejects.toThrow('its plugin was unloaded')
    expect(nested).toMatchObject({ value: { kind: 'block' }, failure: 'hook_failed' })
    open()
  })
  it('ends for who is aborted while waiting', async () => {
    const { owners, hooks, plugin } = testHooks()
    const a = plugin('a')
    a.on('agent/pre-tool-use', () => allow())
    const turn = new AbortController()
    const open = owners.close([a.owner], 10_000)
    const waiting = hooks.dispatch('agent/pre-tool-use', payloads.call('bash', {}, turn.signal))
    turn.abort(new Error('stopped'))
    await expect(waiting).rejects.toThrow('stopped')
    open()
  })
})

describe('a required guard that is not active', () => {
  it('refuses prompts, steps and calls, naming entry and cause, and runs nobody', async () => {
    const { hooks, plugin } = testHooks()
    const seen: string[] = []
    const a = plugin('a')
    a.on('agent/pre-tool-use', () => { seen.push('call') })
    a.on('agent/user-prompt-submit', () => { seen.push('prompt') })
    hooks.guard('permission', 'it failed to load')
    hooks.guard('guard-secrets', 'it is quarantined')
    expect(hooks.has('agent/pre-step')).toBe(true)
    const reason = 'required plugin "permission" is not active (it failed to load)'
    expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ value: { kind: 'block', reason }, plugin: 'permission', failure: 'guard_inactive', trace: [{ plugin: 'permission', kind: 'guard_inactive' }] })
    expect(await hooks.dispatch('agent/user-prompt-submit', payloads.prompt('hi'))).toMatchObject({ value: { kind: 'reject', reason }, failure: 'guard_inactive' })
    expect(await hooks.dispatch('agent/pre-step', payloads.step())).toMatchObject({ value: { kind: 'reject', reason }, failure: 'guard_inactive' })
    expect((await hooks.dispatch('agent/pre-request', payloads.request())).value.kind).toBe('send')
    expect(seen).toEqual([])
    hooks.guard('permission', undefined)
    expect((await hooks.dispatch('agent/pre-step', payloads.step())).plugin).toBe('guard-secrets')
    hooks.guard('guard-secrets', undefined)
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(allow())
    expect(seen).toEqual(['call'])
  })
  it('also refuses who waited at its gate', async () => {
    const { owners, hooks, plugin } = testHooks()
    const guard = plugin('permission')
    guard.on('agent/pre-tool-use', () => allow())
    const open = owners.close([guard.owner], 10_000)
    const waiting = hooks.dispatch('agent/pre-tool-use', payloads.call())
    owners.dispose(guard.owner)
    hooks.guard('permission', 'it could not be put back')
    open()
    expect((await waiting).failure).toBe('guard_inactive')
  })
})

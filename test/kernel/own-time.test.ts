import { describe, expect, it, vi } from 'vitest'
import { allow, block } from '../../core/agent/hooks.js'
import { deferred, payloads, settled, sleep, testHooks, withoutUnhandled } from '../support/hooks.js'

describe('own time', () => {
  it('is limited: a hanging judge fails closed with its limit in the text', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-tool-use', () => new Promise<never>(() => {}), { timeout: 30 })
    expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ value: block('plugin "a" could not judge this call (timed out after 30 ms)'), failure: 'hook_failed' })
    expect(reports.filter(({ what }) => what !== 'slow')).toMatchObject([{ what: 'timed out', plugin: 'a' }])
    expect(hooks.list()[0]?.handlers[0]).toMatchObject({ timeouts: 1, errors: 0 })
  })
  it('does not count what is spent in next()', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-tool-use', async (_, next) => { await next() }, { timeout: 40 })
    plugin('b').on('agent/pre-tool-use', async () => { await sleep(120) })
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(allow())
    expect(reports).toEqual([])
    const [a, b] = hooks.list()[0]!.handlers
    expect(a!.max).toBeLessThan(40)
    expect(b!.max).toBeGreaterThan(110)
  })
  it('before and after next() adds up', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-tool-use', async (_, next) => { await sleep(60); await next(); await sleep(10_000) }, { timeout: 100 })
    const begin = performance.now()
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).failure).toBe('hook_failed')
    expect(performance.now() - begin).toBeGreaterThan(95)
  })
  it('does not count an approval, in any enclosing handler', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('outer').on('agent/turn-start', async () => { await hooks.dispatch('agent/pre-tool-use', payloads.call()) }, { timeout: 40 })
    plugin('inner').on('agent/pre-tool-use', async () => { await hooks.waiting(() => sleep(120)) }, { timeout: 40 })
    await hooks.dispatch('agent/turn-start', payloads.turn())
    expect(reports).toEqual([])
    for (const { handlers } of hooks.list()) expect(handlers[0]!.max).toBeLessThan(40)
  })
  it('runs on after an approval', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-tool-use', async () => { await hooks.waiting(() => sleep(60)); await sleep(10_000) }, { timeout: 30 })
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).failure).toBe('hook_failed')
  })
  it('drops a late result, and refuses its late next()', () => withoutUnhandled(async () => {
    const { hooks, plugin } = testHooks()
    const late = deferred<string>()
    plugin('a').on('agent/pre-tool-use', async (_, next) => { await sleep(40); await next().then(() => { late.resolve('went on') }, error => { late.resolve(String(error)) }); return block('late') }, { timeout: 10, onError: 'pass' })
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(allow())
    expect(await late.promise).toContain('after the handler had ended')
  }))
  it('makes no unhandled rejection of a late one', () => withoutUnhandled(async () => {
    const { hooks, plugin } = testHooks()
    const thrown = deferred()
    plugin('a').on('agent/pre-tool-use', async () => { await sleep(30); thrown.resolve(); throw new Error('late') }, { timeout: 5 })
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    await thrown.promise
  }))
  it('has its own deadline for each of many handlers at once, from one timer', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-tool-use', ({ call }) => new Promise<never>(() => void call), { timeout: 60, tools: ['slow'] })
    plugin('b').on('agent/pre-tool-use', () => new Promise<never>(() => {}), { timeout: 20, tools: ['fast'] })
    const timers = () => process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length
    const before = timers(), begin = performance.now()
    const runs = Array.from({ length: 50 }, async (_, i) => { await hooks.dispatch('agent/pre-tool-use', payloads.call(i % 2 ? 'slow' : 'fast')); return performance.now() - begin })
    expect(timers() - before).toBe(1)
    const times = await Promise.all(runs)
    expect(Math.min(...times.filter((_, i) => i % 2))).toBeGreaterThan(55)
    expect(Math.min(...times.filter((_, i) => i % 2 === 0))).toBeLessThan(Math.min(...times.filter((_, i) => i % 2)))
    for (const end = performance.now() + 3000; timers() > before && performance.now() < end;) await sleep(20)
    expect(timers()).toBeLessThanOrEqual(before)
  })
  it('names a handler that still runs after a second', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/turn-start', () => sleep(1200))
    await hooks.dispatch('agent/turn-start', payloads.turn())
    expect(reports).toMatchObject([{ plugin: 'a', what: 'slow', level: 'warn', message: expect.stringMatching(/plugin "a": its handler of "agent\/turn-start" still runs after 1\d\d\d ms/) }])
  })
  it('of an around handler, which has no limit, is named without a warning', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('retry').on('agent/tool-use', async (_, next) => { await sleep(1200); return next() })
    await hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ({ content: 'ran', isError: false }) })
    expect(reports).toMatchObject([{ plugin: 'retry', what: 'slow', level: 'info' }])
  })
  it('can’t end a handler that never awaits, but says that it held everything up', async () => {
    const { hooks, plugin, reports } = testHooks()
    const busy = (ms: number) => { const end = performance.now() + ms; while (performance.now() < end); }
    plugin('a').on('agent/pre-tool-use', () => { busy(30); return block('mine') }, { timeout: 10 })
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(block('mine'))
    expect(reports).toMatchObject([{ plugin: 'a', what: 'slow', message: expect.stringContaining('held the whole process up') }])
  })
  it('is not charged for a process that stood still', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('innocent').on('agent/turn-start', () => sleep(20), { timeout: 100 })
    const dispatch = hooks.dispatch('agent/turn-start', payloads.turn())
    await sleep(1)
    const end = performance.now() + 300
    while (performance.now() < end);
    await dispatch
    expect(reports).toEqual([])
  })
})

describe('an abort', () => {
  it('ends the dispatch at once, and blames nobody', async () => {
    const { hooks, plugin, reports } = testHooks()
    const turn = new AbortController()
    const seen: string[] = []
    plugin('a').on('agent/pre-tool-use', async (_, next) => { await next() })
    plugin('b').on('agent/pre-tool-use', () => sleep(10_000) as never)
    plugin('c').on('agent/pre-tool-use', () => { seen.push('c') })
    const dispatch = hooks.dispatch('agent/pre-tool-use', payloads.call('bash', {}, turn.signal))
    await settled()
    turn.abort(new Error('stopped'))
    await expect(dispatch).rejects.toThrow('stopped')
    expect([reports, seen]).toEqual([[], []])
    expect(hooks.list()[0]!.handlers.map(({ errors, timeouts }) => errors + timeouts)).toEqual([0, 0, 0])
  })
  it('by a handler itself ends it too', async () => {
    const { hooks, plugin } = testHooks()
    const turn = new AbortController()
    const seen: string[] = []
    plugin('a').on('agent/pre-tool-use', () => { turn.abort(new Error('by a')) })
    plugin('b').on('agent/pre-tool-use', () => { seen.push('b') })
    await expect(hooks.dispatch('agent/pre-tool-use', payloads.call('bash', {}, turn.signal))).rejects.toThrow('by a')
    expect(seen).toEqual([])
  })
  it('that came before is thrown without calling a handler', async () => {
    const { hooks, plugin } = testHooks()
    const seen: string[] = []
    plugin('a').on('agent/pre-tool-use', () => { seen.push('a') })
    await expect(hooks.dispatch('agent/pre-tool-use', payloads.call('bash', {}, AbortSignal.abort(new Error('before'))))).rejects.toThrow('before')
    expect(seen).toEqual([])
  })
  it('still lets watchers be told of the end, before and meanwhile', async () => {
    const { hooks, plugin } = testHooks()
    const told: string[] = []
    const turn = new AbortController()
    plugin('a').on('agent/turn-start', () => { told.push('a'); return turn.signal.aborted ? undefined : sleep(10_000) })
    plugin('b').on('agent/turn-start', () => { told.push('b') })
    const dispatch = hooks.dispatch('agent/turn-start', payloads.turn(turn.signal))
    await settled()
    turn.abort(new Error('stopped'))
    await expect(dispatch).rejects.toThrow('stopped')
    expect(told).toEqual(['a', 'b'])
    await hooks.dispatch('agent/turn-start', payloads.turn(turn.signal))
    expect(told).toEqual(['a', 'b', 'a', 'b'])
  })
  it('while the act runs waits for the act, whose signal it aborts', async () => {
    const { hooks, plugin, reports } = testHooks()
    const turn = new AbortController()
    const order: string[] = []
    plugin('a').on('agent/tool-use', (_, next) => next())
    const dispatch = hooks.dispatch('agent/tool-use', payloads.call('bash', {}, turn.signal), { inner: async (_, act) => {
      await new Promise(resolve => { act.signal.addEventListener('abort', resolve) })
      await sleep(10)
      order.push('act')
      throw act.signal.reason
    } }).catch(error => { order.push(String(error)) })
    await settled()
    turn.abort(new Error('stopped'))
    await dispatch
    expect([order, reports]).toEqual([['act', 'Error: stopped'], []])
  })
  it('leaves no listener behind on a signal that lives on', async () => {
    const { hooks, plugin } = testHooks()
    const { signal } = new AbortController()
    const added = vi.spyOn(signal, 'addEventListener'), removed = vi.spyOn(signal, 'removeEventListener')
    plugin('a').on('agent/pre-tool-use', async () => { await null })
    for (let i = 0; i < 1000; i++) await hooks.dispatch('agent/pre-tool-use', payloads.call('bash', {}, signal))
    expect(added.mock.calls.length).toBeLessThan(20)
    await vi.waitFor(() => { expect(removed.mock.calls.length).toBe(added.mock.calls.length) }, 3000)
  })
})

import { describe, expect, it } from 'vitest'
import { allow, block, proceed, stop } from '../../core/agent/hooks.js'
import { currentOwner } from '../../core/kernel/async-context.js'
import type { HookName } from '../../core/kernel/hooks.js'
import { payloads, settled, sleep, testHooks, withoutUnhandled } from '../support/hooks.js'

describe('a dispatch', () => {
  it('gives the default when nobody is there', async () => {
    const { hooks } = testHooks()
    expect(hooks.has('agent/pre-tool-use')).toBe(false)
    expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ value: { kind: 'allow' }, trace: [] })
    expect(await hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ({ content: 'ran', isError: false }) })).toMatchObject({ value: { content: 'ran' }, trace: [] })
    expect(await hooks.dispatch('agent/turn-start', payloads.turn())).toMatchObject({ value: undefined })
  })
  it('rejects for a hook that nobody declared', async () => {
    await expect(testHooks().hooks.dispatch('agent/nothing' as HookName, payloads.call() as never)).rejects.toMatchObject({ code: 'hook_unknown' })
  })
  it('runs the first handler outermost', async () => {
    const { hooks, plugin } = testHooks()
    const order: string[] = []
    for (const id of ['a', 'b']) plugin(id).on('agent/pre-tool-use', async (_, next) => { order.push(`>${id}`); await next(); order.push(`<${id}`) })
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    expect(order).toEqual(['>a', '>b', '<b', '<a'])
  })
  it('nests 256 handlers', async () => {
    const { hooks, plugin } = testHooks()
    let calls = 0
    for (let i = 0; i < 256; i++) plugin(`p${i}`).on('agent/pre-tool-use', (_, next) => { calls++; return next() })
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(allow())
    expect(calls).toBe(256)
  })
  it('of the same hook may be begun inside a handler', async () => {
    const { hooks, plugin } = testHooks()
    let depth = 0
    plugin('a').on('agent/pre-tool-use', async payload => {
      if (depth++ < 3) return (await hooks.dispatch('agent/pre-tool-use', payload)).value
      return block('deep enough')
    })
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(block('deep enough'))
  })
  it('awaits a thenable that is no promise', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-tool-use', () => ({ then: (yes: (value: unknown) => void) => { setTimeout(yes, 1, block('later')) } }) as never)
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(block('later'))
  })
  it('takes one function twice, and disposes each apart', async () => {
    const { hooks, plugin } = testHooks()
    const a = plugin('a')
    let calls = 0
    const count = () => { calls++ }
    const off = a.on('agent/pre-tool-use', count)
    a.on('agent/pre-tool-use', count)
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    off()
    off()
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    expect(calls).toBe(3)
  })
})

describe('no opinion', () => {
  it.each([undefined, null])('%s leaves it to the later handlers, with and without next()', async nothing => {
    for (const asks of [true, false]) {
      const { hooks, plugin } = testHooks()
      plugin('a').on('agent/pre-tool-use', async (_, next) => { if (asks) await next(); return nothing })
      plugin('b').on('agent/pre-tool-use', () => block('no'))
      expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ value: block('no'), plugin: 'b' })
    }
  })
  it('is also a decision of next() that is handed back', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-tool-use', (_, next) => next())
    plugin('b').on('agent/pre-tool-use', () => block('no'))
    expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ plugin: 'b', trace: [{ plugin: 'b', kind: 'block', reason: 'no' }] })
  })
  it('holds for amend and around', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/post-tool-use', () => {})
    plugin('a').on('agent/post-tool-use', async (_, next) => { await next() })
    plugin('a').on('agent/tool-use', () => {})
    plugin('a').on('agent/tool-use', async (_, next) => { await next() })
    expect((await hooks.dispatch('agent/post-tool-use', payloads.result())).value).toEqual({ content: 'out', isError: false })
    let runs = 0
    expect((await hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ({ content: `${++runs}`, isError: false }) })).value.content).toBe('1')
  })
})

describe('next()', () => {
  const misuse = async (handler: (next: (change?: unknown) => Promise<unknown>) => unknown) => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-tool-use', ((_: unknown, next: () => Promise<unknown>) => handler(next)) as never)
    return { ...await hooks.dispatch('agent/pre-tool-use', payloads.call()), said: reports.map(({ message }) => message).join() }
  }
  it.each([
    ['called twice', async (next: () => Promise<unknown>) => { await next(); await next().catch(() => {}) }, 'next() may be called once'],
    ['given an argument', async (next: (change: unknown) => Promise<unknown>) => { await next({}).catch(() => {}) }, 'next() takes no argument; return what you want changed'],
    ['passed to then() as a callback', (next: (value: unknown) => Promise<unknown>) => Promise.resolve('value').then(next), 'next() takes no argument'],
  ])('%s makes the handler fail, also when it swallows the error', async (_, handler, says) => {
    const { value, failure, said } = await misuse(handler)
    expect([value.kind, failure]).toEqual(['block', 'hook_failed'])
    expect(value).toMatchObject({ reason: 'plugin "a" could not judge this call (it misused next())' })
    expect(said).toContain(says)
  })
  it('called after the handler has ended is refused, and changes nothing', async () => {
    const { hooks, plugin } = testHooks()
    let late: (() => Promise<unknown>) | undefined
    plugin('a').on('agent/pre-tool-use', (_, next) => { late = next })
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(allow())
    await expect(late!()).rejects.toThrow('next() was called after the handler had ended')
  })
  it('not awaited is awaited by core', async () => {
    const { hooks, plugin } = testHooks()
    const ended: string[] = []
    plugin('a').on('agent/pre-tool-use', (_, next) => { void next() })
    plugin('b').on('agent/pre-tool-use', async () => { await sleep(5); ended.push('b'); return block('no') })
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).value).toEqual(block('no'))
    expect(ended).toEqual(['b'])
  })
  it('is waited for when the handler throws meanwhile', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-tool-use', (_, next) => { void next(); throw new Error('boom') })
    plugin('b').on('agent/pre-tool-use', async () => { await sleep(5); return block('policy') })
    expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ value: block('policy'), plugin: 'b', failure: undefined })
  })
  it('forgotten to be awaited is found where a promise is returned inside a value', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/post-tool-use', ((_: unknown, next: () => Promise<object>) => ({ content: 'x', isError: false, context: [next()] })) as never)
    expect((await hooks.dispatch('agent/post-tool-use', payloads.result())).value.content).toBe('out')
    expect(reports[0]?.message).toContain('a promise (a missing await?)')
  })
  it('shows frozen decisions', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-step', async (_, next) => { const decision = await next(); (decision as unknown as { messages: unknown[] }).messages.push('x') })
    expect((await hooks.dispatch('agent/pre-step', payloads.step('one'))).value.kind).toBe('reject')
    expect(reports[0]?.message).toContain('payloads are frozen: return a changed copy')
  })
})

describe('a failure', () => {
  it.each([
    ['an error', () => { throw new Error('/secret/path: boom') }],
    ['undefined', () => { throw undefined }],
    ['a string', () => { throw 'boom' }],
    ['a rejection', () => Promise.reject(new Error('boom'))],
    ['an error whose message throws', () => { throw Object.defineProperty(new Error(), 'message', { get() { throw new Error('inner') } }) }],
  ])('by throwing %s fails closed, and its message goes to the log alone', async (_, handler) => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-tool-use', handler as never)
    const seen: string[] = []
    plugin('b').on('agent/pre-tool-use', () => { seen.push('b') })
    const verdict = await hooks.dispatch('agent/pre-tool-use', payloads.call())
    expect(verdict).toMatchObject({ value: block('plugin "a" could not judge this call (it threw an error)'), plugin: 'a', failure: 'hook_failed', trace: [{ plugin: 'a', kind: 'hook_failed', reason: 'it threw an error' }] })
    expect(seen).toEqual([])
    expect(reports).toMatchObject([{ plugin: 'a', hook: 'agent/pre-tool-use', what: 'failed', level: 'error' }])
  })
  it('with onError pass is skipped, and the later ones decide', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-tool-use', () => { throw new Error('boom') }, { onError: 'pass' })
    plugin('b').on('agent/pre-tool-use', () => block('no'))
    expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ value: block('no'), plugin: 'b', failure: undefined })
    expect(reports).toHaveLength(1)
  })
  it('is not undone by an allow outside', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-tool-use', async (_, next) => { await next(); return allow() })
    plugin('b').on('agent/pre-tool-use', () => { throw new Error('boom') })
    expect(await hooks.dispatch('agent/pre-tool-use', payloads.call())).toMatchObject({ plugin: 'b', failure: 'hook_failed' })
  })
  it('of a stop handler is no opinion', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/stop', () => { throw new Error('boom') })
    plugin('b').on('agent/stop', () => proceed('go on'))
    plugin('c').on('agent/stop', () => stop())
    const { value, plugin: who } = await hooks.dispatch('agent/stop', payloads.stop())
    expect([value.kind, who, reports.length]).toEqual(['continue', 'b', 1])
  })
  it('of an amend handler leaves the value so far', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/post-tool-use', async (_, next) => { const { content } = await next(); return `${content} a` })
    plugin('b').on('agent/post-tool-use', async (_, next) => { await next(); throw new Error('boom') })
    plugin('c').on('agent/post-tool-use', () => 42 as never)
    plugin('d').on('agent/post-tool-use', ({ result }) => `${result.content} d`)
    expect((await hooks.dispatch('agent/post-tool-use', payloads.result())).value.content).toBe('out d a')
    expect(reports.map(({ plugin }) => plugin)).toEqual(['c', 'b'])
  })
  it('keeps no error object: what is reported is flat', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-tool-use', () => { throw Object.assign(new RangeError('boom'), { code: () => {} }) })
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    expect(reports[0]?.error).toEqual({ name: 'RangeError', message: 'boom', stack: expect.stringContaining('dispatch.test.ts') })
    expect(() => structuredClone(reports)).not.toThrow()
  })
})

describe('around', () => {
  const ran = (content = 'ran') => ({ content, isError: false })
  it('may ask again after the last one has settled', async () => {
    const { hooks, plugin } = testHooks()
    plugin('retry').on('agent/tool-use', async (_, next) => { try { return await next() } catch { return next() } })
    let runs = 0
    const { value } = await hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => { if (runs++ === 0) throw new Error('flaky'); return ran() } })
    expect([value.content, runs]).toEqual(['ran', 2])
  })
  it('may not ask again before', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/tool-use', async (_, next) => { await Promise.allSettled([next(), next()]); return 'x' })
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ran() })).rejects.toThrow('plugin "a" failed in "agent/tool-use": it misused next()')
    expect(reports).toMatchObject([{ message: expect.stringContaining('next() may be called again only after the last one has settled') }])
  })
  it('passes errors of the act unchanged, and they are nobody’s fault', async () => {
    const { hooks, plugin, reports } = testHooks()
    const boom = new Error('boom')
    const a = plugin('a')
    a.on('agent/tool-use', (_, next) => next())
    a.on('agent/tool-use', async (_, next) => { const value = await next(); return value })
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => { throw boom } })).rejects.toBe(boom)
    expect(reports).toEqual([])
  })
  it('rethrows what a handler swallowed without a value', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/tool-use', async (_, next) => { await next().catch(() => {}) })
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => { throw new Error('boom') } })).rejects.toThrow('boom')
  })
  it('fails with what a handler throws, which the report names', async () => {
    const { hooks, plugin, reports } = testHooks()
    const mine = new Error('mine')
    plugin('a').on('agent/tool-use', async (_, next) => { await next(); throw mine })
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ran() })).rejects.toBe(mine)
    expect(reports).toMatchObject([{ plugin: 'a', what: 'failed' }])
  })
  it('does not run the act when a handler answers', async () => {
    const { hooks, plugin } = testHooks()
    plugin('cache').on('agent/tool-use', () => 'cached')
    let runs = 0
    expect(await hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => { runs++; return ran() } })).toMatchObject({ value: { content: 'cached', isError: false }, plugin: 'cache' })
    expect(runs).toBe(0)
  })
  it('fails on a value that is none', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/tool-use', () => 42 as never)
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ran() })).rejects.toMatchObject({ code: 'plugin_failed', message: 'plugin "a" failed in "agent/tool-use": it returned a wrong value' })
  })
  it('has no timeout unless asked, and one when asked', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/tool-use', async () => { await sleep(10_000) }, { timeout: 20 })
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ran() })).rejects.toThrow('plugin "a" failed in "agent/tool-use": timed out after 20 ms')
    expect(reports).toMatchObject([{ what: 'timed out' }])
  })
  it('aborts the act when a handler gives up waiting for it, and then waits for its end', async () => {
    const { hooks, plugin } = testHooks()
    plugin('timeout').on('agent/tool-use', (_, next) => Promise.race([next(), sleep(10).then(() => { throw new Error('took too long') })]))
    const ended: string[] = []
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), {
      inner: (_, act) => new Promise((_, reject) => { act.signal.addEventListener('abort', () => { setTimeout(() => { ended.push('act'); reject(act.signal.reason) }, 5) }) }),
    })).rejects.toThrow('took too long')
    expect(ended).toEqual(['act'])
  })
  it('names a handler that throws undefined', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/tool-use', () => { throw undefined })
    await expect(hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => ran() })).rejects.toBeUndefined()
    expect(reports).toMatchObject([{ plugin: 'a', message: expect.stringContaining('undefined was thrown') }])
  })
  it('leaves no unhandled rejection behind a next() that nobody awaits', () => withoutUnhandled(async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/tool-use', async (_, next) => { void next(); await sleep(10); return 'mine' })
    expect((await hooks.dispatch('agent/tool-use', payloads.call(), { inner: () => { throw new Error('boom') } })).value.content).toBe('mine')
  }))
})

describe('watch', () => {
  it('tells one after another, in order, and awaits them', async () => {
    const { hooks, plugin } = testHooks()
    const order: string[] = []
    plugin('a').on('agent/turn-start', async () => { order.push('>a'); await sleep(5); order.push('<a') })
    plugin('b').on('agent/turn-start', () => { order.push('b') })
    await hooks.dispatch('agent/turn-start', payloads.turn())
    expect(order).toEqual(['>a', '<a', 'b'])
  })
  it('contains a throw, a rejection and a timeout', async () => {
    const { hooks, plugin, reports } = testHooks()
    const told: string[] = []
    plugin('a').on('agent/turn-start', () => { throw new Error('a') })
    plugin('b').on('agent/turn-start', async () => { throw new Error('b') })
    plugin('c').on('agent/turn-start', () => sleep(10_000), { timeout: 10 })
    plugin('d').on('agent/turn-start', () => { told.push('d'); return { any: () => 'thing' } })
    await hooks.dispatch('agent/turn-start', payloads.turn())
    expect(told).toEqual(['d'])
    expect(reports.map(({ plugin, what }) => `${plugin} ${what}`)).toEqual(['a failed', 'b failed', 'c timed out'])
  })
  it('tells a delta synchronously, awaits nobody and contains both kinds of failure', () => withoutUnhandled(async () => {
    const { hooks, plugin, reports } = testHooks()
    const told: string[] = []
    plugin('a').on('agent/delta', () => { throw new Error('sync') })
    plugin('b').on('agent/delta', async ({ text }) => { told.push(text); throw new Error('async') })
    plugin('c').on('agent/delta', ({ text }) => { told.push(text, currentOwner()!.id) })
    hooks.tell('agent/delta', payloads.delta('x'))
    expect(told).toEqual(['x', 'x', 'c'])
    await settled()
    expect(reports.map(({ plugin }) => plugin)).toEqual(['a', 'b'])
    expect(hooks.list()[0]?.handlers.map(({ calls, errors }) => [calls, errors])).toEqual([[1, 1], [1, 1], [1, 0]])
  }))
})

describe('payloads', () => {
  it('are deeply frozen: a write throws in the handler, and the report says what to do', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-tool-use', ({ call }) => { (call.arguments as Record<string, unknown>)['command'] = 'rm' })
    const payload = payloads.call()
    expect((await hooks.dispatch('agent/pre-tool-use', payload)).failure).toBe('hook_failed')
    expect([payload.call.arguments, reports[0]?.message]).toEqual([{ command: 'ls' }, expect.stringContaining('payloads are frozen: return a changed copy')])
  })
  it('leave the signal usable', async () => {
    const { hooks, plugin } = testHooks()
    let heard = 0
    const turn = new AbortController()
    plugin('a').on('agent/turn-start', ({ signal }) => { signal.addEventListener('abort', () => { heard++ }) })
    await hooks.dispatch('agent/turn-start', payloads.turn(turn.signal))
    turn.abort()
    expect(heard).toBe(1)
  })
  it('never freeze what a plugin returned, and don’t change with it later', async () => {
    const { hooks, plugin } = testHooks()
    const mine = { content: 'mine', isError: false }
    plugin('a').on('agent/post-tool-use', () => mine)
    const { value } = await hooks.dispatch('agent/post-tool-use', payloads.result())
    mine.content = 'changed'
    expect([value.content, Object.isFrozen(mine)]).toEqual(['mine', false])
  })
})

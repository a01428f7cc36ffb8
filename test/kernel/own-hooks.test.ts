import { describe, expect, it } from 'vitest'
import { allow, block } from '../../core/agent/hooks.js'
import { testHooks } from '../support/hooks.js'

describe('a plugin’s own hook', () => {
  const own = (kind: 'decide' | 'amend' | 'around' | 'watch', stage: 'live' | 'staged' = 'live') => {
    const made = testHooks()
    const definer = made.plugin('definer', { stage })
    const fire = made.hooks.define(definer.scope, 'my/hook', { kind })
    return { ...made, definer, fire, on: (id: string, handler: (payload: never, next: () => Promise<never>) => unknown, options = {}) => made.hooks.registerHandler(made.plugin(id).scope, 'my/hook', handler, options) }
  }
  it('waits for its definition, and goes with its plugin', async () => {
    const { owners, hooks, plugin } = testHooks()
    hooks.registerHandler(plugin('early').scope, 'my/hook', () => block('early'))
    expect(hooks.list()).toMatchObject([{ hook: 'my/hook', kind: 'undefined' }])
    const definer = plugin('definer', { stage: 'staged' })
    const fire = hooks.define(definer.scope, 'my/hook', { kind: 'decide' })
    await expect(fire({})).rejects.toMatchObject({ code: 'hook_invalid' })
    owners.switch([definer.owner])
    expect(await fire({})).toEqual(block('early'))
    expect(hooks.list()).toMatchObject([{ hook: 'my/hook', kind: 'decide' }])
    owners.retire(definer.owner)
    expect(await fire({})).toEqual(block('early'))
    owners.dispose(definer.owner)
    await expect(fire({})).rejects.toMatchObject({ code: 'stale_context' })
    definer.undo()
    expect(hooks.list()).toMatchObject([{ kind: 'undefined' }])
  })
  it('decides like pre-tool-use, with a default of its own', async () => {
    const { fire, on } = own('decide')
    expect(await fire({}, () => block('by default'))).toEqual(block('by default'))
    on('a', () => { throw new Error('boom') }, { onError: 'pass' })
    on('b', async (_, next) => { await next(); return allow() })
    on('c', () => ({ kind: 'ask', reason: 'sure?' }))
    expect(await fire({ deep: { plain: 1 } })).toEqual({ kind: 'ask', reason: 'sure?' })
  })
  it('amends payload.value', async () => {
    const { fire, on } = own('amend')
    on('a', async (_, next) => `${await next()} a`)
    on('b', ({ value }: { value: string }) => `${value} b`)
    expect(await fire({ value: 'x' })).toBe('x b a')
    expect(await fire({ value: 'x' }, payload => `<${(payload as { value: string }).value}>`)).toBe('<x b> a')
  })
  it('stands around an act, whose own value passes as it is', async () => {
    const { fire, on } = own('around')
    on('a', (_, next) => next())
    class Handle {}
    const handle = new Handle()
    expect(await fire({ what: 'open' }, () => handle)).toBe(handle)
    expect(await fire({ what: 'open' })).toBeUndefined()
  })
  it('rejects with what its default throws', async () => {
    const { fire, on } = own('decide')
    on('a', (_, next) => next())
    await expect(fire({}, () => { throw new Error('mine') })).rejects.toThrow('mine')
  })
  it('copies the payload, and lets signal and session go along', async () => {
    const { fire, on } = own('watch')
    const turn = new AbortController(), payload = { list: [1], signal: turn.signal, session: Object.freeze({ id: 's' }) }
    const seen: { list: number[]; signal: AbortSignal; session: object }[] = []
    on('a', seenPayload => { seen.push(seenPayload) })
    await fire(payload)
    payload.list.push(2)
    expect(seen[0]).toEqual({ list: [1], signal: turn.signal, session: { id: 's' } })
    expect([seen[0]!.signal, seen[0]!.session, Object.isFrozen(payload.list)]).toEqual([turn.signal, payload.session, false])
    await expect(fire({ fn: () => {} })).rejects.toThrow('the payload.fn must be plain data')
    await expect(fire('text' as never)).rejects.toThrow('fired with an object')
  })
  it('may not take a name of core, nor of another plugin', () => {
    const { hooks, plugin } = own('watch')
    const other = plugin('other')
    for (const name of ['agent/mine', 'agnet/pre-step', 'PreToolUse', 'stop']) expect(() => hooks.define(other.scope, name, { kind: 'watch' })).toThrow(/would be core's by its name/)
    expect(() => hooks.define(other.scope, 'my/hook', { kind: 'watch' })).toThrow(expect.objectContaining({ code: 'already_registered' }))
    expect(() => hooks.define(other.scope, 'x/y', { kind: 'judge' as never })).toThrow('kind must be decide, amend, around or watch, received "judge"')
  })
  it('tells when an option of a waiting handler does not fit its kind', () => {
    const { owners, hooks, plugin, reports } = testHooks()
    hooks.registerHandler(plugin('early').scope, 'my/hook', () => {}, { onError: 'pass' })
    const definer = plugin('definer', { stage: 'staged' })
    hooks.define(definer.scope, 'my/hook', { kind: 'watch' })
    expect(reports).toEqual([])
    owners.switch([definer.owner])
    expect(reports).toMatchObject([{ plugin: 'early', what: 'misfit', message: expect.stringContaining('onError is for hooks that refuse') }])
  })
  it('may be of another kind in its next version', async () => {
    const { owners, hooks, plugin, fire, on, definer } = own('watch')
    on('a', () => block('no'))
    expect(await fire({})).toBeUndefined()
    const next = plugin('definer', { stage: 'staged', generation: 2 })
    const fire2 = hooks.define(next.scope, 'my/hook', { kind: 'decide' })
    owners.switch([next.owner], [definer.owner])
    expect(await fire2({})).toEqual(block('no'))
  })
})

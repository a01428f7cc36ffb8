import { describe, expect, it } from 'vitest'
import { allow, answer, block, type ToolDecision } from '../../core/agent/hooks.js'
import { currentOwner } from '../../core/kernel/async-context.js'
import { deferred, payloads, sleep, testHooks } from '../support/hooks.js'

describe('the owner', () => {
  it('is known in a handler, after an await and around next(), and the act is on the caller’s account', async () => {
    const { hooks, plugin } = testHooks()
    const seen: unknown[] = []
    const note = (where: string) => { seen.push([where, currentOwner()?.id]) }
    plugin('a').on('agent/tool-use', async (_, next) => { note('begin'); await sleep(1); note('awaited'); const value = await next(); note('after'); return value })
    plugin('b').on('agent/tool-use', (_, next) => { note('b'); return next() })
    await hooks.dispatch('agent/tool-use', payloads.call(), { inner: async () => { note('act'); return { content: '', isError: false } } })
    note('outside')
    expect(seen).toEqual([['begin', 'a'], ['awaited', 'a'], ['b', 'b'], ['act', undefined], ['after', 'a'], ['outside', undefined]])
  })
  it('is known to what escapes: a timer set in a handler', async () => {
    const { hooks, plugin } = testHooks()
    const who = deferred<string | undefined>()
    plugin('a').on('agent/turn-start', () => { setTimeout(() => { who.resolve(currentOwner()?.id) }, 1) })
    await hooks.dispatch('agent/turn-start', payloads.turn())
    expect(await who.promise).toBe('a')
  })
  it('has its figures: calls, errors, blocks, timeouts and own time', async () => {
    const { hooks, plugin } = testHooks()
    const acts = [() => block('no'), () => { throw new Error('boom') }, () => sleep(10_000), () => sleep(10), () => answer('x')] as (() => ToolDecision)[]
    let turn = 0
    plugin('a').on('agent/pre-tool-use', () => acts[turn++]!(), { timeout: 30, prepend: true })
    for (const _ of acts) await hooks.dispatch('agent/pre-tool-use', payloads.call())
    expect(hooks.list()).toEqual([{ hook: 'agent/pre-tool-use', kind: 'decide', handlers: [expect.objectContaining({ plugin: 'a', calls: 5, errors: 1, blocks: 1, timeouts: 1, prepend: true, file: import.meta.filename, line: expect.any(Number) })] }])
    const { p50, p95, max } = hooks.list()[0]!.handlers[0]!
    expect([p50 <= p95, p95 <= max, max >= 29]).toEqual([true, true, true])
  })
  it('is listed by hook: core’s hooks in their order, then plugins’ own by name', () => {
    const { hooks, plugin } = testHooks()
    for (const hook of ['z/own', 'agent/stop', 'a/own', 'agent/pre-step']) hooks.registerHandler(plugin('p').scope, hook, () => {})
    expect(hooks.list().map(({ hook }) => hook)).toEqual(['agent/pre-step', 'agent/stop', 'a/own', 'z/own'])
  })
  it('of each decision stands in the trace, in the order in which they were made', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-tool-use', async (_, next) => { await next(); return { kind: 'ask', reason: 'sure?' } })
    plugin('b').on('agent/pre-tool-use', () => allow())
    plugin('c').on('agent/pre-tool-use', () => {})
    expect((await hooks.dispatch('agent/pre-tool-use', payloads.call())).trace).toMatchObject([{ plugin: 'b', kind: 'allow' }, { plugin: 'a', kind: 'ask', reason: 'sure?' }])
  })
})

describe('tools', () => {
  it('are matched exactly, or by a pattern that has to match the whole name', async () => {
    const { hooks, plugin } = testHooks()
    const seen: string[] = []
    plugin('a').on('agent/pre-tool-use', ({ call }) => { seen.push(`exact ${call.name}`) }, { tools: ['read'] })
    plugin('b').on('agent/pre-tool-use', ({ call }) => { seen.push(`pattern ${call.name}`) }, { tools: [/write_.*|edit/gy] })
    for (const name of ['read', 'read_file', 'write_file', 'rewrite_x', 'edit', 'edits', 'write_file', 'constructor', '__proto__']) await hooks.dispatch('agent/pre-tool-use', payloads.call(name))
    expect(seen).toEqual(['exact read', 'pattern write_file', 'pattern edit', 'pattern write_file'])
  })
  it('that match none of the known tools are told once', () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-tool-use', () => {}, { tools: ['Write', /read_.*/, /nothing/] })
    plugin('b').on('agent/pre-tool-use', () => {}, { tools: ['bash'] })
    hooks.unmatchedTools(['bash', 'read_file', 'write_file'])
    hooks.unmatchedTools(['bash', 'read_file', 'write_file'])
    expect(reports).toMatchObject([{ plugin: 'a', what: 'unmatched', level: 'warn', message: expect.stringContaining('tools "Write", /nothing/ matches none of the known tools (') }])
  })
  it('may be named by the model without end', async () => {
    const { hooks, plugin } = testHooks()
    let calls = 0
    plugin('a').on('agent/tool-start', () => { calls++ }, { tools: [/tool_.*/] })
    for (let i = 0; i < 2500; i++) await hooks.dispatch('agent/tool-start', payloads.call(`tool_${i}`) as never)
    expect(calls).toBe(2500)
  })
})

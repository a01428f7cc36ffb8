import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestHost } from 'harnessx/testing'
import { ModelError } from 'harnessx'
import * as retry from '../../plugins/retry.js'
import { testAgent, until } from '../support/agent.js'
import { startScriptedModel, type Script } from '../support/scripted-model.js'

async function started(script: Script, config: object = {}) {
  const server = await startScriptedModel(script)
  const host = await createTestHost({ plugins: [{ name: 'retry', config }, 'tool-fs', { name: 'model-openai', config: { id: 'x', profile: 'custom', baseURL: server.url, apiKey: 'k' } }], agent: { model: 'x/m' } })
  onTestFinished(async () => { await host.close(); await server.close() })
  return { server, host, run: async () => {
    const began = performance.now()
    const { result, events } = await host.run('go')
    return { result, events, ms: performance.now() - began, warnings: events.flatMap(event => event.type === 'warning' ? [event.message] : []), attempts: events.flatMap(event => event.type === 'request' ? [event.attempt] : []) }
  } }
}

describe('retry', () => {
  it('sends a request again that failed for a passing reason, waits as long as it is asked to, and the log shows each attempt', async () => {
    const { run } = await started([{ status: 429, headers: { 'retry-after-ms': '900' }, body: { error: { message: 'slow down' } } }, { status: 503 }, 'done'])
    const { result, ms, warnings, attempts } = await run()
    expect(result).toMatchObject({ reason: 'completed', text: 'done', stats: { steps: 1 } })
    expect(ms).toBeGreaterThan(1600)
    expect(warnings).toEqual([expect.stringMatching(/^attempt 1 failed and is made again: .*slow down/), expect.stringMatching(/^attempt 2 failed and is made again: .*503/)])
    expect(attempts).toEqual([1, 2, 3])
  })
  it('gives up after so many attempts with the last reason', async () => {
    const { run, server } = await started(() => ({ status: 500, body: { error: { message: 'boom' } } }), { attempts: 2 })
    expect((await run()).result).toMatchObject({ reason: 'failed', message: expect.stringContaining('boom') })
    expect(server.requests).toHaveLength(2)
  })
  it('fails at once where the endpoint asks for more patience than there is', async () => {
    const { run, server } = await started([{ status: 429, headers: { 'retry-after': '3600' } }])
    const { result, ms } = await run()
    expect(result).toMatchObject({ reason: 'failed', message: expect.stringContaining('it asks to wait 3600 s') })
    expect([server.requests.length, ms < 2000]).toEqual([1, true])
  })
  it.each([[400, 'bad'], [401, 'key'], [404, 'model']])('does not send again what %d refuses', async (status, message) => {
    const { run, server } = await started([{ status, body: { error: { message } } }])
    expect((await run()).result.reason).toBe('failed')
    expect(server.requests).toHaveLength(1)
  })
  it('asks again for a reply that broke off, keeps nothing of its calls, and runs those of the whole one once', async () => {
    const write = { name: 'write_file', arguments: { path: 'b.md', content: 'x'.repeat(400) } }
    const { run } = await started([{ text: 'half', toolCalls: [write], cutAfter: 1500 }, { text: 'whole', toolCalls: [write] }, 'done'])
    const { result, events } = await run()
    expect(result).toMatchObject({ reason: 'completed', text: 'done' })
    expect(events.flatMap(event => event.type === 'message' && event.role === 'assistant' ? event.content : [])).toMatchObject([{ text: 'whole' }, { text: 'done' }])
    expect(events.filter(event => event.type === 'tool-intent')).toHaveLength(1)
  })
  it('asks once more for a reply that ended early, and then says that it is truncated', async () => {
    const { run, server } = await started(() => ({ text: 'half an ans', finish: null, done: false, usage: false }))
    expect((await run()).result.reason).toBe('truncated')
    expect(server.requests).toHaveLength(2)
  })
  it('lets go at once when the turn is stopped while it waits', async () => {
    const { agent, plugin, model, cwd, lines } = await testAgent(), timers = process.getActiveResourcesInfo().filter(type => type === 'Timeout').length
    await plugin('retry', ctx => { retry.apply(ctx, retry.Config.parse({})) })
    model.says({ error: new ModelError('rate_limit', 'slow down', { retryAfterMs: 55_000 }) })
    const run = await agent.agents.run({ prompt: 'go', cwd })
    await until(() => lines.some(({ level, message }) => level === 'warn' && message === 'request to "scripted/default" is sent again in 55 s'))
    agent.agents.abort(run.session)
    expect((await run.result).reason).toBe('aborted')                 // the wait alone is longer than a test may take
    expect(model.requests).toHaveLength(1)
    expect(process.getActiveResourcesInfo().filter(type => type === 'Timeout').length).toBeLessThanOrEqual(timers)
  })
})

describe('the wait', () => {
  const config = retry.Config.parse({})
  const busy = new ModelError('overloaded', 'busy')
  it('grows to 8 s, and is within a quarter of that', () => {
    const waits = (random: number) => [1, 2, 3, 4, 5, 6, 7].map(attempt => retry.waitAfter(busy, attempt, { ...config, attempts: 20 }, () => random))
    expect(waits(0.5)).toEqual([500, 1000, 2000, 4000, 8000, 8000, 8000])
    expect([waits(0)[0], waits(1)[6]]).toEqual([375, 10_000])
  })
  it('is none for what is no failure of a model, does not pass, or was tried often enough', () => {
    expect([new Error('x'), 'x', undefined, new ModelError('auth', 'x'), new ModelError('overloaded', 'x', { retryable: false }), new ModelError('rate_limit', 'x', { retryAfterMs: 61_000 })].map(error => retry.waitAfter(error, 1, config))).toEqual(Array.from({ length: 6 }, () => undefined))
    expect([retry.waitAfter(busy, 3, config), retry.waitAfter(new ModelError('truncated', 'x'), 2, config)]).toEqual([undefined, undefined])
  })
})

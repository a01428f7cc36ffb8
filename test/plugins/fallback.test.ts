import { describe, expect, it, vi } from 'vitest'
import { ModelError } from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import * as fallback from '../../plugins/fallback.js'
import * as retry from '../../plugins/retry.js'
import { ofType, ScriptedModel, testAgent } from '../support/agent.js'

async function started(config: object = {}) {
  const agent = await testAgent()
  await agent.plugin('fallback', ctx => { fallback.apply(ctx, fallback.Config.parse({ models: ['second/m', 'third/m'], ...config })) })
  const second = new ScriptedModel('second'), third = new ScriptedModel('third')
  await agent.plugin('more-models', ctx => { ctx.models.register(second); ctx.models.register(third) })
  return { ...agent, second, third }
}
const busy = { error: new ModelError('overloaded', 'busy') }
const models = (log: Parameters<typeof ofType>[0]) => ofType(log, 'request').map(({ model }) => model)

describe('fallback', () => {
  it('asks the next model in line when one fails, and says so', async () => {
    const { model, second, third, run, lines } = await started()
    model.says(busy)
    second.says({ chunks: ['half an'], error: new ModelError('network', 'lost') })
    third.says('from the third')
    const { text, log } = await run('go')
    expect(text).toBe('from the third')
    expect(models(log)).toEqual(['scripted/default', 'second/m', 'third/m'])
    expect(lines.filter(({ plugin }) => plugin === 'fallback').map(({ message }) => message)).toEqual([
      'model "scripted/default" failed (overloaded), so "second/m" is asked: busy',
      'model "second/m" failed (network), so "third/m" is asked: lost',
    ])
    expect(ofType(log, 'message').map(({ role }) => role)).toEqual(['user', 'assistant'])
  })
  it('runs the calls of the reply that stands, once', async () => {
    const { model, second, run, tools } = await started()
    let ran = 0
    await tools({ name: 'count', description: 'Counts.', parameters: { type: 'object' }, execute: () => `${++ran}` })
    model.says(busy)
    second.says({ calls: [['count', {}]] }, 'done')
    await run('go')
    expect(ran).toBe(1)
  })
  it('passes over a model that failed until its rest is over', async () => {
    const { model, second, run } = await started({ rest: '1s' })
    model.says(busy, 'back again')
    second.says('one', 'two')
    expect(models((await run('go')).log)).toEqual(['scripted/default', 'second/m'])
    expect(models((await run('go')).log)).toEqual(['second/m'])
    await new Promise(resolve => { setTimeout(resolve, 1100) })
    expect(await run('go')).toMatchObject({ text: 'back again' })
  })
  it('lets a model rest as long as it is told to when the clock is set a day forward', async () => {
    const { model, second, run } = await started({ rest: '1h' })
    model.says(busy, 'too early')
    second.says('one', 'two')
    await run('go')
    const now = vi.spyOn(Date, 'now').mockImplementation(() => 86_400_000 + new Date().getTime())
    try { expect(models((await run('go')).log)).toEqual(['second/m']) } finally { now.mockRestore() }
  })
  it('tries all of them when all rest', async () => {
    const { model, second, third, run } = await started()
    for (const each of [model, second, third]) each.says(busy)
    expect(await run('go')).toMatchObject({ reason: 'failed', message: 'busy' })
    model.says('there again')
    expect(await run('go')).toMatchObject({ text: 'there again' })
  })
  it.each([new ModelError('bad_request', 'no'), new ModelError('context_length', 'too long'), new ModelError('content_filter', 'no'), new Error('a bug')])('asks nobody else about what is wrong with the request: %s', async error => {
    const { model, second, run } = await started()
    model.says({ error })
    expect((await run('go')).reason).toBe('failed')
    expect(second.requests).toHaveLength(0)
  })
  it('stands above retry, which sends to each model as often as it may', async () => {
    const { plugin, model, second, run } = await started()
    await plugin('retry', ctx => { retry.apply(ctx, retry.Config.parse({ attempts: 2 })) })
    model.says(busy, busy)
    second.says(busy, 'at last')
    expect(models((await run('go')).log)).toEqual(['scripted/default', 'scripted/default', 'second/m', 'second/m'])
  })
  it('names a model of the config that does not exist', async () => {
    const { model, run } = await started({ models: ['secnod/m'] })
    model.says(busy)
    expect((await run('go')).message).toContain('model "secnod/m" does not exist')
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const host = await createTestHost({ plugins: [], replies: [() => { throw new ModelError('overloaded', 'busy') }, 'hello'] })
    const row = { name: 'fallback', config: { models: ['scripted/other'] } }
    await host.configure([row])
    expect((await host.run('go')).result.text).toBe('hello')
    expect((await host.reload('fallback'))).toBeDefined()
    await host.close()
  })
})

import { describe, expect, it } from 'vitest'
import { reject, send } from '../../core/agent/hooks.js'
import type { ModelAsk } from '../../core/agent/services.js'
import { textOf, type Reply } from '../../core/agent/vocabulary.js'
import type { Context } from '../../core/kernel/hooks.js'
import { testAgent } from '../support/agent.js'

async function asking() {
  const agent = await testAgent({ config: { prices: { scripted: { input: 1_000_000, output: 1_000_000 } }, maxCost: 20 } })
  let ctx!: Context
  const asker = await agent.plugin('asker', mine => { ctx = mine })
  return { ...agent, asker, ask: (more: Partial<ModelAsk> = {}): Promise<Reply> => ctx.models.ask({ messages: [{ role: 'system', content: 'Be brief.' }, 'Why?'], ...more }) }
}

describe('models.ask', () => {
  it('sends one request without tools to the model of the config, and gives the whole reply', async () => {
    const { ask, model, tools } = await asking()
    await tools({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, execute: () => 'seen' })
    model.says('because')
    const reply = await ask({ options: { temperature: 0 } })
    expect([textOf(reply.message), reply.finish, reply.model]).toEqual(['because', 'stop', 'scripted/default'])
    expect(model.requests).toMatchObject([{ model: 'default', tools: [], options: { temperature: 0 }, messages: [{ role: 'system', source: { kind: 'plugin', id: 'asker' } }, { role: 'user', content: [{ type: 'text', text: 'Why?' }] }] }])
  })
  it('is judged and surrounded like any request: changed, tried again, rejected', async () => {
    const { ask, model, plugin } = await asking()
    const seen: unknown[] = []
    await plugin('judge', ctx => {
      ctx.on('agent/pre-request', ({ turn, session, messages }) => { seen.push([turn, session.depth, session.parent]); return textOf(messages[1]!).includes('secret') ? reject('not that') : send({ options: { top_p: 1 } }) })
      ctx.on('agent/request', async (_, next) => { try { return await next() } catch { return next() } })
    })
    model.says({ error: new Error('lost') }, 'because')
    expect(textOf((await ask({ session: { id: 's', cwd: '/', depth: 0, messages: [] } })).message)).toBe('because')
    expect(model.requests.at(-1)!.options).toEqual({ top_p: 1 })
    expect(seen).toEqual([[0, 1, 's']])
    await expect(ask({ messages: ['x', 'the secret'] })).rejects.toThrow('the request of plugin "asker" was rejected by plugin "judge": not that')
  })
  it('is paid for by the turn that it is for', async () => {
    const { ask, model, plugin, run, tools } = await asking()
    await tools({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, execute: () => 'seen' })
    model.says({ calls: [['look', {}]] }, 'done')
    expect((await run('go')).reason).toBe('completed')                 // 12 a reply, and the limit is 20: one step more is let in
    await plugin('titles', ctx => { ctx.on('agent/pre-step', async ({ session, step }) => { if (step === 0) await ask({ session }) }) })
    model.says('a title', { calls: [['look', {}]] })
    expect((await run('go')).reason).toBe('max-cost')
  })
  it('ends with its signal, and with its plugin', async () => {
    const { ask, model, kernel, asker } = await asking()
    model.says({ deaf: true })
    await expect(ask({ signal: AbortSignal.timeout(20) })).rejects.toThrow(/timeout/)
    model.says({ deaf: true })
    const asked = ask().catch((error: Error) => error)
    while (model.requests.length < 2) await new Promise(setImmediate)
    kernel.switch([], [asker])
    await kernel.dispose(asker, 50)
    expect(await asked).toBeInstanceOf(Error)
  })
  it('says what is wrong with a request before anything is asked', async () => {
    const { ask, model } = await asking()
    await expect(ask({ messages: [] })).rejects.toThrow('plugin "asker": models.ask needs messages, a list that is not empty')
    await expect(ask({ messages: [{ role: 'tool', content: 'x' }] })).rejects.toThrow('takes messages that are strings or')
    await expect(ask({ model: 'nobody/x' })).rejects.toThrow('model "nobody/x" does not exist')
    expect(model.requests).toEqual([])
  })
})

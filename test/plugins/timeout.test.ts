import { describe, expect, it } from 'vitest'
import { createTestHost } from 'harnessx/testing'
import * as retry from '../../plugins/retry.js'
import * as timeout from '../../plugins/timeout.js'
import { ofType, testAgent } from '../support/agent.js'

async function started(config: object) {
  const agent = await testAgent()
  await agent.plugin('timeout', ctx => { timeout.apply(ctx, timeout.Config.parse(config)) })
  return agent
}
/** A tool that ends only when it is told to; `seen` becomes what it was told with. */
function hanging(name: string) {
  const tool = { name, description: 'Hangs.', parameters: { type: 'object' }, seen: undefined as unknown, execute: async (_: never, { signal }: { signal: AbortSignal }) => {
    await new Promise<void>(resolve => { signal.addEventListener('abort', () => { tool.seen = signal.reason; resolve() }) })
    return 'late'
  } }
  return tool
}

describe('timeout', () => {
  it('ends a tool that takes too long: its signal is aborted, the model reads why, and the turn goes on', async () => {
    const { model, run, tools } = await started({ tool: '30ms' })
    const tool = hanging('wait')
    await tools(tool)
    model.says({ calls: [['wait', {}]] }, 'gave up')
    const { reason, text, log } = await run('go')
    expect([reason, text]).toEqual(['completed', 'gave up'])
    expect(ofType(log, 'tool-result')).toMatchObject([{ kind: 'failed', content: 'tool "wait" did not finish within 30 ms and was stopped; what it did until then stays' }])
    expect(tool.seen).toBeInstanceOf(Error)
  })
  it('gives a tool the limit that stands at its name, or none', async () => {
    const { model, run, tools } = await started({ tool: '30ms', tools: { slow: 'none', short: '10ms' } })
    await tools({ name: 'slow', description: 'Slow.', parameters: { type: 'object' }, execute: async () => { await new Promise(resolve => { setTimeout(resolve, 80) }); return 'made it' } }, hanging('short'))
    model.says({ calls: [['slow', {}], ['short', {}]] }, 'done')
    const { log } = await run('go')
    expect(ofType(log, 'tool-result').map(({ content }) => content)).toEqual(['made it', expect.stringContaining('within 10 ms')])
  })
  it('ends a request that takes too long, also of a model that does not listen', async () => {
    const { model, run } = await started({ request: '30ms' })
    model.says({ chunks: ['half'], deaf: true })
    const { reason, message } = await run('go')
    expect([reason, message]).toEqual(['failed', 'model "scripted/default" did not finish its reply within 30 ms'])
  })
  it('is a failure that passes: above it, retry sends the request again', async () => {
    const agent = await testAgent()
    await agent.plugin('retry', ctx => { retry.apply(ctx, retry.Config.parse({})) })
    await agent.plugin('timeout', ctx => { timeout.apply(ctx, timeout.Config.parse({ request: '500ms' })) })
    agent.model.says({ hang: true }, 'second try')
    const { text, log } = await agent.run('go')
    expect(text).toBe('second try')
    expect(ofType(log, 'request').map(({ attempt }) => attempt)).toEqual([1, 2])
  })
  it('holds nothing when the act ends in time, and leaves nothing when it is switched off', async () => {
    const host = await createTestHost({ plugins: ['timeout', 'tool-fs'], files: { 'a.txt': 'hello' }, replies: [{ calls: [{ name: 'read_file', arguments: { path: 'a.txt' } }] }, 'done'] })
    const { results } = await host.run('go')
    expect(results[0]).toContain('hello')
    await host.reload('timeout')
    await host.close()
  })
  it.each([[{ tool: '0s' }], [{ request: '2d' }], [{ tool: 5 }], [{ tols: {} }]])('refuses the config %j', config => {
    expect(timeout.Config.safeParse(config).success).toBe(false)
  })
})

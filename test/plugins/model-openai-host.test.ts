import { afterEach, describe, expect, it } from 'vitest'
import { createTestHost, type TestHost } from 'harnessx/testing'
import type { RunEvent, SessionEvent } from 'harnessx'
import { buildRequest } from '../../core/agent/request.js'
import { Config, wireBody } from '../../plugins/model-openai/index.js'
import { endpointOf, specsOf } from '../../plugins/model-openai/endpoint.js'
import { startScriptedModel, type Script, type ScriptedModel } from '../support/scripted-model.js'

const open: { close(): Promise<unknown> }[] = []
afterEach(async () => { for (const one of open.splice(0)) await one.close() })

async function started(script: Script, config: object, plugins: string[] = ['tool-fs']): Promise<{ server: ScriptedModel; host: TestHost }> {
  const server = await startScriptedModel(script)
  const host = await createTestHost({ plugins: [...plugins, { name: 'model-openai', config: { baseURL: server.url, apiKey: 'k', ...config } }], files: { 'a.md': '# A 👍🏽\n' }, agent: { model: 'x/some/model' } })
  open.push(host, server)
  return { server, host }
}
const isLogged = (event: RunEvent): event is SessionEvent => 'seq' in event
/** The log up to and including each request. */
const upToRequests = (events: readonly RunEvent[]): SessionEvent[][] => {
  const log = events.filter(isLogged)
  return log.flatMap((event, place) => event.type === 'request' ? [log.slice(0, place + 1)] : [])
}

describe('on the host', () => {
  it('each request that is sent is, byte for byte, the one rebuilt from the session log', async () => {
    const { server, host } = await started([
      { reasoning: 'I should look', text: 'I look.', toolCalls: [{ name: 'read_file', arguments: { path: 'a.md' }, extra: { extra_content: { google: { thought_signature: 'sig' } } } }, { name: 'glob', arguments: '{"pattern": "*.md"}' }], message: { reasoning_details: [{ type: 'x', index: 0 }] } },
      { toolCalls: [{ name: 'read_file', arguments: '{"path":' }, { name: 'nope', arguments: '' }] },
      'done',
      'again',
    ], { id: 'x', profile: 'custom', options: { temperature: 0.5 } })
    const first = await host.run('read "a.md" \u2028 please')
    expect(first.result).toMatchObject({ reason: 'completed', text: 'done' })
    const second = await host.run('and now?', { session: first.result.session })
    const wire = endpointOf(specsOf(Config.parse({ id: 'x', profile: 'custom', baseURL: server.url, apiKey: 'k', options: { temperature: 0.5 } }), 'model-openai')[0]!, () => undefined)
    if (typeof wire === 'string') throw new Error(wire)
    const logs = upToRequests([...first.events, ...second.events])
    expect(logs).toHaveLength(4)
    for (const [place, log] of logs.entries()) {
      const rebuilt = buildRequest(JSON.parse(JSON.stringify(log)) as SessionEvent[])
      expect(server.requests[place]!.raw.toString()).toBe(JSON.stringify(wireBody(rebuilt, wire.wire)))
    }
    const [, again] = server.requests
    expect(again!.body.messages.find((message: { role: string }) => message.role === 'assistant')).toMatchObject({
      content: 'I look.', reasoning_content: 'I should look', reasoning_details: [{ type: 'x', index: 0 }], tool_calls: [{ extra_content: { google: { thought_signature: 'sig' } } }, {}],
    })
    expect(again!.body.model).toBe('some/model')
  })

  it('DeepSeek gets its reasoning back in every later request, as it demands', async () => {
    const demands = (body: { messages: { role: string; tool_calls?: unknown; reasoning_content?: unknown }[] }) => body.messages.every(message => !message.tool_calls || typeof message.reasoning_content === 'string')
    const { host } = await started(({ body }, index) => !demands(body)
      ? { status: 400, body: { error: { message: 'The reasoning_content in the thinking mode must be passed back to the API.', type: 'invalid_request_error' } } }
      : index % 2 === 0 ? { reasoning: 'hm', toolCalls: [{ name: 'read_file', arguments: { path: 'a.md' } }] } : { reasoning: 'so', text: `answer ${index}` }, { id: 'x', profile: 'deepseek' })
    const first = await host.run('one')
    expect(first.result).toMatchObject({ reason: 'completed', text: 'answer 1' })
    expect((await host.run('two', { session: first.result.session })).result).toMatchObject({ reason: 'completed', text: 'answer 3' })
  })

  it('a reply that is cut keeps its text in the log and runs no half call', async () => {
    const { server, host } = await started(() => ({ text: 'half', toolCalls: [{ name: 'write_file', arguments: { path: 'b.md', content: 'x'.repeat(400) } }], cutAfter: 1500 }), { id: 'x', profile: 'custom' })
    const { result, events } = await host.run('write')
    expect(result.reason).not.toBe('completed')
    expect(events.some(event => event.type === 'tool-intent')).toBe(false)
    expect(events.find(event => event.type === 'error')).toMatchObject({ partial: 'half' })
    expect(server.requests.length).toBeGreaterThan(0)
  })
})

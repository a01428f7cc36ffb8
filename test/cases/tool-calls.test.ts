import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { caseHost, tool } from '../support/case-host.js'
import { startScriptedModel, type Script } from '../support/scripted-model.js'

/** The real protocol on a real socket: what the endpoint says, and what it was sent. */
async function wired(script: Script, { plugins = {}, ...more }: Partial<Parameters<typeof caseHost>[0]> = {}) {
  const server = await startScriptedModel(script)
  onTestFinished(() => server.close())
  const host = await caseHost({ agent: { model: 'x/m' }, ...more, plugins, shipped: [...more.shipped ?? [], { name: 'model-openai', config: { id: 'x', profile: 'custom', baseURL: server.url, apiKey: 'k' } }] })
  return { host, server, sent: (place: number) => server.requests[place]!.body.messages as { role: string; content: string; tool_call_id?: string; tool_calls?: { id: string; function: { name: string; arguments: string } }[] }[] }
}
const chunk = (delta: object, finish: string | null = null) => ({ choices: [{ index: 0, delta, finish_reason: finish }] })

describe('over the wire', () => {
  it('three calls of which one fails get three answers in their order', async () => {
    const { host, sent } = await wired([{ toolCalls: ['a', 'b', 'c'].map(name => ({ name })) }, 'done'], { plugins: { tools: tool('a') + tool('b', `(() => { throw new Error('disk on fire') })()`) + tool('c') } })
    expect((await host.run('go')).result.reason).toBe('completed')
    const [, , asked, ...answers] = sent(1)
    expect(answers.map(({ role, tool_call_id, content }) => [role, tool_call_id, content])).toEqual(asked!.tool_calls!.map(({ id }, n) => ['tool', id, ['ran', 'disk on fire', 'ran'][n]]))
  })
  it('a command with quotes, backslashes and odd characters reaches bash byte for byte', async () => {
    const command = `printf %s 'a "b" \\n \\\\ $HOME \u2028 \u{1f44d}' > out.txt; echo "a \\"b\\" \\\\n"`
    const { host } = await wired([{ toolCalls: [{ name: 'bash', arguments: { command } }], deltaSize: 3 }, 'done'], { shipped: ['tool-bash'] })
    expect((await host.run('go')).results).toEqual(['a "b" \\n\n[exit code 0]'])
    expect(readFileSync(join(host.folder, 'out.txt'), 'utf8')).toBe('a "b" \\n \\\\ $HOME \u2028 \u{1f44d}')
  })
  it('calls without an index, ids interleaved, names late, a finish of "stop": all run with their own arguments', async () => {
    const { host } = await wired([{ chunks: [
      { choices: [], id: '' },
      chunk({ tool_calls: [{ id: 'a', function: { arguments: '{"n":' } }] }), chunk({ tool_calls: [{ id: 'b', type: 'function', function: { name: 'two', arguments: '{"n"' } }] }),
      chunk({ tool_calls: [{ id: 'a', function: { name: 'one', arguments: '1}' } }] }), chunk({ tool_calls: [{ id: 'b', function: { arguments: ':2}' } }] }),
      chunk({}, 'stop'), { choices: [], usage: { prompt_tokens: 5, completion_tokens: 6 } }, 'data: [DONE]\n\n',
    ] }, 'done'], { plugins: { tools: tool('one') + tool('two') } })
    const { result } = await host.run('go')
    expect(host.said()).toEqual(['one ran {"n":1}', 'two ran {"n":2}'])
    expect([result.reason, result.usage.inputTokens >= 5]).toEqual(['completed', true])
  })
  it.each([['in mid-arguments', { text: 'I will', toolCalls: [{ name: 'act', arguments: { text: 'x'.repeat(400) } }], cutAfter: 1200 }], ['in mid-text', { text: 'half an answer '.repeat(40), cutAfter: 900 }], ['without an end', { text: 'half', toolCalls: [{ name: 'act', arguments: {} }], finish: null, done: false, usage: false as const }]])('a stream that ends %s fails the turn, and its call never runs', async (_, reply) => {
    const { host } = await wired([reply, 'fine'], { plugins: { tools: tool('act') } })
    const { result } = await host.run('go')
    expect(['failed', 'truncated']).toContain(result.reason)
    expect(host.said()).toEqual([])
    expect((await host.run('again', { session: result.session })).result).toMatchObject({ reason: 'completed', text: 'fine' })
  })
  it('a call that is cut by the window never runs, and the log says what looks wrong', async () => {
    const { host } = await wired([{ text: 'so', toolCalls: [{ name: 'act', arguments: '{"a":' }], finish: 'length', usage: { prompt_tokens: 4000, completion_tokens: 96 } }], { plugins: { tools: tool('act') } })
    expect((await host.run('go')).result.reason).toBe('truncated')
    expect(host.said()).toEqual([])
    expect(host.log.some(({ level, message }) => level === 'warn' && message.includes('smaller'))).toBe(true)
  })
  it('a system message of a plugin in mid-conversation is sent as text of the user', async () => {
    const { host, sent } = await wired(['one', 'two'], { plugins: { late: `ctx.on('agent/pre-step', async ({ turn }, next) => { const d = await next(); return turn === 2 && d.kind === 'enter' ? { ...d, messages: [...d.messages, { role: 'system', content: 'be brief' }] } : undefined })` } })
    const { result } = await host.run('go')
    await host.run('on', { session: result.session })
    expect(sent(1).map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user', 'user'])
  })
  it('names and arguments that no endpoint takes back are answered, and the next request can be sent', async () => {
    const odd = [
      { name: 'functions.read_file', arguments: { path: 'a' } }, { name: ' read_file ', arguments: {} }, { name: 'läs fil', arguments: {} }, { name: 'x'.repeat(300), arguments: {} }, { name: '__proto__', arguments: {} }, { name: 'constructor', arguments: {} },
      { name: 'act', arguments: '{"__proto__":{"polluted":1},"n":1}' }, { name: 'act', arguments: '{"constructor":{"prototype":{"polluted":1}}}' }, { name: 'act', arguments: '{"a":1,"a":2}' }, { name: 'act', arguments: '"{\\"n\\":1}"' },
      { name: 'act', arguments: '{"n":1}{"n":2}' }, { name: 'act', arguments: '```json\n{"n":1}\n```' }, { name: 'act', arguments: '{"n":1e999}' }, { name: 'act', arguments: '{"s":"\\ud800"}' }, { name: 'act', arguments: '\ufeff{"n":1}' },
    ]
    const { host, sent } = await wired([{ toolCalls: odd }, 'done'], { plugins: { tools: tool('act') }, shipped: ['tool-fs'] })
    const { result, results } = await host.run('go')
    expect(result.reason).toBe('completed')
    expect(results).toHaveLength(odd.length)
    expect(results[0]).toBe('there is no tool "functions_read_file" here; the tools are act, read_file, write_file, edit_file, glob, grep')
    expect(({} as { polluted?: number }).polluted).toBeUndefined()
    const asked = sent(1).find(({ role }) => role === 'assistant')!.tool_calls!
    expect(asked.map(({ function: { name } }) => /^[\w-]{1,64}$/.test(name))).toEqual(odd.map(() => true))
    for (const { function: { arguments: args } } of asked) expect(JSON.parse(args)).toBeTypeOf('object')
    expect(results.slice(1, 6).every(text => text.startsWith('there is no tool "') && text.length < 200)).toBe(true)
    expect(results.slice(6).map(text => text.split(/ \(|;/)[0])).toEqual(['ran', 'ran', 'ran', 'invalid arguments for tool "act": the arguments must be a JSON object, received a string', ...Array.from({ length: 2 }, () => 'invalid arguments for tool "act": the arguments are not valid JSON'), 'ran', 'ran', 'invalid arguments for tool "act": the arguments are not valid JSON'])
    expect(host.said()).toEqual(['act ran {"n":1}', 'act ran {"constructor":{"prototype":{"polluted":1}}}', 'act ran {"a":2}', 'act ran {"n":null}', 'act ran {"s":"\\ud800"}'])
  })
})

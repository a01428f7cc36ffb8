import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { ModelError, text, userMessage, type Context, type Message, type Model, type ModelChunk, type ModelRequest, type Reply } from 'harnessx'
import { apply, Config, wireBody } from '../../plugins/model-openai/index.js'
import { Assembly } from '../../plugins/model-openai/assembly.js'
import { endpointOf, specsOf } from '../../plugins/model-openai/endpoint.js'
import { retryAfterOf } from '../../plugins/model-openai/failures.js'
import { Headers } from '../../plugins/model-openai/headers.js'
import { startScriptedModel, type Script, type ScriptedModel } from '../support/scripted-model.js'

const KEY = 'hx-canary-0123456789'
const tool = { name: 'read_file', description: 'reads', parameters: { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } }
const asking = (more: Partial<ModelRequest> = {}): ModelRequest => ({ model: 'm', messages: [userMessage('hi')], tools: [], options: {}, ...more })

const open: { close(): Promise<unknown> }[] = []
afterEach(async () => { await Promise.all(open.splice(0).map(one => one.close())) })
async function scripted(script: Script): Promise<ScriptedModel> {
  const model = await startScriptedModel(script)
  open.push(model)
  return model
}

/** The plugin, loaded with a config and keys; the little of a context that it uses. */
function load(config: unknown, keys: Record<string, string> = {}) {
  const models: Model[] = [], logged: string[] = []
  const note = (message: string) => { logged.push(message) }
  const ctx = { id: 'model-openai', logger: { debug: note, info: note, warn: note, error: note }, get: (name: string) => name === 'keys' ? { get: (key: string) => keys[key] } : undefined, models: { register: (model: Model) => { models.push(model); return () => {} } } }
  apply(ctx as unknown as Context, Config.parse(config))
  return { models, logged, model: models[0]! }
}
const at = (url: string, more: object = {}) => load({ id: 'x', profile: 'custom', baseURL: url, apiKey: KEY, ...more })

async function ask(model: Model, request = asking(), signal = new AbortController().signal): Promise<{ deltas: ModelChunk[]; reply: Reply }> {
  const deltas: ModelChunk[] = []
  let reply: Reply | undefined
  for await (const chunk of model.stream(request, { signal })) if (chunk.kind === 'reply') reply = chunk.reply; else deltas.push(chunk)
  if (!reply) throw new Error('the stream ended without a reply')
  return { deltas, reply }
}
async function failure(model: Model, request = asking(), signal?: AbortSignal): Promise<ModelError> {
  const outcome = await ask(model, request, signal).then(({ reply }) => reply, (error: unknown) => error)
  if (!(outcome instanceof ModelError)) throw new Error(`expected a ModelError, received ${JSON.stringify(outcome)} ${String(outcome)}`)
  return outcome
}
const joined = (deltas: ModelChunk[], kind: string) => deltas.filter(delta => delta.kind === kind).map(delta => (delta as { text: string }).text).join('')
const delta = (delta: object, finish: string | null = null) => ({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })
const callDelta = (...tool_calls: object[]) => delta({ tool_calls })
const DONE = 'data: [DONE]\n\n'

describe('a reply', () => {
  it('streams text and reasoning as deltas and ends with the whole reply', async () => {
    const server = await scripted([{ reasoning: 'thinking it over', text: 'hello, world: 你好 👍🏽', usage: { prompt_tokens: 9, completion_tokens: 4, prompt_tokens_details: { cached_tokens: 3 }, completion_tokens_details: { reasoning_tokens: 2 } }, deltaSize: 3, model: 'm-2' }])
    const { deltas, reply } = await ask(at(server.url).model)
    expect(joined(deltas, 'text')).toBe('hello, world: 你好 👍🏽')
    expect(joined(deltas, 'reasoning')).toBe('thinking it over')
    expect(deltas.length).toBeGreaterThanOrEqual(2)
    expect(reply).toEqual({ message: { role: 'assistant', content: [text('hello, world: 你好 👍🏽')], reasoning: 'thinking it over' }, finish: 'stop', usage: { inputTokens: 9, outputTokens: 4, cachedTokens: 3, reasoningTokens: 2 }, model: 'x/m-2' })
  })

  it('tells in one piece what comes in one piece and is of one kind, also before a failure', async () => {
    const pieces = (...deltas: object[]): string => deltas.map(each => `data: ${JSON.stringify(delta(each))}\n\n`).join('')
    const server = await scripted([{ chunks: [pieces({ reasoning_content: 'a' }, { reasoning_content: 'b' }, { content: 'c' }, { content: 'd' }, { content: 'e' }), DONE] }])
    expect((await ask(at(server.url).model)).deltas).toEqual([{ kind: 'reasoning', text: 'ab' }, { kind: 'text', text: 'cde' }])
    const failing = await scripted([{ chunks: [`${pieces({ content: 'c' }, { content: 'd' })}data: {"error":{"message":"no more"}}\n\n`] }]), deltas: ModelChunk[] = []
    await expect((async () => { for await (const chunk of at(failing.url).model.stream(asking(), { signal: new AbortController().signal })) deltas.push(chunk) })()).rejects.toThrow('no more')
    expect(deltas).toEqual([{ kind: 'text', text: 'cd' }])
  })

  it('reads the cache hits of DeepSeek', async () => {
    const server = await scripted([{ text: 'x', usage: { prompt_tokens: 9, completion_tokens: 4, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 1 } }])
    expect((await ask(at(server.url).model)).reply.usage).toEqual({ inputTokens: 9, outputTokens: 4, cachedTokens: 8 })
  })

  it('assembles several tool calls and tells their arguments as they come', async () => {
    const server = await scripted([{ text: 'I look.', toolCalls: [{ name: 'read_file', arguments: { path: 'README.md' } }, { name: 'glob', arguments: { pattern: 'src/*.js' } }], deltaSize: 4 }])
    const { deltas, reply } = await ask(at(server.url).model)
    expect(reply.finish).toBe('tool-calls')
    expect(reply.message.toolCalls).toEqual([{ id: 'call_0_0', name: 'read_file', arguments: '{"path":"README.md"}' }, { id: 'call_0_1', name: 'glob', arguments: '{"pattern":"src/*.js"}' }])
    expect(deltas.filter(one => one.kind === 'arguments' && one.callId === 'call_0_1').map(one => 'text' in one ? one.text : '').join('')).toBe('{"pattern":"src/*.js"}')
  })

  it('is read from one JSON completion when the endpoint does not stream', async () => {
    const server = await scripted([{ json: true, text: 'whole', toolCalls: [{ name: 'f', arguments: '{}' }] }])
    const { reply } = await ask(at(server.url).model)
    expect(reply.message.content).toEqual([text('whole')])
    expect(reply.message.toolCalls).toEqual([{ id: 'call_0_0', name: 'f', arguments: '{}' }])
  })

  it.each(['\n', '\r\n', '\r'] as const)('is the same when it comes byte by byte with %j', async newline => {
    const server = await scripted([{ text: 'naïve 👍🏽', toolCalls: [{ name: 'f', arguments: { a: 'ü' } }], byteByByte: true, newline }])
    const { reply } = await ask(at(server.url).model)
    expect(reply.message.content).toEqual([text('naïve 👍🏽')])
    expect(reply.message.toolCalls?.[0]?.arguments).toBe('{"a":"ü"}')
  })

  it('passes over comments, event names and empty chunks', async () => {
    const server = await scripted([{ chunks: [': ping\n\n', 'event: thread.x\n', { choices: [], prompt_filter_results: [], id: '', model: '' }, delta({ content: 'ok' }), 'id: 7\nretry: 5\n\n', { choices: [], usage: { prompt_tokens: 1, completion_tokens: 2 } }, delta({}, 'stop'), DONE] }])
    expect((await ask(at(server.url).model)).reply).toEqual({ message: { role: 'assistant', content: [text('ok')] }, finish: 'stop', usage: { inputTokens: 1, outputTokens: 2 }, model: 'x/m' })
  })

  it('keeps a refusal as its text', async () => {
    const server = await scripted([{ chunks: [delta({ refusal: 'I will ' }), delta({ refusal: 'not.' }, 'stop'), DONE] }])
    expect((await ask(at(server.url).model)).reply.message.content).toEqual([text('I will not.')])
  })

  it('reads content that comes as a list of parts', async () => {
    const server = await scripted([{ chunks: [delta({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'hm' }] }] }), delta({ content: [{ type: 'text', text: 'so' }, { type: 'image_url', image_url: { url: 'data:x' } }] }, 'stop'), DONE] }])
    expect((await ask(at(server.url).model)).reply.message).toEqual({ role: 'assistant', reasoning: 'hm', content: [text('so'), { type: 'image_url', image_url: { url: 'data:x' } }] })
  })

  it.each(['constructor', 'toString', '__proto__', 'no such end'])('ends for another reason when the endpoint gives a word that is none: %s', word => {
    const assembly = new Assembly('x', 10_000)
    for (const _ of assembly.take({ choices: [{ index: 0, delta: { content: 'A' }, finish_reason: word }] })) { /* deltas */ }
    expect(assembly.reply(true).finish).toBe('other')
  })
  it('is one choice of several, from its first chunk to its last', () => {
    const assembly = new Assembly('x', 10_000)
    const take = (...choices: object[]) => { for (const _ of assembly.take({ choices })) { /* deltas */ } }
    take({ index: 0, delta: { content: 'A' } }, { index: 1, delta: { content: 'B' } })
    take({ index: 1, delta: { content: 'B' }, finish_reason: 'length' })
    take({ index: 0, delta: { content: 'a' }, finish_reason: 'stop' })
    expect(assembly.reply(true)).toMatchObject({ finish: 'stop', message: { content: [{ type: 'text', text: 'Aa' }] } })
  })
  it('counts a thought once when a gateway sends it under both names', async () => {
    const server = await scripted([{ chunks: [delta({ reasoning: 'a', reasoning_content: 'a' }), delta({ reasoning: 'b' }), delta({ content: 'c' }, 'stop'), DONE] }])
    expect((await ask(at(server.url).model)).reply.message.reasoning).toBe('ab')
  })

  it('is complete when nothing but the token counts is lost after its end', async () => {
    const cut = await scripted([{ chunks: [delta({ content: 'all' }, 'stop'), 'data: {"choices":[],"us'] }])
    expect((await ask(at(cut.url).model)).reply.message.content).toEqual([text('all')])
    const broken = await scripted([{ chunks: [delta({ content: 'all' }, 'stop'), 'data: {nonsense}\n\n'] }])
    expect((await ask(at(broken.url).model)).reply.message.content).toEqual([text('all')])
  })

  it('keeps a chunk that has no blank line before [DONE], and one of several data lines', async () => {
    const server = await scripted([{ chunks: ['data: {"choices":\ndata:[{"delta":{"content":"a"}}]}\n\n', 'data: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}\n', DONE] }])
    expect((await ask(at(server.url).model)).reply).toMatchObject({ message: { content: [text('ab')] }, finish: 'stop' })
  })

  it('ends at [DONE] although the connection stays open', async () => {
    const server = await scripted([{ chunks: [delta({ content: 'x' }, 'stop'), DONE], hang: 2 }])
    const began = performance.now()
    expect((await ask(at(server.url).model)).reply.finish).toBe('stop')
    expect(performance.now() - began).toBeLessThan(2000)
    await server.requests[0]!.ended
  })

  it('leaves its connection to the next request', async () => {
    const server = await scripted(['1', '2', '3', '4', '5'])
    const { model } = at(server.url)
    for (let i = 0; i < 5; i++) await ask(model)
    expect(new Set(server.requests.map(request => request.clientPort)).size).toBe(1)
  })

  it('drops the calls of a reply that was cut by its length, and says so when nobody set a limit', async () => {
    const server = await scripted([{ text: 'so', toolCalls: [{ name: 'f', arguments: '{"a":' }], finish: 'length' }])
    const { model, logged } = at(server.url)
    const { reply } = await ask(model)
    expect(reply.finish).toBe('length')
    expect(reply.message.toolCalls).toBeUndefined()
    expect(logged.join()).toContain('looks smaller')
  })
})

describe('a tool call', () => {
  const assembled = (...chunks: object[]) => {
    const assembly = new Assembly('model "x/m"', 10_000)
    const deltas = chunks.flatMap(chunk => [...assembly.take(chunk)])
    return { deltas, calls: assembly.reply(true).message.toolCalls?.map(({ name, arguments: args }) => `${name}${args}`), reply: assembly.reply(true) }
  }
  it('is assembled when no delta has an index', () => {
    expect(assembled(callDelta({ id: 'a', function: { name: 'f', arguments: '' } }), callDelta({ function: { arguments: '{"x"' } }), callDelta({ function: { arguments: ':1}' } })).calls).toEqual(['f{"x":1}'])
  })
  it('stays apart from another one without an index, ids interleaved', () => {
    expect(assembled(callDelta({ id: 'a', function: { name: 'f', arguments: '{"x' } }), callDelta({ id: 'b', function: { name: 'g', arguments: '{"y' } }), callDelta({ id: 'a', function: { arguments: '":1}' } }), callDelta({ id: 'b', function: { arguments: '":2}' } })).calls).toEqual(['f{"x":1}', 'g{"y":2}'])
  })
  it('stays apart from another one that has no id and no index either', () => {
    expect(assembled(callDelta({ function: { name: 'f', arguments: '{"x":1}' } }, { function: { name: 'f', arguments: '{"x":2}' } })).calls).toEqual(['f{"x":1}', 'f{"x":2}'])
    expect(assembled(callDelta({ function: { name: 'f', arguments: '' } }, { function: { name: 'g', arguments: '' } })).calls).toEqual(['f', 'g'])
  })
  it('stays apart from another one of the same index with its own id and name', () => {
    expect(assembled(callDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }), callDelta({ index: 0, id: 'b', function: { name: 'g', arguments: '{' } }), callDelta({ index: 0, function: { arguments: '}' } })).calls).toEqual(['f{}', 'g{}'])
  })
  it('goes on when every delta brings a new id without a name', () => {
    expect(assembled(callDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '{' } }), callDelta({ index: 0, id: 'b', function: { arguments: '}' } })).calls).toEqual(['f{}'])
  })
  it('waits for its name when the arguments come first', () => {
    const { deltas, calls } = assembled(callDelta({ index: 0, id: 'a', function: { arguments: '{"x":' } }), callDelta({ index: 0, function: { name: 'f' } }), callDelta({ index: 0, function: { arguments: '1}' } }))
    expect(calls).toEqual(['f{"x":1}'])
    expect(deltas).toEqual([{ kind: 'arguments', text: '{"x":', callId: 'a' }, { kind: 'arguments', text: '1}', callId: 'a' }])
  })
  it('has its name once, whether it comes in pieces or with every delta', () => {
    expect(assembled(callDelta({ index: 0, id: 'a', function: { name: 'read_' } }), callDelta({ index: 0, function: { name: 'file', arguments: '{}' } })).calls).toEqual(['read_file{}'])
    expect(assembled(callDelta({ id: 'a', function: { name: 'f', arguments: '{' } }), callDelta({ id: 'a', function: { name: 'f', arguments: '}' } })).calls).toEqual(['f{}'])
    expect(assembled(callDelta({ function: { name: 'f', arguments: '{' } }), callDelta({ function: { name: 'f', arguments: '}' } })).calls).toEqual(['f{}'])
  })
  it('may have its arguments as an object, or none', () => {
    expect(assembled(callDelta({ index: 0, id: 'a', function: { name: 'f', arguments: { x: 1 } } }), callDelta({ index: 1, id: 'b', function: { name: 'g', arguments: null } })).calls).toEqual(['f{"x":1}', 'g'])
  })
  it('stands where its index says, in whatever order calls begin; as they came where an index is missing or shared', () => {
    const one = (index: number | undefined, name: string) => callDelta({ ...(index !== undefined && { index }), id: name, function: { name, arguments: '{}' } })
    expect(assembled(one(2, 'c'), one(0, 'a'), one(1, 'b')).calls).toEqual(['a{}', 'b{}', 'c{}'])
    expect(assembled(one(1, 'c'), one(0, 'a'), one(undefined, 'b')).calls).toEqual(['c{}', 'a{}', 'b{}'])
    expect(assembled(one(0, 'c'), one(0, 'a')).calls).toEqual(['c{}', 'a{}'])
  })
  it('in the form from before there were several is not dropped', () => {
    expect(assembled(delta({ function_call: { name: 'f', arguments: '' } }), delta({ function_call: { arguments: '{"x":1}' } }), delta({ function_call: null }, 'function_call')).calls).toEqual(['f{"x":1}'])
  })
  it('counts although the reason to stop is "stop"', () => {
    expect(assembled(callDelta({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }), delta({}, 'stop')).reply.finish).toBe('tool-calls')
  })
  it('gets an id of its own when it has none, or one that is taken', () => {
    const assembly = new Assembly('x', 10_000, () => ['call_0'])
    const chunks = [...assembly.take(callDelta({ index: 0, id: 'call_0', function: { name: 'f', arguments: '{}' } }, { index: 1, id: 'same', function: { name: 'f', arguments: '{}' } }, { index: 2, id: 'same', function: { name: 'f', arguments: '{}' } }, { index: 3, function: { name: 'f', arguments: '{}' } }))]
    const ids = assembly.reply(true).message.toolCalls!.map(call => call.id)
    expect(new Set(ids).size).toBe(4)
    expect(ids).not.toContain('call_0')
    expect(ids[1]).toBe('same')
    expect(chunks.map(chunk => 'callId' in chunk ? chunk.callId : '')).toEqual(ids)
  })
  it('comes in thousands without harm', () => {
    const { calls } = assembled(callDelta(...Array.from({ length: 100 }, (_, i) => ({ index: i, id: `c${i}`, function: { name: 'f', arguments: '{}' } }))))
    expect(calls).toHaveLength(100)
  })
  it('without a name is an error of the protocol', () => {
    expect(() => assembled(callDelta({ index: 0, id: 'a', function: { arguments: '{}' } }))).toThrow('without a name')
  })
  it('is the same however its arguments are cut, with or without indexes', () => {
    fc.assert(fc.property(fc.array(fc.tuple(fc.constantFrom('f', 'g'), fc.json()), { minLength: 1, maxLength: 5 }), fc.integer({ min: 1, max: 9 }), fc.boolean(), (calls, size, indexed) => {
      const chunks = calls.flatMap(([name, args], i) => {
        const index = indexed ? { index: i } : {}
        const pieces = Array.from({ length: Math.ceil(args.length / size) }, (_, n) => args.slice(n * size, (n + 1) * size))
        return [callDelta({ ...index, id: `c${i}`, function: { name, arguments: '' } }), ...pieces.map(piece => callDelta({ ...index, function: { arguments: piece } }))]
      })
      expect(assembled(...chunks).calls).toEqual(calls.map(([name, args]) => name + args))
    }))
  })
  it('survives any chunks: a reply or a typed error, nothing else', () => {
    fc.assert(fc.property(fc.array(fc.anything({ withNullPrototype: false, maxDepth: 4, key: fc.constantFrom('choices', 'delta', 'tool_calls', 'function', 'name', 'arguments', 'index', 'id', 'content', 'usage', 'finish_reason', 'x') })), chunks => {
      const assembly = new Assembly('x', 10_000)
      try { for (const chunk of chunks) [...assembly.take(chunk)]; assembly.reply(false) } catch (error) { expect(error).toBeInstanceOf(ModelError) }
    }), { numRuns: 300 })
  })
})

describe('what is sent', () => {
  it('is byte for byte the body of the pure function, and rebuilt from a log it is the same', async () => {
    const server = await scripted(['ok'])
    const request = asking({
      tools: [tool], options: { temperature: 0.2, max_tokens: 100, b: { z: 1, a: 2 } },
      messages: [{ role: 'system', content: [text('be brief')] }, userMessage('read'), { role: 'assistant', content: [], toolCalls: [{ id: 'c1', name: 'read_file', arguments: '{"path":"ü"}', extra: { extra_content: { google: { thought_signature: 'x' } } } }], reasoning: 'r', source: { kind: 'model', id: 'x/m' } }, { role: 'tool', toolCallId: 'c1', content: [text('# 👍🏽 \u2028')] }],
    })
    await ask(at(server.url).model, request)
    const spec = specsOf(Config.parse({ id: 'x', profile: 'custom', baseURL: server.url, apiKey: KEY }), 'model-openai')[0]!
    const endpoint = endpointOf(spec, () => undefined)
    if (typeof endpoint === 'string') throw new Error(endpoint)
    expect(server.requests[0]!.raw.toString()).toBe(JSON.stringify(wireBody(JSON.parse(JSON.stringify(request)), endpoint.wire)))
    expect(Object.keys(server.requests[0]!.body)).toEqual(['model', 'messages', 'tools', 'tool_choice', 'b', 'temperature', 'max_tokens', 'stream', 'stream_options'])
    expect(server.requests[0]!.body.tools[0].function.parameters).toEqual({ type: 'object', properties: { path: { type: 'string' } }, required: ['path'] })
    expect(server.requests[0]!.body.tool_choice).toBe('auto')
    expect(server.requests[0]!.headers.authorization).toBe(`Bearer ${KEY}`)
  })

  it('has no tools, tool_choice or parallel_tool_calls when there are no tools', async () => {
    const server = await scripted(['ok'])
    await ask(at(server.url, { options: { parallel_tool_calls: true, tool_choice: 'auto' } }).model)
    expect(Object.keys(server.requests[0]!.body)).toEqual(['model', 'messages', 'stream', 'stream_options'])
  })

  it('never replaces model, messages or stream by an option', async () => {
    const server = await scripted(['ok'])
    await ask(at(server.url, { options: { model: 'evil', messages: [], stream: false } }).model)
    expect(server.requests[0]!.body).toMatchObject({ model: 'm', stream: true, messages: [{ role: 'user', content: 'hi' }] })
  })

  const wire = { id: 'x', options: {}, maxTokens: 'max_tokens', reasoning: 'reasoning_content', toolIds: 'any', streamOptions: true, effortNone: false } as const
  const sentMessages = (messages: Message[], more: object = {}) => wireBody(asking({ messages }), { ...wire, ...more })['messages'] as Record<string, unknown>[]

  it('has the system message first and nowhere else', () => {
    fc.assert(fc.property(fc.array(fc.record({ role: fc.constantFrom('system', 'user', 'assistant') as fc.Arbitrary<'system' | 'user' | 'assistant'>, content: fc.tuple(fc.string().map(text)) })), messages => {
      const sent = sentMessages(messages)
      expect(sent.slice(1).every(message => message['role'] !== 'system')).toBe(true)
      const heard = sent.map(message => message['content']).join('|')
      for (const message of messages) expect(heard).toContain(String(message.content[0].text).replace(/\p{Surrogate}/gu, '\ufffd'))
    }))
    expect(sentMessages([{ role: 'system', content: [text('a')] }, { role: 'system', content: [text('b')] }, userMessage('c'), { role: 'system', content: [text('d')] }])).toEqual([{ role: 'system', content: 'a\n\nb' }, { role: 'user', content: 'c' }, { role: 'user', content: 'd' }])
  })

  it('gives unknown fields of calls, their functions and the message back untouched, through the log and the wire', async () => {
    const server = await scripted([
      { message: { reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'a' }] }, toolCalls: [{ name: 'read_file', arguments: { path: 'a' }, extra: { extra_content: { google: { thought_signature: 'sig' } }, function: { strict: true } } }] },
      'ok',
    ])
    const { model } = at(server.url)
    const { reply } = await ask(model, asking({ tools: [tool] }))
    const message = JSON.parse(JSON.stringify({ ...reply.message, source: { kind: 'model', id: 'x/m' } })) as Message
    await ask(model, asking({ messages: [userMessage('hi'), message, { role: 'tool', toolCallId: message.toolCalls![0]!.id, content: [text('r')] }], tools: [tool] }))
    expect(server.requests[1]!.body.messages[1]).toEqual({
      role: 'assistant', content: null, reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'a' }],
      tool_calls: [{ id: 'call_0_0', type: 'function', function: { name: 'read_file', arguments: '{"path":"a"}', strict: true }, extra_content: { google: { thought_signature: 'sig' } } }],
    })
    await ask(load({ id: 'y', profile: 'custom', baseURL: server.url }).model, asking({ messages: [userMessage('hi'), message] })).catch(() => {})
    expect(server.requests[2]!.body.messages[1]).toEqual({ role: 'assistant', content: null, tool_calls: [{ id: 'call_0_0', type: 'function', function: { name: 'read_file', arguments: '{"path":"a"}' } }] })
  })

  it('joins the pieces of streamed reasoning details', () => {
    const assembly = new Assembly('x', 10_000)
    for (const piece of [{ type: 'reasoning.text', index: 0, text: 'a' }, { type: 'reasoning.text', index: 0, text: 'b', signature: 's' }, { type: 'reasoning.encrypted', index: 1, data: 'z' }]) [...assembly.take(delta({ reasoning_details: [piece] }))]
    expect(assembly.reply(true).message.extra).toEqual({ reasoning_details: [{ type: 'reasoning.text', index: 0, text: 'ab', signature: 's' }, { type: 'reasoning.encrypted', index: 1, data: 'z' }] })
  })

  it('returns the reasoning of DeepSeek on messages with tool calls, also when there was none, and drops it where the profile says so', () => {
    const thought: Message = { role: 'assistant', content: [], reasoning: 'because', toolCalls: [{ id: 'c', name: 'f', arguments: '{}' }], source: { kind: 'model', id: 'x/m' } }
    const silent: Message = { role: 'assistant', content: [text('I look')], toolCalls: [{ id: 'd', name: 'f', arguments: '{}' }], source: { kind: 'model', id: 'other/m' } }
    expect(sentMessages([thought, silent], { reasoningRequired: true }).map(message => message['reasoning_content'])).toEqual(['because', ''])
    expect(sentMessages([thought], { reasoning: 'reasoning' })[0]).toHaveProperty('reasoning', 'because')
    expect(JSON.stringify(sentMessages([thought], { reasoning: 'drop', reasoningRequired: true }))).not.toContain('because')
  })

  it('gives tool ids a form that the endpoint takes, the same for call and result', () => {
    const long = 'x'.repeat(60)
    const messages: Message[] = [{ role: 'assistant', content: [], toolCalls: [{ id: long, name: 'f', arguments: '{}' }] }, { role: 'tool', toolCallId: long, content: [text('r')] }]
    const [call, result] = sentMessages(messages, { toolIds: 'nine' }) as [{ tool_calls: { id: string }[] }, { tool_call_id: string }]
    expect(call.tool_calls[0]!.id).toMatch(/^[a-z0-9]{9}$/)
    expect(result.tool_call_id).toBe(call.tool_calls[0]!.id)
    expect(JSON.stringify(sentMessages(messages, { toolIds: 'short' }))).not.toContain(long)
    expect(JSON.stringify(sentMessages(messages, { toolIds: 'any' }))).toContain(long)
  })

  it('replaces half a surrogate pair', () => {
    expect(sentMessages([userMessage('a\ud83d')])[0]!['content']).toBe('a\ufffd')
  })
})

describe('a refused parameter', () => {
  const refuses = (param: string, message: string) => ({ status: 400, body: { error: { message, type: 'invalid_request_error', param, code: 'unsupported_parameter' } } })
  it('max_tokens is sent under its other name, once and from then on', async () => {
    const server = await scripted([refuses('max_tokens', "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."), 'one', 'two'])
    const { model, logged } = at(server.url, { options: { max_tokens: 50 } })
    await ask(model)
    await ask(model)
    expect(server.requests.map(({ body }) => [body.max_tokens, body.max_completion_tokens])).toEqual([[50, undefined], [undefined, 50], [undefined, 50]])
    expect(logged).toHaveLength(1)
  })
  it('max_tokens is left out when both names are refused', async () => {
    const server = await scripted([refuses('max_tokens', "'max_tokens' is not supported"), refuses('max_completion_tokens', "'max_completion_tokens' is not supported"), 'ok'])
    await ask(at(server.url, { options: { max_tokens: 50 } }).model)
    expect(server.requests[2]!.body).not.toHaveProperty('max_tokens')
    expect(server.requests[2]!.body).not.toHaveProperty('max_completion_tokens')
  })
  it('max_tokens that is too large is an error, not a lesson', async () => {
    const server = await scripted([{ status: 400, body: { error: { message: 'max_tokens is too large: 50. This model supports at most 10', type: 'invalid_request_error', param: 'max_tokens', code: 'invalid_value' } } }])
    expect((await failure(at(server.url, { options: { max_tokens: 50 } }).model)).kind).toBe('bad_request')
    expect(server.requests).toHaveLength(1)
  })
  it('stream_options is left out', async () => {
    const server = await scripted([{ status: 422, body: { detail: [{ msg: 'extra fields not permitted', loc: ['body', 'stream_options'] }] } }, 'ok'])
    await ask(at(server.url).model)
    expect(server.requests[1]!.body).not.toHaveProperty('stream_options')
  })
  it('reasoning with tools is switched off where the endpoint asks for it', async () => {
    const server = await scripted([{ status: 400, body: { error: { message: "Function tools with reasoning_effort are not supported for m in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.", type: 'invalid_request_error', param: 'reasoning_effort', code: null } } }, 'ok', 'ok'])
    const { model } = at(server.url)
    await ask(model, asking({ tools: [tool] }))
    expect(server.requests[1]!.body.reasoning_effort).toBe('none')
    await ask(model)
    expect(server.requests[2]!.body).not.toHaveProperty('reasoning_effort')
  })
  it('that is refused again and again is an error in the end', async () => {
    const server = await scripted(() => refuses('stream_options', "'stream_options' is not supported"))
    expect((await failure(at(server.url).model)).kind).toBe('bad_request')
    expect(server.requests.length).toBeLessThanOrEqual(5)
  })
})

describe('a failure', () => {
  it.each([
    [400, 'bad_request', false], [401, 'auth', false], [402, 'auth', false], [403, 'auth', false], [404, 'not_found', false], [408, 'timeout', true], [409, 'overloaded', true],
    [413, 'context_length', false], [422, 'bad_request', false], [429, 'rate_limit', true], [500, 'overloaded', true], [501, 'bad_request', false], [503, 'overloaded', true], [529, 'overloaded', true],
  ] as const)('%i is %s', async (status, kind, retryable) => {
    const server = await scripted([{ status }])
    expect(await failure(at(server.url).model)).toMatchObject({ kind, status, retryable, message: expect.stringContaining(`model "x/m" answered ${status}: scripted ${status}`) })
    expect(server.requests).toHaveLength(1)
  })
  it.each([
    ['context_length', 400, { error: { message: "This model's maximum context length is 4096 tokens", code: 'context_length_exceeded' } }],
    ['not_found', 400, { error: { message: 'Model Not Exist', code: 'invalid_request_error' } }],
    ['content_filter', 400, { error: { message: 'filtered', code: 'content_filter' } }],
    ['auth', 429, { error: { message: 'You exceeded your current quota', code: 'insufficient_quota' } }],
    ['bad_request', 400, [{ error: { message: 'in a list', code: 400, status: 'INVALID_ARGUMENT' } }]],
    ['bad_request', 400, 'plain words'],
    ['overloaded', 502, '<html><body>Bad gateway timeout</body></html>'],
  ] as const)('%s is recognised by its words (%i)', async (kind, status, body) => {
    const server = await scripted([{ status, body }])
    const error = await failure(at(server.url).model)
    expect(error.kind).toBe(kind)
    expect(error.message).not.toContain('<')
  })
  it('carries the time that the endpoint asks to wait', () => {
    const of = (headers: Record<string, string>) => retryAfterOf(new Headers(Object.entries(headers)), Date.parse('2026-01-01T00:00:00Z'))
    expect(of({ 'retry-after': '3600' })).toBe(3_600_000)
    expect(of({ 'retry-after': '1.5' })).toBe(1500)
    expect(of({ 'retry-after': 'Thu, 01 Jan 2026 00:00:20 GMT' })).toBe(20_000)
    expect(of({ 'retry-after': 'Thu, 01 Jan 2025 00:00:20 GMT' })).toBe(0)
    expect(of({ 'retry-after': '9', 'retry-after-ms': '250' })).toBe(250)
    expect(of({ 'retry-after': 'soon' })).toBeUndefined()
    expect(of({})).toBeUndefined()
  })
  it('429 says the time and returns at once instead of sleeping', async () => {
    const server = await scripted([{ status: 429, headers: { 'retry-after': '3600' } }])
    const began = performance.now()
    const error = await failure(at(server.url).model)
    expect(error).toMatchObject({ kind: 'rate_limit', retryAfterMs: 3_600_000 })
    expect(error.message).toContain('it asks to wait 3600 s')
    expect(performance.now() - began).toBeLessThan(2000)
  })
  it('obeys x-should-retry', async () => {
    const server = await scripted([{ status: 500, headers: { 'x-should-retry': 'false' } }, { status: 400, headers: { 'x-should-retry': 'true' } }])
    const { model } = at(server.url)
    expect((await failure(model)).retryable).toBe(false)
    expect((await failure(model)).retryable).toBe(true)
  })

  it('a clean end without a reason and [DONE] is truncated and keeps the text', async () => {
    const server = await scripted([{ text: 'half an ans', finish: null, done: false, usage: false }])
    expect(await failure(at(server.url).model)).toMatchObject({ kind: 'truncated', partial: 'half an ans', retryable: true })
  })
  it('a clean end in the middle of a line is truncated', async () => {
    const server = await scripted([{ chunks: [delta({ content: 'half' }), 'data: {"choices":[{"del'] }])
    expect(await failure(at(server.url).model)).toMatchObject({ kind: 'truncated', partial: 'half' })
  })
  it('a socket that is cut in mid-arguments is a network failure, and no call comes of it', async () => {
    const server = await scripted([{ text: 'I will', toolCalls: [{ name: 'f', arguments: { long: 'x'.repeat(500) } }], cutAfter: 3000 }])
    expect(await failure(at(server.url).model)).toMatchObject({ kind: 'network', partial: 'I will', retryable: true, message: expect.stringContaining('in the middle of its reply') })
  })
  it('a server that is not there is named by its origin and the reason', async () => {
    const server = await startScriptedModel([])
    await server.close()
    expect(await failure(at(`${server.url}/deep/path`).model)).toMatchObject({ kind: 'network', retryable: true, message: `model "x/m" could not be reached at http://127.0.0.1:${server.port} (ECONNREFUSED)` })
  })
  it('malformed JSON and error chunks are typed', async () => {
    const server = await scripted([
      { chunks: [delta({ content: 'a' }), 'data: {nonsense\n\n'] }, { chunks: [delta({ content: 'a' }), 'event: error\n', { error: { message: 'the engine died', code: 503 } }] },
      { chunks: [{ object: 'error', message: 'too many', code: 429 }] }, { chunks: ['data: null\n\n', DONE] }, { chunks: ['event: thread.message\ndata: {broken\n\n', DONE] },
    ])
    const { model } = at(server.url)
    expect(await failure(model)).toMatchObject({ kind: 'protocol', partial: 'a' })
    expect(await failure(model)).toMatchObject({ kind: 'overloaded', status: 503, message: 'model "x/m" broke off its reply: the engine died' })
    expect(await failure(model)).toMatchObject({ kind: 'rate_limit' })
    expect(await failure(model)).toMatchObject({ kind: 'protocol' })
    expect(await failure(model)).toMatchObject({ kind: 'protocol' })
  })
  it('HTML with status 200, no choices at all and a stream of nothing are typed', async () => {
    const server = await scripted([{ body: '<html>login</html>', contentType: 'text/html; charset=utf-8' }, { chunks: [{ choices: [] }, DONE] }, { chunks: [] }, { body: '{"choices":', contentType: 'application/json' }, { body: {} }])
    const { model } = at(server.url)
    expect(await failure(model)).toMatchObject({ kind: 'protocol', retryable: false, message: expect.stringContaining('answered with text/html') })
    for (let i = 0; i < 4; i++) expect((await failure(model)).kind).toBe('protocol')
  })
  it('an endpoint that gives up says so in its reason', async () => {
    const server = await scripted([{ text: 'a', finish: 'insufficient_system_resource' }])
    expect(await failure(at(server.url).model)).toMatchObject({ kind: 'overloaded', partial: 'a' })
  })
  it('no headers, a stalled body and an endless reply have their deadlines', async () => {
    const server = await scripted([{ hang: 'headers' }, { hang: 'body' }, { text: 'some text', deltaSize: 4, hang: 2 }, { text: 'x'.repeat(1000), deltaSize: 1, chunkMs: 20 }, { status: 500, hang: 'headers' }])
    const { model } = at(server.url, { headersTimeout: '500ms', idleTimeout: '300ms', timeout: '1s' })
    expect(await failure(model)).toMatchObject({ kind: 'timeout', message: expect.stringContaining('did not begin to answer within 0.5 s') })
    expect(await failure(model)).toMatchObject({ kind: 'timeout', message: expect.stringContaining('sent nothing for 0.3 s') })
    expect(await failure(model)).toMatchObject({ kind: 'timeout', partial: 'some' })
    expect(await failure(model)).toMatchObject({ kind: 'timeout', message: expect.stringContaining('did not finish its reply within 1 s') })
    await Promise.all(server.requests.map(request => request.ended))
  })
  it('a line of 50 MB and a reply of 100 MB are cut off', async () => {
    const line = 'x'.repeat(50_000_000)
    const piece = 'y'.repeat(10_000)
    const server = await scripted([{ chunks: [`data: {"choices":[{"delta":{"content":"${line}"}}]}\n\n`] }, { chunks: function* () { for (let i = 0; i < 10_000; i++) yield delta({ content: piece }) }() }])
    const { model } = at(server.url)
    const before = process.memoryUsage().rss
    const began = performance.now()
    expect(await failure(model)).toMatchObject({ kind: 'protocol', retryable: false, message: expect.stringContaining('line of more than') })
    const capped = await failure(model)
    expect(capped).toMatchObject({ kind: 'protocol', retryable: false, message: expect.stringContaining('characters in one reply') })
    expect(performance.now() - began).toBeLessThan(20_000)
    expect(process.memoryUsage().rss - before).toBeLessThan(400_000_000)                            // the server's own 50 MB string is in it
    await Promise.all(server.requests.map(request => request.ended))
  })
  it('redirects are refused, so that the key goes to one origin only', async () => {
    const other = await scripted(['stolen'])
    const server = await scripted([{ status: 307, headers: { location: `${other.url}/chat/completions?secret=1` }, body: '' }])
    const error = await failure(at(server.url).model)
    expect(error).toMatchObject({ kind: 'protocol', retryable: false })
    expect(error.message).toContain(`http://127.0.0.1:${other.port};`)
    expect(error.message).not.toContain('secret')
    expect(other.requests).toHaveLength(0)
  })
  it('never shows the key, a header or what is secret in an address', async () => {
    const secret = 'header-secret-value'
    const server = await scripted([{ status: 401, body: { error: { message: `Incorrect API key provided: ${KEY}, header ${secret}, Bearer abcdefghijklmn, sk-abcdefgh123, http://user:pw@host/` } } }, { chunks: [{ error: { message: KEY } }] }])
    const { model, logged } = at(`${server.url}?token=query-secret`, { headers: { 'x-extra': secret } })
    const texts = [await failure(model), await failure(model)].map(error => `${error.message} ${error.stack} ${JSON.stringify(error)} ${String(error.cause)}`).join() + logged.join()
    for (const word of [KEY, secret, 'abcdefghijklmn', 'sk-abcdefgh', 'user:pw', 'query-secret']) expect(texts).not.toContain(word)
    expect(server.requests[0]!.headers['x-extra']).toBe(secret)
    expect(server.requests[0]!.path).toContain('token=query-secret')
  })
  it('a key that no header can hold is refused without being shown', async () => {
    const error = await failure(at('http://127.0.0.1:9/v1', { apiKey: 'schlüssel-☃-canary' }).model)
    expect(error.message).not.toContain('canary')
  })
  it('prints nothing, whatever the endpoint sends', async () => {
    const server = await scripted([{ chunks: ['data: {nonsense\n\n'] }, { chunks: ['event: thread.run\ndata: {nonsense\n\n'] }, { status: 500 }])
    const printed: unknown[] = []
    const original = [console.error, console.warn, process.stderr.write] as const
    console.error = console.warn = (...args: unknown[]) => { printed.push(args) }
    process.stderr.write = ((chunk: unknown) => { printed.push(chunk); return true }) as never
    try { for (let i = 0; i < 3; i++) await failure(at(server.url).model) } finally { [console.error, console.warn] = original; process.stderr.write = original[2] }
    expect(printed).toEqual([])
  })
})

describe('an abort', () => {
  it.each([['before the headers', { hang: 'headers' }], ['before the first chunk', { hang: 'body' }], ['in mid-stream', { text: 'some text', deltaSize: 4, hang: 2 }]] as const)('%s ends the request at once and leaves no listener', async (_, reply) => {
    const server = await scripted([reply])
    const controller = new AbortController()
    const listeners = new Set<unknown>()
    const { addEventListener, removeEventListener } = controller.signal
    controller.signal.addEventListener = function (this: AbortSignal, ...args: Parameters<typeof addEventListener>) { listeners.add(args[1]); return addEventListener.apply(this, args) } as never
    controller.signal.removeEventListener = function (this: AbortSignal, ...args: Parameters<typeof removeEventListener>) { listeners.delete(args[1]); return removeEventListener.apply(this, args) } as never
    const outcome = failure(at(server.url).model, asking(), controller.signal)
    await server.request(1)
    const began = performance.now()
    controller.abort()
    expect(await outcome).toMatchObject({ kind: 'aborted', retryable: false })
    expect(performance.now() - began).toBeLessThan(1000)
    await server.requests[0]!.ended
    expect(server.requests[0]!.aborted).toBe(true)
    expect(listeners.size).toBe(0)
  })
  it('that came before sends nothing', async () => {
    const server = await scripted(['never'])
    expect(await failure(at(server.url).model, asking(), AbortSignal.abort())).toMatchObject({ kind: 'aborted' })
    expect(server.requests).toHaveLength(0)
  })
  it('by leaving the loop lets go of the socket', async () => {
    const server = await scripted([{ text: 'a long text', deltaSize: 1, hang: 5 }])
    for await (const chunk of at(server.url).model.stream(asking(), { signal: new AbortController().signal })) if (chunk.kind === 'text') break
    await server.requests[0]!.ended
    expect(server.requests[0]!.aborted).toBe(true)
  })
  it('a reply that ends leaves no timer behind', async () => {
    const server = await scripted(['one'])
    const timers = () => process.getActiveResourcesInfo().filter(kind => kind === 'Timeout').length
    const { model } = at(server.url)
    const before = timers()
    await ask(model)
    expect(timers()).toBeLessThanOrEqual(before + 1)                                                // of the connection that is kept for a while
  })
})

describe('the entries', () => {
  const endpoint = (config: object, keys: Record<string, string> = {}, place = 0) => endpointOf(specsOf(Config.parse(config), 'entry')[place]!, variable => keys[variable])
  it('without a config are deepseek and openai, ready by what the environment holds', () => {
    const ready = (keys: Record<string, string>) => load({}, keys).models.map(model => [model.id, model.ready(), model.defaultModel])
    expect(ready({})).toEqual([['deepseek', 'set DEEPSEEK_API_KEY', 'deepseek-flash'], ['openai', 'set OPENAI_API_KEY, or point OPENAI_BASE_URL at a local server', 'gpt-6.1-terra']])
    expect(ready({ DEEPSEEK_API_KEY: 'k', DEEPSEEK_MODEL: 'mine' })[0]).toEqual(['deepseek', true, 'mine'])
    expect(ready({ DEEPSEEK_API_KEY: 'k' })[0]).toEqual(['deepseek', true, 'deepseek-flash'])
    expect(ready({ OPENAI_BASE_URL: 'http://127.0.0.1:8080/v1', OPENAI_MODEL: 'qwen' })[1]).toEqual(['openai', true, 'qwen'])
  })
  it('read their keys when they are asked, not when they are loaded', () => {
    const keys: Record<string, string> = {}
    const { model } = load({}, keys)
    keys['DEEPSEEK_API_KEY'] = 'late'
    expect(model.ready()).toBe(true)
  })
  it('send to OPENAI_BASE_URL without a key, and no authorization', async () => {
    const server = await scripted(['ok'])
    await ask(load({}, { OPENAI_BASE_URL: server.url }).models[1]!)
    expect(server.requests[0]!.headers).not.toHaveProperty('authorization')
  })
  it('never send a key of the environment to an address that a config put in', () => {
    expect(endpoint({ profile: 'openai', baseURL: 'http://other.example/v1' }, { OPENAI_API_KEY: KEY })).toMatchObject({ key: undefined })
    expect(endpoint({ profile: 'deepseek', baseURL: 'https://api.deepseek.com.evil.example' }, { DEEPSEEK_API_KEY: KEY })).toBe('set apiKey of "deepseek"')
    expect(endpoint({ profile: 'deepseek', baseURL: 'http://api.deepseek.com' }, { DEEPSEEK_API_KEY: KEY })).toBe('set apiKey of "deepseek"')
    expect(endpoint({ profile: 'openai' }, { OPENAI_API_KEY: KEY })).toMatchObject({ key: KEY, baseURL: 'https://api.openai.com/v1' })
  })
  it('ask with another key, and another address, from the first request after they have changed', async () => {
    const server = await scripted(['ok', 'ok', 'ok']), other = await scripted(['ok']), keys: Record<string, string> = { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'first-key' }
    const model = load({}, keys).models[1]!
    await ask(model)
    keys['OPENAI_API_KEY'] = 'second-key'
    await ask(model)
    await ask(model)
    keys['OPENAI_BASE_URL'] = other.url
    await ask(model)
    expect([...server.requests, ...other.requests].map(({ headers }) => headers['authorization'])).toEqual(['first-key', 'second-key', 'second-key', 'second-key'].map(key => `Bearer ${key}`))
  })
  it('ask at once what is asked together, and each has its own answer', async () => {
    const server = await scripted(['one', { status: 500 } as never, 'three']), model = at(server.url).model
    expect((await Promise.allSettled([ask(model), ask(model), ask(model)])).map(({ status }) => status).sort()).toEqual(['fulfilled', 'fulfilled', 'rejected'])
  })
  it('take nothing else from the environment', async () => {
    const server = await scripted(['ok'])
    process.env['OPENAI_ORG_ID'] = 'org-leak'
    try { await ask(at(server.url).model) } finally { delete process.env['OPENAI_ORG_ID'] }
    expect(JSON.stringify(server.requests[0]!.headers)).not.toContain('org-leak')
  })
  it('of Azure put the deployment into the path and the key into its own header', async () => {
    const server = await scripted(['ok'])
    await ask(load({ profile: 'azure', baseURL: `http://127.0.0.1:${server.port}`, apiKey: KEY, azure: { deployment: 'my gpt', apiVersion: '2025-01-01' } }).model)
    expect(server.requests[0]!.path).toBe('/openai/deployments/my%20gpt/chat/completions?api-version=2025-01-01')
    expect(server.requests[0]!.headers['api-key']).toBe(KEY)
    expect(server.requests[0]!.headers).not.toHaveProperty('authorization')
  })
  it('say what is wrong with an address, without showing it', () => {
    expect(endpoint({ id: 'a', baseURL: 'http://me:hunter22@host/v1' })).toBe('the base URL of "a" must not hold a user name or password; put them into headers')
    expect(endpoint({ id: 'a', baseURL: 'file:///etc' })).toBe('the base URL of "a" must be an address that begins with http:// or https://')
    expect(endpoint({ profile: 'azure' })).toBe('set baseURL of "azure" to the address of its API')
  })
  it('have the profile as their id, and a config may name another', () => {
    expect(specsOf(Config.parse({ profile: 'ollama' }), 'entry')).toMatchObject([{ id: 'ollama' }])
    expect(specsOf(Config.parse({ profile: 'ollama', id: 'big' }), 'entry')).toMatchObject([{ id: 'big' }])
    expect(specsOf(Config.parse({ baseURL: 'http://h/v1' }), 'entry')).toMatchObject([{ id: 'entry', profile: 'custom' }])
    expect(specsOf(Config.parse({ idleTimeout: '2m' }), 'entry')).toMatchObject([{ id: 'deepseek', config: { idleTimeout: 120_000 } }, { id: 'openai' }])
  })
  it('wait 30 s for headers and 60 s for the next piece, an hour in all, and longer for a model on this machine', () => {
    expect(endpoint({ profile: 'openai' }, { OPENAI_API_KEY: 'k' })).toMatchObject({ limits: { headersMs: 30_000, idleMs: 60_000, totalMs: 3_600_000 } })
    expect(endpoint({ profile: 'vllm' })).toMatchObject({ limits: { headersMs: 290_000, idleMs: 290_000, totalMs: 3_600_000 } })
  })
  it('have timeouts that a timer can hold', () => {
    expect(endpoint({ profile: 'ollama', timeout: '90d', idleTimeout: '0s' })).toMatchObject({ limits: { headersMs: 290_000, idleMs: 1, totalMs: 2_147_483_647 } })
  })
  it('refuse an unknown key of the config', () => {
    expect(Config.safeParse({ profil: 'openai' }).success).toBe(false)
  })
  it('work with an answer of a gateway that sends no content type', async () => {
    const server = createServer((_, response) => { response.end(`data: ${JSON.stringify(delta({ content: 'bare' }, 'stop'))}\n\n`) }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    open.push({ close: async () => { server.closeAllConnections(); server.close() } })
    expect((await ask(at(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`).model)).reply.message.content).toEqual([text('bare')])
  })
})

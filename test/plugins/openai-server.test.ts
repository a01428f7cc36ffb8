/** openai-server in a real daemon, over its TCP listener, asked by real clients: OpenAI's own and the one of the AI SDK. */
import { once } from 'node:events'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import fc from 'fast-check'
import OpenAI from 'openai'
import { describe, expect, it } from 'vitest'
import { Conversations } from '../../plugins/openai-server/conversations.js'
import { ToldText } from '../../plugins/openai-server/told-text.js'
import { readRequest, wholePrompt, type Said } from '../../plugins/openai-server/request.js'
import { freePort } from '../support/free-port.js'
import { daemon, endpoint } from '../support/daemon.js'
import { place, until } from '../support/hx.js'

const rows = (row: string) => `plugins: [tool-fs, model-openai, ${row}]\n`
async function serving(script: Parameters<typeof daemon>[0], row = '{ name: openai-server }') {
  const port = await freePort()
  const config = (row: string) => `server: { tcp: { port: ${port} } }\n${rows(row)}`
  const here = await daemon(script, { 'harness.config.yaml': config(row), 'a.txt': 'hello\n' })
  const baseURL = `http://127.0.0.1:${port}/v1`, apiKey = endpoint(here).token
  return { ...here, config, baseURL, apiKey, client: new OpenAI({ baseURL, apiKey }) }
}
const user = (content: string) => ({ role: 'user' as const, content }), assistant = (content: string) => ({ role: 'assistant' as const, content })

describe('the agent behind chat completions', () => {
  it('answers OpenAI\'s client, whole and streamed, in its own session with its own tools', async () => {
    const chunks: OpenAI.ChatCompletionChunk[] = [], begun = () => chunks.some(({ choices }) => choices[0]?.delta.content)
    const { client, model } = await serving([{ toolCalls: [{ name: 'read_file', arguments: { path: 'a.txt' } }], usage: { prompt_tokens: 10, completion_tokens: 5 } }, { text: 'it says hello', usage: { prompt_tokens: 20, completion_tokens: 4 } }, { text: 'it still says hello, I would think', deltaSize: 12, before: n => n === 3 && until(begun) }])          // the rest is not told before a piece has come
    const first = await client.chat.completions.create({ model: 'hx', temperature: 0, messages: [{ role: 'system', content: 'Be brief.' }, user('what is in a.txt?')] })
    expect(first).toMatchObject({ object: 'chat.completion', model: 'hx', choices: [{ index: 0, message: { role: 'assistant', content: 'it says hello' }, finish_reason: 'stop' }], usage: { prompt_tokens: 30, completion_tokens: 9, total_tokens: 39 } })
    expect(JSON.stringify(model.requests[0]!.body)).toContain('Be brief.')
    const stream = await client.chat.completions.create({ model: 'hx', stream: true, stream_options: { include_usage: true }, messages: [{ role: 'system', content: 'Be brief.' }, user('what is in a.txt?'), assistant('it says hello'), user('are you sure?')] })
    for await (const chunk of stream) chunks.push(chunk)
    expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe('it still says hello, I would think')
    expect(chunks.filter(({ choices }) => choices[0]?.delta.content).length).toBeGreaterThan(1)
    expect(chunks.map(({ choices }) => choices[0]?.finish_reason ?? '').filter(Boolean)).toEqual(['stop'])
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { total_tokens: expect.any(Number) as number } })
    const roles = (model.requests[2]!.body as { messages: { role: string }[] }).messages.map(({ role }) => role)
    expect(roles).toEqual(['system', 'user', 'assistant', 'tool', 'assistant', 'user'])         // it went on where it was, tools and all
  })
  it('begins another session where the past is not the one it knows, and tells it', async () => {
    const { client, model, hx } = await serving([{ text: 'one' }, { text: 'two' }, { text: 'three' }])
    const ask = (...messages: Parameters<typeof client.chat.completions.create>[0]['messages']) => client.chat.completions.create({ model: 'hx', messages }).asResponse().then(response => response.headers.get('hx-session'))
    const first = await ask(user('count'))
    expect(await ask(user('count'), assistant('one'), user('on'))).toBe(first)
    expect(await ask(user('count'), assistant('one'), user('again'))).not.toBe(first)           // the same place once more: the first has gone on
    const last = (model.requests[2]!.body as { messages: { role: string; content: string }[] }).messages
    expect(last.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([expect.stringContaining('user: count\n\nassistant: one\n\nWhat the user says now:\n\nagain')])
    expect(JSON.parse((await hx(['sessions', '--json'])).stdout).sessions).toHaveLength(2)
  })
  it('lists models, and says what is wrong as OpenAI does', async () => {
    const { client, model, baseURL } = await serving([{ status: 400, body: { error: { message: 'too odd' } } }])
    expect((await client.models.list()).data.map(({ id }) => id)).toEqual(['hx', 'openai/scripted'])
    expect(await client.models.retrieve('openai/scripted')).toMatchObject({ id: 'openai/scripted', object: 'model' })
    const refused = (body: object) => client.chat.completions.create({ model: 'hx', messages: [user('go')], ...body }).then(() => undefined, (error: InstanceType<typeof OpenAI.APIError>) => [error.status, error.code, error.param, error.message])
    expect(await refused({ model: 'gpt-9' })).toEqual([404, 'model_not_found', 'model', '404 there is no model "gpt-9"; GET /v1/models lists them, "hx" is the one of the config'])
    expect(await refused({ tools: [{ type: 'function', function: { name: 'x' } }] })).toEqual([400, null, 'tools', '400 tools of the client can not be called: the agent has its own'])
    expect(await refused({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'data:' } }] }] })).toEqual([400, null, 'messages.0', '400 only text can be read: no images, sound or files'])
    expect(await refused({ messages: [] })).toEqual([400, null, 'messages', expect.any(String)])
    const before = model.requests.length
    expect(await refused({})).toMatchObject([500, 'failed', null, expect.stringContaining('too odd')])
    expect(model.requests.length - before).toBe(1)                                              // a client does not do the work three times
    for (const other of [client.responses.create({ model: 'hx', input: 'go' }), client.embeddings.create({ model: 'hx', input: 'go' }), client.completions.create({ model: 'hx', prompt: 'go' })]) await expect(other).rejects.toMatchObject({ status: 404, code: 'unknown_url', message: expect.stringContaining('the agent speaks /v1/chat/completions') })
    for (const [headers, status] of [[{}, 401], [{ authorization: 'Bearer wrong' }, 401], [{ origin: 'http://localhost' }, 403]] as const) expect((await fetch(`${baseURL}/models`, { headers: headers as Record<string, string> })).status).toBe(status)
  })
  it('answers the client of the AI SDK, and ends the turn of one that leaves', async () => {
    const { baseURL, apiKey, hx } = await serving([{ text: 'hello there' }, { text: 'streamed words of some length' }, { hang: 'body' }])
    const provider = createOpenAICompatible({ name: 'hx', baseURL, apiKey }).chatModel('hx')
    const prompt = [{ role: 'user' as const, content: [{ type: 'text' as const, text: 'hi' }] }]
    expect(await provider.doGenerate({ prompt })).toMatchObject({ content: [{ type: 'text', text: 'hello there' }], finishReason: { unified: 'stop' } })
    let text = ''
    for await (const part of (await provider.doStream({ prompt })).stream as unknown as AsyncIterable<{ type: string; delta?: string }>) if (part.type === 'text-delta') text += part.delta
    expect(text).toBe('streamed words of some length')
    const leaving = new AbortController()
    const { stream } = await provider.doStream({ prompt, abortSignal: leaving.signal })
    const busy = async () => (JSON.parse((await hx(['status', '--json'])).stdout) as { sessions: number }).sessions
    await until(async () => await busy() === 1)
    leaving.abort()
    await stream.cancel().catch(() => {})
    await until(async () => await busy() === 0)
  })
  it('comes and goes with its row, and lets a stream end on the version that began it', async () => {
    const { client, write, config, hx, baseURL, apiKey } = await serving([{ text: 'a long answer that takes its time', chunkMs: 150, deltaSize: 6 }])
    const stream = await client.chat.completions.create({ model: 'hx', stream: true, messages: [user('go')] })
    let text = ''
    for await (const { choices } of stream) {
      if (text === '' && choices[0]?.delta.content) expect(await hx(['plugins', 'reload', 'openai-server'])).toMatchObject({ code: 0 })
      text += choices[0]?.delta.content ?? ''
    }
    expect(text).toBe('a long answer that takes its time')
    const asked = async () => (await fetch(`${baseURL}/models`, { headers: { authorization: `Bearer ${apiKey}` } })).status
    expect(await asked()).toBe(200)
    write('harness.config.yaml', config('{ name: openai-server, enabled: false }'))
    await until(async () => await asked() === 426)
    write('harness.config.yaml', config('{ name: openai-server }'))
    await until(async () => await asked() === 200)
    expect((await hx(['logs'])).stdout).not.toContain('behind')                                 // nothing was left behind
  })
  it('waits, and says for what, where there is no daemon', async () => {
    const { hx } = place({ 'harness.config.yaml': rows('openai-server') })
    const { plugins } = JSON.parse((await hx(['plugins', '--json', '--trust'])).stdout) as { plugins: { id: string; state: string; reason?: string }[] }
    expect(plugins.find(({ id }) => id === 'openai-server')).toMatchObject({ state: 'waiting', reason: 'plugin "openai-server" waits for service "routes", which only a daemon has; start one with "hx start"' })
  })
})

describe('text that is told as it comes', () => {
  it('is told once when a broken reply is asked for again, and apart where the second says something else', () => {
    const told = (...pieces: [number, number, string][]) => { const text = new ToldText(); return [pieces.map(piece => text.add(...piece)).join('|'), text.text] }
    expect(told([0, 1, 'Hello '], [0, 1, 'wor'], [0, 2, 'Hel'], [0, 2, 'lo world'], [0, 2, '!'])).toEqual(['Hello |wor||ld|!', 'Hello world!'])
    expect(told([0, 1, 'Hello wor'], [0, 2, 'Hello, '], [0, 2, 'you'])).toEqual(['Hello wor|\n\nHello, |you', 'Hello wor\n\nHello, you'])
    expect(told([0, 1, 'one'], [1, 1, 'one'], [1, 1, ' more'])).toEqual(['one|\n\none| more', 'one\n\none more'])
    fc.assert(fc.property(fc.array(fc.string({ minLength: 1 }), { minLength: 1, maxLength: 6 }), fc.nat(), (pieces, at) => {
      const text = new ToldText()
      for (const piece of pieces.slice(0, at % pieces.length)) text.add(0, 1, piece)
      for (const piece of pieces) text.add(0, 2, piece)
      expect(text.text).toBe(pieces.join(''))
    }))
  })
})

describe('a conversation', () => {
  const said = fc.array(fc.record({ role: fc.constantFrom('user' as const, 'assistant' as const), text: fc.string() }), { minLength: 1, maxLength: 4 })
  it('is found by exactly what was said, and once', () => {
    fc.assert(fc.property(said, said, fc.string(), (a, b, system) => {
      const conversations = new Conversations(new Map())
      conversations.stands('s', system, a)
      const trimmed = (list: readonly Said[]) => JSON.stringify(list.map(({ role, text }) => [role, text.trim()]))
      if (trimmed(a) !== trimmed(b)) expect(conversations.take(system, b)).toBeUndefined()
      expect(conversations.take(system, a)).toBe('s')
      expect(conversations.take(system, a)).toBeUndefined()
    }))
  })
  it('is read from any body without a throw, and its prompt is what comes behind the last answer', () => {
    fc.assert(fc.property(fc.jsonValue(), body => { expect(typeof readRequest(body).ok).toBe('boolean') }))
    const read = readRequest({ model: 'm', messages: [user('a'), assistant('b'), user('c'), user('d')] })
    expect(read).toMatchObject({ ok: true, request: { before: [{ text: 'a' }, { text: 'b' }], prompt: 'c\n\nd' } })
    expect(wholePrompt({ before: [], prompt: 'c' })).toBe('c')
  })
})

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it, vi } from 'vitest'
import { ModelError, userMessage, type Context, type Model } from 'harnessx'
import { apply, Config } from '../../plugins/model-openai/index.js'
import { Headers } from '../../plugins/model-openai/headers.js'
import { send } from '../../plugins/model-openai/http.js'

/** Streams of endpoints as they come, and as they break, each a file: they stay. */
const CORPUS = fileURLToPath(new URL('../fixtures/streams/', import.meta.url))
const kept = () => readdirSync(CORPUS).map(name => [name, readFileSync(join(CORPUS, name))] as const)

vi.mock('../../plugins/model-openai/http.js', () => ({ send: vi.fn() }))
const model = ((): Model => {
  const models: Model[] = [], quiet = () => {}
  const ctx = { id: 'model-openai', logger: { debug: quiet, info: quiet, warn: quiet, error: quiet }, get: () => undefined, models: { register: (one: Model) => { models.push(one); return quiet } } }
  apply(ctx as unknown as Context, Config.parse({ id: 'x', profile: 'custom', baseURL: 'http://127.0.0.1:9/v1', apiKey: 'k' }))
  return models[0]!
})()

/** What a body comes to that arrives in these pieces. A socket would join pieces that come close together, so the exchange is given here. */
async function outcome(pieces: readonly Uint8Array[]): Promise<unknown> {
  vi.mocked(send).mockResolvedValue({ status: 200, ok: true, url: '', headers: new Headers([['content-type', 'text/event-stream']]), body: Readable.from(pieces) })
  const deltas: Record<string, string> = {}
  try {
    for await (const chunk of model.stream({ model: 'm', messages: [userMessage('hi')], tools: [], options: {} }, { signal: new AbortController().signal })) {
      if (chunk.kind === 'reply') return { deltas, reply: chunk.reply }
      deltas[chunk.kind] = (deltas[chunk.kind] ?? '') + chunk.text
    }
    return 'ended without a reply'
  } catch (error) {
    if (!(error instanceof ModelError)) throw error
    return { deltas, kind: error.kind, message: error.message, partial: error.partial, retryable: error.retryable }
  }
}
const cut = (bytes: Uint8Array, at: readonly number[]): Uint8Array[] => [0, ...at].map((from, i) => bytes.subarray(from, at[i] ?? bytes.length))

describe('a stream', () => {
  it('is what its kept example says: a reply, or an error with what came until then', async () => {
    const found: Record<string, unknown> = {}
    for (const [name, bytes] of kept()) {
      const { reply, kind, partial } = await outcome([bytes]) as { reply?: { finish: string; message: { content: { text: string }[]; toolCalls?: { name: string; arguments: string }[] } }; kind?: string; partial?: string }
      found[name.replace('.txt', '')] = reply ? [reply.finish, reply.message.content.map(({ text }) => text).join(''), ...reply.message.toolCalls?.map(call => call.name + call.arguments) ?? []] : [kind, partial]
    }
    expect(found).toEqual({
      'emoji-and-crlf': ['stop', 'naïve 👍🏽 é'], 'old-mac-lines': ['stop', 'ab'], 'empty-first-chunk-and-comments': ['stop', 'ok'], 'no-blank-after-colon': ['stop', 'tight'],
      'calls-without-index': ['tool-calls', '', 'f{"a":"ü"}', 'g{}'], 'reasoning-then-call': ['tool-calls', '', 'f{"p":"\\n"}'],
      'ends-without-done': ['truncated', 'half an ans'], 'ends-in-a-line': ['truncated', 'half'], 'error-in-the-middle': ['overloaded', 'so far'], 'not-json': ['protocol', 'so far'],
    })
  })
  it('is the same wherever it is cut in two: at every byte of the examples', async () => {
    for (const [name, bytes] of kept()) {
      const whole = JSON.stringify(await outcome([bytes]))
      for (let at = 1; at < bytes.length; at++) if (JSON.stringify(await outcome(cut(bytes, [at]))) !== whole) expect.fail(`${name} is another when it is cut at byte ${at}`)
    }
  }, 60_000)
  it('is the same in any pieces, empty ones too, also when parts of it are lost or doubled', async () => {
    const examples = kept().map(([, bytes]) => bytes)
    await fc.assert(fc.asyncProperty(fc.constantFrom(...examples), fc.nat(600), fc.nat(40), fc.boolean(), fc.array(fc.nat(700), { maxLength: 12 }), async (example, from, length, twice, cuts) => {
      const damaged = Buffer.concat([example.subarray(0, from + (twice ? length : 0)), example.subarray(from + (twice ? 0 : length))])
      const at = cuts.map(one => one % (damaged.length + 1)).sort((a, b) => a - b)
      expect(await outcome(cut(damaged, at))).toEqual(await outcome([damaged]))
    }), { numRuns: 150 })
  })
})

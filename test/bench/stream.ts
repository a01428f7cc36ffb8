/**
 * What the daemon adds to a stream: the time to the first token and the tokens a second that reach a client, beside the raw `openai` client on the same server.
 * The server is a process of its own; raw client and client of the daemon are this process and take turns, so that a busy moment hits both.
 */
import { OpenAI } from 'openai'
import { settle, type Served } from '../support/served.js'
import { row, type Row } from './row.js'

const FIRSTS = 60, POURS = 9, PACED = 3, WARM_UP = 5
/** Tokens of one reply that comes as fast as it is taken. */
const POURED = 5000
/** 200 tokens, one each 10 ms. */
const PACE = 'say 200 10'
const PLUGINS = 'plugins: [permission, tool-fs, tool-bash, model-openai, stats]\n'

/** From the ask to the first token, and to the last, in ms. */
interface Timed { readonly first: number; readonly last: number; readonly tokens: number }

async function raw(client: OpenAI, prompt: string): Promise<Timed> {
  const begun = performance.now()
  let first = Number.NaN, tokens = 0
  for await (const chunk of await client.chat.completions.create({ model: 'load', stream: true, messages: [{ role: 'user', content: prompt }] })) {
    if (!chunk.choices[0]?.delta.content) continue
    if (tokens++ === 0) first = performance.now() - begun
  }
  return { first, last: performance.now() - begun, tokens }
}
async function through(served: Served, prompt: string, session?: string): Promise<Timed & { readonly session: string }> {
  const begun = performance.now()
  let first = Number.NaN, last = Number.NaN, tokens = 0, id = ''
  for await (const { event, data } of served.run(prompt, session === undefined ? {} : { session })) {
    if (event === 'session') id = data.session
    if (event !== 'delta') continue
    if (tokens++ === 0) first = performance.now() - begun
    last = performance.now() - begun
  }
  return { first, last, tokens, session: id }
}
const rate = ({ first, last, tokens }: Timed): number => (tokens - 1) / (last - first) * 1000

export async function benchStream(): Promise<Row[]> {
  const kept = await settle({ config: PLUGINS }), unkept = await settle({ config: `sessions: { durability: none }\n${PLUGINS}` })
  try {
    const [served, loose] = await Promise.all([kept.serve(), unkept.serve()])
    const client = new OpenAI({ baseURL: kept.modelUrl, apiKey: 'k', maxRetries: 0 })
    let { session } = await through(served, 'hello')
    const firsts = await inTurns(FIRSTS, {
      raw: async () => (await raw(client, 'hello')).first,
      fresh: async () => (await through(served, 'hello')).first,
      next: async () => { const timed = await through(served, 'hello', session); ({ session } = timed); return timed.first },
      loose: async () => (await through(loose, 'hello')).first,
    })
    const pours = await inTurns(POURS, {
      raw: async () => rate(await raw(client, `pour ${POURED}`)),
      daemon: async () => rate(await through(served, `pour ${POURED}`)),
    })
    const paced = await inTurns(PACED, {
      raw: async () => rate(await raw(client, PACE)),
      daemon: async () => rate(await through(served, PACE)),
    }, 0)
    const first = row('first token, raw client', 'ms', firsts.raw), poured = row('as fast as it is taken, raw client', 'tokens/s', pours.raw), pace = row("at a model's pace, raw client", 'tokens/s', paced.raw)
    const added = (all: readonly number[]) => all.map((ms, at) => ms - firsts.raw[at]!)
    return [
      first,
      row('through the daemon, a new session', 'ms', firsts.fresh, first), row('what that adds', 'ms', added(firsts.fresh)),
      row('the next prompt of a session', 'ms', firsts.next, first), row('what that adds', 'ms', added(firsts.next)),
      row('a new session, durability: none', 'ms', firsts.loose, first), row('what that adds', 'ms', added(firsts.loose)),
      pace, row('through the daemon', 'tokens/s', paced.daemon, pace),
      poured, row('through the daemon', 'tokens/s', pours.daemon, poured),
    ]
  } finally { await Promise.all([kept.close(), unkept.close()]) }
}

/** What each way measured, round by round. */
async function inTurns<K extends string>(rounds: number, ways: Readonly<Record<K, () => Promise<number>>>, warmUp = WARM_UP): Promise<Record<K, number[]>> {
  const samples = Object.fromEntries(Object.keys(ways).map(name => [name, []])) as unknown as Record<K, number[]>
  for (let round = -warmUp; round < rounds; round++) for (const name of Object.keys(ways) as K[]) {
    const value = await ways[name]()
    if (round >= 0) samples[name].push(value)
  }
  return samples
}

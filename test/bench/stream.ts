/**
 * What the daemon adds to a stream: the time to the first token and the tokens a second that reach a client, beside the raw `openai` client on the same server.
 * The server is a process of its own; raw client and client of the daemon are this process and take turns, so that a busy moment hits both.
 */
import { join } from 'node:path'
import { OpenAI } from 'openai'
import type { Client } from '../../core/cli/client.js'
import { connectDaemon } from '../../core/cli/socket-client.js'
import { endpointOf } from '../../core/daemon/endpoint.js'
import { settle } from '../support/served.js'
import { row, type Row } from './row.js'

/** Both sides are warm: the engine compiles what runs often for some hundred turns. */
const FIRSTS = 100, WARM_UP = 150, POURS = 15, WARM_UP_POURS = 6, PACED = 3
/** Tokens of one reply that comes as fast as it is taken. */
const POURED = 5000
/** 200 tokens, one each 10 ms. */
const PACE = 'say 200 10'
const PLUGINS = 'plugins: [permission, tool-fs, tool-bash, model-openai, stats]\n'

/** In ms: from the ask to the first token, of that until the server had the request and from the token's writing on; and to the last token. */
interface Timed { readonly first: number; readonly before: number; readonly after: number; readonly last: number; readonly tokens: number }

/** Reads a reply as it comes: one text a delta, each token ends with a space but for the two numbers of "clock". */
async function timed(texts: AsyncIterable<string>, begun: number): Promise<Timed> {
  let first = Number.NaN, last = Number.NaN, tokens = 0, said = ''
  for await (const text of texts) {
    last = clock()
    if (tokens === 0) { first = last; said = text }
    tokens += Math.max(1, text.split(' ').length - 1)
  }
  const [arrived = Number.NaN, wrote = Number.NaN] = said.split(' ').map(Number)
  return { first: first - begun, before: arrived - begun, after: first - wrote, last: last - begun, tokens }
}
/** Processes of one machine read the same clock. */
const clock = () => Number(process.hrtime.bigint()) / 1e6

async function raw(client: OpenAI, prompt: string): Promise<Timed> {
  const begun = clock()
  return timed((async function* () {
    for await (const chunk of await client.chat.completions.create({ model: 'load', stream: true, messages: [{ role: 'user', content: prompt }] })) {
      const text = chunk.choices[0]?.delta.content
      if (text) yield text
    }
  })(), begun)
}
interface Daemon { readonly client: Client; readonly cwd: string }
async function through({ client, cwd }: Daemon, prompt: string, session?: string): Promise<Timed & { readonly session: string }> {
  const begun = clock(), run = await client.run({ prompt, cwd, ...(session !== undefined && { session }) })
  return { ...await timed((async function* () { for await (const event of run.events) if (event.type === 'delta') yield event.text })(), begun), session: run.session }
}
async function served(place: Awaited<ReturnType<typeof settle>>): Promise<Daemon> {
  const { home, folder } = await place.serve()
  const client = await connectDaemon(endpointOf(join(home, 'run'), join(folder, 'harness.config.yaml')), { anyVersion: false, note: () => {} })
  if (!client) throw new Error('the daemon does not answer')
  return { client, cwd: folder }
}
const rate = ({ first, last, tokens }: Timed): number => (tokens - 1) / (last - first) * 1000

export async function benchStream(): Promise<Row[]> {
  const kept = await settle({ config: PLUGINS }), unkept = await settle({ config: `sessions: { durability: none }\n${PLUGINS}` })
  try {
    const [daemon, loose] = await Promise.all([served(kept), served(unkept)])
    const client = new OpenAI({ baseURL: kept.modelUrl, apiKey: 'k', maxRetries: 0 })
    const { session } = await through(daemon, 'hello')
    const firsts = await inTurns(FIRSTS, {
      raw: () => raw(client, 'clock'),
      fresh: () => through(daemon, 'clock'),
      next: () => through(daemon, 'clock', session),
      loose: () => through(loose, 'clock'),
    }, WARM_UP)
    const pours = await inTurns(POURS, { raw: () => raw(client, `pour ${POURED}`), daemon: () => through(daemon, `pour ${POURED}`) }, WARM_UP_POURS)
    const paced = await inTurns(PACED, { raw: () => raw(client, PACE), daemon: () => through(daemon, PACE) }, 0)
    const of = (all: readonly Timed[], what: 'first' | 'before' | 'after') => all.map(one => one[what])
    const added = (way: 'fresh' | 'next' | 'loose', what: 'first' | 'before' | 'after') => of(firsts[way], what).map((ms, at) => ms - firsts.raw[at]![what])
    const first = row('first token, raw client', 'ms', of(firsts.raw, 'first'))
    const ways = ([['fresh', 'through the daemon, a new session'], ['next', 'the next prompt of a session'], ['loose', 'a new session, durability: none']] as const).flatMap(([way, name]) => [
      row(name, 'ms', of(firsts[way], 'first'), first),
      row('what that adds', 'ms', added(way, 'first')), row('  until the server has the request', 'ms', added(way, 'before')), row('  from the token on', 'ms', added(way, 'after')),
    ])
    const poured = row('as fast as it is taken, raw client', 'tokens/s', pours.raw.map(rate)), pace = row("at a model's pace, raw client", 'tokens/s', paced.raw.map(rate))
    return [first, ...ways, pace, row('through the daemon', 'tokens/s', paced.daemon.map(rate), pace), poured, row('through the daemon', 'tokens/s', pours.daemon.map(rate), poured)]
  } finally { await Promise.all([kept.close(), unkept.close()]) }
}

/** What each way measured, round by round. */
async function inTurns<K extends string>(rounds: number, ways: Readonly<Record<K, () => Promise<Timed>>>, warmUp: number): Promise<Record<K, Timed[]>> {
  const samples = Object.fromEntries(Object.keys(ways).map(name => [name, []])) as unknown as Record<K, Timed[]>
  for (let round = -warmUp; round < rounds; round++) for (const name of Object.keys(ways) as K[]) {
    const value = await ways[name]()
    if (round >= 0) samples[name].push(value)
  }
  return samples
}

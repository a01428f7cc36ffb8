/** What there is much of: a folder of sessions of one gigabyte, another of ten thousand sessions, listed by fresh processes with and without an index; and one session of 20 MB that goes on in a daemon. */
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { bareNode, settle } from '../support/served.js'
import type { Soak } from './soak.js'

/** Until a file counts as one that does not change just now. */
const SETTLED_MS = 2500

export interface LargeFigures {
  readonly sessions: number
  readonly megabytes: number
  /** Of `hx sessions`, from its start to its end; of `hx --version` beside it. */
  readonly listMs: number
  /** The same again, from the index that the first has left. */
  readonly againMs: number
  readonly plainMs: number
  /** Listed by a daemon, the second time. */
  readonly daemonListMs: number
  readonly listed: number
  readonly large: { readonly megabytes: number; readonly resumedMs: number; readonly reason: string }
  readonly bareMs: number
}

export const soak: Soak = async ({ say, check }) => {
  for (const [sessions, sessionKB] of [[2000, 512], [10_000, 10]] as const) {
    const { megabytes, listMs, againMs, plainMs, daemonListMs, listed, large, bareMs } = await manyAndLarge({ sessions, sessionKB, largeMB: 20 })
    say(`${megabytes} MB in ${sessions} sessions: hx sessions takes ${listMs.toFixed(0)} ms, then ${againMs.toFixed(0)} (hx --version ${plainMs.toFixed(0)}), a daemon ${daemonListMs.toFixed(0)} ms; a session of ${large.megabytes} MB goes on after ${large.resumedMs.toFixed(0)} ms; bare node -e 0 takes ${bareMs.toFixed(0)} ms`)
    check(listed === sessions + 1, `${listed} of ${sessions + 1} sessions are listed`)
    check(large.reason === 'completed', `the large session ended ${large.reason}`)
    const slow = bareMs / 68                                    // of this machine now, beside the one that the limits are for
    check((sessions === 2000 ? listMs : againMs) < 1000 * slow, `hx sessions takes ${listMs.toFixed(0)} ms, then ${againMs.toFixed(0)}`)
    check(large.resumedMs < 1000 * slow, `the large session goes on after ${large.resumedMs.toFixed(0)} ms`)
  }
}

export async function manyAndLarge({ sessions, sessionKB, largeMB }: { sessions: number; sessionKB: number; largeMB: number }): Promise<LargeFigures> {
  const place = await settle()
  const timed = async (work: () => Promise<unknown>) => { const begun = performance.now(); const value = await work(); return { ms: performance.now() - begun, value } }
  try {
    mkdirSync(place.sessions, { recursive: true, mode: 0o700 })
    for (let n = 0; n < sessions; n++) writeFileSync(join(place.sessions, `s${n}.jsonl`), session(`s${n}`, place.folder, sessionKB * 1024, 8000), { mode: 0o600 })
    writeFileSync(join(place.sessions, 'large.jsonl'), session('large', place.folder, largeMB * 1024 * 1024, 2000), { mode: 0o600 })
    await sleep(SETTLED_MS)
    const plain = await timed(() => run(place.hx(['--version'])))
    const list = await timed(() => run(place.hx(['sessions', '--json'])))
    const again = await timed(() => run(place.hx(['sessions', '--json'])))
    const listed = (JSON.parse(String(again.value)) as { sessions: unknown[] }).sessions.length
    const served = await place.serve()
    await served.ask('/v1/sessions')
    const daemonList = await timed(() => served.ask('/v1/sessions'))
    let reason = 'nothing'
    const begun = performance.now()
    let resumedMs = NaN
    for await (const { event, data } of served.run('go on', { session: 'large' })) {
      if (event === 'log' && data.type === 'turn-start') resumedMs = performance.now() - begun
      if (event === 'result') reason = data.reason
    }
    await served.stop()
    return { sessions, megabytes: Math.round(sessions * sessionKB / 1024), listMs: list.ms, againMs: again.ms, plainMs: plain.ms, daemonListMs: daemonList.ms, listed, large: { megabytes: largeMB, resumedMs, reason }, bareMs: await bareNode() }
  } finally { await place.close() }
}

async function run(child: ReturnType<Awaited<ReturnType<typeof settle>>['hx']>): Promise<string> {
  let text = ''
  child.stdout!.setEncoding('utf8').on('data', (piece: string) => { text += piece })
  await once(child, 'close')
  return text
}
/** The text of a log of about so many bytes. */
function session(id: string, cwd: string, bytes: number, messageBytes: number): string {
  const ts = new Date().toISOString(), lines: string[] = []
  let seq = 0, size = 0
  const line = (body: object) => { const text = JSON.stringify({ seq: ++seq, ts, ...body }); size += text.length + 1; lines.push(text) }
  line({ type: 'session', v: 1, id, cwd, depth: 0 })
  line({ type: 'turn-start', turn: 1, prompt: 'fill it', source: { kind: 'user' } })
  for (let n = 0; size < bytes; n++) line({ type: 'message', turn: 1, step: 0, role: n % 2 ? 'assistant' : 'user', content: [{ type: 'text', text: `${n} ${'word '.repeat(messageBytes / 5)}` }], source: { kind: n % 2 ? 'model' : 'user' } })
  line({ type: 'turn-end', turn: 1, reason: 'completed', usage: { inputTokens: 1, outputTokens: 1 }, elapsedMs: 1, stats: { steps: 1, toolCalls: 0, blocked: 0 } })
  return `${lines.join('\n')}\n`
}

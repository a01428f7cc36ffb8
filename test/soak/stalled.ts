/**
 * One of fifty clients of a session is stopped and reads nothing for a minute. What the daemon holds for it must stay small, the others must not notice, and woken up it must be able to go on where it was.
 * Beside it a second daemon does the same for as many readers of whom none is stopped: what a session that grows takes by itself, and what the engine has not given back yet, is no reader's.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { memoryOf, settle, spread, until, type Served } from '../support/served.js'
import type { Soak } from './soak.js'

export interface StallFigures {
  readonly readers: number
  /** What is in use after a collection, beyond what as long a log takes the other daemon: at most, of just before the daemon gives the reader up, and of the end. */
  readonly heldMB: number
  /** Resident growth, of both. */
  readonly residentMB: number
  readonly controlMB: number
  /** Milliseconds between two events at the other readers: p99, and of the other daemon's in the same time. */
  readonly during: number
  readonly control: number
  /** Log lines that the stopped reader missed or had twice when it had come back. */
  readonly wrong: number
}
const READER = fileURLToPath(new URL('../../test/support/processes/sse-reader.mjs', import.meta.url))
/** Less than a daemon waits for a reader that takes nothing (5 s). */
const NOT_YET_MS = 4000
/** `/weigh` says how many bytes are in use after a collection. */
const WEIGH = `import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
export const name = 'weigh'
export function apply(ctx) {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc')
  ctx.commands.register({ name, description: 'Bytes in use.', run: () => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    return String(heapUsed + external)
  } })
}
`

export const soak: Soak = async ({ say, check }) => {
  const { readers, heldMB, residentMB, controlMB, during, control, wrong } = await stall({ readers: 50, stalledMs: 60_000 })
  say(`1 of ${readers} readers stopped for 60 s: ${heldMB.toFixed(1)} MB more in use than in a daemon whose readers all read (resident: ${residentMB.toFixed(1)} MB more, there ${controlMB.toFixed(1)}); the others wait ${during.toFixed(0)} ms for an event (p99), there ${control.toFixed(0)}; ${wrong} lines missing or double when it had come back`)
  check(heldMB < 5, `it holds ${heldMB.toFixed(1)} MB, the limit is 5`)
  check(during < 3 * control + 100, `the others wait ${during.toFixed(0)} ms, ${control.toFixed(0)} where nobody is stopped`)
  check(wrong === 0, `${wrong} lines are missing or double`)
}

export async function stall({ readers, stalledMs }: { readers: number; stalledMs: number }): Promise<StallFigures> {
  const place = await settle(SETTING), beside = await settle(SETTING)
  let stopped: ChildProcess | undefined
  const leaving = new AbortController()
  setMaxListeners(0, leaving.signal)
  try {
    const [one, other] = await Promise.all([begin(await place.serve(), readers - 1, leaving.signal), begin(await beside.serve(), readers, leaving.signal)])
    stopped = spawn(process.execPath, [READER, place.home, one.session], { stdio: ['ignore', 'pipe', 'inherit'] })
    const seen: number[] = []
    createInterface({ input: stopped.stdout! }).on('line', line => { seen.push(Number(line)) })
    await until(() => seen.length > 10)
    await sleep(Math.min(10_000, stalledMs))                 // memory of the first seconds is the warm-up's
    const from = await look(one), there = await look(other)
    one.gaps.length = other.gaps.length = 0
    stopped.kill('SIGSTOP')
    const soon = Math.min(NOT_YET_MS, stalledMs)
    await sleep(soon)
    const early = [await look(one), await look(other)] as const
    await sleep(stalledMs - soon)
    const late = [await look(one), await look(other)] as const, during = spread(one.gaps).p99, control = spread(other.gaps).p99
    stopped.kill('SIGCONT')
    const mark = (await one.served.ask(`/v1/sessions/${one.session}`)).body.events.at(-1).seq as number
    await until(() => (seen.at(-1) ?? 0) > mark)
    const wrong = seen.filter((seq, index) => seq !== index + 1).length
    const held = ([mine, its]: readonly [Look, Look]) => mine.inUse - from.inUse - (its.inUse - there.inUse) * (mine.logged - from.logged) / (its.logged - there.logged)
    leaving.abort()
    await Promise.all([one, other].map(async ({ served, session, reading }) => {
      await reading
      await served.ask(`/v1/sessions/${session}/abort`, { method: 'POST', body: { reason: 'enough' } })
      await served.stop()
    }))
    return { readers, heldMB: Math.max(held(early), held(late)), residentMB: late[0].resident - from.resident, controlMB: late[1].resident - there.resident, during, control, wrong }
  } finally {
    stopped?.kill('SIGKILL')
    leaving.abort()
    await Promise.all([place.close(), beside.close()])
  }
}

const SETTING = { config: 'plugins: [weigh, tool-fs, tool-bash, model-openai]\n', files: { 'plugins/weigh.mjs': WEIGH } }
/** A session that goes on and on, and those who read it. */
interface Watched { readonly served: Served; readonly session: string; readonly gaps: number[]; readonly reading: Promise<unknown> }
async function begin(served: Served, readers: number, signal: AbortSignal): Promise<Watched> {
  const prompt = 'call 100000 read_file {"path":"note.txt"}'
  const session = (await served.ask('/v1/runs', { method: 'POST', body: { prompt, cwd: served.folder, detach: true, maxSteps: 1_000_000 } })).body.session as string
  const gaps: number[] = []
  return { served, session, gaps, reading: Promise.all(Array.from({ length: readers }, () => read(served, session, gaps, signal))) }
}
/** In MB: what is in use after a collection, and what is resident; and how many bytes its log has. */
interface Look { readonly inUse: number; readonly resident: number; readonly logged: number }
async function look({ served, session }: Watched): Promise<Look> {
  const resident = memoryOf(served.pid).now
  const { text } = (await served.ask('/v1/commands/weigh', { method: 'POST', body: { args: '', cwd: served.folder } })).body as { text: string }
  return { inUse: Number(text) / 1024 / 1024, resident, logged: statSync(join(served.sessions, `${session}.jsonl`)).size }
}
async function read(served: Served, session: string, gaps: number[], signal: AbortSignal): Promise<void> {
  try {
    let last = performance.now()
    for await (const { event } of served.follow(`/v1/sessions/${session}/events?after=0&follow=1`, { signal })) {
      if (event !== 'log') continue
      gaps.push(performance.now() - last)
      last = performance.now()
    }
  } catch (error) { if (!signal.aborted) throw error }
}

/** One of fifty clients of a session is stopped and reads nothing for a minute. What the daemon holds for it must stay small, the others must not notice, and woken up it must be able to go on where it was. */
import { spawn, type ChildProcess } from 'node:child_process'
import { setMaxListeners } from 'node:events'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { memoryOf, settle, spread, until, type Served } from '../support/served.js'
import type { Soak } from './soak.js'

export interface StallFigures {
  readonly readers: number
  /** Growth of resident memory while the reader stood still, beyond what it grew in the same time before. */
  readonly grownMB: number
  /** Milliseconds between two events at the other readers: p99 before and while. */
  readonly before: number
  readonly during: number
  /** Log lines that the stopped reader missed or had twice when it had come back. */
  readonly wrong: number
}
const READER = fileURLToPath(new URL('../../test/support/processes/sse-reader.mjs', import.meta.url))

export const soak: Soak = async ({ say, check }) => {
  const { readers, grownMB, before, during, wrong } = await stall({ readers: 50, stalledMs: 60_000 })
  say(`1 of ${readers} readers stopped for 60 s: ${grownMB.toFixed(1)} MB more resident; the others wait ${during.toFixed(0)} ms for an event (p99), ${before.toFixed(0)} before; ${wrong} lines missing or double when it had come back`)
  check(grownMB < 5, `it grew by ${grownMB.toFixed(1)} MB, the limit is 5`)
  check(during < 3 * before + 100, `the others wait ${during.toFixed(0)} ms, ${before.toFixed(0)} before`)
  check(wrong === 0, `${wrong} lines are missing or double`)
}

export async function stall({ readers, stalledMs }: { readers: number; stalledMs: number }): Promise<StallFigures> {
  const place = await settle()
  let stopped: ChildProcess | undefined
  const leaving = new AbortController()
  setMaxListeners(0, leaving.signal)
  try {
    const served = await place.serve()
    const session = await begin(served, `call 100000 read_file {"path":"note.txt"}`)
    const gaps: number[] = [], others = Array.from({ length: readers - 1 }, () => read(served, session, gaps, leaving.signal))
    stopped = spawn(process.execPath, [READER, place.home, session], { stdio: ['ignore', 'pipe', 'inherit'] })
    const seen: number[] = []
    createInterface({ input: stopped.stdout! }).on('line', line => { seen.push(Number(line)) })
    await until(() => seen.length > 10)
    const quiet = Math.min(10_000, stalledMs)
    await sleep(quiet)                                       // memory of the first seconds is the warm-up's
    gaps.length = 0
    const start = memoryOf(served.pid).now
    await sleep(quiet)
    const usual = (memoryOf(served.pid).now - start) / quiet, before = spread(gaps).p99
    gaps.length = 0
    stopped.kill('SIGSTOP')
    const from = memoryOf(served.pid).now
    await sleep(stalledMs)
    const grownMB = memoryOf(served.pid).now - from - Math.max(0, usual) * stalledMs, during = spread(gaps).p99
    stopped.kill('SIGCONT')
    const mark = (await served.ask(`/v1/sessions/${session}`)).body.events.at(-1).seq as number
    await until(() => (seen.at(-1) ?? 0) > mark)
    const wrong = seen.filter((seq, index) => seq !== index + 1).length
    leaving.abort()
    await Promise.all(others)
    await served.ask(`/v1/sessions/${session}/abort`, { method: 'POST', body: { reason: 'enough' } })
    await served.stop()
    return { readers, grownMB, before, during, wrong }
  } finally {
    stopped?.kill('SIGKILL')
    leaving.abort()
    await place.close()
  }
}

async function begin(served: Served, prompt: string): Promise<string> {
  return (await served.ask('/v1/runs', { method: 'POST', body: { prompt, cwd: served.folder, detach: true, maxSteps: 1_000_000 } })).body.session as string
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

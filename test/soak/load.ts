/** Many sessions at once, each followed by a client, fed by a model in another process: how late the daemon's event loop gets, what it holds in memory, what goes wrong. Beside it a process that does nothing. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { cpuOf, memoryOf, settle, spread } from '../support/served.js'
import type { Soak } from './soak.js'

export interface LoadFigures {
  readonly sessions: number
  readonly errors: number
  /** Tokens a second that reached the clients, and that were offered. */
  readonly got: number
  readonly offered: number
  readonly firstMs: readonly number[]
  readonly loopP99: number
  /** Of a process that did nothing meanwhile. */
  readonly idleLoopP99: number
  readonly idleRssMB: number
  readonly rssMB: number
  /** Seconds of processor time that the daemon took, and the whole of it. */
  readonly cpuS: number
  readonly tookS: number
}

/** Runs in a process of its own, so that what it sees is the machine and not the load. */
const BYSTANDER = `const d = require('node:perf_hooks').monitorEventLoopDelay({ resolution: 100 }); d.enable(); process.stdin.on('data', () => { console.log(Math.max(0, d.percentile(99) / 1e6 - 100)); process.exit() })`

export const soak: Soak = async ({ say, check }) => {
  for (const [sessions, seconds] of [[100, 30], [1000, 30]] as const) {
    const { errors, got, offered, firstMs, loopP99, idleLoopP99, idleRssMB, rssMB, cpuS, tookS } = await load({ sessions, seconds })
    const first = spread(firstMs)
    say(`${sessions} sessions at 20 tokens/s: ${errors} errors, ${got.toFixed(0)} of ${offered.toFixed(0)} tokens/s, first after ${first.p50.toFixed(0)} ms (p99 ${first.p99.toFixed(0)}), event loop p99 ${loopP99.toFixed(0)} ms (a process that does nothing: ${idleLoopP99.toFixed(0)}), ${rssMB.toFixed(0)} MB resident at most, ${idleRssMB.toFixed(0)} before; ${cpuS.toFixed(1)} s of processor time in ${tookS.toFixed(0)} s`)
    check(errors === 0, `${errors} of ${sessions} sessions failed`)
    check(idleRssMB < 90, `idle it holds ${idleRssMB.toFixed(0)} MB, the limit is 90`)
    if (sessions !== 100) continue
    check(loopP99 - idleLoopP99 < 30, `the event loop is ${loopP99.toFixed(0)} ms late, beside ${idleLoopP99.toFixed(0)} of an idle process; the limit is 30 more`)
    check(rssMB < 180, `it holds ${rssMB.toFixed(0)} MB, the limit is 180`)
  }
}

/** Clients come within so many milliseconds; 0: all in the same instant. */
export async function load({ sessions, seconds, withinMs = 3000 }: { sessions: number; seconds: number; withinMs?: number }): Promise<LoadFigures> {
  const place = await settle({ config: 'plugins: [permission, tool-fs, tool-bash, model-openai, stats]\n' }), everyMs = 50
  const bystander = spawn(process.execPath, ['-e', BYSTANDER], { stdio: ['pipe', 'pipe', 'inherit'] })
  try {
    const served = await place.serve()
    await sleep(500)
    const idleRssMB = memoryOf(served.pid).now, firstMs: number[] = []
    let errors = 0, tokens = 0
    const begun = performance.now(), cpu = cpuOf(served.pid)
    await Promise.all(Array.from({ length: sessions }, async (_, index) => {
      await sleep(index * Math.min(10, withinMs / sessions))
      const asked = performance.now()
      let first = true, reason: unknown
      try {
        for await (const { event, data } of served.run(`say ${seconds * 1000 / everyMs} ${everyMs}`)) {
          if (event === 'delta') { tokens += data.text.split(' ').length - 1; if (first) firstMs.push(performance.now() - asked); first = false }
          if (event === 'result') reason = data.reason
        }
      } catch { /* counted below */ }
      if (reason !== 'completed') errors++
    }))
    const { loopDelayP99Ms } = (await served.ask('/v1/status')).body, tookS = (performance.now() - begun) / 1000
    bystander.stdin.write('now')
    const [text] = await once(bystander.stdout.setEncoding('utf8'), 'data') as [string]
    const figures = { sessions, errors, got: tokens / tookS, offered: sessions * 1000 / everyMs * (seconds / tookS), firstMs, loopP99: loopDelayP99Ms as number, idleLoopP99: Number(text), idleRssMB, rssMB: memoryOf(served.pid).most, cpuS: cpuOf(served.pid) - cpu, tookS }
    await served.stop()
    return figures
  } finally {
    bystander.kill()
    await place.close()
  }
}

/**
 * Thousands of sessions, a tool call each, while a plugin that judges every call is rewritten every 50 ms: through the whole app, watcher and reloads.
 * Each call has to be judged once and run once, by one version; memory, handles and listeners have to be at the end what they were.
 */
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startApp } from '../support/app.js'
import { chart } from './chart.js'
import { counts, grown, heapKB, slope, type Counts } from './reloads.js'
import type { Soak } from './soak.js'

export interface SessionFigures {
  readonly sessions: number
  readonly failed: readonly string[]
  readonly reloads: number
  /** Calls that were judged, or run, not exactly once. */
  readonly wrong: readonly string[]
  readonly seconds: number
  /** Of the heap after collection, over the last three quarters. */
  readonly kbPerSession: number
  readonly mbPerMinute: number
  readonly peakMB: number
  readonly first: Counts & { readonly descriptors: number }
  readonly last: Counts & { readonly descriptors: number }
  readonly complaints: readonly string[]
  readonly looks: readonly { readonly sessions: number; readonly seconds: number; readonly heapMB: number; readonly rssMB: number }[]
}

/** What ran when, by call: the plugins tell it through this. */
const tally = new Map<string, { judged: number; ran: number }>()
const of = (key: string) => { const one = tally.get(key) ?? { judged: 0, ran: 0 }; tally.set(key, one); return one }

const judge = (version: number) => `import type { Context } from 'harnessx'
export const name = 'judge'
const VERSION = ${version}
export function apply(ctx: Context) {
  ctx.on('agent/pre-tool-use', async ({ call }) => { await null; (globalThis as any).hxTally(String(call.arguments['key'])).judged++; void VERSION })
}
`
const WORKER = `import type { Context } from 'harnessx'
export const name = 'worker'
export function apply(ctx: Context) {
  ctx.tools.register({ name: 'work', description: 'Works.', parameters: { type: 'object' }, execute: ({ key }: { key: string }) => { (globalThis as any).hxTally(key).ran++; return 'worked' } } as never)
}
`

/** Goes on until there were that many sessions and that many reloads; after `mostMs` in any case. */
export async function manySessions({ sessions, reloads = 0, side = 4, everyMs = 50, looks = 40, mostMs = 15 * 60_000 }: { sessions: number; reloads?: number; side?: number; everyMs?: number; looks?: number; mostMs?: number }): Promise<SessionFigures> {
  tally.clear()
  Object.assign(globalThis, { hxTally: of })
  let version = 0, next = 0, done = 0, peakMB = 0
  const failed: string[] = [], wrong: string[] = [], points: SessionFigures['looks'][number][] = []
  const running = await startApp({
    files: { 'plugins/judge.ts': judge(0), 'plugins/worker.ts': WORKER }, config: 'plugins: [judge, worker]\n',
    script: async ({ messages }) => {
      await sleep(1)                                        // as a model does: the loop of the process turns, and files are seen
      const asked = messages.findLast(({ role }) => role === 'user')?.content.map(part => 'text' in part ? part.text : '').join('') ?? ''
      return messages.some(({ role }) => role === 'tool') ? 'done' : { calls: [{ name: 'work', arguments: { key: asked } }] }
    },
  })
  const counted = async () => { await sleep(500); await heapKB(); return { ...counts(running), descriptors: readdirSync('/proc/self/fd').length } }
  const saver = setInterval(() => { running.write('plugins/judge.ts', judge(++version)) }, everyMs)
  const begin = performance.now()
  const one = async () => {
    const key = `call-${next++}`
    const { result } = await running.run({ prompt: key, ephemeral: true })
    const { judged, ran } = of(key)
    if (result.reason !== 'completed') failed.push(`${key}: ${result.reason} ${result.message ?? ''}`)
    if (judged !== 1 || ran !== 1) wrong.push(`${key}: judged ${judged}, ran ${ran}`)
    tally.delete(key)
    running.events.length = 0
    running.lines.splice(0, running.lines.length, ...running.lines.filter(({ level }) => level === 'warn' || level === 'error'))
    done++
  }
  try {
    let first: SessionFigures['first'] | undefined
    const step = Math.max(1, Math.floor(sessions / looks))
    const enough = () => done >= sessions && running.app.status().reloads >= reloads || performance.now() - begin > mostMs
    while (!enough()) {
      const until = next + step
      await Promise.all(Array.from({ length: side }, async () => { while (next < until) await one() }))
      peakMB = Math.max(peakMB, process.memoryUsage().rss / 1024 / 1024)
      points.push({ sessions: done, seconds: (performance.now() - begin) / 1000, heapMB: await heapKB() / 1024, rssMB: process.memoryUsage().rss / 1024 / 1024 })
      if (first === undefined && done >= sessions / 4) first = await counted()
    }
    clearInterval(saver)
    const late = points.slice(Math.floor(points.length / 4))
    return {
      sessions: done, failed, wrong, reloads: running.app.status().reloads, seconds: (performance.now() - begin) / 1000, peakMB, looks: points, complaints: running.complaints(),
      kbPerSession: slope(late.map(({ sessions, heapMB }) => [sessions, heapMB * 1024])), mbPerMinute: slope(late.map(({ seconds, heapMB }) => [seconds / 60, heapMB])),
      first: first!, last: await counted(),
    }
  } finally {
    clearInterval(saver)
    await running.close()
  }
}

export const soak: Soak = async ({ say, check }) => {
  const { sessions, failed, wrong, reloads, seconds, kbPerSession, mbPerMinute, peakMB, first, last, complaints, looks } = await manySessions({ sessions: 10_000, reloads: 3_000 })
  say(`${sessions} in ${seconds.toFixed(0)} s over ${reloads} reloads: ${failed.length} failed, ${wrong.length} calls not judged and run exactly once; heap ${mbPerMinute.toFixed(2)} MB a minute (${kbPerSession.toFixed(3)} KB a session), peak ${peakMB.toFixed(0)} MB resident; descriptors ${first.descriptors} → ${last.descriptors}`)
  mkdirSync('dist/soak', { recursive: true })
  const file = join('dist/soak', 'sessions.svg')
  writeFileSync(file, chart(`${sessions} sessions while a plugin is rewritten every 50 ms (${reloads} reloads)`, 'sessions', [
    { name: 'resident', unit: 'MB', colour: '#b04a2f', points: looks.map(({ sessions, rssMB }) => [sessions, rssMB] as const) },
    { name: 'heap after collection', unit: 'MB', colour: '#2f6db0', points: looks.map(({ sessions, heapMB }) => [sessions, heapMB] as const) },
  ]))
  say(`chart: ${file}`)
  check(failed.length === 0, failed.slice(0, 5).join('; '))
  check(sessions >= 10_000 && reloads >= 3_000, `${sessions} sessions and ${reloads} reloads, of 10000 and 3000`)
  check(wrong.length === 0, wrong.slice(0, 5).join('; '))
  check(mbPerMinute < 1, `the heap grows by ${mbPerMinute.toFixed(2)} MB a minute, the limit is 1`)
  check(peakMB < 350, `${peakMB.toFixed(0)} MB at the peak, the limit is 350`)
  check(Math.abs(last.descriptors - first.descriptors) <= 2, `descriptors ${first.descriptors} → ${last.descriptors}`)
  check(grown(first, last).length === 0, `more than after the first quarter: ${grown(first, last).join(', ')}`)
  check(complaints.length === 0, complaints.slice(0, 5).join('\n'))
}

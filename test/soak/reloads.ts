/**
 * A plugin with a Config that is saved thousands of times, each time with another text, through the whole app: watcher, modules, kernel. What grows is told.
 * The first thousands warm V8 up and are not counted; what the schema library itself keeps of each schema is measured beside it, in the same process.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from 'harnessx'
import { startApp, type RunningApp } from '../support/app.js'
import { pluginOfSize } from '../support/plugin-source.js'
import type { Soak } from './soak.js'

export interface ReloadFigures {
  readonly reloads: number
  /** KB of heap that each reload leaves behind. */
  readonly heap: number
  /** Of that, what the library keeps of one schema. */
  readonly schema: number
  readonly msPerReload: number
  /** Counts after the warm-up and at the end. */
  readonly first: Counts
  readonly last: Counts
  readonly complaints: readonly string[]
}
export interface Counts { readonly handles: Readonly<Record<string, number>>; readonly listeners: number; readonly handlers: number; readonly tools: number; readonly rssMB: number }

const CONFIG = `import { z } from 'harnessx'
export const Config = z.object({ size: z.number().default(1), words: z.array(z.object({ word: z.enum(['a', 'b']) })).default([]), note: z.string().optional() })`
const schema = () => z.object({ size: z.number().default(1), words: z.array(z.object({ word: z.enum(['a', 'b']) })).default([]), note: z.string().optional() })
/** Between looks at the heap. */
const EVERY = 200
/** KB of heap a reload, beyond what the schema library keeps. */
const HEAP_LIMIT = 0.1

export const soak: Soak = async ({ say, check }) => {
  const { heap, schema, first, last, complaints, ...reloads } = await reloadManyTimes({ reloads: 10_000, warmUp: 3_000 })
  const kilobytes = (value: number) => `${value.toFixed(3)} KB`
  say(`${reloads.reloads} of 5 KB with a Config, ${reloads.msPerReload.toFixed(1)} ms each; ${kilobytes(heap)} of heap each, of which the schema library keeps ${kilobytes(schema)}; ${first.rssMB} to ${last.rssMB} MB resident`)
  check(heap - schema <= HEAP_LIMIT, `each reload keeps ${kilobytes(heap - schema)} of heap, the limit is ${HEAP_LIMIT}`)
  check(grown(first, last).length === 0, `more than after the warm-up: ${grown(first, last).join(', ')}`)
  check(complaints.length === 0, complaints.join('\n'))
}

export async function reloadManyTimes({ reloads, warmUp }: { reloads: number; warmUp: number }): Promise<ReloadFigures> {
  const source = (version: number) => pluginOfSize('sized', version, 5_000, CONFIG)
  const running = await startApp({ files: { 'plugins/sized.ts': source(0) }, config: 'plugins:\n  - name: sized\n    config: { size: 2 }\n' })
  try {
    const heap: Point[] = []
    const begin = performance.now()
    let first = counts(running)
    for (let version = 1; version <= reloads; version++) {
      const done = running.next(event => event.type === 'reloaded')
      running.write('plugins/sized.ts', source(version))
      await done
      running.events.length = 0
      running.lines.splice(0, running.lines.length, ...running.lines.filter(({ level }) => level !== 'info'))
      if (version === warmUp) first = await quiet(running)
      if (version % EVERY === 0 && version >= warmUp) heap.push([version, await heapKB()])
    }
    const msPerReload = (performance.now() - begin) / reloads
    return { reloads, heap: slope(heap), schema: await schemaSlope(), msPerReload, first, last: await quiet(running), complaints: running.complaints() }
  } finally { await running.close() }
}

/** What there is more of than before. Memory is judged by its slope. */
export function grown(first: Counts, last: Counts): string[] {
  const flat = ({ handles, rssMB: _, ...counts }: Counts): Record<string, number> => ({ ...handles, ...counts })
  const before = flat(first)
  return Object.entries(flat(last)).flatMap(([kind, count]) => count > (before[kind] ?? 0) ? [`${kind} ${before[kind] ?? 0} → ${count}`] : [])
}

/** When the looks after the last save are over and old versions have gone. */
async function quiet(running: RunningApp): Promise<Counts> {
  await sleep(400)
  await heapKB()
  return counts(running)
}
export function counts({ app }: RunningApp): Counts {
  const handles: Record<string, number> = {}
  for (const kind of process.getActiveResourcesInfo().filter(kind => !/Req|Immediate/.test(kind)).sort()) handles[kind] = (handles[kind] ?? 0) + 1
  return {
    handles, listeners: process.eventNames().reduce((all, name) => all + process.listenerCount(name), 0),
    handlers: app.hooks().reduce((all, hook) => all + hook.handlers.length, 0), tools: app.tools().length, rssMB: Math.round(process.memoryUsage().rss / 1024 / 1024),
  }
}

type Point = readonly [count: number, kilobytes: number]
export async function heapKB(): Promise<number> {
  for (let times = 0; times < 3; times++) {
    await sleep(5)                                                      // lets finalizers run between two collections
    globalThis.gc!()
  }
  return process.memoryUsage().heapUsed / 1024
}
async function schemaSlope(): Promise<number> {
  const points: Point[] = []
  for (let made = 1; made <= 3000; made++) {
    schema().parse({ size: 2 })
    if (made % EVERY === 0) points.push([made, await heapKB()])
  }
  return Math.max(0, slope(points.slice(5)))
}
/** By least squares. */
export function slope(points: readonly Point[]): number {
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length
  const x = mean(0), y = mean(1)
  return points.reduce((sum, [count, size]) => sum + (count - x) * (size - y), 0) / points.reduce((sum, [count]) => sum + (count - x) ** 2, 0)
}

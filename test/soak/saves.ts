/** Files that another process saves at random, in every way that editors have, several at once and again before the first is taken in. In the end what runs has to be what was saved last. */
import { setTimeout as sleep } from 'node:timers/promises'
import { startApp } from '../support/app.js'
import { pluginOfSize } from '../support/plugin-source.js'
import { SAVES, startSaver, type How } from '../support/saver.js'
import type { Soak } from './soak.js'

export interface SaveFigures {
  readonly saves: number
  readonly reloads: number
  /** How the last save was done of each file that did not run in the end. */
  readonly wrong: readonly How[]
  /** What was told as a failure: half of a file, then. */
  readonly complaints: readonly string[]
  /** Milliseconds from the last save of a round until everything ran. */
  readonly settled: readonly number[]
}

const FILES = ['a', 'b', 'c', 'd']
const PATIENCE_MS = 2000

export const soak: Soak = async ({ say, check }) => {
  const saves = await saveAtRandom({ saves: 1_000 })
  const late = [...saves.settled].sort((a, b) => a - b)
  say(`${saves.saves} at random, ${saves.reloads} reloads, ${saves.wrong.length} wrong in the end, ${saves.complaints.length} told as a failure; settled after ${late[late.length >> 1]!.toFixed(0)} ms, at most ${late.at(-1)!.toFixed(0)} ms`)
  check(saves.wrong.length === 0, `wrong in the end: ${saves.wrong.join(', ')}`)
  check(saves.complaints.length === 0, saves.complaints.join('\n'))
}

export async function saveAtRandom({ saves }: { saves: number }): Promise<SaveFigures> {
  const source = (id: string, version: number) => pluginOfSize(id, version, 600 + Math.floor(Math.random() * 8_000))
  const running = await startApp({ files: Object.fromEntries(FILES.map(id => [`plugins/${id}.ts`, source(id, 0)])), config: `plugins: [${FILES.join(', ')}]\n` })
  const saver = FILES.map(() => startSaver())
  const versions = (globalThis as unknown as { hxVersions: Record<string, number> }).hxVersions
  const wrong: How[] = [], settled: number[] = []
  let made = 0
  try {
    while (made < saves) {
      const last = new Map<string, { version: number; how: How }>()
      await Promise.all(FILES.map(async (id, index) => {
        for (let times = Math.ceil(Math.random() * 4); times > 0 && made < saves; times--) {
          const version = ++made
          await sleep(Math.random() * 60)
          const how = SAVES[Math.floor(Math.random() * SAVES.length)]!
          last.set(id, { version, how })
          await saver[index]!.save(how, running.at(`plugins/${id}.ts`), source(id, version))
        }
      }))
      const begin = performance.now(), missing = () => [...last].filter(([id, { version }]) => versions[id] !== version)
      while (missing().length > 0 && performance.now() - begin < PATIENCE_MS) await sleep(2)
      settled.push(performance.now() - begin)
      wrong.push(...missing().map(([, { how }]) => how))
      await sleep(Math.random() * 150)
    }
    return { saves: made, reloads: running.app.status().reloads, wrong, complaints: running.complaints(), settled }
  } finally {
    for (const one of saver) one.close()
    await running.close()
  }
}

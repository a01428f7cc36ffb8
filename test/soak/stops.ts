/** SIGTERM at random moments, while models stream, tools run and nothing answers: the daemon ends within its deadline, every turn has an end, and neither a process nor a file is left. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { logOf, settle, spread, type Served } from '../support/served.js'
import type { Soak } from './soak.js'

export interface StopFigures { readonly stops: number; readonly turns: number; /** What was wrong, each time. */ readonly wrong: readonly string[]; readonly ms: readonly number[] }
const PROMPTS = ['say 500 10', 'call 400 read_file {"path":"note.txt"}', 'hang', 'call 9 bash {"command":"sleep 4711"}', 'call 9 bash {"command":"trap \\"\\" TERM; sleep 4711 & wait"}']

export const soak: Soak = async ({ say, check }) => {
  const { stops, turns, wrong, ms } = await stopAtRandom({ stops: 50 })
  const took = spread(ms)
  say(`SIGTERM at random ${stops} times, ${turns} turns under way: ${wrong.length} wrong; it took ${took.p50.toFixed(0)} ms, at most ${took.max.toFixed(0)} ms`)
  check(wrong.length === 0, wrong.join('; '))
  check(took.max < 10_000, `it took ${took.max.toFixed(0)} ms, the limit is 10000`)
}

export async function stopAtRandom({ stops }: { stops: number }): Promise<StopFigures> {
  const place = await settle(), wrong: string[] = [], ms: number[] = []
  let turns = 0
  try {
    for (let round = 0; round < stops; round++) {
      const served = await place.serve(), sessions = new Set<string>()
      const clients = PROMPTS.map(prompt => listen(served, prompt, sessions))
      while (sessions.size < PROMPTS.length) await sleep(2)
      await sleep(Math.random() * 500)
      const { code, ms: took } = await served.kill('SIGTERM')
      ms.push(took)
      await Promise.all(clients)
      if (code !== 0) wrong.push(`it ended with ${code}`)
      for (const id of sessions) {
        turns++
        const { events, unreadable, torn } = logOf(place, id), last = events.at(-1)
        if (unreadable > 0 || torn) wrong.push(`session ${id} is damaged`)
        if (last?.type !== 'turn-end' || !['interrupted', 'completed', 'max-steps'].includes(last.reason)) wrong.push(`the last line of ${id} is ${JSON.stringify(last)}`)
      }
      const left = readdirSync(join(place.home, 'run'))
      if (left.length > 0) wrong.push(`left in the run folder: ${left.join(', ')}`)
      const sleeping = processes('sleep 4711')
      if (sleeping > 0) wrong.push(`${sleeping} processes of tools are left`)
    }
    return { stops, turns, wrong, ms }
  } finally { await place.close() }
}

async function listen(served: Served, prompt: string, sessions: Set<string>): Promise<void> {
  try {
    for await (const { event, data } of served.run(prompt, { mode: 'yes', maxSteps: 1000 })) if (event === 'session') sessions.add(data.session)
  } catch { /* the daemon has ended */ }
}
/** Processes with such a command line. */
function processes(words: string): number {
  return readdirSync('/proc').filter(name => /^\d+$/.test(name)).filter(pid => {
    try { return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim() === words } catch { return false }   // it has ended
  }).length
}

/** SIGKILL at random moments while several sessions write as fast as they can. What a client was told has to stand in the log, every line has to be readable, and the next daemon has to go on. */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { bareNode, logOf, settle, spread, type Served } from '../support/served.js'
import type { Soak } from './soak.js'

export interface KillFigures {
  readonly kills: number
  /** Log lines that clients had been sent before the kill, and those of them that the log lacks or has otherwise. */
  readonly acknowledged: number
  readonly lost: number
  readonly unreadable: number
  /** Logs whose last line was cut; the next writer takes it away. */
  readonly torn: number
  /** Sessions that did not go on afterwards. */
  readonly stuck: number
  readonly readyMs: readonly number[]
  /** The same, as multiples of the time that `node -e 0` took beside it. */
  readonly ratios: readonly number[]
}
const SESSIONS = 6
/** A second where bare node takes 68 ms. */
const READY_RATIO = 15

export const soak: Soak = async ({ say, check }) => {
  const { kills, acknowledged, lost, unreadable, torn, stuck, readyMs, ratios } = await killAtRandom({ kills: 200 })
  const ready = spread(readyMs)
  say(`${kills} SIGKILLs under load: ${acknowledged} events acknowledged, ${lost} lost, ${unreadable} unreadable lines, ${torn} torn ends, ${stuck} sessions that did not go on; ready again after ${ready.p50.toFixed(0)} ms, at most ${ready.max.toFixed(0)} ms; ${spread(ratios).p50.toFixed(1)} × bare node -e 0`)
  check(lost === 0 && unreadable === 0 && stuck === 0, 'something was lost')
  check(spread(ratios).p50 < READY_RATIO, `until it was ready again it took ${spread(ratios).p50.toFixed(1)} times as long as bare node, the limit is ${READY_RATIO}`)
}

export async function killAtRandom({ kills }: { kills: number }): Promise<KillFigures> {
  const place = await settle(), readyMs: number[] = [], ratios: number[] = []
  let acknowledged = 0, lost = 0, unreadable = 0, torn = 0, stuck = 0
  try {
    let served = await place.serve()
    for (let round = 0; round < kills; round++) {
      const seen = new Map<string, unknown[]>()
      const clients = Array.from({ length: SESSIONS }, (_, index) => listen(served, index % 2 ? 'say 400 10' : 'call 400 read_file {"path":"note.txt"}', seen))
      await Promise.race([Promise.all(clients), until(() => seen.size === SESSIONS).then(() => sleep(Math.random() * 400))])
      await served.kill('SIGKILL')
      await Promise.all(clients)
      for (const [id, events] of seen) {
        const log = logOf(place, id)
        acknowledged += events.length
        lost += events.filter((event, index) => !isDeepStrictEqual(event, log.events[index])).length
        unreadable += log.unreadable
        torn += Number(log.torn)
      }
      served = await place.serve()
      readyMs.push(served.readyMs)
      if (round % 10 === 0) ratios.push(served.readyMs / await bareNode())
      const [session] = seen.keys()
      let reason: unknown
      for await (const { event, data } of served.run('go on', { session })) if (event === 'result') reason = data.reason
      const { events } = logOf(place, session!)
      if (reason !== 'completed' || !events.some(event => event.type === 'turn-end' && event.reason === 'interrupted')) stuck++
    }
    await served.stop()
    return { kills, acknowledged, lost, unreadable, torn, stuck, readyMs, ratios }
  } finally { await place.close() }
}

async function listen(served: Served, prompt: string, seen: Map<string, unknown[]>): Promise<void> {
  const events: unknown[] = []
  try {
    for await (const { event, data } of served.run(prompt)) {
      if (event === 'session') seen.set(data.session, events)
      if (event === 'log') events.push(data)
    }
  } catch { /* the daemon was killed */ }
}
const until = async (holds: () => boolean) => { while (!holds()) await sleep(2) }

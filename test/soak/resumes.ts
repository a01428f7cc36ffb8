/** Clients whose connection ends at a random moment and who come back with the last line they have: what they have in the end is the log, without a gap and without a line twice. */
import { setTimeout as sleep } from 'node:timers/promises'
import { settle, type Served } from '../support/served.js'
import type { Soak } from './soak.js'

export interface ResumeFigures { readonly breaks: number; readonly lines: number; /** Lines that were missing, double or out of order. */ readonly wrong: number; /** Resumes that were answered with a reset. */ readonly resets: number }

export const soak: Soak = async ({ say, check }) => {
  const { breaks, lines, wrong, resets } = await breakAtRandom({ breaks: 100 })
  say(`connections broken at random ${breaks} times and resumed: ${lines} lines, ${wrong} missing or double, ${resets} resets`)
  check(wrong === 0 && resets === 0, `${wrong} lines are missing or double, ${resets} resets`)
}

export async function breakAtRandom({ breaks }: { breaks: number }): Promise<ResumeFigures> {
  const place = await settle()
  let made = 0, lines = 0, wrong = 0, resets = 0
  try {
    const served = await place.serve()
    while (made < breaks) {
      const { body } = await served.ask('/v1/runs', { method: 'POST', body: { prompt: `call 60 read_file {"path":"note.txt"}`, cwd: served.folder, detach: true, maxSteps: 100 } })
      const clients = await Promise.all([1, 2, 3, 4].map(() => client(served, body.session as string, () => made++ < breaks)))
      for (const { seqs, reset } of clients) {
        lines += seqs.length
        resets += reset
        wrong += seqs.filter((seq, index) => seq !== index + 1).length
        const { events } = (await served.ask(`/v1/sessions/${body.session}`)).body
        wrong += Math.abs(events.length - seqs.length)
      }
    }
    await served.stop()
    return { breaks, lines, wrong, resets }
  } finally { await place.close() }
}

async function client(served: Served, session: string, more: () => boolean): Promise<{ seqs: number[]; reset: number }> {
  const seqs: number[] = []
  let reset = 0
  for (let over = false; !over;) {
    const breaking = new AbortController(), again = more()
    if (again) void sleep(Math.random() * 150).then(() => { breaking.abort() })
    try {
      for await (const { event, id } of served.follow(`/v1/sessions/${session}/events`, { headers: { 'last-event-id': String(seqs.at(-1) ?? 0) }, signal: breaking.signal })) {
        if (event === 'log') seqs.push(id!)
        if (event === 'reset') reset++
        if (event === 'end') over = true
      }
    } catch (error) { if (!breaking.signal.aborted) throw error }
  }
  return { seqs, reset }
}

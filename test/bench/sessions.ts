/**
 * 1 to 1,000 sessions at once in one daemon, each followed by a client of its own and fed 20 tokens a second by a model in another process: what reaches the clients of what is offered,
 * how long the first token takes (the model waits 50 ms with it), what the daemon holds, and how late its event loop gets, beside a process that does nothing.
 */
import { load } from '../soak/load.js'
import { row, type Row } from './row.js'

const COUNTS = [1, 10, 100, 1000], SECONDS = 10

export async function benchSessions(): Promise<Row[]> {
  const rows: Row[] = []
  let single: Row | undefined
  for (const sessions of COUNTS) {
    const { errors, got, offered, firstMs, loopP99, idleLoopP99, idleRssMB, rssMB } = await load({ sessions, seconds: SECONDS })
    const many = `${sessions} session${sessions === 1 ? '' : 's'}`
    const first = row(`${many}: first token`, 'ms', firstMs, single), offer = row(`${many}: offered`, 'tokens/s', [offered])
    const idle = row(`${many}: before`, 'MB', [idleRssMB]), still = row(`${many}: loop of an idle process, p99`, 'ms', [idleLoopP99])
    single ??= first
    rows.push(first, offer, row(`${many}: got${errors > 0 ? `, ${errors} FAILED` : ''}`, 'tokens/s', [got], offer), idle, row(`${many}: resident at most`, 'MB', [rssMB], idle), still, row(`${many}: event loop late, p99`, 'ms', [loopP99], still))
  }
  return rows
}

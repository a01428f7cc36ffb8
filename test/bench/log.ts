/**
 * The session log beside what it is made of: one event appended and committed, beside a plain write and `fdatasync` of the same bytes; a log of 10,000 events read back, beside splitting and parsing its lines.
 */
import { closeSync, fdatasyncSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { newSessionId } from '../../core/agent/session-id.js'
import type { SessionEventBody } from '../../core/agent/session-events.js'
import { row, type Row } from './row.js'

const COMMITS = 200, EVENTS = 10_000, READS = 11

export async function benchLog(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'hx-bench-log-'))
  const store = new FileSessionStore({ folder: join(folder, 'sessions') })
  const event: SessionEventBody = { type: 'message', turn: 1, step: 0, role: 'assistant', content: [{ type: 'text', text: 'x'.repeat(400) }], source: { kind: 'model', id: 'scripted' } }
  const line = `${JSON.stringify({ seq: 1, ts: new Date().toISOString(), ...event })}\n`
  const plain = openSync(join(folder, 'plain'), 'a', 0o600)
  const writer = await store.create({ id: newSessionId(), cwd: folder, depth: 0 })
  const time = async (work: () => unknown): Promise<number> => { const begin = performance.now(); await work(); return performance.now() - begin }
  try {
    const floor: number[] = [], commits: number[] = []
    for (let i = 0; i < COMMITS; i++) {
      floor.push(await time(() => { writeSync(plain, line); fdatasyncSync(plain) }))
      commits.push(await time(() => { writer.append(event); return writer.commit() }))
    }
    for (let i = COMMITS; i < EVENTS; i++) writer.append(event)
    await writer.close()
    const file = join(folder, 'sessions', `${writer.id}.jsonl`)
    const parse: number[] = [], replay: number[] = []
    for (let i = 0; i < READS; i++) {
      parse.push(await time(() => readFileSync(file, 'utf8').split('\n').map(text => text === '' ? undefined : JSON.parse(text) as object)))
      replay.push(await time(() => store.read(writer.id)))
    }
    const write = row('write and fdatasync', 'ms', floor), lines = row(`parse ${EVENTS} lines`, 'ms', parse)
    return [write, row('append and commit', 'ms', commits, write), lines, row(`read a log of ${EVENTS} events`, 'ms', replay, lines)]
  } finally {
    closeSync(plain)
    rmSync(folder, { recursive: true, force: true })
  }
}

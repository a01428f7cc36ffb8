/** A disk that gets full under a daemon, and a limit on the size of files: nothing that was acknowledged is lost, no line is broken, the daemon stays, says what is wrong, and goes on by itself when there is space. Linux, as root. */
import { execFileSync } from 'node:child_process'
import { rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { logOf, settle, type Places, type Served } from '../support/served.js'
import type { Soak } from './soak.js'

export interface DiskFigures {
  /** How turns ended while there was no space, and what was said of it. */
  readonly refused: readonly string[]
  readonly ready: { readonly full: number; readonly free: number }
  /** How the same session ended with space. */
  readonly after: string
  readonly lost: number
  readonly unreadable: number
}

export const soak: Soak = async ({ say, check }) => {
  if (canMount()) {
    const { refused, ready, after, lost, unreadable } = await fullDisk()
    say(`a full disk: turns end ${[...new Set(refused)].join(', ')}; /readyz ${ready.full}, then ${ready.free}; with space the session ends ${after}; ${lost} acknowledged events lost, ${unreadable} unreadable lines`)
    check(refused.every(end => end.includes('storage_failed')) && ready.full === 503 && ready.free === 200 && after === 'completed' && lost === 0 && unreadable === 0, 'a full disk is not got over')
  } else say('a full disk: not tried, since nothing can be mounted here')
  const { refused, after, lost, unreadable } = await limitedFiles()
  say(`a limit on the size of files: turns end ${[...new Set(refused)].join(', ')}; another session ends ${after}; ${lost} acknowledged events lost, ${unreadable} unreadable lines`)
  check(refused.every(end => end.includes('storage_failed')) && after === 'completed' && lost === 0 && unreadable === 0, 'a limit on the size of files is not got over')
}

/** Only root may mount, and not in every container. */
export function canMount(): boolean {
  try { execFileSync('unshare', ['-m', 'true'], { stdio: 'ignore' }); return true } catch { return false }
}

export async function fullDisk(): Promise<DiskFigures> {
  const place = await settle()
  try {
    const served = await place.serve({ prefix: ['unshare', '-m', 'sh', '-c', `mkdir -p ${place.sessions} && mount -t tmpfs -o size=512k,mode=700 tmpfs ${place.sessions} && exec "$0" "$@"`] })
    const inside: Places = { ...place, sessions: `/proc/${served.pid}/root${place.sessions}` }, filler = join(inside.sessions, 'filler')
    const seen: unknown[] = [], session = await turn(served, 'call 3 read_file {"path":"note.txt"}', seen)
    const { bavail, bsize } = statfsSync(inside.sessions)
    writeFileSync(filler, Buffer.alloc(bavail * bsize - 8 * 1024))
    const refused: string[] = []
    for (let n = 0; n < 3; n++) refused.push((await turn(served, `call 50 read_file {"path":"note.txt"}`, seen, session.id)).end)
    const full = (await served.ask('/readyz')).status
    rmSync(filler)
    const free = (await served.ask('/readyz')).status, { end: after } = await turn(served, 'say 3 10', seen, session.id)
    const figures = { refused, ready: { full, free }, after, ...judged(inside, session.id, seen) }
    await served.stop()
    return figures
  } finally { await place.close() }
}

export async function limitedFiles(): Promise<Omit<DiskFigures, 'ready'>> {
  const place = await settle()
  try {
    const served = await place.serve({ prefix: ['bash', '-c', 'ulimit -f 128; exec "$0" "$@"'] })
    const seen: unknown[] = [], session = await turn(served, 'call 300 read_file {"path":"note.txt"}', seen)
    const again = await turn(served, 'say 3 10', seen, session.id), { end: after } = await turn(served, 'say 3 10', [])
    const figures = { refused: [session.end, again.end], after, ...judged(place, session.id, seen) }
    await served.stop()
    return figures
  } finally { await place.close() }
}

/** One turn; every log line that was told of it. */
async function turn(served: Served, prompt: string, seen: unknown[], session?: string): Promise<{ id: string; end: string }> {
  let id = session ?? '', end = 'nothing'
  try {
    for await (const { event, data } of served.run(prompt, { maxSteps: 1000, ...(session !== undefined && { session }) })) {
      if (event === 'session') id = data.session
      if (event === 'log') seen.push(data)
      if (event === 'result') end = data.reason === 'failed' ? `failed (${/could not be written|storage/.test(data.message ?? '') ? 'storage_failed' : data.message})` : data.reason
      if (event === 'error') end = data.code
    }
  } catch (error) { end = `refused (${await whyRefused(served, prompt, id, error)})` }
  return { id, end }
}
/** A refusal has its reason in its body. */
async function whyRefused(served: Served, prompt: string, session: string, error: unknown): Promise<string> {
  const { body } = await served.ask('/v1/runs', { method: 'POST', body: { prompt, cwd: served.folder, ...(session !== '' && { session }) } }).catch(() => ({ body: undefined }))
  return body?.error?.code ?? String(error)
}
function judged(place: Places, id: string, seen: readonly unknown[]): { lost: number; unreadable: number } {
  const { events, unreadable } = logOf(place, id), there = new Map(events.map(event => [event.seq, JSON.stringify(event)]))
  return { lost: seen.filter(event => there.get((event as { seq: number }).seq) !== JSON.stringify(event)).length, unreadable }
}

/**
 * The mark of a daemon that serves: written when it does, removed at a clean stop. One that nobody holds the lock of is what a crash left.
 * Beside it the strikes: when crashed daemons were started again, so that one that always crashes is not started for ever. Knows no process.
 */
import { readFile, rm, writeFile } from 'node:fs/promises'
import type { Endpoint } from './endpoint.js'

/** So many starts after a crash within this time, then no more until somebody says so. */
const MAX_STRIKES = 3, STRIKES_MS = 300_000

export interface RunMark {
  readonly pid: number
  readonly version: string
  /** It was started with --trust. */
  readonly trust: boolean
  /** Somebody else starts it again: a service manager, or a person at a terminal. */
  readonly foreground: boolean
}
/** By hand: whoever asks for the state of a daemon should not wait for a library of schemas. */
const isMark = (value: unknown): value is RunMark => {
  const { pid, version, trust, foreground } = value as Partial<RunMark>
  return Number.isInteger(pid) && typeof version === 'string' && typeof trust === 'boolean' && typeof foreground === 'boolean'
}
const isMoments = (value: unknown): value is number[] => Array.isArray(value) && value.every(Number.isFinite)

export const writeMark = ({ mark }: Endpoint, content: RunMark): Promise<void> => writeFile(mark, JSON.stringify(content), { mode: 0o600 })
export const readMark = ({ mark }: Endpoint): Promise<RunMark | undefined> => readJson(mark, isMark)
/** What a clean stop removes. */
export async function clearMark({ mark, strikes }: Endpoint): Promise<void> {
  await Promise.all([mark, strikes].map(file => rm(file, { force: true })))
}
/** When crashed ones were started again, of late. */
export const recentStrikes = async ({ strikes }: Endpoint, now: number = Date.now()): Promise<readonly number[]> =>
  (await readJson(strikes, isMoments) ?? []).filter(at => at <= now && now - at < STRIKES_MS)
/** Counts a start after a crash. False when there were too many of late. */
export async function strike(endpoint: Endpoint, now: number = Date.now()): Promise<boolean> {
  const recent = await recentStrikes(endpoint, now), { strikes } = endpoint
  if (recent.length >= MAX_STRIKES) return false
  await writeFile(strikes, JSON.stringify([...recent, now]), { mode: 0o600 })
  return true
}

/** Undefined when it is not there, or was cut by the crash. */
async function readJson<T>(file: string, fits: (value: unknown) => value is T): Promise<T | undefined> {
  let text: string
  try { text = await readFile(file, 'utf8') } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
  try {
    const value: unknown = JSON.parse(text)
    return fits(value) ? value : undefined
  } catch { return undefined }                                 // no JSON, or nothing with fields: half a file
}

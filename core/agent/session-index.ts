/**
 * What a list of sessions remembers of the files that it has read: `index.json` beside them, with the summary of each and what its file looked like.
 * Derived from the logs and never believed over them: an entry counts for the very file that it was made from; an index that is damaged, or was made by another version, counts for nothing.
 * Knows no log. Nothing here fails: without an index a list reads the logs, as it does for what the index lacks.
 */
import { createHash } from 'node:crypto'
import { constants, type Stats } from 'node:fs'
import { open, readFile, rename } from 'node:fs/promises'
import { messageOf } from '../errors.js'
import { acquireLock } from '../kernel/lock.js'
import type { SessionSummary } from './session-events.js'

/** Raised whenever a summary says something else, or says it otherwise. */
const INDEX_VERSION = 1

export interface IndexEntry { readonly look: string; readonly summary: SessionSummary }

/** A file that changed later than this may change again and look the same: the clock of a file system goes in steps, and clocks are put back. */
const SETTLED_MS = 2000
/** So many files that the index lacks, or has and are gone, are worth writing it again; fewer are read sooner than it is written. */
const WORTH_WRITING = 100
/** Between two times that one process writes it. */
const REST_MS = 5000
const { O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC, O_NOFOLLOW, O_NONBLOCK } = constants

/** What tells a file from what it was before each change. Nothing while that can't be told for sure. */
export function lookOf({ size, mtimeMs, ctimeMs, ino }: Stats, now: number): string | undefined {
  return Math.max(mtimeMs, ctimeMs) < now - SETTLED_MS ? `${size} ${mtimeMs} ${ctimeMs} ${ino}` : undefined
}

export class SessionIndex {
  readonly #file: string
  readonly #report: (message: string) => void
  #mayWriteAt = 0
  #useless = false
  #told = false

  /** `report` is told once that an index was made anew, or could not be kept. */
  constructor(file: string, report: (message: string) => void) {
    this.#file = file
    this.#report = report
  }

  /** What is known, by session. */
  async read(): Promise<ReadonlyMap<string, IndexEntry>> {
    try {
      return parseIndex(await readFile(this.#file, { encoding: 'utf8', flag: O_RDONLY | O_NOFOLLOW | O_NONBLOCK }))
    } catch (error) {
      this.#useless = (error as NodeJS.ErrnoException).code !== 'ENOENT'
      if (this.#useless) this.#tell(`the index of the sessions is made anew from their logs (${messageOf(error)})`)
      return new Map()
    }
  }

  /** Writes it when enough of it changed, unless somebody else does so now. */
  async keep(entries: ReadonlyMap<string, IndexEntry>, changes: number): Promise<void> {
    if (changes < WORTH_WRITING && !this.#useless || performance.now() < this.#mayWriteAt) return
    this.#mayWriteAt = performance.now() + REST_MS
    try {
      const lock = await acquireLock(`index ${this.#file}`)
      try { if (lock) await this.#write(indexText(entries)) } finally { await lock?.release() }
    } catch (error) { this.#tell(`the index of the sessions can not be kept, so that lists read their logs (${messageOf(error)})`) }
  }

  async #write(text: string): Promise<void> {
    const draft = `${this.#file}.draft`                         // one name, so that a process that dies leaves one file at most
    const handle = await open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK, 0o600)
    try { await handle.writeFile(text) } finally { await handle.close() }
    await rename(draft, this.#file)
  }
  #tell(message: string): void {
    if (!this.#told) this.#report(message)
    this.#told = true
  }
}

/** JSON that begins with a digest of the rest: what has it was written by this version, to the end, and needs no further check. */
export function indexText(entries: ReadonlyMap<string, IndexEntry>, version: number = INDEX_VERSION): string {
  const rest = `"v":${version},"sessions":${JSON.stringify(Object.fromEntries(entries))}}\n`
  return `{"digest":"${digest(rest)}",${rest}`
}
/** Throws when the text is not that of an index of this version. */
export function parseIndex(text: string, version: number = INDEX_VERSION): Map<string, IndexEntry> {
  const [, said, rest] = /^\{"digest":"([0-9a-f]{64})",(.*)$/s.exec(text) ?? []
  if (rest === undefined || digest(rest) !== said) throw new Error('it is damaged')
  const { v, sessions } = JSON.parse(text) as { v: number; sessions: Record<string, IndexEntry> }
  if (v !== version) throw new Error(`it has format ${v}, this hx keeps format ${version}`)
  return new Map(Object.entries(sessions))
}
const digest = (text: string): string => createHash('sha256').update(text).digest('hex')

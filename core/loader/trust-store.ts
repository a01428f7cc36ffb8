/**
 * Which configs a person has trusted, on disk: one file in the user's own config folder, 0600, replaced as a whole under a lock. Knows no terminal and reads nothing of the folders it names.
 * A config is its real path together with the real folder it was found in: a link to a trusted file brings the plugins of its own folder, which nobody has trusted.
 * The file is read anew for every question, so trust that is taken back counts at once; one that others can write to counts for nothing.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, join, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { z } from '../z.js'
import { HarnessError, notStored } from '../errors.js'
import { acquireLock } from '../kernel/lock.js'
import { makeFolder } from '../kernel/folder.js'
import type { Trust } from './trust.js'

const Trusted = z.object({
  /** Real paths: of the file, and of the folder whose plugins and `.env` it brings. */
  config: z.string(),
  folder: z.string(),
  /** Folders elsewhere that its plugins stood in when it was trusted. */
  also: z.array(z.string()).default([]),
  since: z.string(),
})
export type Trusted = z.infer<typeof Trusted>
const Content = z.object({ version: z.literal(1), trusted: z.array(Trusted) })

/** How long another writer may take. */
const LOCK_MS = 5000

export class TrustStore {
  readonly #file: string
  constructor(file: string) { this.#file = file }

  /** Throws in one sentence when the file is there and can't be relied on. */
  list(): readonly Trusted[] {
    const found = statSync(this.#file, { throwIfNoEntry: false })
    if (!found) return []
    const refuse = (why: string, cause?: unknown) => new HarnessError('untrusted', `the list of trusted configs "${this.#file}" ${why}, so nothing counts as trusted; ${why.startsWith('is') ? 'remove it' : 'run: chmod 600 on it after a look at it'}, and trust anew with "hx trust"`, { place: { file: this.#file }, cause })
    if ((process.getuid && found.uid !== process.getuid()) || (found.mode & 0o022) !== 0) throw refuse('can be written to by others')
    try { return Content.parse(JSON.parse(readFileSync(this.#file, 'utf8'))).trusted } catch (cause) { throw refuse('is damaged', cause) }
  }
  find(config: string): Trusted | undefined {
    const key = keyOf(config)
    return this.list().find(one => one.config === key.config && one.folder === key.folder)
  }
  async add(config: string, also: readonly string[] = []): Promise<Trusted> {
    const entry: Trusted = { ...keyOf(config), also: [...also], since: new Date().toISOString() }
    await this.#change(all => [...all.filter(one => !isSame(one, entry)), entry])
    return entry
  }
  /** By the file, by the folder, or by either as it was called when it was there. Resolves to what was taken back. */
  async revoke(path: string): Promise<readonly Trusted[]> {
    const real = realOf(path), named = ({ config, folder }: Trusted) => [config, folder, join(folder, basename(config))].some(one => one === real || one === path)
    let gone: readonly Trusted[] = []
    await this.#change(all => {
      gone = all.filter(named)
      return all.filter(one => !named(one))
    })
    return gone
  }

  async #change(change: (all: readonly Trusted[]) => readonly Trusted[]): Promise<void> {
    makeFolder(dirname(this.#file))
    const lock = await this.#locked()
    try {
      const before = this.list(), trusted = change(before)
      if (trusted.length === 0 && before.length === 0) return
      const { default: writeFileAtomic } = await import('write-file-atomic')      // most commands only ask
      try { await writeFileAtomic(this.#file, `${JSON.stringify({ version: 1, trusted }, null, 2)}\n`, { mode: 0o600 }) } catch (error) { throw notStored(`"${this.#file}" could not be written`, error, this.#file) }
    } finally { await lock.release() }
  }
  async #locked() {
    for (const end = performance.now() + LOCK_MS; ; await sleep(10)) {
      const lock = await acquireLock(`trust:${this.#file}`)
      if (lock) return lock
      if (performance.now() > end) throw new HarnessError('storage_failed', `"${this.#file}" is being written by another process for more than ${LOCK_MS} ms; try again`)
    }
  }
}

/** What the store says of this config: the file itself, its `.env`, and modules in its folder. Anything else is another config's, or nobody's. */
export function trustStored(store: TrustStore, config: string): Trust {
  return {
    allows: ({ kind, file }) => {
      const trusted = store.find(config)
      if (!trusted) return false
      if (kind === 'config') return realOf(file) === trusted.config && realOf(dirname(file)) === trusted.folder
      if (kind === 'env') return realOf(dirname(file)) === trusted.folder
      return [trusted.folder, ...trusted.also].some(folder => isInside(folder, realOf(file)))
    },
  }
}

const keyOf = (config: string) => ({ config: realOf(config), folder: realOf(dirname(config)) })
const isSame = (a: Trusted, b: Trusted): boolean => a.config === b.config && a.folder === b.folder
const isInside = (folder: string, path: string): boolean => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
/** The real path; of what is not there, that of the folder above with the rest as it stands. */
function realOf(path: string): string {
  try { return realpathSync(path) } catch { return path === dirname(path) ? path : join(realOf(dirname(path)), basename(path)) }   // not there, or a link to nothing: then there is nothing to read either
}

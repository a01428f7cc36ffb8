/**
 * Changes of what the host runs that a tool may have made: held until a person says so. Whoever reads a held file is given its text as it was, or nothing where there was none.
 * Knows no tool (the port says which files are suspect) and no watcher. What is held is kept on disk too, so that a later host of this config holds it as well.
 * Invariants: a file is held with the very text that is shown, and that text is what is loaded after a yes; a text that is in use is never held.
 */
import { createHash } from 'node:crypto'
import { lstatSync, realpathSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from '../z.js'
import { makeFolder } from '../kernel/folder.js'
import { nameDigest } from '../kernel/name-digest.js'
import type { TextSource } from './files.js'
import { lineDiff, type LineDiff } from './line-diff.js'
import { read } from './on-disk.js'

export interface HeldFile extends LineDiff { readonly file: string; readonly since: string; readonly change: 'changed' | 'appeared' | 'gone' }
export interface HeldPort {
  /** May a tool have changed a file at this time (of the wall clock)? */
  suspects(at: () => number): boolean
  /** The text in use; undefined when it is not. */
  inUse(file: string): string | undefined
  /** Where the version in use was found. */
  real(file: string): string | undefined
  /** Told once for each change that is held. */
  held(change: HeldFile): void
  /** Where it is kept. */
  readonly store: string
}
interface Held { readonly before: string | undefined; readonly after: string | undefined; readonly since: string }
const Kept = z.array(z.object({ file: z.string(), before: z.string().optional(), after: z.string().optional(), since: z.string() }))

export class HeldChanges implements TextSource {
  readonly #port: HeldPort
  readonly #held = new Map<string, Held>()

  constructor(port: HeldPort) {
    this.#port = port
    for (const [file, held] of kept(port.store)) this.#hold(file, held)
  }

  get size(): number { return this.#held.size }
  list(): readonly HeldFile[] { return [...this.#held].map(([file, held]) => shown(file, held)) }
  /** Of files that have changed, those that are not held. A held one that a person saves, or puts back, is held no more. */
  admit(files: readonly string[], texts: ReadonlyMap<string, string | undefined>): string[] {
    return files.filter(file => {
      const held = this.#held.get(file), after = texts.get(file), before = held ? held.before : this.#port.inUse(file)
      if (held && held.after === after) return false
      if (after !== before && this.#port.suspects(() => changedAt(file, true))) this.#hold(file, { before, after, since: new Date().toISOString() })
      else {
        this.#drop(file)
        return !held || after !== this.#port.inUse(file)       // put back what was held: nothing to load; one that was not may go back to what runs, after a load that failed
      }
      return false
    })
  }
  /** Lets go of everything: what was held, as it was shown. */
  release(): ReadonlyMap<string, string | undefined> {
    const texts = new Map([...this.#held].map(([file, { after }]) => [file, after]))
    this.#held.clear()
    this.#keep()
    return texts
  }
  /** Holds what a tool has changed of these files and nobody has noticed yet. */
  look(files: Iterable<string>): void {
    for (const file of files) this.has(file)
  }

  // ---- what is read
  has(file: string): boolean {
    if (this.#held.has(file)) return true
    if (!this.#port.suspects(() => changedAt(file, false))) return false
    const after = read(file), before = this.#port.inUse(file)
    if (after === before || after === undefined) return false
    this.#hold(file, { before, after, since: new Date().toISOString() })
    return true
  }
  get(file: string): string | undefined { return this.#held.get(file)?.before }
  real(file: string): string | undefined { return this.#port.real(file) }

  #hold(file: string, held: Held): void {
    this.#held.set(file, held)
    this.#port.held(shown(file, held))
    this.#keep()
  }
  #drop(file: string): void { if (this.#held.delete(file)) this.#keep() }
  #keep(): void {
    const { store } = this.#port, lasting = [...this.#held].filter(([file]) => !isSecret(file))
    if (lasting.length === 0) return rmSync(store, { force: true })
    makeFolder(dirname(store))
    writeFileSync(`${store}.tmp`, JSON.stringify(lasting.map(([file, held]) => ({ file, ...held }))), { mode: 0o600 })
    renameSync(`${store}.tmp`, store)
  }
}

/** Where the held changes of a config are kept. */
export const heldStore = (state: string, config: string): string =>
  join(state, 'held', `${nameDigest(realpathSync(config)).slice(0, 16)}.json`)
/** What the last host of a config held, for who has no host. */
export const keptChanges = (store: string): HeldFile[] => kept(store).map(([file, held]) => shown(file, held))

/** `+12 -3` */
export const counts = ({ added, removed }: LineDiff): string => `+${added} -${removed}`

/** Its values are shown to nobody, and written nowhere else. */
const isSecret = (file: string): boolean => basename(file).startsWith('.env')
const veiled = (text: string): string => text.replace(/=(.*)/g, (_, value: string) => `=… (${createHash('sha256').update(value).digest('hex').slice(0, 6)})`)

function shown(file: string, { before, after, since }: Held): HeldFile {
  const show = (text = '') => isSecret(file) ? veiled(text) : text
  return { file, since, change: before === undefined ? 'appeared' : after === undefined ? 'gone' : 'changed', ...lineDiff(show(before), show(after)) }
}

/**
 * When a path came to lead to what it leads to, by the kernel's own time stamp: the file, and the links on the way.
 * `thorough`, for one that is known to be changed: also the folders, which may have been swapped, or have lost it.
 */
function changedAt(path: string, thorough: boolean): number {
  let at = 0
  try { at = statSync(path).ctimeMs } catch { if (!thorough) return 0 }      // not there: it was not changed, or is gone
  for (let step = path; ; step = dirname(step)) {
    const found = lstatSync(step, { throwIfNoEntry: false })
    if (found && (found.isSymbolicLink() || thorough)) at = Math.max(at, found.ctimeMs)
    if (found?.isDirectory() && thorough || step === dirname(step)) return at   // the nearest folder; what is above it holds much else
  }
}

/** What was held when it was written, and stands there still: else a person has saved it since, or put it back. */
function kept(store: string): [file: string, held: Held][] {
  const text = read(store)
  if (text === undefined) return []
  try {
    return Kept.parse(JSON.parse(text)).map(({ file, before, after, since }): [string, Held] => [file, { before, after, since }]).filter(([file, { after }]) => read(file) === after)
  } catch { return [] }                                                      // half a file of a crash: what it held is asked about when it changes again
}

/**
 * What the disk says, asked once per transaction: files, folders, real paths, texts. Knows no module. One instance lives as long as one load, so it never holds stale answers.
 */
import { realpathSync, statSync } from 'node:fs'
import { textOf } from './on-disk.js'

/** Texts as somebody has read them, by file; undefined for one that was not there. */
export type Texts = ReadonlyMap<string, string | undefined>
/** Texts that stand for what is on the disk: a file that it has is read here, and is not there when its text is undefined. */
export interface TextSource {
  has(file: string): boolean
  get(file: string): string | undefined
  /** Where a file that it has really is, when the disk says otherwise by now. */
  real?(file: string): string | undefined
}
/** What `texts` has, else what `below` has. */
export const over = (texts: Texts, below: TextSource): TextSource => ({
  has: file => texts.has(file) || below.has(file),
  get: file => texts.has(file) ? texts.get(file) : below.get(file),
  real: file => texts.has(file) ? undefined : below.real?.(file),
})

export class Files {
  readonly #answers = new Map<string, unknown>()
  readonly #texts: TextSource
  /** Every path that could have been the one looked for, there or not: a change of one of them may mend a failed load. */
  readonly tried = new Set<string>()

  /** `texts`: what was judged before this load began. It is what is loaded: the file on the disk may be half of the next save by now. */
  constructor(texts: TextSource = new Map<string, string>()) { this.#texts = texts }

  text(path: string): string {
    if (!this.#texts.has(path)) return textOf(path)
    const text = this.#texts.get(path)
    if (text === undefined) throw new Error(`ENOENT: no such file "${path}"`)
    return text
  }
  once<T>(question: string, answer: () => T): T {
    if (!this.#answers.has(question)) this.#answers.set(question, answer())
    return this.#answers.get(question) as T
  }
  try(path: string): boolean { this.tried.add(path); return this.isFile(path) }
  isFile(path: string): boolean { return this.#texts.has(path) ? this.#texts.get(path) !== undefined : this.#stat(path)?.isFile() ?? false }
  isFolder(path: string): boolean { return this.#stat(path)?.isDirectory() ?? false }
  real(path: string): string {
    return this.once(`real ${path}`, () => {
      if (!this.#texts.has(path)) return realpathSync.native(path)
      const real = this.#texts.real?.(path)
      if (real !== undefined) return real
      try { return realpathSync.native(path) } catch { return path }         // it is not on the disk any more, and read all the same
    })
  }

  #stat(path: string) {
    return this.once(`stat ${path}`, () => {
      try { return statSync(path, { throwIfNoEntry: false }) } catch (error) {
        // A file where a folder was expected, or a link to itself, is as good as nothing there; a folder that may not be read is worth hearing about.
        if (['ENOTDIR', 'ELOOP', 'ENAMETOOLONG'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
        throw error
      }
    })
  }
}

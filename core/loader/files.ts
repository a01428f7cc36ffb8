/**
 * What the disk says, asked once per transaction: files, folders, real paths, texts. Knows no module. One instance lives as long as one load, so it never holds stale answers.
 */
import { readFileSync, realpathSync, statSync } from 'node:fs'

/** Texts as somebody has read them, by file; undefined for one that was not there. */
export type Texts = ReadonlyMap<string, string | undefined>

export class Files {
  readonly #answers = new Map<string, unknown>()
  readonly #texts: Texts
  /** Every path that could have been the one looked for, there or not: a change of one of them may mend a failed load. */
  readonly tried = new Set<string>()

  /** `texts`: what was judged before this load began. It is what is loaded: the file on the disk may be half of the next save by now. */
  constructor(texts: Texts = new Map()) { this.#texts = texts }

  text(path: string): string { return this.#texts.get(path) ?? readFileSync(path, 'utf8') }
  once<T>(question: string, answer: () => T): T {
    if (!this.#answers.has(question)) this.#answers.set(question, answer())
    return this.#answers.get(question) as T
  }
  try(path: string): boolean { this.tried.add(path); return this.isFile(path) }
  isFile(path: string): boolean { return this.#stat(path)?.isFile() ?? false }
  isFolder(path: string): boolean { return this.#stat(path)?.isDirectory() ?? false }
  real(path: string): string { return this.once(`real ${path}`, () => realpathSync.native(path)) }

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

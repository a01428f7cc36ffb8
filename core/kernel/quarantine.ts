/**
 * Plugins that were stopped because they do harm, kept across restarts in one small file per config. Knows no plugin, only names, causes and what code and config they were found with.
 * A record holds for exactly that code and config: a change of either ends it. Read and written whole and at once, so that the thread which watches a stuck process can do it too.
 */
import { createHash, randomBytes } from 'node:crypto'
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from './folder.js'

/** One entry as it stands: its files and its config as written. */
export interface Version { readonly id: string; readonly files: readonly string[]; readonly config: unknown }
interface Record { readonly cause: string; readonly at: string; readonly files: { readonly [file: string]: string }; readonly config: string }

export class Quarantine {
  readonly #file: string
  constructor(file: string) { this.#file = file }

  /** Why this entry may not run: its files and its config are still those that did harm. */
  cause(id: string, config: unknown): string | undefined {
    const record = this.#read().get(id)
    if (!record || record.config !== configDigest(config)) return undefined
    return Object.entries(record.files).every(([file, digest]) => fileDigest(file) === digest) ? record.cause : undefined
  }
  /** The files that it was found with: a change of one of them may mend it. */
  files(id: string): string[] { return Object.keys(this.#read().get(id)?.files ?? {}) }
  keep({ id, files, config }: Version, cause: string): void { this.keepDigest({ id, files, digest: configDigest(config) }, cause) }
  /** The same for who knows only a digest of the config. */
  keepDigest({ id, files, digest }: { readonly id: string; readonly files: readonly string[]; readonly digest: string }, cause: string): void {
    const digests = Object.fromEntries(files.map(file => [file, fileDigest(file)]))
    this.#write(this.#read().set(id, { cause, at: new Date().toISOString(), files: digests, config: digest }))
  }
  /** True when there was something to forget. */
  forget(id: string): boolean {
    const records = this.#read()
    if (!records.delete(id)) return false
    this.#write(records)
    return true
  }

  #read(): Map<string, Record> {
    if (!existsSync(this.#file)) return new Map()            // nearly always, and asked for each plugin: an error would cost more than the question
    let text: string
    try { text = readFileSync(this.#file, 'utf8') } catch { return new Map() }                     // gone again, or none that we may read: nobody is stopped
    try { return new Map(Object.entries(JSON.parse(text) as { [id: string]: Record }).filter(([, record]) => isRecord(record))) } catch { return new Map() }   // cut by a full disk
  }
  #write(records: ReadonlyMap<string, Record>): void {
    makeFolder(dirname(this.#file))
    const beside = `${this.#file}.${randomBytes(4).toString('hex')}`
    writeFileSync(beside, JSON.stringify(Object.fromEntries(records), null, 2), { mode: 0o600 })
    renameSync(beside, this.#file)
  }
}

/** The config is kept as a digest: it may hold a secret. */
export const configDigest = (config: unknown): string => sha(JSON.stringify(config) ?? '')
const fileDigest = (file: string): string => {
  try { return statSync(file).isFile() ? sha(readFileSync(file)) : 'no file' } catch { return 'not there' }
}
const sha = (content: string | Buffer): string => createHash('sha256').update(content).digest('hex')
const isRecord = (value: unknown): value is Record => {
  const { cause, files, config } = (value ?? {}) as Partial<Record>
  return typeof cause === 'string' && typeof files === 'object' && files !== null && typeof config === 'string'
}

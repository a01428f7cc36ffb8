/**
 * One version of one file: its text, what its imports mean, its namespace and how far it has got; and the time that it belongs to.
 * Records and their lookup only; module-graph.ts builds, runs and replaces them. The record is what every closure of the version holds, so as long as one lives, so does it.
 */
import { pathToFileURL } from 'node:url'
import { at, HarnessError, messageOf, type Place } from '../errors.js'
import type { Compiled } from './compile.js'
import type { Target } from './resolve.js'
import type { Version } from './stack-traces.js'

export type Namespace = Readonly<Record<string, unknown>>

/** One count for the process, so that no two scripts have the same name. */
let versions = 0

export class ModuleRecord implements Version {
  readonly file: string
  readonly source: string
  readonly url: string
  readonly compiled: Compiled | undefined
  readonly weak = new WeakRef(this)
  readonly namespace: Record<string, unknown> = Object.create(null, { [Symbol.toStringTag]: { value: 'Module' } })
  /** What each static specifier means. */
  readonly targets = new Map<string, Target>()
  /** Files imported, dynamically too once that has happened: the edges that a change travels. */
  readonly imports = new Set<string>()
  /** The files that import each other in a circle with this one. */
  circle: readonly string[] | undefined
  snapshot!: Snapshot
  running: Promise<Namespace> | undefined
  done = false

  /** Without `compiled` it is JSON. `before`: an earlier version, which has made the file's URL already. */
  constructor(file: string, source: string, compiled: Compiled | undefined, before?: ModuleRecord) {
    this.file = file
    this.source = source
    this.url = `${before?.href ?? pathToFileURL(file).href}?v=${++versions}`
    this.compiled = compiled
  }
  /** The URL of the file, whichever version. */
  get href(): string { return this.url.slice(0, this.url.lastIndexOf('?')) }
}

/** Where a module finds the modules of its own time. The live one and a staged one hold them; an old one only remembers what others still hold. */
export class Snapshot {
  readonly #seen: Map<string, WeakRef<ModuleRecord>>
  #held: Map<string, ModuleRecord> | undefined
  /** Changed, or reached by a change, and not needed so far: to be built anew by whoever asks. */
  readonly #stale: Set<string>
  constructor(live: ReadonlyMap<string, ModuleRecord>, staged: Map<string, ModuleRecord>, affected: ReadonlySet<string>) {
    this.#seen = weak(live)
    this.#held = staged
    this.#stale = new Set([...affected].filter(file => !staged.has(file)))
  }
  get(file: string): ModuleRecord | undefined {
    return this.#stale.has(file) ? undefined : this.#held?.get(file) ?? this.#seen.get(file)?.deref()
  }
  /** A module that was imported late takes its place: among those in use, among those that are being built, or in the memory of an old time. */
  add(record: ModuleRecord): void {
    this.#stale.delete(record.file)
    this.#held?.set(record.file, record)
    this.#seen.set(record.file, record.weak)
  }
  /** What it holds is what is in use. */
  begin(live: Map<string, ModuleRecord>): void { this.#held = live }
  /** Others come into use: from now on it only remembers. */
  end(): void {
    for (const [file, ref] of weak(this.#held ?? new Map())) this.#seen.set(file, ref)
    this.#held = undefined
  }
}
const weak = (records: ReadonlyMap<string, ModuleRecord>) => new Map([...records].map(([file, record]) => [file, record.weak]))

export function define(namespace: object, name: string, get: () => unknown): void {
  Object.defineProperty(namespace, name, { enumerable: true, configurable: true, get })
}

/** `shown` is the file as a person knows it. */
export function jsonModule(file: string, source: string, shown: string): ModuleRecord {
  const record = new ModuleRecord(file, source, undefined)
  try { record.namespace['default'] = JSON.parse(source.replace(/^\uFEFF/, '')) } catch (cause) {
    const offset = Number(/position (\d+)/.exec(messageOf(cause))?.[1] ?? Number.NaN)
    const before = source.slice(0, offset)
    const place: Place = Number.isNaN(offset) ? { file } : { file, line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
    throw new HarnessError('module_syntax', `${at({ ...place, file: shown })} ${messageOf(cause)}`, { place, cause })
  }
  return record
}
/** The place of the first text in the source that reads like this specifier. */
export function whereNamed({ file, source }: ModuleRecord, specifier: string): Place {
  const offset = ["'", '"', '`'].map(quote => source.indexOf(quote + specifier + quote)).filter(found => found >= 0).sort((a, b) => a - b)[0]
  if (offset === undefined) return { file }
  const before = source.slice(0, offset)
  return { file, line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}

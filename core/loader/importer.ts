/**
 * Turns the files of entries into modules: what the installation ships built goes to Node's own `require`, once; everything else through the module graph, which can do it again.
 * The graph and its compiler are loaded when the first file needs them: a start with shipped plugins alone doesn't pay for them.
 */
import { createRequire } from 'node:module'
import { dirname, relative, sep } from 'node:path'
import type { Logger } from '../kernel/log.js'
import type { Importer, Loaded, RunAs } from './entry.js'
import type { Place } from '../errors.js'
import type { Texts, TextSource } from './files.js'
import type { ModuleGraph, originalPlace } from './module-graph.js'
import type { Namespace } from './module-record.js'
import { ask, type Trust } from './trust.js'

const nodeRequire = createRequire(import.meta.url)

export interface ImporterOptions {
  /** What `import … from 'harnessx'` gives, by specifier: one instance, wherever a plugin stands. */
  readonly builtins: Readonly<Record<string, object>>
  readonly trust: Trust
  /** Paths in messages are relative to this folder, as far as they lie in it. */
  readonly base: string
  /** Folders whose files Node loads itself and that never change: the shipped plugins of a built installation. */
  readonly native?: readonly string[]
  /** Files that are to be read otherwise than they stand on the disk. */
  readonly veil?: TextSource | undefined
  readonly log: Logger
  readonly evaluateMs?: number
}

export class ModuleImporter implements Importer {
  readonly #options: ImporterOptions
  readonly #trusted = new Set<string>()
  #graph: ModuleGraph | undefined
  #original: typeof originalPlace | undefined
  constructor(options: ImporterOptions) { this.#options = options }

  async load(files: readonly string[], changed: readonly string[] = [], texts?: Texts, as: RunAs = (_, run) => run()): Promise<Loaded> {
    this.#trusted.clear()
    const native = files.filter(file => this.#isNative(file)), source = files.filter(file => !this.#isNative(file))
    const loaded = source.length > 0 ? await (await this.#theGraph()).load(source, changed, texts, as) : undefined
    const modules = new Map<string, Namespace>(loaded?.modules)
    for (const file of native) modules.set(file, as(file, () => nodeRequire(file) as Namespace))
    return {
      modules,
      commit: () => { loaded?.commit() },
      files: file => this.#isNative(file) ? [file] : loaded?.files(file) ?? [file],
    }
  }
  affected(changed: readonly string[]): Set<string> { return this.#graph?.affected(changed) ?? new Set(changed) }
  get tried(): ReadonlySet<string> { return this.#graph?.tried ?? new Set() }
  forget(entryFilesStillUsed: readonly string[]): void { this.#graph?.forget(entryFilesStillUsed.filter(file => !this.#isNative(file))) }

  /** The text of the version in use: what the watcher compares with. */
  text(file: string): string | undefined { return this.#graph?.text(file) }
  /** Where the version in use was found. */
  real(file: string): string | undefined { return this.#graph?.real(file) }
  /** False for the text of a source file that can't be meant: it doesn't parse, or imports a file that isn't there (yet). */
  whole(file: string, text: string): boolean { return !/\.([mc]?[jt]sx?|json)$/.test(file) || (this.#graph?.whole(file, text) ?? true) }
  /** Every source file in use, and the links that lead to them. */
  files(): readonly string[] { return this.#graph?.files() ?? [] }
  /** Where a position in a script of ours stands in its source; other places as they are. */
  original(raw: Place): Place { return this.#original?.(raw.file, raw.line ?? 0, raw.column ?? 1) ?? raw }
  /** Never changes while this process lives: nobody has to watch it. */
  isFixed(file: string): boolean { return this.#isNative(file) }
  /** How many versions of a file something still holds. */
  alive(file: string): number { return this.#graph?.alive(file) ?? 0 }

  #isNative(file: string): boolean { return this.#options.native?.some(folder => file.startsWith(folder + sep)) ?? false }

  async #theGraph(): Promise<ModuleGraph> {
    if (this.#graph) return this.#graph
    const { ModuleGraph, originalPlace } = await import('./module-graph.js')
    this.#original = originalPlace
    const { builtins, base, log, veil, evaluateMs } = this.#options
    return this.#graph ??= new ModuleGraph({
      builtins, veil, ask: file => { this.#ask(file) }, warn: message => { log.warn(message) },
      shown: file => { const path = relative(base, file); return path.startsWith('..') ? file : path },
      ...(evaluateMs !== undefined && { evaluateMs }),
    })
  }
  /** Once a folder and load: trust may be taken back while the daemon runs. */
  #ask(file: string): void {
    const folder = dirname(file)
    if (this.#trusted.has(folder)) return
    ask(this.#options.trust, { kind: 'plugin', file })
    this.#trusted.add(folder)
  }
}

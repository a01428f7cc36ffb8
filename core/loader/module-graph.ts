/**
 * The modules of all plugins: one record per version of a file, who imports whom, and how a new version is built beside the one in use. Knows no plugin and no watcher.
 *
 *   prepare (read, compile, resolve: can fail, nothing has run) → evaluate into staged records → commit: the staged ones are the live ones
 *
 * Unaffected modules keep their one instance. A dynamic import belongs to the snapshot of the version that asks, so an old version never gets a new helper.
 * Nothing here keeps a version alive once it is replaced: records are found from old snapshots through weak references only.
 */
import { dirname } from 'node:path'
import { pathToFileURL } from 'node:url'
import { at, HarnessError, messageOf } from '../errors.js'
import { cacheCanBeOff, compile, loadCompiler, type Compiled, type DynamicImport, type ImportFunction } from './compile.js'
import type { Loaded, RunAs } from './entry.js'
import { bodyFor, missingName, NativeModules, withinTopLevel } from './evaluation.js'
import { Files, over, type Texts, type TextSource } from './files.js'
import { circles } from './module-cycles.js'
import { define, jsonModule, ModuleRecord, Snapshot, whereNamed, type Namespace } from './module-record.js'
import { Resolver, type Target } from './resolve.js'
import { alive, remember } from './stack-traces.js'

export { originalPlace } from './stack-traces.js'

export interface GraphOptions {
  /** Modules that the host answers itself, by specifier. */
  readonly builtins: Readonly<Record<string, object>>
  /** Throws when nothing of this file may be read. */
  readonly ask: (file: string) => void
  /** Files that are to be read otherwise than they stand on the disk. */
  readonly veil?: TextSource | undefined
  /** A file as a person knows it. */
  readonly shown: (file: string) => string
  readonly warn: (message: string) => void
  /** How long the top level of modules may take. */
  readonly evaluateMs?: number
}

export class ModuleGraph {
  readonly #options: GraphOptions
  readonly #resolver: Resolver
  readonly #live = new Map<string, ModuleRecord>()
  #snapshot = new Snapshot(new Map(), this.#live, new Set())
  /** Paths that lead to a file of another real path: links, entries in linked folders. */
  readonly #links = new Map<string, string>()
  /** Changed files that no committed load has taken in yet. */
  readonly #dirty = new Set<string>()
  readonly #native = new NativeModules()
  /** What was compiled only to see whether it parses: the load that follows needs it. */
  readonly #compiled = new Map<string, { readonly source: string; readonly compiled: Compiled }>()
  #checked = false
  tried: ReadonlySet<string> = new Set()

  constructor(options: GraphOptions) {
    this.#options = options
    this.#resolver = new Resolver({ isHost: specifier => Object.hasOwn(options.builtins, specifier), ask: options.ask })
  }

  async load(entries: readonly string[], changed: readonly string[], texts?: Texts, as: RunAs = (_, run) => run()): Promise<Loaded> {
    await loadCompiler()
    if (changed.length > 0) this.#checkCacheOnce()
    for (const file of changed) this.#dirty.add(file)
    const files = this.#files(texts)
    this.tried = files.tried
    const affected = this.affected(this.#dirty)
    const staged = new Map<string, ModuleRecord>()
    const known = (file: string) => affected.has(file) ? undefined : this.#live.get(file)
    const roots = new Map(entries.map(entry => [entry, this.#entry(entry, files, known, staged)]))
    this.#compiled.clear()
    const snapshot = new Snapshot(this.#live, staged, affected)
    this.#begin(staged, snapshot)

    const modules = new Map<string, Namespace>()
    await withinTopLevel(staged, this.#options, async () => {
      for (const [entry, file] of roots) modules.set(entry, await as(entry, () => this.#evaluate(snapshot.get(file)!)))
    })
    return {
      modules,
      commit: () => { this.#commit(staged, snapshot) },
      files: entry => this.#behind(roots.get(entry) ?? entry, snapshot),
    }
  }

  affected(changed: Iterable<string>): Set<string> {
    const importers = new Map<string, string[]>()
    for (const [file, { imports }] of this.#live) for (const imported of imports) {
      const known = importers.get(imported)
      if (known) known.push(file)
      else importers.set(imported, [file])
    }
    const reached = new Set<string>()
    const queue = [...changed].flatMap(file => this.#links.has(file) ? [file, this.#links.get(file)!] : [file])
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (reached.has(file)) continue
      reached.add(file)
      queue.push(...importers.get(file) ?? [])
    }
    for (const [link, file] of this.#links) if (reached.has(file)) reached.add(link)
    return reached
  }

  forget(entries: readonly string[]): void {
    const kept = new Set(entries.flatMap(entry => this.#behind(this.#links.get(entry) ?? entry, this.#snapshot)))
    for (const file of this.#live.keys()) if (!kept.has(file)) this.#live.delete(file)
    for (const [link, file] of this.#links) if (!this.#live.has(file) && !entries.includes(link)) this.#links.delete(link)
    for (const file of this.#dirty) if (!this.#live.has(this.#links.get(file) ?? file)) this.#dirty.delete(file)
  }

  /** Does this text parse, and lead its relative imports somewhere? If not, somebody may still be writing. What is compiled here isn't compiled again by the load that follows. */
  whole(file: string, text: string): boolean {
    try {
      if (file.endsWith('.json')) return JSON.parse(text) !== undefined
      const compiled = this.#compile(file, text)
      this.#compiled.set(file, { source: text, compiled })
      const files = this.#files()
      for (const specifier of compiled.specifiers) if (specifier.startsWith('.')) this.#resolver.resolve(specifier, file, files)
      return true
    } catch { return false }                                // a load of this text says what is wrong with it
  }
  /** Where the version in use was found. */
  real(file: string): string | undefined { return this.#links.get(file) ?? (this.#live.has(file) ? file : undefined) }
  /** The text of the version in use. */
  text(file: string): string | undefined { return this.#live.get(this.#links.get(file) ?? file)?.source }
  /** Every file in use, and the links that lead to them. */
  files(): string[] { return [...this.#live.keys(), ...this.#links.keys()] }
  alive(file: string): number { return alive(this.#links.get(file) ?? file) }

  #files(texts: Texts = new Map()): Files { return new Files(this.#options.veil ? over(texts, this.#options.veil) : texts) }

  // ---- prepare

  #entry(path: string, files: Files, known: (file: string) => ModuleRecord | undefined, staged: Map<string, ModuleRecord>): string {
    this.#options.ask(path)
    if (!files.try(path)) throw new HarnessError('module_not_found', `${this.#options.shown(path)} does not exist`, { place: { file: path } })
    const file = files.real(path)
    if (file !== path) { this.#options.ask(file); this.#links.set(path, file) }
    this.#prepare(file, files, known, staged)
    const record = staged.get(file)
    if (record?.compiled?.commonjs || /\.c[jt]s$/.test(file)) {
      throw new HarnessError('plugin_invalid', `${this.#options.shown(path)} is CommonJS, and a plugin is an ES module; write "export function apply(ctx) { … }" instead of "module.exports"`, { place: { file } })
    }
    return file
  }

  #prepare(file: string, files: Files, known: (file: string) => ModuleRecord | undefined, staged: Map<string, ModuleRecord>): void {
    if (staged.has(file) || known(file)) return
    const record = this.#read(file, files)
    staged.set(file, record)
    for (const specifier of record.compiled?.specifiers ?? []) {
      const target = this.#resolve(specifier, record, files)
      record.targets.set(specifier, target)
      if (target.kind !== 'file') continue
      record.imports.add(target.file)
      if (target.link !== undefined) this.#links.set(target.link, target.file)
      this.#prepare(target.file, files, known, staged)
    }
  }

  #read(file: string, files: Files): ModuleRecord {
    files.tried.add(file)
    let source: string
    try { source = files.text(file) } catch (cause) {
      throw new HarnessError('module_not_found', `${this.#options.shown(file)} can not be read: ${messageOf(cause)}`, { place: { file }, cause })
    }
    const old = this.#live.get(file)
    if (file.endsWith('.json')) return jsonModule(file, source, this.#options.shown(file))
    return new ModuleRecord(file, source, old?.source === source && old.compiled ? old.compiled : this.#compile(file, source), old)
  }
  #compile(file: string, source: string): Compiled {
    const ready = this.#compiled.get(file)
    return ready?.source === source ? ready.compiled : compile(file, source, this.#options.shown(file))
  }

  #resolve(specifier: string, record: ModuleRecord, files: Files): Target {
    try { return this.#resolver.resolve(specifier, record.file, files) } catch (cause) {
      if (!(cause instanceof HarnessError) || cause.code !== 'module_not_found') throw cause
      const place = whereNamed(record, specifier)
      throw new HarnessError('module_not_found', `${at({ ...place, file: this.#options.shown(record.file) })} ${cause.message}`, { place, cause })
    }
  }

  /** Makes staged records know their time and their circles. */
  #begin(staged: ReadonlyMap<string, ModuleRecord>, snapshot: Snapshot): void {
    const circle = circles(new Map([...staged].map(([file, { imports }]) => [file, imports])))
    for (const record of staged.values()) {
      record.circle = circle.get(record.file)
      record.snapshot = snapshot
    }
  }

  #commit(staged: Map<string, ModuleRecord>, snapshot: Snapshot): void {
    this.#snapshot.end()
    for (const [file, record] of staged) { this.#live.set(file, record); this.#dirty.delete(file) }
    for (const file of this.#dirty) if (!this.#live.has(this.#links.get(file) ?? file) || staged.has(this.#links.get(file) ?? file)) this.#dirty.delete(file)
    this.#snapshot = snapshot
    snapshot.begin(this.#live)
    for (const record of this.#live.values()) record.snapshot = snapshot
    staged.clear()                                          // whoever keeps the answer of a load must not keep its versions
  }

  /** Everything below a file, and the links on the way. */
  #behind(root: string, snapshot: Snapshot): string[] {
    const reached = new Set<string>(), queue = [root]
    for (let file = queue.pop(); file !== undefined; file = queue.pop()) {
      if (reached.has(file)) continue
      reached.add(file)
      queue.push(...snapshot.get(file)?.imports ?? [])
    }
    return [...reached, ...[...this.#links].filter(([link, file]) => reached.has(file) && !reached.has(link)).map(([link]) => link)]
  }

  // ---- evaluate

  #evaluate(record: ModuleRecord): Promise<Namespace> {
    if (record.running) return record.running
    let end!: (namespace: Namespace | Promise<Namespace>) => void
    record.running = new Promise(resolve => { end = resolve })
    end(this.#run(record))                                  // after `running` is set: the body of a module in a circle asks for itself
    return record.running
  }

  async #run(record: ModuleRecord): Promise<Namespace> {
    const { compiled, namespace } = record
    if (!compiled) { record.done = true; return Object.freeze(namespace) }
    if (compiled.commonjs) {
      const native = await this.#native.import(record.href) as Record<string, unknown>
      for (const name of Object.keys(native)) define(namespace, name, () => native[name])
    } else {
      remember(record)
      await bodyFor(record, compiled, this.#options.shown)(
        this.#importOf(record), this.#dynamicImportOf(record), this.#metaOf(record), namespace,
        from => { for (const name of Object.keys(from)) if (name !== 'default' && !Object.hasOwn(namespace, name)) define(namespace, name, () => (from as Record<string, unknown>)[name]) },
        record,
      )
    }
    record.done = true
    return Object.seal(namespace)
  }

  #importOf(record: ModuleRecord): ImportFunction {
    return async (specifier, { importedNames = [] } = {}) => {
      const { namespace, partial } = await this.#import(record.targets.get(specifier)!, record)
      for (const name of importedNames) if (!partial && !(name in namespace)) throw missingName(name, specifier, record, namespace, this.#options.shown)
      return namespace
    }
  }
  async #import(target: Target, record: ModuleRecord): Promise<{ namespace: object; partial?: boolean }> {
    if (target.kind === 'host') return { namespace: this.#options.builtins[target.name]! }
    if (target.kind === 'native') return { namespace: await this.#native.import(target.url) }
    const module = record.snapshot.get(target.file)!
    // In a circle the one that is still running hands out its namespace as it is; its own exports are there, those of an `export *` come later.
    if (module.running && !module.done && module.circle !== undefined && module.circle === record.circle) return { namespace: module.namespace, partial: module.compiled?.stars ?? false }
    return { namespace: await this.#evaluate(module) }
  }

  #dynamicImportOf(record: ModuleRecord): DynamicImport {
    return async (given, options) => {
      const specifier = String(given), files = this.#files()
      const target = this.#resolve(specifier, record, files)
      if (target.kind === 'host') return this.#options.builtins[target.name]!
      if (target.kind === 'native') return import(/* @vite-ignore */ target.url, options)
      const { snapshot } = record
      record.imports.add(target.file)
      if (target.link !== undefined) this.#links.set(target.link, target.file)
      if (!snapshot.get(target.file)) {
        const staged = new Map<string, ModuleRecord>()
        this.#prepare(target.file, files, file => snapshot.get(file), staged)
        this.#begin(staged, snapshot)
        for (const fresh of staged.values()) {
          snapshot.add(fresh)
          if (snapshot === this.#snapshot) this.#dirty.delete(fresh.file)
        }
      }
      return this.#evaluate(snapshot.get(target.file)!)
    }
  }

  #metaOf(record: ModuleRecord): object {
    return Object.assign(Object.create(null), {
      url: record.href, filename: record.file, dirname: dirname(record.file),
      resolve: (specifier: unknown): string => {
        const target = this.#resolve(String(specifier), record, this.#files())
        return target.kind === 'host' ? target.name : target.kind === 'native' ? (target.url.includes(':') ? target.url : `node:${target.url}`) : pathToFileURL(target.file).href
      },
    })
  }

  #checkCacheOnce(): void {
    if (this.#checked) return
    this.#checked = true
    if (!cacheCanBeOff()) this.#options.warn(`this Node (${process.version}) keeps the text of every reloaded module for the life of the process; memory grows with each reload`)
  }
}

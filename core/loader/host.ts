/**
 * The plugin host: makes what runs equal to what the config file wants, and follows changes of files. One queue; each job reads the world anew, so it may come at any time.
 * Knows entries and the importer port; no YAML, no watcher and no agent. What is known of entries is roster.ts, what runs is lineup.ts, a change of it transaction.ts.
 *
 *   config edit:  plan ▶ unload (reverse) ▶ reorder ▶ replace, reconfigure, restart ▶ load (in order) ▶ settle
 *   file edit:    affected ▶ build and check all ▶ transaction (mount staged ▶ switch) ▶ settle;   the old version ends on its own, beside the queue
 *
 * Invariants: a plugin that fails stops nobody else; a job is done at its switch; what a failed load looked at, and what it did not take, is remembered for the edit that mends it.
 */
import { HarnessError, messageOf } from '../errors.js'
import { enter, runFor } from '../kernel/async-context.js'
import { DISPOSE_MS, MOUNT_MS, type Kernel } from '../kernel/kernel.js'
import type { Quarantine, Version } from '../kernel/quarantine.js'
import type { EntrySpec, Importer, PluginInfo } from './entry.js'
import type { Texts } from './files.js'
import type { Hosted } from './hosted.js'
import { Lineup } from './lineup.js'
import { plan, type Op } from './plan.js'
import { validateConfig } from './plugin-config.js'
import { checkModule } from './plugin-module.js'
import { Report, type ReloadReport } from './report.js'
import { Roster, type HostEvents } from './roster.js'
import type { Member } from './transaction.js'

export type { EntrySpec, PluginInfo } from './entry.js'
export type { ReloadReport } from './report.js'
export type { HostEvents } from './roster.js'

export interface HostOptions {
  readonly kernel: Kernel
  readonly importer: Importer
  /** The folder of an entry's own in the state directory. */
  readonly dataDir: (id: string) => string
  /** How long calls may hold back what has to stop before their signal is aborted; 5000. Read anew each time. */
  readonly drainMs?: (() => number) | undefined
  readonly mountMs?: number | undefined
  /** Remembers who was stopped, over the end of the process; for its own time when left out. */
  readonly quarantine?: Quarantine | undefined
}
/** Files that have changed, and what was read of them already. */
interface Changes { readonly files: readonly string[]; readonly texts: Texts }
const NONE: Changes = { files: [], texts: new Map() }
/** Versions that are built and checked: to replace what runs, and to be taken over when they do. */
interface Prepared { readonly members: readonly Member[]; readonly commit: () => void }

export class PluginHost {
  readonly #kernel: Kernel
  readonly #importer: Importer
  readonly #roster: Roster
  readonly #lineup: Lineup
  readonly #mountMs: number
  readonly #quarantine: Quarantine | undefined
  #queue: Promise<unknown> = Promise.resolve()
  #stopping: Promise<void> | undefined
  #asked = false

  constructor({ kernel, importer, dataDir, drainMs = () => 5000, mountMs = MOUNT_MS, quarantine }: HostOptions) {
    this.#kernel = kernel
    this.#importer = importer
    this.#mountMs = mountMs
    this.#quarantine = quarantine
    this.#roster = new Roster(kernel)
    this.#lineup = new Lineup({ kernel, roster: this.#roster, mountMs, drainMs, dataDir })
    kernel.changed = () => { this.#soon() }
    kernel.leaked = leaks => { for (const leak of leaks) this.#roster.emit('leaked', leak) }
  }

  /** Makes what runs equal to `desired`. Nothing to do does nothing. */
  reconcile(desired: readonly EntrySpec[]): Promise<ReloadReport> {
    return this.#job(async report => {
      const ops = plan(desired, this.#roster.inOrder().map(({ spec, state, module }) => ({ ...spec, state, reconfigures: module?.reconfigure !== undefined })))
      for (const spec of desired) this.#roster.adopt(spec)
      for (const op of ops) if (op.op !== 'load') await this.#apply(op, report)
      await this.#load(ops.flatMap(op => op.op === 'load' ? this.#roster.get(op.id) : []), report)
    })
  }
  /** These files have changed, appeared or gone. All that they reach is reloaded together; if that fails, each group of entries that shares changes by itself. What `texts` has is loaded as it stands there. */
  reload(files: readonly string[], texts: Texts = NONE.texts): Promise<ReloadReport> {
    return this.#job(report => this.#reload(this.#affected(files), { files, texts }, report))
  }
  /** Loads an entry anew although its file has not changed. */
  reloadEntry(id: string): Promise<ReloadReport> {
    return this.#job(async report => {
      const entry = this.#roster.get(id)
      if (!entry.spec.enabled) throw new HarnessError('unknown_id', `plugin "${id}" is disabled; enable it first`)
      await this.#reload([entry], { ...NONE, files: [entry.spec.from] }, report)
    })
  }
  /** Stops an entry that does harm. It comes back with a change of its code or config, or when it is asked for. */
  quarantine(id: string, cause: string): Promise<ReloadReport> {
    return this.#job(async report => {
      const message = `plugin "${id}" is quarantined: ${cause}`, entry = this.#roster.get(id), version = versionOf(entry.spec, entry.files)
      await this.#lineup.unload(entry, 'quarantined', message)
      this.#keep(version, cause)
      this.#kernel.log.write('error', message, undefined, id)
      report.failed(id, message)
    })
  }
  /** Ends everything in reverse, within about `limitMs`. Nothing is taken in afterwards. */
  stop(limitMs = DISPOSE_MS): Promise<void> {
    return this.#stopping ??= enter(undefined, () => this.#lineup.stop(limitMs, this.#queue))
  }

  /** Every entry with its files and its config, those that are still to be loaded too. */
  versions(specs: readonly EntrySpec[]): Version[] { return specs.map(spec => versionOf(spec, this.#roster.find(spec.id)?.files ?? [])) }
  list(): PluginInfo[] { return this.#roster.inOrder().map(entry => entry.info()) }
  /** Every file that entries are made of or were to be made of: what a watcher follows. */
  files(): Set<string> { return new Set(this.#roster.inOrder().filter(({ spec }) => spec.enabled).flatMap(({ spec, files, tried }) => [spec.from, ...files, ...tried])) }
  /** Has a version of this file failed to load, so that its going back to what runs is a change too? */
  isUntaken(file: string): boolean { return this.#roster.inOrder().some(({ untaken }) => untaken.has(file)) }
  /** The disposer ends the subscription. */
  on<K extends keyof HostEvents>(event: K, handle: (event: HostEvents[K]) => void): () => void { return this.#roster.on(event, handle) }

  // ---- the queue
  /** One job. What it throws is a mistake of the caller (an unknown id) or of the host, never of a plugin. */
  #job(work: (report: Report) => Promise<void>): Promise<ReloadReport> {
    const stopping = () => this.#stopping !== undefined
    const done = this.#queue.then(() => enter(undefined, async () => {                    // on nobody's account, whoever asks
      if (stopping()) throw new HarnessError('aborted', 'the plugin host has stopped')
      const report = new Report()
      try { await work(report) } finally {
        await this.#lineup.settle(report, stopping)
        this.#importer.forget([...new Set(this.#roster.inOrder().filter(({ module }) => module).map(({ spec }) => spec.from))])
        this.#roster.emit('settled', {})
      }
      return report.done()
    }))
    this.#queue = done.catch(() => {})                                                     // the caller has it; the queue goes on
    return done
  }
  /** A running plugin asks for something or offers it: every job settles, so an empty one will do. */
  #soon(): void {
    if (this.#asked || this.#stopping) return
    this.#asked = true
    this.#job(async () => { this.#asked = false }).catch(error => { if (!this.#stopping) this.#kernel.log.error(messageOf(error)) })
  }

  // ---- a config edit
  async #apply(op: Exclude<Op, { op: 'load' }>, report: Report): Promise<void> {
    if (op.op === 'reorder') return this.#reorder()
    const entry = this.#roster.get(op.id)
    try {
      if (op.op === 'unload') await this.#unload(entry, op.why)
      else if (entry.upToDate) entry.lastError = undefined                                 // back to what runs, after an edit that failed
      else if (op.op === 'replace') await this.#together([entry], NONE, report)
      else await this.#reconfigure(entry, op.op === 'reconfigure', report)
    } catch (error) {
      this.#roster.failed(entry, error, report)
    }
  }
  #reorder(): void {
    this.#kernel.reorder(new Map(this.#roster.inOrder().flatMap(({ generation, spec }) => generation ? [[generation, spec.row] as const] : [])))
  }
  async #unload(entry: Hosted, why: 'removed' | 'disabled'): Promise<void> {
    await this.#lineup.unload(entry, 'disabled')
    this.#quarantine?.forget(entry.id)                                                     // whoever switches it off and on wants it back
    if (why === 'removed') this.#roster.remove(entry)
    else entry.reset()
  }
  async #reconfigure(entry: Hosted, inPlace: boolean, report: Report): Promise<void> {
    const config = await this.#validate(entry, entry.module!)
    if (!inPlace || !await this.#takesInPlace(entry, config)) return this.#lineup.replace([{ entry, module: entry.module!, config }], () => {}, report)
    entry.config = config
    entry.running = { from: entry.spec.from, config: entry.spec.config }
    entry.lastError = undefined
    this.#kernel.log.write('info', `plugin "${entry.id}" took its new config in place`, undefined, entry.id)
  }
  async #takesInPlace({ id, generation }: Hosted, config: unknown): Promise<boolean> {
    try {
      return await this.#kernel.reconfigure(generation!, config, this.#mountMs)
    } catch (error) {
      this.#kernel.log.write('warn', `plugin "${id}" failed to take its new config in place and is restarted: ${messageOf(error)}`, undefined, id)
      return false
    }
  }
  /** Builds and checks entries that don't run; settling mounts them. */
  async #load(wanted: readonly Hosted[], report: Report): Promise<void> {
    const entries = wanted.filter(entry => !this.#isQuarantined(entry, report))
    if (entries.length === 0) return
    for (const entry of entries) {
      entry.module = undefined
      this.#roster.set(entry, 'waiting', 'it is being loaded')
    }
    try {
      await this.#together(entries, NONE, report)
    } catch (error) {
      if (entries.length === 1) return this.#roster.failed(entries[0]!, error, report)
      for (const entry of entries) await this.#load([entry], report)                         // one bad file must not keep the others out
    }
  }

  /** It was stopped in an earlier process, and neither its code nor its config has changed since. */
  #isQuarantined(entry: Hosted, report: Report): boolean {
    const cause = this.#quarantine?.cause(entry.id, configOf(entry.spec))
    if (cause === undefined) {
      this.#quarantine?.forget(entry.id)
      return false
    }
    const message = `plugin "${entry.id}" is quarantined: ${cause}`
    this.#roster.set(entry, 'quarantined', message)
    entry.tried = new Set(this.#quarantine!.files(entry.id))                                // a change of one of them loads it
    this.#kernel.log.write('error', message, undefined, entry.id)
    report.failed(entry.id, message)
    return true
  }
  /** Quarantined, and what is on the disk is what did harm: a look at the file is no change of it. */
  #isStill({ id, state, spec }: Hosted): boolean { return state === 'quarantined' && this.#quarantine?.cause(id, configOf(spec)) !== undefined }
  #keep(version: Version, cause: string): void {
    try { this.#quarantine?.keep(version, cause) } catch (error) { this.#kernel.log.error(`plugin "${version.id}" is stopped, but that could not be written down for the next start: ${messageOf(error)}`) }
  }

  // ---- a file edit
  #affected(changed: readonly string[]): Hosted[] {
    const reached = this.#importer.affected(changed)
    return this.#roster.inOrder().filter(entry => entry.spec.enabled && (reached.has(entry.spec.from) || changed.some(file => entry.tried.has(file))) && !this.#isStill(entry))
  }
  async #reload(entries: readonly Hosted[], changed: Changes, report: Report): Promise<void> {
    if (entries.length === 0) return
    const groups = this.#groups(entries, changed.files)
    try {
      await this.#together(entries, changed, report)
    } catch (error) {
      for (const group of groups) {
        if (groups.length === 1) this.#notTaken(group, changed.files, error, report)
        else await this.#together(group, changed, report).catch(reason => { this.#notTaken(group, changed.files, reason, report) })
      }
    }
  }
  /** Entries that have a changed file in common, directly or through others. */
  #groups(entries: readonly Hosted[], changed: readonly string[]): Hosted[][] {
    let groups = entries.map(entry => [entry])
    if (groups.length > 1) for (const file of changed) {
      const reached = this.#importer.affected([file])
      const joins = (group: readonly Hosted[]) => group.some(({ spec, tried }) => reached.has(spec.from) || tried.has(file))
      const joined = groups.filter(joins).flat()
      if (joined.length > 0) groups = [joined, ...groups.filter(group => !joins(group))]
    }
    return groups
  }
  #notTaken(entries: readonly Hosted[], changed: readonly string[], error: unknown, report: Report): void {
    for (const entry of entries) {
      entry.untaken = new Set([...entry.untaken, ...changed])
      this.#roster.failed(entry, error, report)
    }
  }

  // ---- either
  /** Builds, checks and replaces all of these entries, or none. Those that don't run are mounted by settling. */
  async #together(entries: readonly Hosted[], { files, texts }: Changes, report: Report): Promise<void> {
    const { members, commit } = await this.#prepare(entries, { files: [...new Set([...files, ...entries.flatMap(({ untaken }) => [...untaken])])], texts })
    const running = members.filter(({ entry }) => entry.generation)
    if (running.length === 0) commit()
    else await this.#lineup.replace(running, commit, report)
  }
  /** Imports, checks and validates; nothing that runs has noticed. */
  async #prepare(entries: readonly Hosted[], changed: Changes): Promise<Prepared> {
    const lost = entries.find(({ spec }) => spec.missing)
    if (lost) throw lost.spec.missing
    const froms = [...new Set(entries.map(({ spec }) => spec.from))]
    let looked: readonly string[] = froms
    try {
      const loaded = await this.#importer.load(froms, changed.files, changed.texts, (from, run) => runFor(entries.find(({ spec }) => spec.from === from)!.id, run))
      looked = froms.flatMap(from => loaded.files(from))
      const members: Member[] = []
      for (const entry of entries) members.push(await this.#member(entry, loaded.modules.get(entry.spec.from)!))
      return {
        members,
        commit: () => {
          loaded.commit()
          for (const member of members) this.#taken(member, loaded.files(member.entry.spec.from))
        },
      }
    } finally {
      for (const entry of entries) entry.tried = new Set([...looked, ...this.#importer.tried])   // until it is taken
    }
  }
  async #member(entry: Hosted, namespace: Readonly<Record<string, unknown>>): Promise<Member> {
    const { module, notes } = checkModule(namespace, entry.spec)
    for (const note of notes) this.#kernel.log.write('warn', note, undefined, entry.id)
    return { entry, module, config: await this.#validate(entry, module) }
  }
  #validate({ id, spec }: Hosted, { Config }: Member['module']): Promise<unknown> { return validateConfig(id, Config, spec.config, path => spec.place(path), spec.written) }
  #taken({ entry, module, config }: Member, files: readonly string[]): void {
    entry.files = files
    entry.tried = entry.untaken = new Set()
    if (entry.state === 'quarantined') this.#quarantine?.forget(entry.id)
    if (entry.generation) return
    entry.module = module
    entry.config = config
    this.#roster.set(entry, 'waiting', 'it is being loaded')
  }
}

const configOf = ({ written, config }: EntrySpec): unknown => written ?? config
const versionOf = (spec: EntrySpec, files: readonly string[]): Version => ({ id: spec.id, files: [...new Set([spec.from, ...files])], config: configOf(spec) })

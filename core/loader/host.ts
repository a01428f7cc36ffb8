/**
 * The plugin host: makes what runs equal to what the config file wants, and follows changes of files. One queue; each job reads the world anew, so it may come at any time.
 * Knows entries, the importer port and the kernel; no YAML, no watcher and no agent.
 *
 *   config edit:  plan ▶ unload (reverse) ▶ reorder ▶ replace, reconfigure, restart ▶ load (in order) ▶ settle
 *   file edit:    affected ▶ build and check all ▶ transaction (mount staged ▶ switch) ▶ settle;   the old version ends on its own, beside the queue
 *
 * Invariants: a plugin that fails stops nobody else; a job is done at its switch; a required entry that should be active and is not is known to the kernel before anything can pass it.
 */
import { didYouMean, HarnessError, messageOf } from '../errors.js'
import { enter } from '../kernel/async-context.js'
import { DISPOSE_MS, MOUNT_MS, type Generation, type Kernel, type Leak } from '../kernel/kernel.js'
import { within } from '../kernel/limits.js'
import type { EntrySpec, EntryState, Importer, PluginInfo } from './entry.js'
import { Hosted } from './hosted.js'
import { plan, type Op } from './plan.js'
import { validateConfig } from './plugin-config.js'
import { checkModule } from './plugin-module.js'
import { transact, type Member, type Outcome, type TransactionPort } from './transaction.js'
import { explain } from './waiting.js'

export type { EntrySpec, PluginInfo } from './entry.js'

export interface HostOptions {
  readonly kernel: Kernel
  readonly importer: Importer
  /** The folder of an entry's own in the state directory. */
  dataDir(id: string): string
  /** How long calls may hold back what has to stop before their signal is aborted; 5000. Read anew each time. */
  readonly drainMs?: (() => number) | undefined
  readonly mountMs?: number | undefined
}
export interface HostEvents {
  loaded: { readonly id: string; readonly version: number }
  unloaded: { readonly id: string; readonly reason: string }
  reloaded: { readonly id: string; readonly version: number; readonly ms: number }
  /** `active`: an older version goes on. */
  failed: { readonly id: string; readonly message: string; readonly active: boolean }
  leaked: Leak
  /** A job of the queue is done: files to follow may have changed. */
  settled: Record<string, never>
}
export interface ReloadReport {
  readonly reloaded: readonly string[]
  readonly failed: readonly { readonly id: string; readonly message: string }[]
  /** From the beginning of the job to its end. */
  readonly ms: number
}

/** What a refused prompt or call is told: no path and no config. */
const CAUSES: Readonly<Record<Exclude<EntryState, 'active'>, string>> = { waiting: 'it is waiting', failed: 'it failed to load', disabled: 'it is disabled', quarantined: 'it was stopped after repeated failures' }

export class PluginHost {
  readonly #kernel: Kernel
  readonly #importer: Importer
  readonly #options: HostOptions
  readonly #entries = new Map<string, Hosted>()
  /** Versions that were switched out and wait for their last call. */
  readonly #leaving = new Set<Generation>()
  readonly #watchers = new Map<keyof HostEvents, Set<(event: never) => void>>()
  readonly #port: TransactionPort
  #queue: Promise<unknown> = Promise.resolve()
  #stopping: Promise<void> | undefined
  #asked = false

  constructor(options: HostOptions) {
    this.#options = options
    this.#kernel = options.kernel
    this.#importer = options.importer
    this.#kernel.changed = () => { this.#soon() }
    this.#kernel.leaked = leaks => { for (const leak of leaks) this.#emit('leaked', leak) }
    this.#port = {
      kernel: options.kernel, mountMs: options.mountMs ?? MOUNT_MS, dataDir: options.dataDir,
      get drainMs() { return options.drainMs?.() ?? 5000 },
      leaving: entry => [...this.#leaving].filter(({ id }) => id === entry.id),
      entryOf: ({ id, parent }) => parent ? undefined : this.#entries.get(id),
      switched: (member, generation) => { this.#switched(member, generation) },
      restored: (entry, generation) => {
        entry.generation = generation
        this.#set(entry, 'active')
      },
      stopped: (entry, state) => { this.#stop(entry, 'waiting', undefined, state) },
      lost: (entry, error) => {
        this.#stop(entry, 'failed', messageOf(error), entry.generation?.state ?? {})
        this.#report(entry, `plugin "${entry.id}" could not be put back and is not active: ${reasonOf(entry, error)}`)
      },
    }
  }

  /** Makes what runs equal to `desired`. Nothing to do does nothing. */
  reconcile(desired: readonly EntrySpec[]): Promise<ReloadReport> {
    return this.#job(async report => {
      const ops = plan(desired, [...this.#entries.values()].map(entry => ({ id: entry.id, from: entry.spec.from, config: entry.spec.config, row: entry.spec.row, state: entry.state, reconfigures: entry.module?.reconfigure !== undefined })))
      for (const spec of desired) this.#adopt(spec)
      for (const op of ops) if (op.op !== 'load') await this.#apply(op, report)
      await this.#load(ops.flatMap(op => op.op === 'load' ? this.#entry(op.id) : []), report)
    })
  }
  /** These files have changed, appeared or gone. All that they reach is reloaded together; if that fails, each group of entries that shares changes by itself. */
  reload(changedFiles: readonly string[]): Promise<ReloadReport> {
    return this.#job(report => this.#reload(this.#affected(changedFiles), changedFiles, report))
  }
  /** Loads an entry anew although its file has not changed. */
  reloadEntry(id: string): Promise<ReloadReport> {
    return this.#job(async report => {
      const entry = this.#entry(id)
      if (!entry.spec.enabled) throw new HarnessError('unknown_id', `plugin "${id}" is disabled; enable it first`)
      await this.#reload([entry], [entry.spec.from], report)
    })
  }
  /** Stops an entry that does harm. It comes back with a change of its code or config, or when it is asked for. */
  quarantine(id: string, cause: string): Promise<ReloadReport> {
    return this.#job(async report => {
      const entry = this.#entry(id)
      await this.#unload(entry, 'quarantined', cause)
      report.failed(entry, `plugin "${id}" is quarantined: ${cause}`)
    })
  }
  /** Ends everything in reverse, within about `limitMs`. Nothing is taken in afterwards. */
  stop(limitMs = DISPOSE_MS): Promise<void> {
    return this.#stopping ??= enter(undefined, () => this.#stopAll(limitMs))
  }

  list(): PluginInfo[] { return this.#inOrder().map(entry => entry.info()) }
  /** Every file that entries are made of or were to be made of: what a watcher follows. */
  files(): Set<string> { return new Set(this.#inOrder().filter(({ spec }) => spec.enabled).flatMap(({ spec, files, tried }) => [spec.from, ...files, ...tried])) }
  /** The disposer ends the subscription. */
  on<K extends keyof HostEvents>(event: K, handle: (event: HostEvents[K]) => void): () => void {
    const handlers = this.#watchers.get(event) ?? new Set()
    this.#watchers.set(event, handlers.add(handle))
    return () => { handlers.delete(handle) }
  }

  // ---- the queue
  /** One job. What it throws is a mistake of the caller (an unknown id) or of the host, never of a plugin. */
  #job(work: (report: Report) => Promise<void>): Promise<ReloadReport> {
    const done = this.#queue.then(() => enter(undefined, async () => {                  // on nobody's account, whoever asks
      if (this.#stopping) throw new HarnessError('aborted', 'the plugin host has stopped')
      const report = new Report()
      try { await work(report) } finally {
        await this.#settle(report)
        this.#emit('settled', {})
      }
      return report.done()
    }))
    this.#queue = done.catch(() => {})                                                   // the caller has it; the queue goes on
    return done
  }
  /** A running plugin has asked for something or offers it: every job settles, so an empty one will do. */
  #soon(): void {
    if (this.#asked || this.#stopping) return
    this.#asked = true
    this.#job(async () => { this.#asked = false }).catch(error => { if (!this.#stopping) this.#kernel.log.error(messageOf(error)) })
  }

  // ---- operations of a plan
  #adopt(spec: EntrySpec): void {
    const entry = this.#entries.get(spec.id)
    if (!entry) this.#entries.set(spec.id, new Hosted(spec))
    else entry.spec = spec
    this.#guard(this.#entry(spec.id))
  }
  async #apply(op: Exclude<Op, { op: 'load' }>, report: Report): Promise<void> {
    if (op.op === 'reorder') return this.#reorder()
    const entry = this.#entry(op.id)
    try {
      if (op.op === 'unload') await this.#leave(entry, op.why)
      else if (entry.upToDate) entry.lastError = undefined                               // back to what runs, after an edit that failed
      else if (op.op === 'replace') await this.#together([entry], [], report)
      else await this.#reconfigure(entry, op.op === 'reconfigure', report)
    } catch (error) {
      this.#failed(entry, error, report)
    }
  }
  async #leave(entry: Hosted, why: 'removed' | 'disabled'): Promise<void> {
    await this.#unload(entry, 'disabled')
    entry.module = undefined
    entry.data = {}
    entry.files = []
    entry.tried = entry.untaken = new Set()
    entry.lastError = undefined
    if (why !== 'removed') return
    this.#entries.delete(entry.id)
    this.#kernel.hooks.guard(entry.id, undefined)
  }
  #reorder(): void {
    this.#kernel.reorder(new Map(this.#inOrder().flatMap(({ generation, spec }) => generation ? [[generation, spec.row] as const] : [])))
  }
  async #reconfigure(entry: Hosted, inPlace: boolean, report: Report): Promise<void> {
    const member = await this.#member(entry, entry.module!)
    if (inPlace && await this.#takesInPlace(entry, member.config)) {
      entry.config = member.config
      entry.running = { from: entry.spec.from, config: entry.spec.config }
      entry.lastError = undefined
      this.#kernel.log.info(`plugin "${entry.id}" took its new config in place`)
      return
    }
    await this.#replace([member], () => {}, report)
  }
  async #takesInPlace(entry: Hosted, config: unknown): Promise<boolean> {
    try {
      return await this.#kernel.reconfigure(entry.generation!, config, this.#port.mountMs)
    } catch (error) {
      this.#kernel.log.warn(`plugin "${entry.id}" failed to take its new config in place and is restarted: ${messageOf(error)}`)
      return false
    }
  }

  // ---- loading
  /** Builds and checks entries that don't run; settling mounts them. */
  async #load(entries: readonly Hosted[], report: Report): Promise<void> {
    for (const entry of entries) {
      entry.module = undefined
      entry.waiting = []
      this.#set(entry, 'waiting', 'it is being loaded')
    }
    if (entries.length === 0) return
    try {
      await this.#prepare(entries, [])
    } catch (error) {
      if (entries.length === 1) return this.#failed(entries[0]!, error, report)
      for (const entry of entries) await this.#load([entry], report)                       // one bad file must not keep the others out
    }
  }
  #affected(changed: readonly string[]): Hosted[] {
    const reached = this.#importer.affected(changed)
    return this.#inOrder().filter(({ spec, tried }) => spec.enabled && (reached.has(spec.from) || changed.some(file => tried.has(file))))
  }
  async #reload(entries: readonly Hosted[], changed: readonly string[], report: Report): Promise<void> {
    if (entries.length === 0) return
    const groups = this.#groups(entries, changed)
    try {
      await this.#together(entries, changed, report)
    } catch (error) {
      for (const group of groups) {
        if (groups.length === 1) this.#failedTogether(group, changed, error, report)
        else await this.#together(group, changed, report).catch(reason => { this.#failedTogether(group, changed, reason, report) })
      }
    }
  }
  /** One transaction for all of these entries. */
  async #together(entries: readonly Hosted[], changed: readonly string[], report: Report): Promise<void> {
    const untaken = [...new Set([...changed, ...entries.flatMap(entry => [...entry.untaken])])]
    const { members, commit } = await this.#prepare(entries, untaken)
    await this.#replace(members, commit, report)
  }
  /** Imports, checks and validates. Entries that don't run are ready to be mounted afterwards; for those that run, nothing has happened. */
  async #prepare(entries: readonly Hosted[], changed: readonly string[]): Promise<{ members: readonly Member[]; commit: () => void }> {
    const froms = [...new Set(entries.map(({ spec }) => spec.from))]
    let looked: ReadonlySet<string> = new Set(froms)
    try {
      const loaded = await this.#importer.load(froms, changed)
      looked = new Set(froms.flatMap(from => loaded.files(from)))
      const members: Member[] = []
      for (const entry of entries) members.push(await this.#member(entry, loaded.modules.get(entry.spec.from)!))
      const commit = () => {
        loaded.commit()
        for (const entry of entries) {
          entry.files = loaded.files(entry.spec.from)
          entry.tried = entry.untaken = new Set()
        }
      }
      const running = members.filter(({ entry }) => entry.generation)
      const ready = () => { for (const member of members) if (!member.entry.generation) this.#ready(member) }
      if (running.length === 0) { commit(); ready(); return { members: [], commit: () => {} } }
      for (const entry of entries) entry.tried = looked                                    // until it is committed, a change of these may be needed
      return { members: running, commit: () => { commit(); ready() } }
    } catch (error) {
      for (const entry of entries) entry.tried = new Set([...looked, ...this.#importer.tried])
      throw error
    }
  }
  async #member(entry: Hosted, namespace: Readonly<Record<string, unknown>> | Member['module']): Promise<Member> {
    const { module, notes } = checkModule(namespace as Readonly<Record<string, unknown>>, entry.spec)
    for (const note of notes) this.#kernel.log.warn(note)
    return { entry, module, config: await validateConfig(entry.id, module.Config, entry.spec.config, path => entry.spec.place(path)) }
  }
  #ready({ entry, module, config }: Member): void {
    entry.module = module
    entry.config = config
    this.#set(entry, 'waiting', 'it is being loaded')
  }
  async #replace(members: readonly Member[], commit: () => void, report: Report): Promise<void> {
    if (members.length === 0) return
    const started = performance.now()
    const outcome = await transact(this.#port, members, commit)
    this.#fade(outcome)
    for (const { entry } of members) {
      entry.reloads++
      entry.lastReloadMs = report.elapsed()
      entry.lastError = undefined
      report.reloaded(entry)
      this.#kernel.log.info(`plugin "${entry.id}" reloaded as version ${entry.version} in ${Math.round(performance.now() - started)} ms`)
      this.#emit('reloaded', { id: entry.id, version: entry.version, ms: entry.lastReloadMs })
    }
  }
  /** Entries that have a changed file in common, directly or through others. */
  #groups(entries: readonly Hosted[], changed: readonly string[]): Hosted[][] {
    let groups = entries.map(entry => [entry])
    for (const file of changed) {
      const reached = this.#importer.affected([file])
      const joins = (group: readonly Hosted[]) => group.some(({ spec, tried }) => reached.has(spec.from) || tried.has(file))
      const joined = groups.filter(joins).flat()
      if (joined.length > 0) groups = [joined, ...groups.filter(group => !joins(group))]
    }
    return groups
  }

  // ---- what runs
  /** Until nothing moves: stops whoever lost a service, starts whoever has all of his, and says why the rest waits. */
  async #settle(report: Report): Promise<void> {
    for (let moved = true; moved && !this.#stopping;) {
      moved = false
      for (const entry of this.#inOrder()) {
        if (entry.generation && this.#missing(entry).length > 0) {
          await this.#unload(entry, 'waiting')
          moved = true
        } else if (!entry.generation && entry.state === 'waiting' && entry.module && this.#missing(entry).length === 0) {
          moved = await this.#startEntry(entry, report) || moved
        }
      }
      if (await this.#kernel.settle()) moved = true
    }
    this.#explain()
    this.#importer.forget([...new Set(this.#inOrder().filter(({ module }) => module).map(({ spec }) => spec.from))])
  }
  async #startEntry(entry: Hosted, report: Report): Promise<boolean> {
    try {
      await transact(this.#port, [{ entry, module: entry.module!, config: entry.config }])
      entry.lastError = undefined
      this.#kernel.log.info(`plugin "${entry.id}" loaded`)
      this.#emit('loaded', { id: entry.id, version: entry.version })
      return true
    } catch (error) {
      entry.tried = new Set(entry.files)
      this.#failed(entry, error, report)
      return false
    }
  }
  /** Takes an entry down, and before it whoever uses its services. */
  async #unload(entry: Hosted, state: Exclude<EntryState, 'active'>, reason?: string): Promise<void> {
    const { drainMs } = this.#port
    const older = this.#port.leaving(entry).map(generation => this.#kernel.end(generation, drainMs))
    if (!entry.generation) this.#set(entry, state, reason)
    else for (const generation of [...this.#kernel.dependents([entry.generation])].reverse()) {
      const going = this.#port.entryOf(generation)                                        // undefined for an optional scope of another plugin
      if (going) this.#stop(going, going === entry ? state : 'waiting', going === entry ? reason : undefined, generation.state)   // first told, then gone: a guard leaves no gap
      this.#kernel.retire(generation)
      await this.#kernel.end(generation, drainMs)
      if (going) this.#emit('unloaded', { id: going.id, reason: going.state })
    }
    await Promise.all(older)
  }
  /** The old versions end when their last call has, beside the queue. */
  #fade({ retired }: Outcome): void {
    for (const generation of retired) {
      this.#leaving.add(generation)
      const { drainMs } = this.#port
      const tell = setTimeout(() => { generation.warn(`version ${generation.generation} was replaced and still has ${generation.inFlight || 'some'} call${generation.inFlight === 1 ? '' : 's'} running after ${drainMs} ms; it stays until they end`) }, drainMs).unref()
      void this.#kernel.drain(generation, Infinity).then(() => this.#kernel.dispose(generation)).finally(() => {
        clearTimeout(tell)
        this.#leaving.delete(generation)
      })
    }
  }
  async #stopAll(limitMs: number): Promise<void> {
    const end = performance.now() + limitMs
    const left = (share = 1) => Math.max(20, (end - performance.now()) * share)
    const late = () => new HarnessError('plugin_timeout', 'it did not end in time')
    await within(left(0.3), this.#queue, late).catch(() => {})                              // a job that hangs in a plugin ends with the process
    const all = [...this.#kernel.dependents(this.#kernel.generations()), ...this.#leaving].reverse()
    for (const generation of all) {
      this.#kernel.retire(generation)
      this.#kernel.abort(generation)
    }
    for (const generation of all) {
      await this.#kernel.drain(generation, Math.min(100, left()))                          // its calls were aborted
      const limit = left()
      await within(limit, this.#kernel.dispose(generation, limit), late).catch(error => { generation.warn(messageOf(error)) })
    }
    for (const entry of this.#entries.values()) entry.generation = undefined
  }

  // ---- what is known of an entry
  #switched({ entry, module, config }: Member, generation: Generation): void {
    entry.generation = generation
    entry.module = module
    entry.config = config
    entry.version = generation.generation
    entry.running = { from: entry.spec.from, config: entry.spec.config }
    entry.waiting = []
    this.#set(entry, 'active')
  }
  #stop(entry: Hosted, state: Exclude<EntryState, 'active'>, reason: string | undefined, data: Record<string, unknown>): void {
    entry.generation = undefined
    entry.running = undefined
    entry.data = data
    this.#set(entry, state, reason)
  }
  #set(entry: Hosted, state: EntryState, reason?: string): void {
    entry.state = state
    entry.reason = reason
    this.#guard(entry)
  }
  /** A required entry that is not active refuses, from this very moment. */
  #guard({ id, spec, state, waiting }: Hosted): void {
    const absent = spec.required && spec.enabled && state !== 'active'
    this.#kernel.hooks.guard(id, absent ? state === 'waiting' && waiting.length > 0 ? `it waits for service "${waiting[0]}"` : CAUSES[state] : undefined)
  }
  #explain(): void {
    const entries = this.#inOrder()
    for (const entry of entries) entry.waiting = entry.state === 'waiting' && entry.module ? this.#missing(entry) : []
    const reasons = explain(entries.map(({ id, state, waiting, provides }) => ({ id, state, missing: waiting, provides })))
    for (const entry of entries) {
      const reason = reasons.get(entry.id)
      if (reason === undefined || reason === entry.reason) continue
      this.#set(entry, 'waiting', reason)
      this.#kernel.log.write('warn', reason, undefined, entry.id)
    }
  }
  #failedTogether(entries: readonly Hosted[], changed: readonly string[], error: unknown, report: Report): void {
    for (const entry of entries) {
      entry.untaken = new Set([...entry.untaken, ...changed])
      this.#failed(entry, error, report)
    }
  }
  #failed(entry: Hosted, error: unknown, report: Report): void {
    const reason = reasonOf(entry, error)
    const message = entry.generation ? `plugin "${entry.id}" could not be reloaded and keeps running as before: ${reason}` : `plugin "${entry.id}" could not be loaded: ${reason}`
    if (!entry.generation) this.#set(entry, 'failed', message)
    this.#report(entry, message)
    report.failed(entry, message)
  }
  #report(entry: Hosted, message: string): void {
    const news = entry.lastError !== message
    entry.lastError = message
    if (news) this.#kernel.log.write('error', message, undefined, entry.id)                 // the same text is told once
    this.#emit('failed', { id: entry.id, message, active: entry.generation !== undefined })
  }
  #missing({ module }: Hosted): string[] { return this.#kernel.missing(module?.inject ?? []) }
  #inOrder(): Hosted[] { return [...this.#entries.values()].sort((a, b) => a.spec.row - b.spec.row) }
  #entry(id: string): Hosted {
    const entry = this.#entries.get(id)
    if (!entry) throw new HarnessError('unknown_id', `there is no plugin "${id}"${didYouMean(id, this.#entries.keys())}`)
    return entry
  }
  #emit<K extends keyof HostEvents>(event: K, value: HostEvents[K]): void {
    for (const handle of this.#watchers.get(event) ?? []) {
      try { (handle as (event: HostEvents[K]) => void)(value) } catch (error) { this.#kernel.log.error(`a watcher of the plugin host failed at "${event}": ${messageOf(error)}`) }
    }
  }
}

/** What a job came to. */
class Report {
  readonly #started = performance.now()
  readonly #reloaded = new Set<string>()
  readonly #failed = new Map<string, string>()
  elapsed(): number { return performance.now() - this.#started }
  reloaded({ id }: Hosted): void { this.#reloaded.add(id) }
  failed({ id }: Hosted, message: string): void { this.#failed.set(id, message) }
  done(): ReloadReport { return { reloaded: [...this.#reloaded], failed: [...this.#failed].map(([id, message]) => ({ id, message })), ms: this.elapsed() } }
}

/** The message without the plugin's name, which the sentence around it says already. */
function reasonOf({ id }: Hosted, error: unknown): string {
  const message = messageOf(error)
  const own = `plugin "${id}"`
  return message.startsWith(own) ? message.slice(own.length).replace(/^:? /, '') : message
}

/**
 * The composition root: agent and plugin host on one kernel, from a config that was found. The daemon runs one for weeks, a command one for its own length.
 * The only file that knows both sides. Begin: config → kernel → agent → plugins → watcher. End: in reverse.
 * Invariants: what is in force changes only as a whole; a config that can not be read leaves the last good one in force, and says so.
 */
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { dirname, join } from 'node:path'
import { createAgent, type Agent } from './agent/agent.js'
import type { Follower } from './agent/agents.js'
import { FileSessionStore } from './agent/session-store-file.js'
import { MemorySessionStore } from './agent/session-store-memory.js'
import type { Approver, CommandsService, Model, ModelInfo, Run, RunInput, ToolInfo } from './agent/services.js'
import type { SessionEvent, SessionStore, SessionSummary } from './agent/session-events.js'
import { Workspace } from './agent/workspace.js'
import * as api from './api.js'
import { at, HarnessError, messageOf, type Place } from './errors.js'
import type { Dispatcher, HookInfo } from './kernel/dispatch.js'
import { containEscapes, type Containment } from './kernel/escapes.js'
import { Kernel } from './kernel/kernel.js'
import { Quarantine, type Version } from './kernel/quarantine.js'
import type { Level, Log } from './kernel/log.js'
import { RecentErrors } from './kernel/recent-errors.js'
import { parseConfig } from './loader/config.js'
import { PluginHost, type HostEvents, type PluginInfo, type ReloadReport } from './loader/host.js'
import { ModuleImporter } from './loader/importer.js'
import { over, type Texts, type TextSource } from './loader/files.js'
import { counts, HeldChanges, type HeldFile } from './loader/held-changes.js'
import type { Located } from './loader/locate.js'
import { readConfig, type ConfigInForce } from './loader/read-config.js'
import type { Trust } from './loader/trust.js'
import type { Watcher } from './loader/watcher.js'
import type { Installation, Places } from './places.js'
import { Routes } from './routes.js'
import { VERSION } from './version.js'

export interface AppOptions {
  readonly places: Places
  readonly located: Located
  /** Workspace of sessions whose caller names none. */
  readonly cwd: string
  readonly env: NodeJS.ProcessEnv
  readonly trust: Trust
  readonly log: Log
  /** Plugin files to load after those of the config, absolute. */
  readonly plugins?: readonly string[] | undefined
  /** Ids of entries to leave out. */
  readonly without?: readonly string[] | undefined
  /** Models of the embedder's own, before those of plugins. */
  readonly models?: readonly Model[] | undefined
  /** A server stands before it, to which plugins may add routes. */
  readonly serves?: boolean | undefined
  /** Follow edits of the config and of plugins, unless `reload.watch` says no. */
  readonly watch?: boolean | undefined
  /** The process is this host's own: what plugins throw or print outside of any call is contained, and this is told of an error that is no plugin's. */
  readonly fatal?: ((error: unknown) => void) | undefined
  /** Called before the first plugin is mounted. */
  readonly begins?: ((app: App) => void) | undefined
}
/** One task, as clients send it: the part of a run that is plain data. */
export interface RunOrder extends Pick<RunInput, 'prompt' | 'session' | 'cwd' | 'model' | 'maxSteps' | 'mode' | 'ephemeral' | 'ifIdle'> {}
export interface ConfigStatus { readonly path: string; readonly state: 'in force' | 'rejected'; readonly problem?: string | undefined }
/** A command of a plugin, as clients send it. */
export interface CommandOrder { readonly name: string; readonly args: string; readonly session?: string | undefined; readonly cwd: string }
/** What it has to say, or a prompt that the client is to send. */
export interface CommandOutcome { readonly session?: string | undefined; readonly text?: string | undefined; readonly prompt?: string | undefined }
/** Times in milliseconds; `plugins` and `sessions` count what is active. */
export interface Status {
  readonly pid: number
  readonly version: string
  readonly uptimeMs: number
  readonly config: ConfigStatus
  readonly plugins: number
  readonly sessions: number
  /** Turns that wait behind one of their session. */
  readonly queued: number
  readonly rssBytes: number
  readonly heapBytes: number
  /** Of the last minute or two. */
  readonly loopDelayP99Ms: number
  readonly reloads: number
  /** Changes of config and plugins that a tool may have made: not loaded until a person says so. */
  readonly held: readonly HeldFile[]
  /** Ids of plugins that were stopped because they do harm. */
  readonly quarantined: readonly string[]
}
export interface Watched {
  readonly installation: Installation
  /** The file of plugins that were stopped, and the folder of logs. */
  readonly quarantine: string
  readonly logs: string
  readonly plugins: readonly Version[]
}
/** What happens to the host, beside the log: for a demo, a status line, a test. */
export type AppEvent = { [K in keyof HostEvents]: { readonly type: K } & HostEvents[K] }[keyof HostEvents]
  | { readonly type: 'held' } & HeldFile
  | { readonly type: 'config-applied'; readonly ms: number }
  | { readonly type: 'config-rejected'; readonly message: string; readonly place: Place | undefined }

/** Can it take prompts, and would they be kept? */
export interface Readiness { readonly ready: boolean; readonly store: 'writable' | string; readonly config: ConfigStatus }
/** How often the event loop is looked at; rarely, since each look wakes the process. After how long what was seen is old. */
const LOOP_SAMPLE_MS = 100, LOOP_WINDOW_MS = 60_000
/** A config that lacks its end may be half of one that is still being written: it has to stand still for this long. */
const CONFIG_SETTLE_MS = 250
/** How long a command of a plugin may take. */
const COMMAND_MS = 600_000
/** Turns and tools, then plugins: together within the ten seconds that service managers give. */
const STOP_TURNS_MS = 6000, STOP_PLUGINS_MS = 3000

export class App {
  readonly #options: AppOptions
  readonly #errors = new RecentErrors()
  readonly #forgetErrors: () => void
  readonly #kernel: Kernel
  readonly #store: SessionStore
  readonly #memory = new MemorySessionStore()
  readonly #agent: Agent
  readonly #routes: Routes | undefined
  readonly #importer: ModuleImporter
  readonly #host: PluginHost
  readonly #listeners = new Set<(event: AppEvent) => void>()
  readonly #started = performance.now()
  readonly #loopDelay = monitorEventLoopDelay({ resolution: LOOP_SAMPLE_MS })
  /** Of the window before this one. */
  #loopDelayBefore = 0
  #loopWindow: NodeJS.Timeout | undefined
  readonly #held: HeldChanges
  #config: ConfigInForce
  #rejected: string | undefined
  #watcher: Watcher | undefined
  #contained: Containment | undefined
  #reading: Promise<unknown> = Promise.resolve()
  #stopping: Promise<void> | undefined

  /** Resolves when every plugin is active, waiting or failed. Rejects with `untrusted` or `config_invalid`; then nothing is left. */
  static async start(options: AppOptions): Promise<App> {
    const app = new App(options)
    try { await app.#begin() } catch (error) {
      await app.stop()
      throw error
    }
    return app
  }

  private constructor(options: AppOptions) {
    const { places, log, cwd, trust } = options
    this.#options = options
    this.#forgetErrors = log.sink(this.#errors.sink)
    this.#held = new HeldChanges({
      suspects: at => (this.#agent as Agent | undefined)?.tools.spans.any === true && !this.#config.config.reload.trustTools && this.#agent.tools.spans.covers(at()),   // before there is an agent, nothing has run
      inUse: file => this.#config.texts.get(file) ?? this.#importer.text(file),
      real: file => this.#importer.real(file),
      held: change => { this.#tellHeld(change) },
      store: join(places.state, 'held', `${createHash('sha256').update(realpathSync(options.located.file)).digest('hex').slice(0, 16)}.json`),
    })
    const config = this.#config = readConfig({ ...readOptions(options), read: this.#held })
    this.#hideSecrets()
    this.#kernel = new Kernel({ log })
    this.#store = new FileSessionStore({ folder: places.sessions, durability: () => this.#config.config.sessions.durability, report: message => { log.warn(message) } })
    const workspace = new Workspace({
      roots: () => this.#config.config.workspace.roots,
      protectedPaths: () => [...options.located.layers, ...options.located.layers.map(file => join(dirname(file), 'plugins')), places.config, places.state, ...installed(places.installation), ...this.#config.entries.map(entry => entry.from), ...this.#config.looked, ...this.#importer.files()],
      secretPaths: () => [places.run],
      outputPath: session => this.#agent.agents.outputPath(session),
    })
    this.#agent = createAgent({ kernel: this.#kernel, store: this.#store, memoryStore: this.#memory, workspace, config: agentConfig(config), cwd })
    const host = Object.freeze({ configFile: options.located.file, configDir: dirname(options.located.file), version: VERSION })
    this.#kernel.service('host', () => host)
    this.#kernel.service('keys', () => ({ get: name => this.#config.env[name] }))
    this.#routes = options.serves ? new Routes(this.#kernel) : undefined
    this.#importer = importerFor(places.installation, trust, dirname(options.located.file), log, this.#held)
    this.#kernel.hooks.locate = raw => this.#importer.original(raw)
    this.#host = new PluginHost({ kernel: this.#kernel, importer: this.#importer, dataDir: id => join(places.data, id), drainMs: () => this.#config.config.reload.drainMs, quarantine: new Quarantine(places.quarantineOf(options.located.file)) })
  }

  async #begin(): Promise<void> {
    for (const type of ['loaded', 'unloaded', 'reloaded', 'failed', 'leaked', 'settled'] as const) this.#host.on(type, event => { this.#emit({ type, ...event } as AppEvent) })
    for (const model of this.#options.models ?? []) this.#agent.models.view(this.#kernel.core).register(model)
    this.#host.on('unloaded', ({ id, reason }) => { if (!this.#stopping) this.#options.log.write('info', `plugin "${id}" unloaded: ${reason}`, undefined, id) })
    this.#host.on('settled', () => { this.#kernel.hooks.unmatchedTools(this.#agent.tools.names()) })
    this.#tellNotes()
    if (this.#options.fatal) this.#contained = this.#contain(this.#options.fatal)
    this.#options.begins?.(this)
    await this.#host.reconcile(this.#config.entries)
    if (!this.#options.watch) return
    this.#loopDelay.enable()
    this.#loopWindow = setInterval(() => {
      this.#loopDelayBefore = this.#loopDelayNow()
      this.#loopDelay.reset()
    }, LOOP_WINDOW_MS).unref()
    if (this.#config.config.reload.watch) await this.#watch()
  }

  // ---- what clients ask

  run(order: RunOrder, approver?: Approver): Promise<Run> { return this.#agent.agents.run({ ...order, approver }) }
  /** Makes a session that waits for its first prompt. */
  begin(cwd: string): Promise<string> { return this.#agent.agents.begin(cwd) }
  abort(session: string, reason: string): boolean { return this.#agent.agents.abort(session, reason) }
  running(): readonly string[] { return this.#agent.agents.list().map(({ session }) => session) }
  /** Turns that run or wait. */
  turns(): number { return this.#agent.agents.list().reduce((all, { queued }) => all + 1 + queued, 0) }
  isBusy(session: string): boolean { return this.#agent.agents.isBusy(session) }
  follow(session: string, follower: Follower): () => void { return this.#agent.agents.follow(session, follower) }
  /** The log of a session so far; of one that is open, from memory. */
  events(session: string): Promise<readonly SessionEvent[]> { return this.#agent.agents.read(session) }
  steer(session: string, prompt: string): boolean { return this.#agent.agents.steer(session, prompt) }
  archive(session: string): Promise<void> { return this.#agent.agents.archive(session) }
  /** Where the daemon listens beside its socket. */
  get tcp(): ConfigInForce['config']['server']['tcp'] { return this.#config.config.server.tcp }
  /** Answers a request by a route of a plugin; undefined when there is none. */
  route(request: Request): Promise<Response> | undefined { return this.#routes?.handle(request) }
  /** A model key or another variable as plugins are given it. */
  key(name: string): string | undefined { return this.#config.env[name] }
  /** `log.level` of the config in force. */
  get logLevel(): Level { return this.#config.config.log.level }
  plugins(): readonly PluginInfo[] {
    return this.#host.list().map(plugin => {
      const errors = this.#errors.of(plugin.id), strikes = this.#contained?.strikes(plugin.id) ?? 0
      return { ...plugin, ...(errors.length > 0 && { errors }), ...(strikes > 0 && { strikes }) }
    })
  }
  hooks(): readonly HookInfo[] {
    const places = new Map(this.#config.entries.map(({ id, at }) => [id, at]))
    return this.#kernel.hooks.list().map(hook => ({ ...hook, handlers: hook.handlers.map(handler => {
      const place = places.get(handler.plugin)
      return place ? { ...handler, entry: { file: place.file, ...(place.line !== undefined && { line: place.line }) } } : handler
    }) }))
  }
  tools(): readonly ToolInfo[] { return this.#agent.tools.list() }
  models(): readonly ModelInfo[] { return this.#agent.models.list() }
  commands(): ReturnType<CommandsService['list']> { return this.#agent.commands.list() }
  /** Runs a command of a plugin for a session; a new one in `cwd` when none is named. */
  async command({ name, args, session, cwd }: CommandOrder, signal: AbortSignal): Promise<CommandOutcome> {
    const { agents, commands } = this.#agent
    const id = session ?? (commands.needsSession(name) ? await agents.begin(cwd) : undefined)
    const answer = await commands.run(name, args, { session: id ?? '', cwd, signal: AbortSignal.any([signal, AbortSignal.timeout(COMMAND_MS)]) })
    return { ...(id !== undefined && { session: id }), ...(typeof answer === 'string' ? { text: answer } : answer) }
  }
  /** Fires one hook as the loop would: for tests of plugins. */
  dispatch: Dispatcher['dispatch'] = (hook, payload, how) => this.#kernel.hooks.dispatch(hook, payload, how)
  sessions(): Promise<readonly SessionSummary[]> { return this.#store.list() }
  session(id: string): ReturnType<SessionStore['read']> { return this.#store.read(id) }
  status(): Status {
    const plugins = this.#host.list(), { rss, heapUsed } = process.memoryUsage()
    const lanes = this.#agent.agents.list()
    return {
      pid: process.pid, version: VERSION, uptimeMs: Math.round(performance.now() - this.#started),
      config: this.#configStatus(),
      plugins: plugins.filter(plugin => plugin.state === 'active').length, sessions: lanes.length, queued: lanes.reduce((all, { queued }) => all + queued, 0),
      rssBytes: rss, heapBytes: heapUsed, loopDelayP99Ms: Math.max(this.#loopDelayBefore, this.#loopDelayNow()),
      reloads: plugins.reduce((all, plugin) => all + plugin.reloads, 0),
      held: this.held(),
      quarantined: plugins.flatMap(({ id, state }) => state === 'quarantined' ? [id] : []),
    }
  }
  #configStatus(): ConfigStatus { return { path: this.#options.located.file, state: this.#rejected === undefined ? 'in force' : 'rejected', problem: this.#rejected } }
  /** A sample is the time between two looks. */
  #loopDelayNow(): number { return Math.max(0, Math.round((this.#loopDelay.percentile(99) / 1e6 - LOOP_SAMPLE_MS) * 10) / 10) || 0 }
  async ready(): Promise<Readiness> {
    const store = await this.#store.probe().then(() => 'writable', messageOf)
    return { ready: store === 'writable' && !this.#stopping, store, config: this.#configStatus() }
  }
  /** Reads the config again; with ids, loads these entries anew although their files did not change. */
  async reload(ids: readonly string[] = []): Promise<ReloadReport> {
    if (ids.length === 0) return this.#readAgain()
    const reports = []
    for (const id of ids) reports.push(await this.#host.reloadEntry(id))
    return together(reports)
  }
  /** What a tool may have changed of what runs here, and nobody has agreed to yet. */
  held(): readonly HeldFile[] {
    if (this.#agent.tools.spans.any) this.#held.look(this.#followed())
    return this.#held.list()
  }
  /** Loads what was held, as it was shown. */
  async reloadHeld(): Promise<ReloadReport> {
    const texts = this.#held.release()
    return this.#take([...texts.keys()], texts)
  }
  /** What a watchdog has to know: whose code is which file, and where it leaves its word when it ends the process. */
  get watched(): Watched {
    const { places, located: { file } } = this.#options
    return { installation: places.installation, quarantine: places.quarantineOf(file), logs: places.logs, plugins: this.#host.versions(this.#config.entries) }
  }
  warn(message: string): void { this.#options.log.warn(message) }
  /** The disposer ends the subscription. */
  on(listener: (event: AppEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Ends everything, in order and within limits. May be called more than once. */
  stop(): Promise<void> { return this.#stopping ??= this.#stop() }
  async #stop(): Promise<void> {
    if (this.#agent.tools.spans.any) this.#held.look(this.#followed())     // for the next host of this config
    this.#loopDelay.disable()
    clearInterval(this.#loopWindow)
    await this.#watcher?.close()
    await this.#agent.stop(STOP_TURNS_MS)
    await this.#host.stop(STOP_PLUGINS_MS)
    this.#memory.dispose()
    this.#listeners.clear()
    this.#forgetErrors()
    this.#contained?.release()
  }

  #contain(fatal: (error: unknown) => void): Containment {
    return containEscapes({
      log: this.#options.log, fatal,
      ownerOf: stack => this.#host.list().find(({ from }) => stack.includes(from))?.id,
      quarantine: (id, cause) => this.#host.quarantine(id, cause),
    })
  }

  // ---- edits

  /** One at a time: of two edits, the later one is in force at the end. */
  #readAgain(read?: Texts): Promise<ReloadReport> {
    const done = this.#reading.then(() => this.#takeConfig(read))
    this.#reading = done.catch(() => {})                     // its caller has the error
    return done
  }
  async #takeConfig(read: Texts | undefined): Promise<ReloadReport> {
    const started = performance.now()
    let next: ConfigInForce
    try { next = readConfig({ ...readOptions(this.#options), read: over(read ?? new Map(), this.#held) }) } catch (error) {
      this.#reject(error)
      throw error
    }
    this.#config = next
    this.#hideSecrets()
    if (this.#rejected !== undefined) this.#options.log.info('the config has no problem any more and is in force')
    this.#rejected = undefined
    this.#agent.reconfigure(agentConfig(next))
    this.#tellNotes()
    const report = await this.#host.reconcile(next.entries)
    this.#emit({ type: 'config-applied', ms: performance.now() - started })
    return report
  }
  #reject(error: unknown): void {
    const place = error instanceof HarnessError ? error.place : undefined
    const message = `${messageOf(error)}; the last good config stays in force`
    if (this.#rejected === message) return
    this.#rejected = message
    this.#options.log.error(message)
    this.#emit({ type: 'config-rejected', message, place })
  }
  #hideSecrets(): void {
    const { secrets } = this.#options.log
    secrets.learnEnv(this.#config.env)
    secrets.learn(this.#config.secrets)
  }
  #tellNotes(): void {
    for (const { message, ...place } of this.#config.notes) this.#options.log.info(`${message} (${at(place)})`)
  }

  #isConfig(file: string): boolean { return this.#config.texts.has(file) || this.#options.located.layers.includes(file) || this.#config.looked.includes(file) }
  /** All that runs here, and where more of it may appear. */
  #followed(): Set<string> {
    return new Set([...[...this.#host.files()].filter(file => !this.#importer.isFixed(file)), ...this.#importer.files(), ...this.#config.texts.keys(), ...this.#options.located.layers, ...this.#config.looked])
  }
  /** These files have changed: the config first, then modules. */
  async #take(files: readonly string[], texts: Texts): Promise<ReloadReport> {
    const reports: ReloadReport[] = []
    if (files.some(file => this.#isConfig(file))) await this.#readAgain(texts).then(report => { reports.push(report) }, () => {})   // told by #reject
    const modules = files.filter(file => !this.#isConfig(file))
    if (modules.length > 0) reports.push(await this.#host.reload(modules, texts))
    return together(reports)
  }
  #tellHeld(change: HeldFile): void {
    this.#options.log.warn(`a tool may have changed ${change.file} (${counts(change)}): not loaded; "hx plugins reload --held" loads it, putting the file back drops it`)
    this.#emit({ type: 'held', ...change })
  }
  async #watch(): Promise<void> {
    const { Watcher } = await import('./loader/watcher.js')
    const { log } = this.#options
    this.#watcher = new Watcher({
      files: () => this.#followed(),
      text: file => this.#config.texts.get(file) ?? (this.#host.isUntaken(file) ? undefined : this.#importer.text(file)),
      whole: (file, text) => this.#isConfig(file) ? this.#isWholeConfig(file, text) : this.#importer.whole(file, text),
      settleMs: (file, text) => this.#isConfig(file) && this.#lacksEnd(file, text) ? CONFIG_SETTLE_MS : 0,
      changed: async (files, texts) => {
        const admitted = this.#held.admit(files, texts)
        if (admitted.length > 0) await this.#take(admitted, admitted.length === files.length ? texts : new Map(admitted.map(file => [file, texts.get(file)])))
      },
      report: ({ files, error }) => { log.warn(`${files.join(', ')}: ${messageOf(error)}`) },
      log,
    })
    this.#host.on('settled', () => { this.#watcher?.follow() })
    await this.#watcher.start()
  }
  /** A text that is the beginning of the one in force, or has a problem, may still be being written. */
  #isWholeConfig(file: string, text: string): boolean {
    const before = this.#config.texts.get(file)
    if (text === '' || (before !== undefined && before.startsWith(text) && text !== before)) return false
    return !this.#options.located.layers.includes(file) || parseConfig(text, file).problems.length === 0
  }

  /** Half of a file is often valid YAML, but it has no last row, or no end of its last line. */
  #lacksEnd(file: string, text: string): boolean {
    const before = this.#config.texts.get(file)
    if (before === undefined || (before.endsWith('\n') && !text.endsWith('\n'))) return true
    const ids = (config: string) => parseConfig(config, file).config?.plugins.map(row => row.id) ?? []
    const last = ids(before).at(-1)
    return last !== undefined && !ids(text).includes(last)
  }

  #emit(event: AppEvent): void {
    for (const listener of this.#listeners) {
      try { listener(event) } catch (error) { this.#options.log.error(`a listener of the app failed: ${messageOf(error)}`) }
    }
  }
}

const together = (reports: readonly ReloadReport[]): ReloadReport =>
  ({ reloaded: reports.flatMap(report => report.reloaded), failed: reports.flatMap(report => report.failed), ms: reports.reduce((all, report) => all + report.ms, 0) })

/** The installation's own code; a checkout is somebody's workspace, but for what runs of it. */
const installed = ({ root }: Installation): string[] => [root.includes('/node_modules/') ? root : join(root, 'dist')]

/** The one importer of plugins: it answers `harnessx` with this very instance. */
export function importerFor({ built, plugins }: Installation, trust: Trust, base: string, log: Log, veil?: TextSource): ModuleImporter {
  return new ModuleImporter({ builtins: { harnessx: api }, trust, base, native: built ? [plugins] : [], log, veil })
}

const readOptions = ({ located, places, env, trust, plugins, without }: AppOptions) => ({ located, places, env, trust, extra: plugins ?? [], without: without ?? [] })

function agentConfig({ config: { agent } }: ConfigInForce) {
  const { model, system, maxSteps, maxContinuations, maxParallel, askTimeout, prices, maxCost } = agent
  return { maxSteps, maxContinuations, maxParallel, askTimeoutMs: askTimeout, prices, maxCost, ...(model !== undefined && { model }), ...(system !== undefined && { system }) }
}

/**
 * The composition root: agent and plugin host on one kernel, from a config that was found. The daemon runs one for weeks, a command one for its own length.
 * The only file that knows both sides. Begin: config → kernel → agent → plugins → watcher. End: in reverse.
 * What of it is read and read again is app/edits.ts. Invariant: whatever was begun ends, in order and within limits.
 */
import { dirname, join } from 'node:path'
import { link } from './agent/abort.js'
import { createAgent, type Agent } from './agent/agent.js'
import type { Follower } from './agent/agents.js'
import type { OwnRun } from './agent/lane.js'
import { FileSessionStore } from './agent/session-store-file.js'
import { MemorySessionStore } from './agent/session-store-memory.js'
import type { Approver, CommandsService, ModelInfo, ToolInfo } from './agent/services.js'
import type { SessionEvent, SessionStore, SessionSummary } from './agent/session-events.js'
import { Workspace } from './agent/workspace.js'
import * as api from './api.js'
import { agentConfig, Edits, together } from './app/edits.js'
import { LoopDelay } from './app/loop-delay.js'
import type { AppEvent, AppOptions, CommandOrder, CommandOutcome, Readiness, RunOrder, Status, Watched } from './app/words.js'
import { messageOf } from './errors.js'
import type { Dispatcher, HookInfo } from './kernel/dispatch.js'
import { containEscapes, type Containment } from './kernel/escapes.js'
import { Kernel } from './kernel/kernel.js'
import { Quarantine } from './kernel/quarantine.js'
import type { Level, Log } from './kernel/log.js'
import { memoryUse } from './kernel/memory-use.js'
import { isTrouble, RecentErrors } from './kernel/recent-errors.js'
import type { TextSource } from './loader/files.js'
import type { HeldFile } from './loader/held-changes.js'
import { PluginHost, type PluginInfo, type ReloadReport } from './loader/host.js'
import { ModuleImporter } from './loader/importer.js'
import type { ConfigInForce } from './loader/read-config.js'
import type { Trust } from './loader/trust.js'
import type { Installation } from './places.js'
import { Routes } from './routes.js'
import { VERSION } from './version.js'

export type { AppEvent, AppOptions, CommandOrder, CommandOutcome, ConfigStatus, Readiness, RunOrder, Status, Watched } from './app/words.js'

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
  readonly #loopDelay = new LoopDelay()
  readonly #edits: Edits
  #contained: Containment | undefined
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
    this.#forgetErrors = log.sink(this.#errors.sink, isTrouble)
    const edits = this.#edits = new Edits(options, event => { this.#emit(event) })
    this.#kernel = new Kernel({ log })
    this.#store = new FileSessionStore({ folder: places.sessions, durability: () => edits.config.config.sessions.durability, report: (message, level) => { log.write(level, message) } })
    const workspace = new Workspace({
      roots: () => edits.config.config.workspace.roots,
      protectedPaths: () => [...options.located.layers, ...edits.config.texts.keys(), ...options.located.layers.map(file => join(dirname(file), 'plugins')), places.config, places.state, ...installed(places.installation), ...edits.config.entries.map(entry => entry.from), ...edits.config.looked, ...this.#importer.files()],
      secretPaths: () => [places.run],
      outputPath: session => this.#agent.agents.outputPath(session),
    })
    this.#agent = createAgent({ kernel: this.#kernel, store: this.#store, memoryStore: this.#memory, workspace, config: agentConfig(edits.config), cwd })
    const host = Object.freeze({ configFile: options.located.file, configDir: dirname(options.located.file), version: VERSION })
    this.#kernel.service('host', () => host)
    this.#kernel.service('keys', () => ({ get: name => edits.config.env[name] }))
    this.#routes = options.serves ? new Routes(this.#kernel) : undefined
    this.#importer = importerFor(places.installation, trust, dirname(options.located.file), log, edits.held)
    this.#kernel.locate = raw => this.#importer.original(raw)
    this.#host = new PluginHost({ kernel: this.#kernel, importer: this.#importer, dataDir: id => join(places.data, id), drainMs: () => edits.config.config.reload.drainMs, quarantine: new Quarantine(places.quarantineOf(options.located.file)) })
    edits.connect({ agent: this.#agent, importer: this.#importer, host: this.#host })
  }

  async #begin(): Promise<void> {
    for (const type of ['loaded', 'unloaded', 'reloaded', 'failed', 'leaked', 'settled'] as const) this.#host.on(type, event => { this.#emit({ type, ...event } as AppEvent) })
    for (const model of this.#options.models ?? []) this.#agent.models.view(this.#kernel.core).register(model)
    this.#host.on('unloaded', ({ id, reason }) => { if (!this.#stopping) this.#options.log.write('info', `plugin "${id}" unloaded: ${reason}`, undefined, id) })
    this.#host.on('settled', () => { this.#kernel.hooks.unmatchedTools(this.#agent.tools.names()) })
    this.#edits.tellNotes()
    if (this.#options.fatal) this.#contained = this.#contain(this.#options.fatal)
    this.#options.begins?.(this)
    await this.#host.reconcile(this.#edits.config.entries)
    if (!this.#options.watch) return
    this.#loopDelay.start()
    if (this.#edits.config.config.reload.watch) await this.#edits.watch()
  }

  // ---- what clients ask

  run(order: RunOrder, approver?: Approver): Promise<OwnRun> { return this.#agent.agents.run({ ...order, approver }) }
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
  get tcp(): ConfigInForce['config']['server']['tcp'] { return this.#edits.config.config.server.tcp }
  /** Answers a request by a route of a plugin; undefined when there is none. */
  route(request: Request): Promise<Response> | undefined { return this.#routes?.handle(request) }
  /** A model key or another variable as plugins are given it. */
  key(name: string): string | undefined { return this.#edits.config.env[name] }
  /** `log.level` of the config in force. */
  get logLevel(): Level { return this.#edits.config.config.log.level }
  plugins(): readonly PluginInfo[] {
    return this.#host.list().map(plugin => {
      const errors = this.#errors.of(plugin.id), strikes = this.#contained?.strikes(plugin.id) ?? 0
      return { ...plugin, ...(errors.length > 0 && { errors }), ...(strikes > 0 && { strikes }) }
    })
  }
  hooks(): readonly HookInfo[] {
    const places = new Map(this.#edits.config.entries.map(({ id, at }) => [id, at]))
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
    const { signal: stopping, unlink } = link(signal, AbortSignal.timeout(COMMAND_MS))
    const answer = await commands.run(name, args, { session: id ?? '', cwd, signal: stopping }).finally(unlink)
    return { ...(id !== undefined && { session: id }), ...(typeof answer === 'string' ? { text: answer } : answer) }
  }
  /** Fires one hook as the loop would: for tests of plugins. */
  dispatch: Dispatcher['dispatch'] = (hook, payload, how) => this.#kernel.hooks.dispatch(hook, payload, how)
  sessions(): Promise<readonly SessionSummary[]> { return this.#store.list() }
  session(id: string): ReturnType<SessionStore['read']> { return this.#store.read(id) }
  status(): Status {
    const plugins = this.#host.list()
    const lanes = this.#agent.agents.list()
    return {
      pid: process.pid, version: VERSION, uptimeMs: Math.round(performance.now() - this.#started),
      config: this.#edits.status,
      plugins: plugins.filter(plugin => plugin.state === 'active').length, sessions: lanes.length, queued: lanes.reduce((all, { queued }) => all + queued, 0), running: this.running(),
      ...memoryUse(), loopDelayP99Ms: this.#loopDelay.p99Ms,
      reloads: plugins.reduce((all, plugin) => all + plugin.reloads, 0),
      held: this.held(),
      quarantined: plugins.flatMap(({ id, state }) => state === 'quarantined' ? [id] : []),
    }
  }
  async ready(): Promise<Readiness> {
    const store = await this.#store.probe().then(() => 'writable', messageOf)
    return { ready: store === 'writable' && !this.#stopping, store, config: this.#edits.status }
  }
  /** Reads the config again; with ids, loads these entries anew although their files did not change. */
  async reload(ids: readonly string[] = []): Promise<ReloadReport> {
    if (ids.length === 0) return this.#edits.readAgain()
    const reports = []
    for (const id of ids) reports.push(await this.#host.reloadEntry(id))
    return together(reports)
  }
  /** What a tool may have changed of what runs here, and nobody has agreed to yet. */
  held(): readonly HeldFile[] { return this.#edits.listHeld() }
  /** Loads what was held, as it was shown. */
  reloadHeld(): Promise<ReloadReport> { return this.#edits.reloadHeld() }
  /** What a watchdog has to know: whose code is which file, and where it leaves its word when it ends the process. */
  get watched(): Watched {
    const { places, located: { file } } = this.#options
    return { installation: places.installation, quarantine: places.quarantineOf(file), logs: places.logs, plugins: this.#host.versions(this.#edits.config.entries), labels: this.#kernel.labels() }
  }
  /** The text without the secrets that this host knows. */
  hide(text: string): string { return this.#options.log.secrets.hide(text) }
  warn(message: string): void { this.#options.log.warn(message) }
  /** The disposer ends the subscription. */
  on(listener: (event: AppEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => { this.#listeners.delete(listener) }
  }

  /** Ends everything, in order and within limits. May be called more than once. */
  stop(): Promise<void> { return this.#stopping ??= this.#stop() }
  async #stop(): Promise<void> {
    this.#loopDelay.stop()
    await this.#edits.stop()
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
  #emit(event: AppEvent): void {
    for (const listener of this.#listeners) {
      try { listener(event) } catch (error) { this.#options.log.error(`a listener of the app failed: ${messageOf(error)}`) }
    }
  }
}

/** The installation's own code; a checkout is somebody's workspace, but for what runs of it. */
const installed = ({ root }: Installation): string[] => [root.includes('/node_modules/') ? root : join(root, 'dist')]

/** The one importer of plugins: it answers `harnessx` with this very instance. */
export function importerFor({ built, plugins }: Installation, trust: Trust, base: string, log: Log, veil?: TextSource): ModuleImporter {
  return new ModuleImporter({ builtins: { harnessx: api }, trust, base, native: built ? [plugins] : [], log, veil })
}

/**
 * The config that is in force, and every change of it and of plugins: noticed, held back where a tool may have made it, read, and handed to agent and host. Knows no client.
 *
 *   a file changes ▶ admitted, or held ▶ the config first (read ▶ in force as a whole, or rejected) ▶ modules
 *
 * Invariants: a config that can not be read leaves the last good one in force, and says so; of two edits the later one is in force at the end; a held change is read by nobody.
 */
import type { Agent } from '../agent/agent.js'
import { at, HarnessError, messageOf } from '../errors.js'
import { parseConfig } from '../loader/config.js'
import { over, type Texts } from '../loader/files.js'
import { counts, HeldChanges, heldStore, type HeldFile } from '../loader/held-changes.js'
import type { PluginHost, ReloadReport } from '../loader/host.js'
import type { ModuleImporter } from '../loader/importer.js'
import { readConfig, type ConfigInForce } from '../loader/read-config.js'
import type { Watcher } from '../loader/watcher.js'
import type { AppEvent, AppOptions, ConfigStatus } from './words.js'

/** A config that lacks its end may be half of one that is still being written: it has to stand still for this long. */
const CONFIG_SETTLE_MS = 250

/** What a change reaches. */
interface Parts { readonly agent: Agent; readonly importer: ModuleImporter; readonly host: PluginHost }

export class Edits {
  readonly #options: AppOptions
  readonly #emit: (event: AppEvent) => void
  readonly held: HeldChanges
  #parts: Parts | undefined
  #config: ConfigInForce
  #rejected: string | undefined
  #watcher: Watcher | undefined
  #reading: Promise<unknown> = Promise.resolve()

  /** Reads the config; throws `untrusted` or `config_invalid`. */
  constructor(options: AppOptions, emit: (event: AppEvent) => void) {
    this.#options = options
    this.#emit = emit
    this.held = new HeldChanges({
      suspects: at => this.#parts?.agent.tools.spans.any === true && !this.#config.config.reload.trustTools && this.#parts.agent.tools.spans.covers(at()),   // before there is an agent, nothing has run
      inUse: file => this.#config.texts.get(file) ?? this.#parts?.importer.text(file),
      real: file => this.#parts?.importer.real(file),
      held: change => { this.#tellHeld(change) },
      store: heldStore(options.places.state, options.located.file),
    })
    this.#config = readConfig({ ...readOptions(options), read: this.held })
    this.#hideSecrets()
  }
  /** From here on changes reach these. */
  connect(parts: Parts): void { this.#parts = parts }

  get config(): ConfigInForce { return this.#config }
  get status(): ConfigStatus { return { path: this.#options.located.file, state: this.#rejected === undefined ? 'in force' : 'rejected', problem: this.#rejected } }
  tellNotes(): void {
    for (const { message, ...place } of this.#config.notes) this.#options.log.info(`${message} (${at(place)})`)
  }

  /** One at a time: of two edits, the later one is in force at the end. */
  readAgain(read?: Texts): Promise<ReloadReport> {
    const done = this.#reading.then(() => this.#takeConfig(read))
    this.#reading = done.catch(() => {})                     // its caller has the error
    return done
  }
  /** What a tool may have changed of what runs here, and nobody has agreed to yet. */
  listHeld(): readonly HeldFile[] {
    if (this.#connected.agent.tools.spans.any) this.held.look(this.#followed())
    return this.held.list()
  }
  /** Loads what was held, as it was shown. */
  reloadHeld(): Promise<ReloadReport> {
    const texts = this.held.release()
    return this.#take([...texts.keys()], texts)
  }
  /** Follows the files of everything that runs here. */
  async watch(): Promise<void> {
    const { Watcher } = await import('../loader/watcher.js')
    const { log } = this.#options, { importer, host } = this.#connected
    this.#watcher = new Watcher({
      files: () => this.#followed(),
      text: file => this.#config.texts.get(file) ?? (host.isUntaken(file) ? undefined : importer.text(file)),
      whole: (file, text) => this.#isConfig(file) ? this.#isWholeConfig(file, text) : importer.whole(file, text),
      settleMs: (file, text) => this.#isConfig(file) && this.#lacksEnd(file, text) ? CONFIG_SETTLE_MS : 0,
      changed: async (files, texts) => {
        const admitted = this.held.admit(files, texts)
        if (admitted.length > 0) await this.#take(admitted, admitted.length === files.length ? texts : new Map(admitted.map(file => [file, texts.get(file)])))
      },
      report: ({ files, error }) => { log.warn(`${files.join(', ')}: ${messageOf(error)}`) },
      log,
    })
    host.on('settled', () => { this.#watcher?.follow() })
    await this.#watcher.start()
  }
  /** Follows nothing any more; what nobody has noticed is held for the next host of this config. */
  async stop(): Promise<void> {
    if (this.#parts?.agent.tools.spans.any) this.held.look(this.#followed())
    await this.#watcher?.close()
  }

  get #connected(): Parts {
    if (!this.#parts) throw new HarnessError('internal', 'edits were asked for before there was anything to change')
    return this.#parts
  }
  async #takeConfig(read: Texts | undefined): Promise<ReloadReport> {
    const started = performance.now(), { agent, host } = this.#connected
    let next: ConfigInForce
    try { next = readConfig({ ...readOptions(this.#options), read: over(read ?? new Map(), this.held) }) } catch (error) {
      this.#reject(error)
      throw error
    }
    this.#config = next
    this.#hideSecrets()
    if (this.#rejected !== undefined) this.#options.log.info('the config has no problem any more and is in force')
    this.#rejected = undefined
    agent.reconfigure(agentConfig(next))
    this.tellNotes()
    this.#emit({ type: 'config-read' })
    const report = await host.reconcile(next.entries)
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
    for (const { config } of this.#config.entries) secrets.learnIn(config)
  }

  #isConfig(file: string): boolean { return this.#config.texts.has(file) || this.#options.located.layers.includes(file) || this.#config.looked.includes(file) }
  /** All that runs here, and where more of it may appear. */
  #followed(): Set<string> {
    const { importer, host } = this.#connected
    return new Set([...[...host.files()].filter(file => !importer.isFixed(file)), ...importer.files(), ...this.#config.texts.keys(), ...this.#options.located.layers, ...this.#config.looked])
  }
  /** These files have changed: the config first, then modules. */
  async #take(files: readonly string[], texts: Texts): Promise<ReloadReport> {
    const reports: ReloadReport[] = []
    if (files.some(file => this.#isConfig(file))) await this.readAgain(texts).then(report => { reports.push(report) }, () => {})   // told by #reject
    const modules = files.filter(file => !this.#isConfig(file))
    if (modules.length > 0) reports.push(await this.#connected.host.reload(modules, texts))
    return together(reports)
  }
  #tellHeld(change: HeldFile): void {
    this.#options.log.warn(`a tool may have changed ${change.file} (${counts(change)}): not loaded; "hx plugins reload --held" loads it, putting the file back drops it`)
    this.#emit({ type: 'held', ...change })
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
}

export const together = (reports: readonly ReloadReport[]): ReloadReport =>
  ({ reloaded: reports.flatMap(report => report.reloaded), failed: reports.flatMap(report => report.failed), ms: reports.reduce((all, report) => all + report.ms, 0) })

const readOptions = ({ located, places, env, trust, plugins, without }: AppOptions) => ({ located, places, env, trust, extra: plugins ?? [], without: without ?? [] })

/** What of the config is the agent's. */
export function agentConfig({ config: { agent } }: ConfigInForce) {
  const { model, system, maxSteps, maxContinuations, maxParallel, askTimeout, prices, maxCost, approvers } = agent
  return { maxSteps, maxContinuations, maxParallel, askTimeoutMs: askTimeout, prices, maxCost, approvers, ...(model !== undefined && { model }), ...(system !== undefined && { system }) }
}

/**
 * What runs: starts entries whose services are there, stops them with whoever uses theirs, replaces versions, and lets old ones end. Knows modules and generations, no file.
 * Invariants: a provider stops after its dependents; who stops is told to be inactive before he is gone; the end of an old version holds up nobody.
 */
import { HarnessError, messageOf } from '../errors.js'
import type { Generation, Kernel } from '../kernel/kernel.js'
import { within } from '../kernel/limits.js'
import type { Hosted } from './hosted.js'
import type { Report } from './report.js'
import type { Inactive, Roster } from './roster.js'
import { transact, type Member, type TransactionPort } from './transaction.js'

export interface LineupOptions {
  readonly kernel: Kernel
  readonly roster: Roster
  readonly mountMs: number
  readonly drainMs: () => number
  readonly dataDir: (id: string) => string
}
/** How long calls get once their plugin's signal is aborted at the end of everything. */
const LAST_CALLS_MS = 100

export class Lineup implements TransactionPort {
  readonly kernel: Kernel
  readonly mountMs: number
  readonly #roster: Roster
  readonly #options: LineupOptions
  /** Versions that were switched out and wait for their last call. */
  readonly #leaving = new Set<Generation>()

  constructor(options: LineupOptions) {
    this.#options = options
    this.#roster = options.roster
    this.kernel = options.kernel
    this.mountMs = options.mountMs
  }

  /** Until nothing moves: stops whoever lost a service, starts whoever has all of his, and says why the rest waits. */
  async settle(report: Report, stopping: () => boolean): Promise<void> {
    for (let moved = true; moved && !stopping();) {
      moved = false
      for (const entry of this.#roster.inOrder()) {
        const complete = this.#roster.missing(entry).length === 0
        if (entry.generation && !complete) {
          await this.unload(entry, 'waiting')
          moved = true
        } else if (!entry.generation && entry.state === 'waiting' && entry.module && complete) {
          moved = await this.#start(entry, report) || moved
        }
      }
      if (await this.kernel.settle()) moved = true
    }
    this.#roster.explain()
  }
  /** Puts these versions in the place of those that run, all or nothing. */
  async replace(members: readonly Member[], commit: () => void, report: Report): Promise<void> {
    if (members.length === 0) return
    const { retired, restarted } = await transact(this, members, commit)
    const ms = report.elapsed()                                                           // they serve since the switch: whoever waits for it is told first, the rest can wait
    for (const { entry } of members) {
      entry.reloaded(ms)
      report.reloaded(entry.id)
      this.#roster.emit('reloaded', { id: entry.id, version: entry.version, ms })
    }
    for (const generation of retired) this.#fade(generation)
    for (const { entry: { id, version } } of members) this.kernel.log.write('info', `plugin "${id}" reloaded as version ${version} in ${Math.round(ms)} ms`, undefined, id)
    for (const { id } of restarted) this.kernel.log.write('info', `plugin "${id}" was restarted with what it uses`, undefined, id)
  }
  /** Takes an entry down, and before it whoever uses its services. */
  async unload(entry: Hosted, state: Inactive, reason?: string): Promise<void> {
    const { drainMs } = this
    const older = this.leaving(entry).map(generation => this.kernel.end(generation, drainMs))
    if (!entry.generation) this.#roster.set(entry, state, reason)
    else for (const generation of this.kernel.dependents([entry.generation]).reverse()) {
      const going = this.entryOf(generation)                                             // undefined for an optional scope of another plugin
      if (going) this.#roster.stopped(going, going === entry ? state : 'waiting', going === entry ? reason : undefined, generation.state)
      this.kernel.retire(generation)
      await this.kernel.end(generation, drainMs)
      if (going) this.#roster.emit('unloaded', { id: going.id, reason: going.state })
    }
    await Promise.all(older)
  }
  /** Ends everything in reverse, within about `limitMs`, after `running` has ended or had its share of the time. */
  async stop(limitMs: number, running: Promise<unknown>): Promise<void> {
    const end = performance.now() + limitMs
    const left = (share = 1) => Math.max(20, (end - performance.now()) * share)
    const late = () => new HarnessError('plugin_timeout', 'it did not end in time')
    await within(left(0.3), running, late).catch(() => {})                                // a job that hangs in a plugin is left behind
    const all = [...this.kernel.dependents(this.kernel.generations()), ...this.#leaving].reverse()
    for (const generation of all) {
      this.kernel.retire(generation)
      this.kernel.abort(generation)
    }
    for (const generation of all) {
      await this.kernel.drain(generation, Math.min(LAST_CALLS_MS, left()))
      const limit = left()
      await within(limit, this.kernel.dispose(generation, limit), late).catch(error => { generation.warn(messageOf(error)) })
    }
    void running.then(() => Promise.all(this.kernel.generations().map(generation => this.kernel.dispose(generation))))   // what it brings up all the same
  }

  // ---- what a transaction needs and tells
  get drainMs(): number { return this.#options.drainMs() }
  dataDir(id: string): string { return this.#options.dataDir(id) }
  leaving({ id }: Hosted): readonly Generation[] { return [...this.#leaving].filter(generation => generation.id === id) }
  entryOf({ id, parent }: Generation): Hosted | undefined { return parent ? undefined : this.#roster.find(id) }
  switched({ entry, module, config }: Member, generation: Generation): void {
    entry.generation = generation
    entry.module = module
    entry.config = config
    entry.version = generation.generation
    entry.running = { from: entry.spec.from, config: entry.spec.config }
    entry.waiting = []
    this.#roster.set(entry, 'active')
  }
  restored(entry: Hosted, generation: Generation): void {
    entry.generation = generation
    this.#roster.set(entry, 'active')
  }
  stopped(entry: Hosted, data: Record<string, unknown>): void { this.#roster.stopped(entry, 'waiting', undefined, data) }
  lost(entry: Hosted, error: unknown): void { this.#roster.lost(entry, error) }

  async #start(entry: Hosted, report: Report): Promise<boolean> {
    try {
      await transact(this, [{ entry, module: entry.module!, config: entry.config }])
      entry.lastError = undefined
      this.kernel.log.write('info', `plugin "${entry.id}" loaded`, undefined, entry.id)
      this.#roster.emit('loaded', { id: entry.id, version: entry.version })
      return true
    } catch (error) {
      entry.tried = new Set(entry.files)
      this.#roster.failed(entry, error, report)
      return false
    }
  }
  /** An old version ends when its last call has, beside the queue. */
  #fade(generation: Generation): void {
    this.#leaving.add(generation)
    const { drainMs } = this
    const tell = setTimeout(() => {
      const calls = generation.inFlight
      generation.warn(`version ${generation.generation} was replaced and still has ${calls} call${calls === 1 ? '' : 's'} running after ${drainMs} ms; it stays until they end`)
    }, drainMs).unref()
    void this.kernel.drain(generation, Infinity).then(() => this.kernel.dispose(generation)).finally(() => {
      clearTimeout(tell)
      this.#leaving.delete(generation)
    })
  }
}

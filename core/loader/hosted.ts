/** One entry as the host keeps it, over all its generations. A record: host.ts writes what is loaded, lineup.ts what runs, roster.ts the state. */
import { isDeepStrictEqual } from 'node:util'
import type { Generation } from '../kernel/kernel.js'
import type { PluginModule } from '../kernel/hooks.js'
import type { EntrySpec, EntryState, PluginInfo } from './entry.js'

/** Of reloads. */
const KEPT_TIMES = 5

export class Hosted {
  /** What the file wants of it. */
  spec: EntrySpec
  state: EntryState
  /** One sentence why it is not active. */
  reason: string | undefined
  /** Services it waits for. */
  waiting: readonly string[] = []
  /** Loaded and checked; what runs, or what is to run once its services are there. */
  module: PluginModule | undefined
  /** Validated by the module. */
  config: unknown
  /** What runs: of which file, with which config as written. */
  running: { readonly from: string; readonly config: unknown } | undefined
  generation: Generation | undefined
  /** `ctx.state`, kept while it waits for a service. */
  data: Record<string, unknown> = {}
  version = 0
  reloads = 0
  /** Of the last few, oldest first. */
  reloadMs: readonly number[] = []
  lastError: string | undefined
  /** Files behind it. */
  files: readonly string[] = []
  /** Files that its last, failed load looked at: a change of one of them may mend it. */
  tried: ReadonlySet<string> = new Set()
  /** Changed files that no version has taken yet, because the load failed. */
  untaken: ReadonlySet<string> = new Set()

  constructor(spec: EntrySpec) {
    this.spec = spec
    this.state = spec.enabled ? 'waiting' : 'disabled'
    this.reason = spec.enabled ? 'it is being loaded' : undefined
  }

  get id(): string { return this.spec.id }
  /** Does what runs have the config that the file wants? */
  get upToDate(): boolean { return this.running?.from === this.spec.from && isDeepStrictEqual(this.running.config, this.spec.config) }
  /** Services it says it provides, or is known to. */
  get provides(): readonly string[] { return [...new Set([...this.module?.provides ?? [], ...this.generation?.provides ?? []])] }

  /** A new version has taken its place. */
  reloaded(ms: number): void {
    this.reloads++
    this.reloadMs = [...this.reloadMs, ms].slice(-KEPT_TIMES)
    this.lastError = undefined
  }
  /** As if it had never run: it is disabled. */
  reset(): void {
    this.module = undefined
    this.data = {}
    this.files = []
    this.tried = this.untaken = new Set()
    this.lastError = undefined
  }
  info(): PluginInfo {
    const { handlers, tools, timers } = this.generation?.counts() ?? { handlers: 0, tools: 0, timers: 0 }
    return {
      id: this.id, name: this.spec.name, from: this.spec.from, state: this.state, handlers, tools, version: this.version, reloads: this.reloads,
      ...this.reason !== undefined && { reason: this.reason },
      ...this.waiting.length > 0 && { waiting: this.waiting },
      ...this.reloadMs.length > 0 && { lastReloadMs: this.reloadMs.at(-1), reloadMs: this.reloadMs },
      ...this.lastError !== undefined && { lastError: this.lastError },
      ...(this.module?.inject?.length ?? 0) > 0 && { inject: this.module!.inject },
      ...this.provides.length > 0 && { provides: this.provides },
      ...timers > 0 && { timers },
    }
  }
}

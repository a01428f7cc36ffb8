/**
 * The words of the plugin host: an entry as the config file wants it, an entry as it stands, and the importer that turns files into modules.
 * Types only. The config makes `EntrySpec`s, the module graph implements `Importer`, the host (host.ts) needs no more of either.
 */
import type { HarnessError, Place } from '../errors.js'
import type { RecentError } from '../kernel/recent-errors.js'
import type { Texts } from './files.js'

/** One item under `plugins:`, resolved: what should be. */
export interface EntrySpec {
  /** The identity of the plugin everywhere. */
  readonly id: string
  readonly name: string
  /** The module's file, absolute. */
  readonly from: string
  /** As written, references resolved, not validated yet. */
  readonly config: unknown
  readonly enabled: boolean
  /** Prompts, steps and calls are refused while it should be active and is not. */
  readonly required: boolean
  /** Its place among the entries: the order of handlers. */
  readonly row: number
  /** The config with its references as written: what a message may show of it, since a resolved one may be a secret. */
  readonly written?: unknown
  /** Set when no module was found: the entry fails with this, and `from` is the first place that was looked at. */
  readonly missing?: HarnessError | undefined
  /** Where its row stands. */
  readonly at?: Place | undefined
  /** Where a part of its config stands, for error messages. */
  place(path: readonly PropertyKey[]): Place
}

export type EntryState = 'active' | 'waiting' | 'failed' | 'disabled' | 'quarantined'
/** One entry as it stands, as `hx plugins --json` prints it. */
export interface PluginInfo {
  readonly id: string
  readonly name: string
  readonly from: string
  readonly state: EntryState
  /** One sentence why it is not active. */
  readonly reason?: string | undefined
  /** Services it waits for. */
  readonly waiting?: readonly string[] | undefined
  readonly handlers: number
  readonly tools: number
  /** The generation that runs or ran last, 1…; 0 before the first. */
  readonly version: number
  readonly reloads: number
  readonly lastReloadMs?: number | undefined
  /** Of the last few reloads, oldest first. */
  readonly reloadMs?: readonly number[] | undefined
  /** How often it lately threw outside of any call; the third time stops it. */
  readonly strikes?: number | undefined
  /** The last thing that went wrong, also when the old version goes on. Gone with the next success. */
  readonly lastError?: string | undefined
  /** Services that it wants, and those that it offers. */
  readonly inject?: readonly string[] | undefined
  readonly provides?: readonly string[] | undefined
  /** Timers of its ctx that run. */
  readonly timers?: number | undefined
  /** What the log last said of it: warnings and errors, oldest first. */
  readonly errors?: readonly RecentError[] | undefined
}

/** Modules that were built and evaluated beside the ones in use. */
export interface Loaded {
  /** Namespaces by entry file. */
  readonly modules: ReadonlyMap<string, Readonly<Record<string, unknown>>>
  /** Makes them the ones in use. Without it nothing has happened. */
  commit(): void
  /** All files behind one entry file, itself included. */
  files(entryFile: string): readonly string[]
}
export type RunAs = <R>(entryFile: string, run: () => R) => R
/** Turns entry files into modules, and knows who imports whom. */
export interface Importer {
  /** Builds what is new or named in `changed` (and what imports that), and evaluates it; `texts` are those that were read already; `as` runs the top levels behind an entry file on somebody's account. Rejects in one sentence with file, line and column; then nothing has happened. */
  load(files: readonly string[], changed?: readonly string[], texts?: Texts, as?: RunAs): Promise<Loaded>
  /** The changed files and every file that reaches one of them by imports. */
  affected(changed: readonly string[]): Set<string>
  /** Files that the last load looked at, found or not: a change of one of them may mend it. */
  readonly tried: ReadonlySet<string>
  /** Drops everything that these entry files don't need. */
  forget(entryFilesStillUsed: readonly string[]): void
}

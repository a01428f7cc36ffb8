/** The words of the app: how it is made, what clients ask of it and are told. Types only. */
import type { Model, RunInput } from '../agent/services.js'
import type { App } from '../app.js'
import type { Place } from '../errors.js'
import type { Log } from '../kernel/log.js'
import type { Version } from '../kernel/quarantine.js'
import type { HeldFile } from '../loader/held-changes.js'
import type { HostEvents } from '../loader/host.js'
import type { Located } from '../loader/locate.js'
import type { Trust } from '../loader/trust.js'
import type { Installation, Places } from '../places.js'

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
  /** Ids of the sessions whose turn runs or waits. */
  readonly running: readonly string[]
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
  /** What to call each thing that plugins registered, by its number in the async context. */
  readonly labels: ReadonlyMap<number, string>
}
/** What happens to the host, beside the log: for a demo, a status line, a test. */
export type AppEvent = { [K in keyof HostEvents]: { readonly type: K } & HostEvents[K] }[keyof HostEvents]
  | { readonly type: 'held' } & HeldFile
  /** It is in force, and about to be applied. */
  | { readonly type: 'config-read' }
  | { readonly type: 'config-applied'; readonly ms: number }
  | { readonly type: 'config-rejected'; readonly message: string; readonly place: Place | undefined }

/** Can it take prompts, and would they be kept? */
export interface Readiness { readonly ready: boolean; readonly store: 'writable' | string; readonly config: ConfigStatus }

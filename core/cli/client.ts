/**
 * What a command talks to: the same questions and answers, whether a daemon or this very process hosts the agent.
 * Types only. In process: in-process.ts. Over the socket: socket-client.ts.
 */
import type { Approver, CommandsService, HookInfo, Mode, ModelInfo, RunEvent, RunResult, ToolInfo } from '../agent/services.js'
import type { SessionEvent, SessionProblem, SessionSummary } from '../agent/session-events.js'
import type { PluginInfo } from '../loader/host.js'

/** One task, as `hx agent` sends it. Fields mean what the options of the command say. */
export interface RunOrder {
  readonly prompt: string
  readonly session?: string | undefined
  readonly cwd: string
  readonly model?: string | undefined
  readonly maxSteps?: number | undefined
  readonly mode?: Mode | undefined
  readonly ephemeral?: boolean | undefined
}
export interface RunHandle {
  readonly session: string
  /** The log lines that this run appends, and what is told between them. Ends when the run has. */
  readonly events: AsyncIterable<RunEvent>
  readonly result: Promise<RunResult>
  abort(reason: string): void
}
export interface ConfigStatus { readonly path: string; readonly state: 'in force' | 'rejected'; readonly problem?: string | undefined }
export interface Status {
  readonly pid: number
  readonly version: string
  readonly uptimeMs: number
  readonly config: ConfigStatus
  readonly plugins: number
  readonly sessions: number
  readonly rssBytes: number
  readonly heapBytes: number
  readonly loopDelayP99Ms: number
  readonly reloads: number
}
export interface ReloadReport { readonly reloaded: readonly string[]; readonly failed: readonly { readonly id: string; readonly message: string }[] }

export interface Client {
  readonly where: 'daemon' | 'in-process'
  run(order: RunOrder, approver?: Approver): Promise<RunHandle>
  plugins(): Promise<readonly PluginInfo[]>
  hooks(): Promise<readonly HookInfo[]>
  tools(): Promise<readonly ToolInfo[]>
  models(): Promise<readonly ModelInfo[]>
  commands(): Promise<ReturnType<CommandsService['list']>>
  sessions(): Promise<readonly SessionSummary[]>
  session(id: string): Promise<{ readonly events: readonly SessionEvent[]; readonly problems: readonly SessionProblem[] }>
  status(): Promise<Status>
  /** Reads the config again; with ids, loads these plugins anew even when their files did not change. */
  reload(ids?: readonly string[]): Promise<ReloadReport>
  close(): Promise<void>
}

/**
 * What a command talks to: the same questions and answers, whether a daemon or this very process hosts the agent.
 * Types only. In process: in-process.ts. Over the socket: socket-client.ts.
 */
import type { Approver, CommandsService, HookInfo, ModelInfo, RunEvent, RunResult, ToolInfo } from '../agent/services.js'
import type { SessionEvent, SessionProblem, SessionSummary } from '../agent/session-events.js'
import type { RunOrder, Status } from '../app.js'
import type { PluginInfo, ReloadReport } from '../loader/host.js'

export type { ReloadReport, RunOrder, Status }

export interface RunHandle {
  readonly session: string
  /** The log lines that this run appends, and what is told between them. Ends when the run has. */
  readonly events: AsyncIterable<RunEvent>
  readonly result: Promise<RunResult>
  abort(reason: string): void
}
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
  /** Ends the host, after this answer. */
  stop(): Promise<void>
  /** Lets go of the host: a daemon goes on, this process's own ends. */
  close(): Promise<void>
}

/**
 * What a command talks to: the same questions and answers, whether a daemon or this very process hosts the agent.
 * Types only. In process: in-process.ts. Over the socket: socket-client.ts.
 */
import type { ApprovalAnswer, Approver, CommandsService, HookInfo, ModelInfo, RunEvent, RunResult, ToolInfo } from '../agent/services.js'
import type { SessionEvent, SessionProblem, SessionSummary } from '../agent/session-events.js'
import type { CommandOrder, CommandOutcome, RunOrder, Status } from '../app.js'
import type { Ask } from '../daemon/asks.js'
import type { DaemonStatus } from '../daemon/server.js'
import type { KeyDigests } from '../daemon/key-digest.js'
import type { PluginInfo, ReloadReport } from '../loader/host.js'

export type { Ask, CommandOrder, CommandOutcome, ReloadReport, RunOrder, Status }

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
  /** Makes a session that waits for its first prompt. */
  begin(cwd: string): Promise<string>
  plugins(): Promise<readonly PluginInfo[]>
  hooks(): Promise<readonly HookInfo[]>
  tools(): Promise<readonly ToolInfo[]>
  models(): Promise<readonly ModelInfo[]>
  commands(): Promise<ReturnType<CommandsService['list']>>
  /** Runs a command of a plugin. `signal` gives it up. */
  command(order: CommandOrder, signal: AbortSignal): Promise<CommandOutcome>
  /** Hands a prompt to the turn that runs; what it becomes comes behind the `seq`. Undefined when none runs. */
  steer(session: string, prompt: string): Promise<number | undefined>
  sessions(): Promise<readonly SessionSummary[]>
  session(id: string): Promise<{ readonly events: readonly SessionEvent[]; readonly problems: readonly SessionProblem[] }>
  status(): Promise<Status>
  /** Reads the config again; with ids, loads these plugins anew even when their files did not change. */
  reload(ids?: readonly string[]): Promise<ReloadReport>
  /** Loads what was held because a tool may have changed it. */
  reloadHeld(): Promise<ReloadReport>
  /** The text without what a host of this process knows as secrets; a daemon keeps its own. */
  hide(text: string): string
  /** Ends the host, after this answer. */
  stop(): Promise<unknown>
  /** Lets go of the host: a daemon goes on, this process's own ends. */
  close(): Promise<void>
}
/** This process hosts the agent itself, for the length of the command. */
export interface OwnClient extends Client { readonly where: 'in-process' }
/** What only a daemon can be asked. */
export interface DaemonClient extends Client {
  readonly where: 'daemon'
  /** Starts a turn that nobody follows; its asks wait for `answer`. */
  start(order: RunOrder): Promise<string>
  /** The last turn of a session from its begin, or all lines behind a `seq`, then what happens; to the end of its turns, or for ever. */
  attach(session: string, from: { readonly after: number | 'turn'; readonly forever?: boolean | undefined }, approver?: Approver): Promise<RunHandle>
  abort(session: string, reason: string): Promise<boolean>
  status(): Promise<DaemonStatus>
  /** Digests of the model keys that it uses. */
  keys(): Promise<KeyDigests>
  archive(session: string): Promise<void>
  /** Asks that wait for an answer. */
  approvals(): Promise<readonly Ask[]>
  /** `unknown_id` when it was answered already, or withdrawn. */
  answer(id: string, answer: ApprovalAnswer): Promise<void>
  /** Ends the daemon; with `wait`, once its turns have ended. Resolves, before that, with how many there are. */
  stop(wait?: boolean): Promise<number>
}

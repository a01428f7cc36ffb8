/**
 * The services that core offers to plugins, as types: what `ctx.tools`, `ctx.models`, `ctx.agents`, … are. Each is implemented in the file of its name.
 * Everything registered through them belongs to the plugin that registered it.
 */
import type { Fire, HookInfo } from '../kernel/dispatch.js'
import type { Disposer, HookKind, HookName } from '../kernel/hooks.js'
import type { SessionEvent, SessionProblem, SessionSummary } from './session-events.js'
import type { Delta } from './hooks.js'
import type { FailureKind, Json, MessageInput, Mode, ModelRequest, Reply, RequestOptions, SessionView, Source, Stats, ToolOutput, TurnReason, Usage } from './vocabulary.js'

// ---- tools
/** What a tool gets beside its arguments. */
export interface ToolRun {
  /** Pass this very object to `workspace.resolve`: what a person opened for this call is open to it alone. */
  readonly session: SessionView
  readonly turn: number
  readonly step: number
  readonly callId: string
  /** Aborted when the turn is, or when the tool's plugin has to let go. */
  readonly signal: AbortSignal
  /** A folder of this session's for full outputs; `workspace.resolve` admits reading it. Made when first read. */
  readonly outputDir: string
  /** Every command line of a program that the tool starts goes through this: a sandbox may stand before it. */
  launch(argv: readonly string[]): readonly string[]
  /** What the confinement of this call rests on now, in words that only compare. A program may be started ahead of the call that uses it where both this and the command line that `launch` gives are then what they were. Undefined: nothing is started ahead. */
  readonly standing?: (() => string) | undefined
  /** What this call leaves running, until it is over: its effects are the call's. */
  lingers(over: Promise<unknown>): void
  /** Tells clients how far it is. */
  progress(message: string): void
}
export interface Tool {
  /** 1 to 64 of `A-Za-z0-9_-`, what the OpenAI protocol allows. */
  readonly name: string
  readonly description: string
  /** A zod object schema, or a JSON Schema of an object. Arguments are validated against it before anybody judges them. */
  readonly parameters: object
  /** Neighbouring allowed calls of read-only tools run together. */
  readonly readOnly?: boolean
  /** Its effects can not be confined to the workspace (a server of another). `programs`: only those of programs, all of which it starts by `run.launch`, so that a sandbox confines it. */
  readonly unconfined?: boolean | 'programs'
  /** Takes the place of another plugin's tool of that name. */
  readonly override?: boolean
  /** A throw becomes an error result that the model reads. */
  execute(args: never, run: ToolRun): ToolOutput | Promise<ToolOutput>
}
export interface ToolInfo { readonly name: string; readonly plugin: string; readonly description: string; readonly parameters: Readonly<Record<string, Json>>; readonly readOnly: boolean; readonly unconfined: boolean | 'programs' }
export interface ToolsService {
  /** Fails to load the plugin when the name belongs to another (`already_registered`) and `override` is not said. */
  register(tool: Tool): Disposer
  list(): readonly ToolInfo[]
}

// ---- models
/** A piece of a reply on its way; the last one is the whole reply. A stream that ends without it is an error. */
export type ModelChunk = ({ readonly kind: Delta['kind']; readonly text: string; readonly callId?: string | undefined }) | { readonly kind: 'reply'; readonly reply: Reply }
export interface Model {
  /** The entry's name in `<id>/<model>`. */
  readonly id: string
  /** Model used when only the id is named, or none. */
  readonly defaultModel?: string | undefined
  /** Models it is known to offer, for `hx models`; may be empty. */
  readonly models?: readonly string[] | undefined
  /** Answers only when it is named (the offline model). */
  readonly onlyWhenNamed?: boolean | undefined
  /** true, or one sentence: what to set ("set X_API_KEY"), or what is wrong with what is set. Checked often: no I/O. */
  ready(): true | string
  /** Throws or rejects with a ModelError. */
  stream(request: ModelRequest, options: { readonly signal: AbortSignal }): AsyncIterable<ModelChunk>
}
export interface ModelInfo { readonly id: string; readonly plugin: string; readonly ready: boolean; readonly reason?: string | undefined; readonly defaultModel?: string | undefined; readonly models: readonly string[] }
/** One request of a plugin's own. */
export interface ModelAsk {
  /** A string is the user's; a system message goes first. No tools: what calls for some is a run of `ctx.agents`. */
  readonly messages: readonly MessageInput[]
  /** `<id>/<model>` or `<id>`. Left out: the model of the config. */
  readonly model?: string | undefined
  readonly options?: RequestOptions | undefined
  /** For whose sake it is asked, from a payload or a run: its turn pays for it. */
  readonly session?: SessionView | undefined
  readonly signal?: AbortSignal | undefined
}
export interface ModelsService {
  register(model: Model): Disposer
  list(): readonly ModelInfo[]
  /**
   * Asks a model once, outside of any session: `agent/pre-request` and `agent/request` fire for it, with turn 0 and no tools, so retries, limits and policies hold. Nothing of it is logged:
   * what comes of it goes into a decision or a result. Rejects with what failed it, and when the plugin has to let go.
   */
  ask(request: ModelAsk): Promise<Reply>
}
export type ModelErrorKind = 'rate_limit' | 'overloaded' | 'auth' | 'not_found' | 'context_length' | 'bad_request' | 'timeout' | 'network' | 'protocol' | 'truncated' | 'content_filter' | 'aborted'
/** What a model plugin throws. `retryable` is its own judgement; `retryAfterMs` what the endpoint asked for; `partial` the text that had come. */
export class ModelError extends Error {
  readonly kind: ModelErrorKind
  readonly status: number | undefined
  readonly retryAfterMs: number | undefined
  readonly retryable: boolean
  readonly partial: string | undefined
  constructor(kind: ModelErrorKind, message: string, more: { status?: number | undefined; retryAfterMs?: number | undefined; retryable?: boolean; partial?: string | undefined; cause?: unknown } = {}) {
    super(message, more.cause === undefined ? undefined : { cause: more.cause })
    this.name = 'ModelError'
    this.kind = kind
    this.status = more.status
    this.retryAfterMs = more.retryAfterMs
    this.retryable = more.retryable ?? ['rate_limit', 'overloaded', 'timeout', 'network', 'protocol', 'truncated'].includes(kind)
    this.partial = more.partial
  }
}

/** Keys and addresses of models by the name of their variable: the real environment over the `.env` beside a trusted config. Use `ctx.get('keys')`: in tests it may be absent. */
export interface KeysService { get(name: string): string | undefined }

/** Of the host itself. Use `ctx.get('host')` where a test may run without a config. */
export interface HostService {
  /** The config file in force, absolute, and its folder: what is beside it is as trusted as the config. */
  readonly configFile: string
  readonly configDir: string
  readonly version: string
}

// ---- agents
export type { Mode }
export interface RunInput {
  readonly prompt: string
  /** Continue this session; else a new one is made. */
  readonly session?: string | undefined
  /** Workspace of a new session, absolute. */
  readonly cwd?: string | undefined
  /** `<id>/<model>` or `<id>`. */
  readonly model?: string | undefined
  readonly maxSteps?: number | undefined
  readonly mode?: Mode | undefined
  /** Keep the session in memory only. */
  readonly ephemeral?: boolean | undefined
  /** Refuse (`session_busy`) instead of waiting behind a turn of the session that runs. */
  readonly ifIdle?: boolean | undefined
  readonly source?: Source | undefined
  /** The session and depth that started this one (subagents). */
  readonly parent?: { readonly session: string; readonly depth: number } | undefined
  readonly signal?: AbortSignal | undefined
  /** Puts asks of this run to a person; without it they are denied. */
  readonly approver?: Approver | undefined
}
/** What a run tells: the log lines that it appends, and between them what is not logged. */
export type RunEvent = SessionEvent | { readonly type: 'delta'; readonly turn: number; readonly step: number } & Delta | { readonly type: 'progress'; readonly callId: string; readonly name: string; readonly message: string }
export interface RunResult {
  readonly session: string
  readonly turn: number
  readonly reason: TurnReason
  readonly kind?: FailureKind | undefined
  /** Text of the last reply. */
  readonly text: string
  /** One sentence when the reason is not `completed`. */
  readonly message?: string | undefined
  /** An ask was denied because nobody could be asked. */
  readonly unanswered: boolean
  readonly stats: Stats
  readonly usage: Usage
}
export interface Run { readonly session: string; readonly events: AsyncIterable<RunEvent>; readonly result: Promise<RunResult> }
export interface AgentsService {
  /** Starts a turn. A prompt for a session whose turn runs waits in order. Rejects before anything is logged when no model is ready, or the session is missing or archived. */
  run(input: RunInput): Promise<Run>
  /** Sessions with a turn that runs or waits. */
  list(): readonly { readonly session: string; readonly turn: number; readonly step: number; readonly queued: number }[]
  abort(session: string, reason?: string): boolean
  archive(session: string): Promise<void>
}

// ---- sessions, approvals, commands, hooks, workspace
export interface SessionsService {
  list(): Promise<readonly SessionSummary[]>
  read(id: string): Promise<{ readonly events: readonly SessionEvent[]; readonly problems: readonly SessionProblem[] }>
}
export interface ApprovalRequest { readonly session: string; readonly turn: number; readonly call: { readonly id: string; readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }; readonly reason: string; readonly plugin: string; readonly signal: AbortSignal }
export type ApprovalAnswer = { readonly answer: 'once' | 'session' | 'always' } | { readonly answer: 'denied'; readonly note?: string | undefined }
/** Puts one ask to a person. Rejecting, or undefined, means nobody could be asked. */
export type Approver = (request: ApprovalRequest) => Promise<ApprovalAnswer | undefined>
export interface ApprovalsService {
  /** Asks a person on a plugin's own account (an MCP server's consent, say). Waiting is nobody's own time. */
  ask(request: { readonly session: string; readonly title: string; readonly reason: string; readonly signal?: AbortSignal }): Promise<boolean>
}
/** What a command has to say; or a prompt, that whoever ran the command sends to its session as the user's own. */
export type CommandAnswer = string | { readonly prompt: string }
export interface CommandContext {
  /** Empty for a command that needs none and was run outside of one. */
  readonly session: string
  /** Where it was run. */
  readonly cwd: string
  readonly signal: AbortSignal
}
export interface Command {
  readonly name: string
  readonly description: string
  /** false: it is about the folder, and no session is begun for it. */
  readonly needsSession?: boolean
  run(args: string, context: CommandContext): CommandAnswer | void | Promise<CommandAnswer | void>
}
export interface CommandsService { register(command: Command): Disposer; list(): readonly { readonly name: string; readonly plugin: string; readonly description: string }[] }

export type { Fire, HandlerInfo, HookInfo } from '../kernel/dispatch.js'
export interface HooksService {
  list(): readonly HookInfo[]
  /** Makes a hook of the plugin's own; names under `agent/` belong to core. Decide hooks take the decisions of `agent/pre-tool-use`, amend hooks amend `payload.value`. */
  define<K extends HookName | (string & {})>(name: K, options: { kind: HookKind }): Fire
}
/** What the programs of a call may reach, as real paths. */
export interface Bounds {
  /** May be read and written: the session's folder, further roots, what a person opened for the call. */
  readonly writable: readonly string[]
  /** May be read: the session's own outputs, what a person opened for reading. */
  readonly readable: readonly string[]
  /** Never written, there or not. */
  readonly protected: readonly string[]
  /** Not read either. */
  readonly secret: readonly string[]
}
export type Launcher = (argv: readonly string[]) => readonly string[]
/** How programs of a call are confined. */
export interface Confinement {
  readonly launch: Launcher
  /** What of the machine it rests on beside its command line: another answer means that a program started before would be confined otherwise than one started now. */
  readonly standing?: (() => string) | undefined
}
export interface WorkspaceService {
  /**
   * The one containment: the absolute real path behind `path` (relative to the session's cwd), or throws `outside_workspace` or `protected_path` in words for the model.
   * For `write` the deepest existing ancestor is resolved and links are never followed out. `session` is `run.session` in a tool, `payload.session` in a hook.
   */
  resolve(session: SessionView, path: string, mode: 'read' | 'write'): Promise<string>
  /** If a person says yes to the ask about this call, `path` is open to it alone; protected paths never. Called by the plugin that asks. */
  openFor(session: SessionView, callId: string, path: string, mode: 'read' | 'write'): void
  /** The same rules for who can't ask `resolve` about each path: a sandbox. */
  bounds(session: SessionView, callId: string): Promise<Bounds>
  /** From now on `run.launch` of this call is `launch`, and `run.standing` is `standing`. Called by a plugin that confines programs, in `agent/tool-use` before `next()`; the last one stands. */
  confine(session: SessionView, callId: string, launch: Launcher, standing?: () => string): void
  /**
   * Bytes of a regular file: `resolve`, then a check of what was really opened, so that no link swapped in meanwhile leads out.
   * At most `maxBytes` from `offset` on (default: all of it). Errors of the file system (`ENOENT`, `EISDIR`, …) come through as they are.
   */
  readFile(session: SessionView, path: string, options?: { offset?: number | undefined; maxBytes?: number | undefined }): Promise<Uint8Array>
  /** Replaces or makes a file as a whole (temporary file, rename) in a directory that is held while it is written; missing directories are made. Keeps the mode of a file that was there, unless `mode` is given. */
  writeFile(session: SessionView, path: string, data: string | Uint8Array, options?: { mode?: number | undefined }): Promise<void>
}

declare module '../kernel/hooks.js' {
  interface Services {
    tools: ToolsService
    models: ModelsService
    keys: KeysService
    host: HostService
    agents: AgentsService
    sessions: SessionsService
    approvals: ApprovalsService
    commands: CommandsService
    hooks: HooksService
    workspace: WorkspaceService
  }
}

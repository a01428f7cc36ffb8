/**
 * The session log, DESIGN section 8: one JSON object a line, `seq` from 1 without gaps, `ts` ISO 8601. Types only.
 * What the model sees is in here; a request is a pure function of these events (request.ts). Facts leave the loop through these and nothing else.
 */
import type { FailureKind, Json, Message, Outcome, Part, RawToolCall, RequestOptions, Source, Stats, ToolSpec, TurnReason, Usage } from './vocabulary.js'

export const SESSION_VERSION = 1

export type SessionEventBody =
  /** First line of every log. `forkOf` names the session and the last seq that was taken over. */
  | { readonly type: 'session'; readonly v: typeof SESSION_VERSION; readonly id: string; readonly cwd: string; readonly parent?: string | undefined; readonly depth: number; readonly forkOf?: { readonly id: string; readonly seq: number } | undefined }
  | { readonly type: 'turn-start'; readonly turn: number; readonly prompt: string; readonly source: Source }
  /** The system prompt, when its text changed. */
  | { readonly type: 'system'; readonly text: string }
  /** The tools offered, when they changed. */
  | { readonly type: 'tools'; readonly tools: readonly ToolSpec[] }
  /** A user or assistant message. Results of tools are `tool-result`. */
  | { readonly type: 'message'; readonly turn: number; readonly step: number; readonly role: 'user' | 'assistant' | 'system'; readonly content: readonly Part[]; readonly source: Source; readonly toolCalls?: readonly RawToolCall[] | undefined; readonly reasoning?: string | undefined; readonly extra?: Json | undefined }
  /** One attempt that is sent. `model` is `<registry id>/<model>`; `tools` names the subset when not all are offered. */
  | { readonly type: 'request'; readonly turn: number; readonly step: number; readonly model: string; readonly options: RequestOptions; readonly tools?: readonly string[] | undefined; readonly attempt: number }
  /** A call is about to run. One without a result is never run again silently. */
  | { readonly type: 'tool-intent'; readonly turn: number; readonly step: number; readonly callId: string; readonly name: string; readonly arguments: Json; readonly originalArguments?: Json | undefined }
  | { readonly type: 'tool-result'; readonly turn: number; readonly step: number; readonly callId: string; readonly name: string; readonly kind: Outcome; readonly plugin?: string | undefined; readonly content: string; readonly isError: boolean; readonly elapsedMs: number }
  /** What a handler decided or amended; that it stood around an act and changed what came of it; that it failed, or that it was slow. `change` says what in one line, `elapsedMs` is its own time. */
  | { readonly type: 'decision'; readonly turn: number; readonly step: number; readonly hook: string; readonly plugin: string; readonly kind: string; readonly reason?: string | undefined; readonly change?: string | undefined; readonly callId?: string | undefined; readonly elapsedMs?: number | undefined }
  | { readonly type: 'approval'; readonly turn: number; readonly step: number; readonly callId: string; readonly name: string; readonly reason: string; readonly answer: 'once' | 'session' | 'always' | 'denied'; readonly by: 'user' | 'nobody' | 'timeout' | 'mode' | 'abort'; readonly note?: string | undefined }
  /** All messages up to and including seq `through` are replaced by `messages` in later requests. */
  | { readonly type: 'compaction'; readonly turn: number; readonly step: number; readonly through: number; readonly messages: readonly Message[]; readonly source: Source }
  | ({ readonly type: 'usage'; readonly turn: number; readonly step: number; readonly model: string } & Usage)
  /** `partial` is the text that had come when a stream broke; it is shown, never sent again. */
  | { readonly type: 'error'; readonly turn: number; readonly step: number; readonly phase: string; readonly code: string; readonly message: string; readonly partial?: string | undefined }
  | { readonly type: 'warning'; readonly turn: number; readonly step: number; readonly message: string }
  | { readonly type: 'archived' }
  | { readonly type: 'turn-end'; readonly turn: number; readonly reason: TurnReason; readonly kind?: FailureKind | undefined; readonly message?: string | undefined; readonly usage: Usage; readonly elapsedMs: number; readonly stats: Stats }

export type SessionEvent = SessionEventBody & { readonly seq: number; readonly ts: string }
export type SessionEventType = SessionEvent['type']
export type EventOf<T extends SessionEventType> = Extract<SessionEvent, { type: T }>
export type SessionHeader = Omit<Extract<SessionEventBody, { type: 'session' }>, 'type' | 'v'>

/** A log open for writing. There is one writer per session at a time. */
export interface SessionWriter {
  readonly id: string
  /** All events so far; the array grows, its members never change. */
  readonly events: readonly SessionEvent[]
  /** Gives the event its seq and time and queues it, in order. Throws `storage_failed` once the log can not be written. */
  append(body: SessionEventBody): SessionEvent
  /** Resolves when everything appended so far is as durable as the store promises; rejects with `storage_failed`. */
  commit(): Promise<void>
  /** Commits, then lets go of the session. */
  close(): Promise<void>
}
export interface SessionProblem { readonly line: number; readonly message: string }
export interface SessionSummary {
  readonly id: string
  readonly cwd: string
  readonly createdAt: string
  readonly updatedAt: string
  readonly turns: number
  /** First prompt, one line, at most 80 characters. */
  readonly title: string
  readonly archived: boolean
  /** Reason of the last turn; `interrupted` when it never ended; absent before the first. */
  readonly lastReason?: TurnReason | undefined
  readonly parent?: string | undefined
}
/** Where sessions are kept. One contract test suite holds for every implementation (test/agent/session-store.contract.ts). */
export interface SessionStore {
  /** Makes a session with its first line. `already exists` is `session_busy`. */
  create(header: SessionHeader): Promise<SessionWriter>
  /**
   * Opens a session for writing: repairs a torn tail, sets bad lines aside, takes the writer's lock (`session_busy` when another has it).
   * A turn that was running reads as `interrupted` and its open calls are closed, before this resolves.
   */
  open(id: string): Promise<SessionWriter>
  /** Reads without locking or changing anything. `session_missing`, `session_damaged`. */
  read(id: string): Promise<{ readonly events: readonly SessionEvent[]; readonly problems: readonly SessionProblem[] }>
  /** Newest first. A file that can not be read is left out and told to the log. */
  list(): Promise<readonly SessionSummary[]>
  /** Writes and syncs something, and takes it away again. `storage_failed` when sessions could not be kept now. */
  probe(): Promise<void>
  /** A folder for what belongs to the session but is no event: full outputs. Made on first use. */
  outputDir(id: string): string
  /** Where that folder is or would be, without making it. */
  outputPath(id: string): string
}

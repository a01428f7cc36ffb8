/**
 * The words of the agent: messages, tool calls, results, requests, replies. Types, and the few pure functions on them.
 * Everything here is plain data that can be logged, cloned and frozen. Knows no hook, file or model.
 */

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }

/** A piece of content. Text is the only one core makes; a model plugin may bring others, which are kept as they are. */
export type Part = { readonly type: 'text'; readonly text: string } | { readonly type: string; readonly [key: string]: Json }

/** Who put a message there. Ask the source, not the role: a note of a plugin has the role `user`. */
export interface Source {
  readonly kind: 'user' | 'plugin' | 'model' | 'tool' | 'core' | 'agent'
  /** The entry's id for a plugin, the model's for a model, the parent session for an agent. */
  readonly id?: string | undefined
}

/** A tool call as the model sent it: `arguments` is the raw string, `extra` whatever unknown fields came with it and must go back untouched. */
export interface RawToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: string
  readonly extra?: Json | undefined
}

export interface Message {
  readonly role: 'system' | 'user' | 'assistant' | 'tool'
  readonly content: readonly Part[]
  readonly source?: Source | undefined
  /** Assistant only. */
  readonly toolCalls?: readonly RawToolCall[] | undefined
  /** Assistant only: what the model thought aloud (`reasoning_content` of DeepSeek). */
  readonly reasoning?: string | undefined
  /** Tool only: the call it answers. */
  readonly toolCallId?: string | undefined
  /** Fields of the provider that must go back untouched. */
  readonly extra?: Json | undefined
}
/** What a plugin may write for a message; a string is a user message. */
export type MessageInput = string | { readonly role: Message['role']; readonly content: string | readonly Part[] }

/** A tool call with parsed arguments, as hooks see it. `originalArguments` is what the model sent, when a plugin rewrote them. */
export interface ToolCall {
  readonly id: string
  readonly name: string
  readonly arguments: Readonly<Record<string, unknown>>
  readonly originalArguments?: Readonly<Record<string, unknown>> | undefined
}
/** A tool call as `agent/tool-start` tells it: arguments as sent, the raw string when they could not be parsed. */
export interface SentToolCall { readonly id: string; readonly name: string; readonly arguments: Readonly<Record<string, unknown>> | string }
export interface ToolResult { readonly content: string; readonly isError: boolean }
/** What a tool or plugin may give for a result. */
export type ToolOutput = string | { readonly content: string; readonly isError?: boolean | undefined }

/** How a call ended. `ok` and `failed` ran; `invalid` had an unknown tool or wrong arguments. */
export type Outcome = 'ok' | 'failed' | 'blocked' | 'hook_failed' | 'guard_inactive' | 'denied' | 'invalid' | 'interrupted'

/** Tokens, as the endpoint reported them; `cost` by `agent.prices`, absent where no price is known. */
export interface Usage { readonly inputTokens: number; readonly outputTokens: number; readonly cachedTokens?: number | undefined; readonly reasoningTokens?: number | undefined; readonly cost?: number | undefined }
/** Of one turn. `blocked` counts every refused call. */
export interface Stats { readonly steps: number; readonly toolCalls: number; readonly blocked: number }

/** A tool as the model is told of it; `parameters` is a JSON Schema of an object. */
export interface ToolSpec { readonly name: string; readonly description: string; readonly parameters: Readonly<Record<string, Json>> }
/** Options of a request, in the words of the OpenAI protocol (temperature, max_tokens, …); merged over the model's own defaults. */
export type RequestOptions = Readonly<Record<string, Json>>

/** What goes to the model. A pure function of the session log. */
export interface ModelRequest {
  /** The model's own name, without the prefix of its registry entry. */
  readonly model: string
  /** The system message first, when there is one. */
  readonly messages: readonly Message[]
  readonly tools: readonly ToolSpec[]
  readonly options: RequestOptions
}
export type Finish = 'stop' | 'tool-calls' | 'length' | 'content-filter' | 'other'
/** A whole reply. `message.role` is `assistant`. */
export interface Reply { readonly message: Message; readonly finish: Finish; readonly usage?: Usage | undefined; readonly model?: string | undefined }

/** Why a turn ended. */
export type TurnReason = 'completed' | 'rejected' | 'max-steps' | 'max-cost' | 'truncated' | 'failed' | 'aborted' | 'interrupted'
export type FailureKind = 'hook_failed' | 'guard_inactive'

/** The session as payloads show it; `messages` is a frozen snapshot, made when it is first read. */
export interface SessionView {
  readonly id: string
  readonly cwd: string
  readonly parent?: string | undefined
  /** 0 for a session of a person, 1 for one that a tool call started, … */
  readonly depth: number
  /** How much the person who started the turn lets pass; `default` when not said. */
  readonly mode?: Mode | undefined
  readonly messages: readonly Message[]
}
/** `accept-edits`: edits of files need no yes. `plan`: nothing but read-only tools run. `yes`: every ask is answered with yes. */
export type Mode = 'default' | 'accept-edits' | 'plan' | 'yes'

export const text = (value: string): Part => ({ type: 'text', text: value })
/** All text of a message, in order. */
export const textOf = (message: Pick<Message, 'content'>): string => message.content.map(part => part.type === 'text' ? String(part.text) : '').join('')
export const userMessage = (content: string, source: Source = { kind: 'user' }): Message => ({ role: 'user', content: [text(content)], source })

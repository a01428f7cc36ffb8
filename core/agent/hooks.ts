/**
 * The hooks of the agent loop: payloads, decisions and their makers. The contract of each hook stands at its name, and the rules that carry it out in hook-rules.ts.
 * Types and tiny constructors only; knows no loop and no dispatch.
 */
import type { Amend, Around, Decide, Watch } from '../kernel/hooks.js'
import type {
  FailureKind, Message, MessageInput, ModelRequest, Outcome, Reply, RequestOptions, SentToolCall, SessionView, Stats, ToolCall, ToolOutput, ToolResult, ToolSpec, TurnReason, Usage,
} from './vocabulary.js'

/** In every payload. Everything but `signal` is plain, deeply frozen data. */
export interface Base {
  readonly session: SessionView
  /** 1…, 0 outside a turn. */
  readonly turn: number
  /** 0… */
  readonly step: number
  readonly signal: AbortSignal
}

// ---- decisions
export type Reject = { readonly kind: 'reject'; readonly reason: string }
export type Accept = { readonly kind: 'accept'; readonly messages: readonly MessageInput[] }
/** Everything up to the event `through` gives way to `messages`. Those of `session.messages` may be among them as they are, tool calls and all; of a tool's result the content may be another. `asked` is what a person said who asked for it, maybe nothing (''); left out when it comes by itself. */
export type Compact = { readonly through: number; readonly messages: readonly MessageInput[]; readonly asked?: string | undefined }
export type Enter = { readonly kind: 'enter'; readonly messages: readonly MessageInput[]; readonly compact?: Compact | undefined }
export type Send = { readonly kind: 'send'; readonly model?: string | undefined; readonly options?: RequestOptions | undefined; readonly tools?: readonly string[] | undefined }
export type Block = { readonly kind: 'block'; readonly reason: string }
export type Ask = { readonly kind: 'ask'; readonly reason: string }
export type Allow = { readonly kind: 'allow' }
export type Answer = { readonly kind: 'answer'; readonly result: ToolOutput }
export type ToolDecision = Allow | Block | Ask | Answer
export type Stop = { readonly kind: 'stop' }
export type Continue = { readonly kind: 'continue'; readonly message: MessageInput }
export type StopDecision = Stop | Continue

export const accept = (messages: readonly MessageInput[]): Accept => ({ kind: 'accept', messages })
export const reject = (reason: string): Reject => ({ kind: 'reject', reason })
export const enter = (messages: readonly MessageInput[], options: { compact?: Compact } = {}): Enter => ({ kind: 'enter', messages, ...options })
export const send = (change: Omit<Send, 'kind'>): Send => ({ kind: 'send', ...change })
export const block = (reason: string): Block => ({ kind: 'block', reason })
export const ask = (reason: string): Ask => ({ kind: 'ask', reason })
export const allow = (): Allow => ({ kind: 'allow' })
export const answer = (result: ToolOutput): Answer => ({ kind: 'answer', result })
export const stop = (): Stop => ({ kind: 'stop' })
/** `continue` is a word of the language; this makes a `continue` decision. */
export const proceed = (message: MessageInput): Continue => ({ kind: 'continue', message })

// ---- what `next()` shows
export type Accepted = { readonly kind: 'accept'; readonly messages: readonly Message[] } | Reject
export type Entered = { readonly kind: 'enter'; readonly messages: readonly Message[]; readonly compact?: { readonly through: number; readonly messages: readonly Message[]; readonly asked?: string | undefined } | undefined } | Reject
export type Sent = { readonly kind: 'send'; readonly model: string; readonly options: RequestOptions; readonly tools: readonly string[] } | Reject
export type Judged = Allow | Block | Ask | { readonly kind: 'answer'; readonly result: ToolResult }
export type Stopping = Stop | { readonly kind: 'continue'; readonly message: Message }

export interface Section { readonly id: string; readonly text: string }
/** The request as `agent/request` and `agent/pre-request` show it. `model` is `<registry id>/<model>`. */
export interface RequestPayload extends Base, Omit<ModelRequest, 'model'> { readonly model: string }
export interface Delta { readonly kind: 'text' | 'reasoning' | 'arguments'; readonly text: string; readonly attempt: number; readonly callId?: string | undefined }

declare module '../kernel/hooks.js' {
  interface Hooks {
    /**
     * Judges a prompt of a user before it enters the messages. Once per user prompt, never for synthetic ones.
     * May add messages or reject; a rejected prompt leaves no message in the log and ends the turn `rejected`. A failure rejects (`hook_failed`).
     * @example ctx.on('agent/user-prompt-submit', ({ prompt }) => { if (prompt.length > 10_000) return reject('too long') })
     */
    'agent/user-prompt-submit': Decide<Base & { readonly prompt: string; readonly messages: readonly Message[] }, Accepted, Accept | Reject>
    /**
     * Changes the sections of the system prompt, each step, after `agent/pre-step`. The text is logged when it changes. A failing handler is skipped.
     * @example ctx.on('agent/system-prompt', async (_, next) => [...await next(), { id: 'tone', text: 'Be brief.' }])
     */
    'agent/system-prompt': Amend<Base & { readonly sections: readonly Section[] }, readonly Section[]>
    /**
     * Judges a step: `messages` are those that this step will append. May add messages, compact older ones, or reject; a rejected step leaves none of them in the log.
     * A `compact` that a person asked for carries their words as `asked`.
     * A failure rejects (`hook_failed`).
     * @example ctx.on('agent/pre-step', async (_, next) => { const d = await next(); return d.kind === 'reject' ? d : { ...d, messages: [...d.messages, 'Mind the time.'] } })
     */
    'agent/pre-step': Decide<Base & { readonly messages: readonly Message[] }, Entered, Enter | Reject>
    /**
     * Judges a request. May change the model, the options and leave out tools; never messages. A rejection ends the turn `rejected`; so does a failure (`hook_failed`).
     * @example ctx.on('agent/pre-request', () => send({ options: { temperature: 0 } }))
     */
    'agent/pre-request': Decide<RequestPayload, Sent, Send | Reject>
    /**
     * Stands around the request to the model: retry, timeout, fallback, cache. `next({ model?, options? })` may be called again after the last one settled.
     * A throw fails the request.
     * @example ctx.on('agent/request', async (_, next) => { try { return await next() } catch { return next({ model: 'openai/gpt-5-mini' }) } })
     */
    'agent/request': Around<RequestPayload, Reply, Reply, { model?: string; options?: RequestOptions }>
    /**
     * Changes the arguments of a call before anybody judges it. The model is told of the change. A failing handler, or a rewrite that doesn't fit the schema, is skipped.
     * @example ctx.on('agent/tool-arguments', ({ call }) => ({ ...call.arguments, path: String(call.arguments.path).trim() }), { tools: ['read_file'] })
     */
    'agent/tool-arguments': Amend<Base & { readonly call: ToolCall }, Readonly<Record<string, unknown>>>
    /**
     * Judges a call as it will run. The strictest decision stands: block > hook_failed > ask > answer > allow. A failure refuses the call (`hook_failed`).
     * @example ctx.on('agent/pre-tool-use', ({ call }) => { if (call.arguments.command === 'npm i') return block('use pnpm here') }, { tools: ['bash'] })
     */
    'agent/pre-tool-use': Decide<Base & { readonly call: ToolCall }, Judged, ToolDecision>
    /**
     * Stands around the run of a tool: timeout, sandbox, cache. A throw fails the call.
     * @example ctx.on('agent/tool-use', async (_, next) => { const began = Date.now(); try { return await next() } finally { ctx.logger.info(`${Date.now() - began} ms`) } })
     */
    'agent/tool-use': Around<Base & { readonly call: ToolCall }, ToolResult, ToolOutput>
    /**
     * Changes the result of a call that ran or was answered, before the model reads it. `context` messages follow the last result of the reply. A failing handler is skipped.
     * @example ctx.on('agent/post-tool-use', async (_, next) => { const r = await next(); return { ...r, content: r.content.slice(0, 1000) } })
     */
    'agent/post-tool-use': Amend<Base & { readonly call: ToolCall; readonly result: ToolResult; readonly elapsedMs: number }, ToolResult, string | { readonly content: string; readonly isError?: boolean; readonly context?: readonly MessageInput[] }>
    /**
     * Judges the end of a turn that would complete. The outermost `continue` counts and its message goes on as a user message; at most `agent.maxContinuations` per turn.
     * All handlers run; a failing one has no opinion.
     * @example ctx.on('agent/stop', ({ stopHookActive }) => { if (!stopHookActive) return proceed('Run the tests before you finish.') })
     */
    'agent/stop': Decide<Base & { readonly reply: string; readonly stats: Stats; readonly stopHookActive: boolean }, Stopping, StopDecision>

    /**
     * A session was opened: once per opening.
     * @example ctx.on('agent/session-start', ({ session, source }) => { ctx.logger.info(`${source} session ${session.id} in ${session.cwd}`) })
     */
    'agent/session-start': Watch<Base & { readonly source: 'new' | 'resume' | 'fork' }>
    /** A session was closed by its client, archived, or the host shuts down. */
    'agent/session-end': Watch<Base & { readonly reason: 'closed' | 'archived' | 'shutdown' }>
    /** First of a turn. */
    'agent/turn-start': Watch<Base & { readonly prompt: string }>
    /**
     * Last of a turn, on every path.
     * @example ctx.on('agent/turn-end', ({ reason, usage, stats }) => { ctx.logger.info(`${reason}: ${usage.inputTokens + usage.outputTokens} tokens, ${stats.toolCalls} calls`) })
     */
    'agent/turn-end': Watch<Base & { readonly reason: TurnReason; readonly kind?: FailureKind | undefined; readonly usage: Usage; readonly elapsedMs: number; readonly stats: Stats }>
    /** A step begins. */
    'agent/step-start': Watch<Base>
    /** A step ended, on every path. */
    'agent/step-end': Watch<Base & { readonly usage: Usage; readonly elapsedMs: number; readonly toolCalls: number }>
    /** A call arrived, refused ones too. */
    'agent/tool-start': Watch<Base & { readonly call: SentToolCall }>
    /**
     * A call ended, on every path; `result` is what the model reads, `plugin` who refused or answered it.
     * @example ctx.on('agent/tool-end', ({ call, outcome, elapsedMs }) => { ctx.logger.info(`${call.name} ${outcome} after ${elapsedMs} ms`) }, { tools: ['bash'] })
     */
    'agent/tool-end': Watch<Base & { readonly call: SentToolCall; readonly result: ToolResult; readonly outcome: Outcome; readonly elapsedMs: number; readonly plugin?: string | undefined }>
    /** A person is about to be asked. */
    'agent/ask': Watch<Base & { readonly call: ToolCall; readonly reason: string }>
    /** Old messages were replaced by a summary; `before` and `after` are estimated tokens. */
    'agent/compacted': Watch<Base & { readonly through: number; readonly before: number; readonly after: number }>
    /** A turn failed. Instead of `agent/stop`, never beside it. */
    'agent/error': Watch<Base & { readonly error: { readonly message: string; readonly code: string }; readonly phase: 'prompt' | 'step' | 'request' | 'tool' | 'stop' | 'storage' }>
    /** A piece of the reply as it streams in. Called synchronously, never awaited; keep it short. */
    'agent/delta': Watch<Base & Delta>
  }
}
export type { ToolSpec }

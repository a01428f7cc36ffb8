/**
 * Payloads for firing one hook by itself: what a test leaves out is filled in as the loop would have it in the first step of a new session.
 * Pure. Invariant: every hook of the agent stands here once, which the compiler holds.
 */
import type { Base } from '../agent/hooks.js'
import { text, userMessage, type Reply, type SessionView, type ToolCall, type ToolResult } from '../agent/vocabulary.js'
import type { HookName, HookOf, Hooks, Payload } from '../kernel/hooks.js'

/** The parts of a payload that a test cares for; of `session` and `call` too only those. */
export type Given<K extends HookName> = {
  readonly [P in keyof Payload<K>]?: P extends 'session' ? Partial<SessionView> : P extends 'call' ? Partial<Payload<K>[P]> : Payload<K>[P]
}
/** What stands inside the handlers of an around hook. */
export type Act<K extends HookName> = (payload: Payload<K>) => HookOf<K>['next'] | Promise<HookOf<K>['next']>

type AgentHook = keyof Hooks & `agent/${string}`
type Rest<K extends HookName> = Omit<Payload<K>, keyof Base>

const CALL: ToolCall = { id: 'call_1', name: 'tool', arguments: {} }
const RESULT: ToolResult = { content: 'the result', isError: false }
const STATS = { steps: 0, toolCalls: 0, blocked: 0 }
const USAGE = { inputTokens: 0, outputTokens: 0 }
const REQUEST = { model: 'scripted/scripted', options: {}, messages: [userMessage('go')], tools: [] }
const REPLY: Reply = { message: { role: 'assistant', content: [text('the reply')] }, finish: 'stop', usage: USAGE }

const PAYLOADS: { readonly [K in AgentHook]: Rest<K> } = {
  'agent/user-prompt-submit': { prompt: 'go', messages: [userMessage('go')] },
  'agent/system-prompt': { sections: [] },
  'agent/pre-step': { messages: [] },
  'agent/pre-request': REQUEST,
  'agent/request': REQUEST,
  'agent/tool-arguments': { call: CALL },
  'agent/pre-tool-use': { call: CALL },
  'agent/tool-use': { call: CALL },
  'agent/post-tool-use': { call: CALL, result: RESULT, elapsedMs: 1 },
  'agent/stop': { reply: 'the reply', stats: STATS, stopHookActive: false },
  'agent/session-start': { source: 'new' },
  'agent/session-end': { reason: 'closed' },
  'agent/turn-start': { prompt: 'go' },
  'agent/turn-end': { reason: 'completed', usage: USAGE, elapsedMs: 1, stats: STATS },
  'agent/step-start': {},
  'agent/step-end': { usage: USAGE, elapsedMs: 1, toolCalls: 0 },
  'agent/tool-start': { call: CALL },
  'agent/tool-end': { call: CALL, result: RESULT, outcome: 'ok', elapsedMs: 1 },
  'agent/ask': { call: CALL, reason: 'the reason' },
  'agent/compacted': { through: 1, before: 1000, after: 100 },
  'agent/error': { error: { message: 'the error', code: 'internal' }, phase: 'step' },
  'agent/delta': { kind: 'text', text: 'the text', attempt: 1 },
}

/** A whole payload of `hook`, from what is given of it. */
export function payloadOf<K extends HookName>(hook: K, given: Given<K>, cwd: string): Payload<K> {
  const { session, call, ...rest } = given as { readonly session?: Partial<SessionView>; readonly call?: Partial<ToolCall>; readonly prompt?: unknown }
  const usual = (PAYLOADS as Readonly<Record<string, object>>)[hook] ?? {}
  const prompted = hook === 'agent/user-prompt-submit' && typeof rest.prompt === 'string' ? { messages: [userMessage(rest.prompt)] } : {}
  const base: Base = { session: { id: 'test', cwd, depth: 0, messages: [], ...session }, turn: 1, step: 0, signal: new AbortController().signal }
  return { ...base, ...usual, ...prompted, ...rest, ...('call' in usual || call ? { call: { ...CALL, ...call } } : {}) } as unknown as Payload<K>
}
/** The act of an around hook when the test brings none. */
export const actOf = (hook: string): (() => unknown) | undefined => hook === 'agent/request' ? () => REPLY : hook === 'agent/tool-use' ? () => RESULT : undefined

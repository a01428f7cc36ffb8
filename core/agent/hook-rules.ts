/**
 * What each hook of the agent does with what its handlers return: DESIGN section 3 as one table of rules, made of the kernel's judge, amend, around and watch.
 * Pure. Shapes a plugin may write (strings, parts left out) are read once into the shape core uses. Knows no dispatch and no loop.
 */
import { isDeepStrictEqual } from 'node:util'
import { show } from '../errors.js'
import { Wrong } from '../kernel/frozen.js'
import type { HookKind } from '../kernel/hooks.js'
import { amend, around, judge, type Reader, type Rule, watch } from '../kernel/rules.js'
import { changedArguments, changedResult, changedSections } from './change-summary.js'
import { type Message, type Part, text, type ToolCall, type ToolResult, type ToolSpec } from './vocabulary.js'

// ---- shapes a plugin may write. Values come in adopted: plain and frozen.

type Fields = Readonly<Record<string, unknown>>
const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)
/** What may stand in the log as a part of a message, and be read from there again. */
export const isPart = (value: unknown): value is Part => isObject(value) && typeof value.type === 'string' && (value.type !== 'text' || typeof value.text === 'string')
const only = (value: Fields, names: readonly string[]): boolean => Object.keys(value).every(name => names.includes(name) || value[name] === undefined)

function toObject(value: unknown, what: string): Fields {
  if (!isObject(value)) throw new Wrong(`${what} must be an object, received ${show(value)}`)
  return value
}

const ROLES: readonly unknown[] = ['user', 'assistant', 'system']
/** A message of a plugin: its source is stamped by core, whatever stands there. */
function toMessage(value: unknown, plugin: string): Message {
  const source = { kind: 'plugin', id: plugin } as const
  if (typeof value === 'string') return { role: 'user', content: [text(value)], source }
  if (!isObject(value) || !ROLES.includes(value.role) || !only(value, ['role', 'content', 'source'])) throw new Wrong(`a message is a string or {role: user, assistant or system, content}, received ${show(value)}`)
  const { role, content } = value as unknown as Message
  if (typeof content === 'string') return { role, content: [text(content)], source }
  if (!Array.isArray(content) || !content.every(isPart)) throw new Wrong(`the content of a message is a string or a list of {type, …}, received ${show(content)}`)
  return { role, content, source }
}
/** Everything in `must` has to be there, in order; what is new is the plugin's. */
function toMessages(value: unknown, must: readonly Message[], plugin: string, maker: string): readonly Message[] {
  if (!Array.isArray(value)) throw new Wrong(`"${maker}" needs messages, a list, received ${show(value)}`)
  let kept = 0
  const messages = value.map((message: unknown) => {
    const old = must[kept]
    if (old === undefined || message !== old && !isDeepStrictEqual(message, old)) return toMessage(message, plugin)
    kept++
    return old
  })
  if (kept < must.length) throw new Wrong(`messages must keep all ${must.length} that were there, in order: return ${maker}([...messages, "yours"]); after next(), start from its decision`)
  return messages
}
/** A result as payloads carry it. */
export function toResult(value: unknown): ToolResult {
  if (typeof value === 'string') return { content: value, isError: false }
  if (isObject(value) && typeof value.content === 'string' && (value.isError === undefined || typeof value.isError === 'boolean')) return { content: value.content, isError: value.isError ?? false }
  throw new Wrong(`a result is a string or {content, isError?}, received ${show(value)}`)
}
function toContext(value: unknown, plugin: string): readonly Message[] | undefined {
  if (!isObject(value) || value.context === undefined) return undefined
  if (!Array.isArray(value.context)) throw new Wrong(`context must be a list of messages, received ${show(value.context)}`)
  return value.context.map(message => toMessage(message, plugin))
}
function toReply(value: unknown): Fields {
  const reply = toObject(value, 'a reply')
  const { message } = reply
  if (!isObject(message) || message.role !== 'assistant' || !Array.isArray(message.content) || !message.content.every(isPart)) throw new Wrong(`a reply is {message: {role: assistant, content: [{type, …}]}, finish}, received ${show(value)}`)
  if (typeof reply.finish !== 'string') throw new Wrong(`a reply needs finish: stop, tool-calls, length, content-filter or other; received ${show(reply.finish)}`)
  return reply
}
function toSections(value: unknown): readonly unknown[] {
  if (!Array.isArray(value) || !value.every(section => isObject(section) && typeof section.id === 'string' && typeof section.text === 'string')) throw new Wrong(`sections are a list of {id, text}, received ${show(value)}`)
  return value
}
function toModel(value: unknown): string {
  if (typeof value !== 'string' || value === '') throw new Wrong(`model must be a name such as "deepseek/deepseek-chat", received ${show(value)}`)
  return value
}
/** Options that are left out are unchanged; one that is `undefined` is taken out. */
const mergeOptions = (base: Fields, change: unknown): Fields => Object.fromEntries(Object.entries({ ...base, ...toObject(change, 'options') }).filter(([, value]) => value !== undefined))

// ---- decisions

const bare: Reader = ({ kind }) => ({ kind })
const reasoned: Reader = ({ kind, reason }) => {
  if (typeof reason !== 'string' || reason.trim() === '') throw new Wrong(`"${kind}" needs a reason`)
  return { kind, reason }
}
type Asking = { readonly messages: readonly Message[] }
const keepMessages: Reader = ({ kind, messages }, payload: Asking, base: Asking | undefined, plugin) => ({ kind, messages: toMessages(messages, (base ?? payload).messages, plugin, kind) })

const enterStep: Reader = (own, payload: Asking & { readonly session: Asking }, base: (Asking & { readonly compact?: unknown }) | undefined, plugin) => {
  const compact = own.compact === undefined || own.compact === base?.compact ? base?.compact : toCompact(own.compact, payload.session.messages, plugin)
  return { ...keepMessages(own, payload, base, plugin), ...(compact !== undefined && { compact }) }
}
function toCompact(value: unknown, session: readonly Message[], plugin: string): object {
  if (!isObject(value) || !Number.isInteger(value.through) || Number(value.through) < 1 || !Array.isArray(value.messages) || !['string', 'undefined'].includes(typeof value.asked) || !only(value, ['through', 'messages', 'asked'])) throw new Wrong(`compact is {through: the seq of the last message to replace, messages, asked?: what a person said who asked for it}, received ${show(value)}`)
  return { through: value.through, messages: toSummary(value.messages, session, plugin), ...(value.asked !== undefined && { asked: value.asked }) }
}
/** In a summary, messages of the session (in their order) stay what they are, calls and sources too; of a tool's result the content may be another. The rest is the plugin's own. */
function toSummary(values: readonly unknown[], session: readonly Message[], plugin: string): readonly Message[] {
  let from = 0
  return values.map(value => {
    const result = isObject(value) && value.role === 'tool'
    const place = session.findIndex((old, index) => index >= from && (result ? old.role === 'tool' && old.toolCallId === value.toolCallId : isDeepStrictEqual(old, value)))
    if (place < 0) return toMessage(value, plugin)
    from = place + 1
    return result ? { ...session[place]!, content: toMessage({ role: 'user', content: value.content }, plugin).content } : session[place]!
  })
}

interface Sending { readonly model: string; readonly options: Fields; readonly tools: readonly string[] }
interface RequestLike { readonly model: string; readonly options: Fields; readonly tools: readonly ToolSpec[] }
const sending = ({ model, options, tools }: RequestLike): Sending => ({ model, options, tools: tools.map(({ name }) => name) })
const sendRequest: Reader = (own, payload: RequestLike, base: Sending | undefined) => {
  const { model, options, tools } = base ?? sending(payload)
  if (own.tools !== undefined && !Array.isArray(own.tools)) throw new Wrong(`tools must be a list of names, received ${show(own.tools)}`)
  const more: unknown = own.tools?.find((tool: string) => !tools.includes(tool))
  if (more !== undefined) throw new Wrong(`tools can only become fewer: ${show(more)} was not there`)
  return { kind: 'send', model: own.model === undefined ? model : toModel(own.model), options: own.options === undefined ? options : mergeOptions(options, own.options), tools: own.tools ?? tools }
}

/** The three before the model: only a reject ends the chain, anything else goes on through the later handlers. */
const passing = (pass: string, read: Reader, subject: string, more: Pick<Parameters<typeof judge>[0], 'start' | 'carry' | 'outermost' | 'guarded'>): Rule =>
  judge({ kinds: { reject: reasoned, [pass]: read }, refusal: 'reject', subject, ofCall: false, ...more })
const carryMessages = (payload: object, { messages }: Asking) => ({ ...payload, messages })

const judgeCall = { kinds: { block: reasoned, ask: reasoned, answer: (({ kind, result }) => ({ kind, result: toResult(result) })) as Reader, allow: bare }, refusal: 'block', spare: { kind: 'answer', beside: 'ask' }, start: () => ({ kind: 'allow' }) }

export const RULES = {
  'agent/user-prompt-submit': passing('accept', keepMessages, 'prompt', { start: ({ messages }) => ({ kind: 'accept', messages }), carry: carryMessages, guarded: true }),
  'agent/system-prompt': amend({ get: ({ sections }) => sections, put: (payload, sections) => ({ ...payload, sections }), read: toSections, summary: changedSections, ofCall: false }),
  'agent/pre-step': passing('enter', enterStep, 'step', { start: ({ messages }) => ({ kind: 'enter', messages }), carry: carryMessages, outermost: ['compact'], guarded: true }),
  'agent/pre-request': passing('send', sendRequest, 'request', {
    start: payload => ({ kind: 'send', ...sending(payload) }),
    carry: (payload, { model, options, tools }: Sending) => ({ ...payload, model, options, tools: payload.tools.filter(({ name }: ToolSpec) => tools.includes(name)) }),
  }),
  'agent/request': around(toReply, { ofCall: false, change: (payload, change) => {
    if (!isObject(change) || !only(change, ['model', 'options'])) throw new Wrong(`it takes {model?, options?} and nothing else, received ${show(change)}`)
    return { ...payload, ...(change.model !== undefined && { model: toModel(change.model) }), ...(change.options !== undefined && { options: mergeOptions(payload.options, change.options) }) }
  } }),
  'agent/tool-arguments': amend({ get: ({ call }) => call.arguments, put: (payload, args) => ({ ...payload, call: { ...payload.call as ToolCall, arguments: args } }), read: own => toObject(own, 'arguments'), summary: changedArguments, ofCall: true }),
  'agent/pre-tool-use': judge({ ...judgeCall, subject: 'call', guarded: true, ofCall: true }),
  'agent/tool-use': around(toResult, { summary: changedResult, ofCall: true }),
  'agent/post-tool-use': amend({ get: ({ result }) => result, put: (payload, result) => ({ ...payload, result }), read: toResult, context: toContext, summary: changedResult, ofCall: true }),
  'agent/stop': judge({ kinds: { continue: ({ kind, message }, _payload, _base, plugin) => ({ kind, message: toMessage(message, plugin) }), stop: bare }, start: () => ({ kind: 'stop' }), ofCall: false }),
  'agent/session-start': watch({ ofCall: false }),
  'agent/session-end': watch({ ofCall: false }),
  'agent/turn-start': watch({ ofCall: false }),
  'agent/turn-end': watch({ ofCall: false }),
  'agent/step-start': watch({ ofCall: false }),
  'agent/step-end': watch({ ofCall: false }),
  'agent/tool-start': watch({ ofCall: true }),
  'agent/tool-end': watch({ ofCall: true }),
  'agent/ask': watch({ ofCall: true }),
  'agent/compacted': watch({ ofCall: false }),
  'agent/error': watch({ ofCall: false }),
  'agent/delta': watch({ ofCall: false }),
} as const satisfies Readonly<Record<string, Rule>>

/** A plugin's own hooks: decide takes the decisions and merging of `agent/pre-tool-use`, amend amends `payload.value`. */
export const OWN_RULES: Readonly<Record<HookKind, Rule>> = {
  decide: judge(judgeCall),
  amend: amend({ get: ({ value }) => value, put: (payload, value) => ({ ...payload, value }), read: value => value }),
  around: around(value => value),
  watch: watch(),
}

/** Hooks with a `call`, on which a handler may name tools. */
export const TOOL_HOOKS: readonly string[] = Object.entries<Rule>(RULES).filter(([, rule]) => rule.ofCall).map(([hook]) => hook)

/** What other harnesses call the hook. Case and separators don't count: `PreToolUse` is `pre_tool_use`, and each hook's own name without `agent/` is found without standing here. */
export const OTHER_NAMES: Readonly<Partial<Record<keyof typeof RULES, readonly string[]>>> = {
  'agent/user-prompt-submit': ['chat.message', 'before_agent', 'before_agent_start', 'input', 'before_prompt', 'user_prompt'],
  'agent/system-prompt': ['chat.system.transform', 'experimental.chat.system.transform', 'system_transform'],
  'agent/pre-step': ['PreCompact', 'session.compacting', 'before_compact', 'session_before_compact', 'before_step'],
  'agent/pre-request': ['chat.params', 'before_model', 'before_request', 'before_provider_request', 'on_llm_start'],
  'agent/request': ['wrap_model_call', 'model_call'],
  'agent/pre-tool-use': ['before_tool', 'before_tool_call', 'tool_call', 'tool.execute.before', 'permission.ask', 'PermissionRequest', 'on_tool_start'],
  'agent/tool-use': ['wrap_tool_call', 'tool.execute'],
  'agent/post-tool-use': ['after_tool', 'after_tool_call', 'tool_result', 'tool.execute.after', 'PostToolUseFailure', 'on_tool_end'],
  'agent/stop': ['SubagentStop', 'after_agent', 'before_stop', 'session.idle'],
  'agent/session-start': ['session.created'],
  'agent/session-end': ['session_shutdown', 'session.deleted'],
  'agent/turn-start': ['agent_start'],
  'agent/turn-end': ['agent_end'],
  'agent/ask': ['Notification', 'permission.updated', 'permission.asked'],
  'agent/compacted': ['PostCompact', 'session.compacted', 'session_compact'],
  'agent/error': ['session.error', 'StopFailure'],
  'agent/delta': ['message_update', 'message.part.updated', 'text_delta'],
}

/** Makes the agent's hooks known, and the rules of plugins' own. */
export function declareHooks(hooks: { declare(hook: string, rule: Rule, otherNames?: readonly string[]): void; declareOwn(kind: HookKind, rule: Rule): void }): void {
  for (const [hook, rule] of Object.entries<Rule>(RULES)) hooks.declare(hook, rule, OTHER_NAMES[hook as keyof typeof RULES])
  for (const kind of ['decide', 'amend', 'around', 'watch'] as const) hooks.declareOwn(kind, OWN_RULES[kind])
}

/**
 * From a request to the body that is sent. Pure, with a fixed order of keys: a request rebuilt from the session log gives the very same bytes.
 * Invariants: a system message stands first or nowhere; fields that a provider sent go back to it untouched, and to no other.
 */
import { createHash } from 'node:crypto'
import { textOf, type Json, type Message, type ModelRequest, type RawToolCall, type RequestOptions } from 'harnessx'
import type { Profile } from './profiles.js'

/** How one endpoint wants its requests, profile, config and lessons taken together. */
export interface Wire extends Pick<Profile, 'maxTokens' | 'reasoning' | 'reasoningRequired' | 'toolIds'> {
  /** The registry id: what messages of this endpoint carry in their source. */
  readonly id: string
  /** The entry's own options, under those of the request. */
  readonly options: RequestOptions
  /** Whether usage may be asked for. */
  readonly streamOptions: boolean
  /** Send `reasoning_effort: none` when there are tools. */
  readonly effortNone: boolean
}

export type Body = Readonly<Record<string, Json>>
const OWN = new Set(['model', 'messages', 'tools', 'tool_choice', 'stream', 'stream_options'])
const MAX_TOKENS = ['max_tokens', 'max_completion_tokens'] as const

export function wireBody(request: ModelRequest, wire: Wire): Body {
  const options = wireOptions({ ...wire.options, ...request.options }, request.tools.length > 0, wire)
  return {
    model: request.model,
    messages: wireMessages(request.messages, wire),
    ...(request.tools.length === 0 ? {} : {
      tools: request.tools.map(tool => ({ type: 'function', function: { name: tool.name, description: tool.description, parameters: tool.parameters } })),
      tool_choice: request.options['tool_choice'] ?? wire.options['tool_choice'] ?? 'auto',
    }),
    ...options,
    stream: true,
    ...(wire.streamOptions ? { stream_options: { include_usage: true } } : {}),
  }
}

function wireOptions(options: RequestOptions, tools: boolean, wire: Wire): Record<string, Json> {
  const out: Record<string, Json> = {}
  for (const key of Object.keys(options).sort()) {
    if (OWN.has(key) || (MAX_TOKENS as readonly string[]).includes(key) || !tools && key === 'parallel_tool_calls') continue
    out[key] = options[key]!
  }
  const limit = options['max_completion_tokens'] ?? options['max_tokens']
  if (limit !== undefined && wire.maxTokens !== 'none') out[wire.maxTokens] = limit
  if (tools && wire.effortNone) out['reasoning_effort'] = 'none'
  return out
}

function wireMessages(messages: readonly Message[], wire: Wire): Json[] {
  const head = messages.findIndex(message => message.role !== 'system')
  const system = messages.slice(0, head === -1 ? messages.length : head)
  const rest = messages.slice(system.length)
  return [
    ...(system.length === 0 ? [] : [{ role: 'system', content: system.map(message => wellFormed(textOf(message))).join('\n\n') }]),
    ...rest.map(message => wireMessage(message, wire)),
  ]
}

function wireMessage(message: Message, wire: Wire): Json {
  const content = wireContent(message)
  switch (message.role) {
    // Templates of local models refuse a system message in mid-conversation; said by the user, it is heard as well.
    case 'system': case 'user': return { role: 'user', content }
    case 'tool': return { role: 'tool', tool_call_id: toolId(message.toolCallId ?? '', wire.toolIds), content }
    case 'assistant': {
      const own = isOwn(message, wire)
      const calls = message.toolCalls ?? []
      const reasoning = own && message.reasoning !== undefined ? message.reasoning : wire.reasoningRequired && calls.length > 0 ? '' : undefined
      return {
        role: 'assistant',
        content: content === '' && calls.length > 0 ? null : content,
        ...(reasoning === undefined || wire.reasoning === 'drop' ? {} : { [wire.reasoning]: wellFormed(reasoning) }),
        ...(calls.length === 0 ? {} : { tool_calls: calls.map(call => wireCall(call, own, wire)) }),
        ...(own ? record(message.extra) : {}),
      }
    }
  }
}

function wireCall(call: RawToolCall, own: boolean, wire: Wire): Json {
  const { function: inner, ...outer } = own ? record(call.extra) : {}
  return { id: toolId(call.id, wire.toolIds), type: 'function', function: { name: call.name, arguments: call.arguments, ...record(inner) }, ...outer }
}

/** Text is one string, since many endpoints take nothing else; a message with other parts goes as the list it is. */
function wireContent(message: Message): Json {
  if (message.content.every(part => part.type === 'text')) return wellFormed(textOf(message))
  return message.content.map(part => part.type === 'text' ? { type: 'text', text: wellFormed(String(part.text)) } : part as Json)
}

/** Was this message written by this endpoint? One whose source names no registry entry is taken to be. */
function isOwn(message: Message, wire: Wire): boolean {
  const id = message.source?.kind === 'model' ? message.source.id : undefined
  return id === undefined || !id.includes('/') || id.startsWith(`${wire.id}/`)
}

/** Another endpoint's id in a form that this one accepts: the same id always gives the same. */
function toolId(id: string, accepted: Wire['toolIds']): string {
  const fits = accepted === 'any' || (accepted === 'short' ? id.length >= 1 && id.length <= 40 : /^[A-Za-z0-9]{9}$/.test(id))
  return fits ? id : createHash('sha256').update(id).digest('hex').slice(0, 9)
}

/** Half a surrogate pair, as cut tool output may hold, is refused by some endpoints. */
const wellFormed = (text: string): string => text.toWellFormed()
const record = (value: Json | undefined): Record<string, Json> => typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Record<string, Json> : {}

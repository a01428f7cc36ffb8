/**
 * What an editor is told of a session: log lines and what comes between them, as updates of the Agent Client Protocol. Pure but for what was told already; a replay of a log gives the same.
 * Knows no tool by its name: kinds, places and changes are read from the shape of the arguments, so that tools of any plugin show well.
 */
import { resolve } from 'node:path'
import type { SessionUpdate, ToolCallContent, ToolCallUpdate, ToolKind } from '@agentclientprotocol/sdk'
import type { RunEvent } from '../agent/services.js'
import { textOf, type RawToolCall } from '../agent/vocabulary.js'
import { oneLine } from './terminal.js'

type Arguments = Readonly<Record<string, unknown>>
/** What an editor is shown of one result. */
const MAX_CHARS = 100_000

/** Calls have an id per turn; an editor wants one per session. */
export const callId = (turn: number, id: string): string => `${turn}.${id}`

export class Updates {
  readonly #cwd: string
  readonly #readOnly: (tool: string) => boolean
  readonly #calls = new Set<string>()
  /** Step whose text came as deltas. */
  #streamed: string | undefined
  constructor(cwd: string, readOnly: (tool: string) => boolean) {
    this.#cwd = cwd
    this.#readOnly = readOnly
  }

  /** `replay`: what the user said is told too. */
  of(event: RunEvent, { replay = false } = {}): SessionUpdate[] {
    switch (event.type) {
      case 'delta': {
        if (event.kind === 'arguments') return []
        if (event.kind === 'text') this.#streamed = `${event.turn}.${event.step}`
        return [chunk(event.kind === 'text' ? 'agent_message_chunk' : 'agent_thought_chunk', event.text)]
      }
      case 'message': {
        const said = textOf(event)
        if (event.role === 'user') return replay && event.source?.kind === 'user' ? [chunk('user_message_chunk', said)] : []
        if (event.role !== 'assistant') return []
        const untold = this.#streamed === `${event.turn}.${event.step}` ? '' : said
        return [...untold === '' ? [] : [chunk('agent_message_chunk', untold)], ...(event.toolCalls ?? []).flatMap(call => this.begin(event.turn, call.id, call.name, parsed(call)))]
      }
      case 'tool-intent': return [...this.begin(event.turn, event.callId, event.name, asArguments(event.arguments)), { ...this.#shown(event.name, asArguments(event.arguments)), sessionUpdate: 'tool_call_update', toolCallId: callId(event.turn, event.callId), status: 'in_progress' }]
      case 'progress': return []
      case 'tool-result': {
        const { turn, callId: id, name, content, isError } = event
        return [...this.begin(turn, id, name, {}), {
          sessionUpdate: 'tool_call_update', toolCallId: callId(turn, id), status: isError ? 'failed' : 'completed',
          content: [...this.#changes.get(callId(turn, id)) ?? [], ...isError || !this.#changes.has(callId(turn, id)) ? [words(content.length > MAX_CHARS ? `${content.slice(0, MAX_CHARS)}…` : content)] : []],
          rawOutput: { content: content.slice(0, MAX_CHARS), isError },
        }]
      }
      default: return []
    }
  }
  /** A call that an editor has not heard of yet. */
  begin(turn: number, id: string, name: string, args: Arguments): SessionUpdate[] {
    const toolCallId = callId(turn, id)
    if (this.#calls.has(toolCallId)) return []
    this.#calls.add(toolCallId)
    const shown = this.#shown(name, args), changes = shown.content
    if (changes) this.#changes.set(toolCallId, changes)
    return [{ sessionUpdate: 'tool_call', toolCallId, status: 'pending', ...shown }]
  }
  /** The call as a person is asked about it. */
  asked(turn: number, id: string, name: string, args: Arguments, reason: string): ToolCallUpdate {
    const { content = [], ...shown } = this.#shown(name, args)
    return { toolCallId: callId(turn, id), status: 'pending', ...shown, content: [words(reason), ...content] }
  }
  /** Changes of files, by call: a result of a tool would hide them. */
  readonly #changes = new Map<string, ToolCallContent[]>()

  #shown(name: string, args: Arguments) {
    const path = text(args, 'path', 'file_path', 'file'), line = number(args, 'line', 'offset')
    const change = path === undefined ? undefined : changeOf(this.#absolute(path), args)
    return {
      title: titleOf(name, args), kind: this.#kindOf(name, args), rawInput: args,
      ...(path !== undefined && { locations: [{ path: this.#absolute(path), ...(line !== undefined && { line }) }] }),
      ...(change && { content: [change] }),
    }
  }
  #kindOf(name: string, args: Arguments): ToolKind {
    if (text(args, 'command') !== undefined) return 'execute'
    if (text(args, 'pattern', 'query') !== undefined) return 'search'
    if (text(args, 'url') !== undefined) return 'fetch'
    if (text(args, 'path', 'file_path', 'file') === undefined) return 'other'
    return this.#readOnly(name) ? 'read' : 'edit'
  }
  #absolute(path: string): string { return resolve(this.#cwd, path) }
}

/** A change that the arguments spell out: a passage, or a whole file. */
function changeOf(path: string, args: Arguments): ToolCallContent | undefined {
  const oldText = text(args, 'old_text', 'old_string'), newText = text(args, 'new_text', 'new_string')
  if (oldText !== undefined && newText !== undefined) return { type: 'diff', path, oldText, newText }
  const content = text(args, 'content')
  return content === undefined ? undefined : { type: 'diff', path, oldText: null, newText: content }
}
/** All that says what it is about: an argument that a tool doesn't even know must not stand before the one that counts. */
function titleOf(name: string, args: Arguments): string {
  const about = [text(args, 'path', 'file_path'), text(args, 'command'), text(args, 'title')].filter(one => one !== undefined)
  const shown = about.length > 0 ? about.map(one => oneLine(one, 100)).join(', ') : oneLine(text(args, 'pattern', 'query', 'url') ?? '', 100)
  return shown === '' ? name : `${name}: ${shown}`
}

const chunk = (sessionUpdate: 'agent_message_chunk' | 'agent_thought_chunk' | 'user_message_chunk', said: string): SessionUpdate => ({ sessionUpdate, content: { type: 'text', text: said } })
/** Words of hx or of a plugin, where an editor shows the agent's. */
export const note = (said: string): SessionUpdate => chunk('agent_message_chunk', said)
const words = (said: string): ToolCallContent => ({ type: 'content', content: { type: 'text', text: said } })

const text = (args: Arguments, ...keys: readonly string[]): string | undefined => keys.map(key => args[key]).find(value => typeof value === 'string')
const number = (args: Arguments, ...keys: readonly string[]): number | undefined => keys.map(key => args[key]).find(value => typeof value === 'number')
const asArguments = (value: unknown): Arguments => typeof value === 'object' && value !== null && !Array.isArray(value) ? value as Arguments : {}
function parsed({ arguments: sent }: RawToolCall): Arguments {
  try { return asArguments(JSON.parse(sent)) } catch { return {} }      // what is no JSON is refused by the agent, and its result says so
}

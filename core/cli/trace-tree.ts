/**
 * A session log as a tree: turns, their steps, and in each what happened, who decided what, and how long it took. A function of the log alone; knows no terminal.
 * Times are those of the log: a request lasts until the line after it, a call says its own.
 */
import type { EventOf, SessionEvent } from '../agent/session-events.js'
import { textOf, type Json, type Outcome, type Stats, type Usage } from '../agent/vocabulary.js'

/** A handler's part: what it decided or changed, that it failed, or that it was slow. */
export interface Decided { readonly hook: string; readonly plugin: string; readonly kind: string; readonly reason?: string | undefined; readonly change?: string | undefined; readonly ms?: number | undefined }
export type Node =
  | ({ readonly type: 'decision' } & Decided)
  | { readonly type: 'message'; readonly from: string; readonly text: string }
  | { readonly type: 'request'; readonly model: string; readonly attempt: number; readonly tools?: number | undefined; ms?: number | undefined; usage?: Usage | undefined }
  | { readonly type: 'reply'; readonly text: string; readonly calls: number }
  | { readonly type: 'call'; readonly id: string; readonly name: string; arguments?: Json | undefined; changedFrom?: Json | undefined; outcome?: Outcome | undefined; plugin?: string | undefined; ms?: number | undefined; result?: string | undefined; asked?: string | undefined; readonly decisions: Decided[] }
  | { readonly type: 'note'; readonly level: 'info' | 'warning' | 'error'; readonly text: string }
export interface Step { readonly step: number; readonly at: number; ms: number; readonly nodes: Node[] }
export interface TurnTrace {
  readonly turn: number
  readonly prompt: string
  readonly ts: string
  reason?: string | undefined
  message?: string | undefined
  ms?: number | undefined
  usage?: Usage | undefined
  stats?: Stats | undefined
  readonly steps: Step[]
}
/** Two clocks differ by this much. */
const CLOCK_MS = 1000
/** From here on a handler is called slow. */
export const SLOW_MS = 100
export const isSlow = ({ ms }: Decided): boolean => ms !== undefined && ms > SLOW_MS
export const isFailure = ({ kind }: Decided): boolean => kind === 'failed' || kind === 'hook_failed' || kind === 'guard_inactive'

export function traceOf(events: readonly SessionEvent[]): TurnTrace[] {
  const turns: TurnTrace[] = [], times = timesOf(events)
  let began = 0
  for (const [index, event] of events.entries()) {
    const now = times[index]!
    if (event.type === 'turn-start') {
      turns.push({ turn: event.turn, prompt: event.prompt, ts: event.ts, steps: [] })
      began = now
    }
    const turn = turns.at(-1)
    if (!turn || event.type === 'turn-start') continue
    if (event.type === 'turn-end') { end(turn, event); continue }
    const step = stepOf(turn, event, now - began), next = times[index + 1]
    add(step, event, next === undefined ? undefined : next - now)
    step.ms = now - began - step.at
  }
  return turns
}

/** When each line was written, in ms behind the first, without what the clock was set by meanwhile: time does not go back, and nothing in a turn takes longer than the turn. */
function timesOf(events: readonly SessionEvent[]): number[] {
  let at = 0, longest = Infinity, before = NaN
  const lasted = new Map(events.flatMap(event => event.type === 'turn-end' ? [[event.turn, event.elapsedMs]] : []))
  return events.map(event => {
    const ts = Date.parse(event.ts), passed = ts - before
    if (event.type === 'turn-start') longest = lasted.get(event.turn) ?? Infinity
    if (passed > 0 && passed <= longest + CLOCK_MS) at += passed
    before = ts
    return at
  })
}
/** `system` and `tools` have no step of their own: they belong to the one that is being prepared. */
function stepOf(turn: TurnTrace, event: SessionEvent, at: number): Step {
  const number = 'step' in event ? event.step : turn.steps.at(-1)?.step ?? 0
  const known = turn.steps.find(({ step }) => step === number)
  if (known) return known
  const step = { step: number, at, ms: 0, nodes: [] }
  turn.steps.push(step)
  return step
}
function end(turn: TurnTrace, { reason, message, elapsedMs, usage, stats }: EventOf<'turn-end'>): void {
  Object.assign(turn, { reason, ms: elapsedMs, usage, stats, ...(message !== undefined && { message }) })
}

function add({ nodes }: Step, event: SessionEvent, ms: number | undefined): void {
  const call = (id: string, name: string) => {
    const known = nodes.find(node => node.type === 'call' && node.id === id)
    if (known?.type === 'call') return known
    const made: Extract<Node, { type: 'call' }> = { type: 'call', id, name, decisions: [] }
    nodes.push(made)
    return made
  }
  switch (event.type) {
    case 'message':
      if (event.role !== 'assistant') { nodes.push({ type: 'message', from: event.source.kind === 'plugin' ? `plugin ${event.source.id ?? ''}` : event.source.kind, text: textOf(event) }); return }
      nodes.push({ type: 'reply', text: textOf(event), calls: event.toolCalls?.length ?? 0 })
      for (const { id, name, arguments: args } of event.toolCalls ?? []) call(id, name).arguments = parsed(args)
      return
    case 'request':
      nodes.push({ type: 'request', model: event.model, attempt: event.attempt, ...(event.tools && { tools: event.tools.length }), ...(ms !== undefined && { ms }) })
      return
    case 'usage': {
      const request = nodes.findLast(node => node.type === 'request')
      const { inputTokens, outputTokens, cachedTokens, reasoningTokens } = event
      if (request?.type === 'request') request.usage = { inputTokens, outputTokens, ...(cachedTokens !== undefined && { cachedTokens }), ...(reasoningTokens !== undefined && { reasoningTokens }) }
      return
    }
    case 'decision': {
      const { hook, plugin, kind, reason, change, elapsedMs } = event
      const decided = { hook, plugin, kind, ...(reason !== undefined && { reason }), ...(change !== undefined && { change }), ...(elapsedMs !== undefined && { ms: elapsedMs }) }
      const of = event.callId === undefined ? undefined : nodes.find(node => node.type === 'call' && node.id === event.callId)
      if (of?.type === 'call') of.decisions.push(decided)
      else nodes.push({ type: 'decision', ...decided })
      return
    }
    case 'tool-intent': {
      const one = call(event.callId, event.name)
      one.arguments = event.arguments
      if (event.originalArguments !== undefined) one.changedFrom = event.originalArguments
      return
    }
    case 'approval': call(event.callId, event.name).asked = `${event.reason} → ${event.answer}, by ${event.by}`; return
    case 'tool-result': Object.assign(call(event.callId, event.name), { outcome: event.kind, result: event.content, ms: event.elapsedMs, ...(event.plugin !== undefined && { plugin: event.plugin }) }); return
    case 'system': nodes.push({ type: 'note', level: 'info', text: `system prompt: ${event.text.length} characters` }); return
    case 'tools': nodes.push({ type: 'note', level: 'info', text: `tools offered: ${event.tools.map(tool => tool.name).join(', ') || 'none'}` }); return
    case 'compaction': nodes.push({ type: 'note', level: 'info', text: `messages through line ${event.through} were replaced by ${event.messages.length}, by ${event.source.id ?? event.source.kind}` }); return
    case 'warning': nodes.push({ type: 'note', level: 'warning', text: event.message }); return
    case 'error': nodes.push({ type: 'note', level: 'error', text: `${event.phase} failed: ${event.message}` }); return
    default: return
  }
}
function parsed(text: string): Json {
  try { return JSON.parse(text) as Json } catch { return text }          // as the model sent it: it reads why in the result
}

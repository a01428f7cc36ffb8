/**
 * What a log is missing after its writer died: the ends that nobody wrote. Pure; knows no file.
 * A call without result is closed as interrupted, never run again; then the turn is.
 */
import type { SessionEvent, SessionEventBody } from './session-events.js'
import { INTERRUPTED } from './conversation.js'
import type { Outcome, RawToolCall, Stats, Usage } from './vocabulary.js'

/** The events that close the turn that was running when the log ends; none when there is none. */
export function closing(events: readonly SessionEvent[]): SessionEventBody[] {
  const start = events.findLast(event => event.type === 'turn-start')
  if (!start || events.some(event => event.type === 'turn-end' && event.turn === start.turn)) return []
  const rest = events.slice(events.indexOf(start))
  const results = openCalls(rest).map(({ call, turn, step }): SessionEventBody =>
    ({ type: 'tool-result', turn, step, callId: call.id, name: call.name, kind: 'interrupted', content: INTERRUPTED, isError: true, elapsedMs: 0 }))
  return [...results, {
    type: 'turn-end', turn: start.turn, reason: 'interrupted', message: 'the process ended while this turn ran',
    usage: usageOf(rest), stats: statsOf(rest, results.length), elapsedMs: Math.max(0, Date.parse(rest.at(-1)!.ts) - Date.parse(start.ts) || 0),           // a time that does not parse counts as none
  }]
}

/** Calls of the last reply that has any, without those that have their result. */
function openCalls(events: readonly SessionEvent[]): { call: RawToolCall; turn: number; step: number }[] {
  let open: { call: RawToolCall; turn: number; step: number }[] = []
  for (const event of events) {
    if (event.type === 'message' && event.toolCalls?.length) open = event.toolCalls.map(call => ({ call, turn: event.turn, step: event.step }))
    if (event.type === 'tool-result') {
      const index = open.findIndex(({ call }) => call.id === event.callId)
      if (index >= 0) open = open.toSpliced(index, 1)
    }
  }
  return open
}

function usageOf(events: readonly SessionEvent[]): Usage {
  const sum = { inputTokens: 0, outputTokens: 0 }
  for (const event of events) if (event.type === 'usage') { sum.inputTokens += event.inputTokens; sum.outputTokens += event.outputTokens }
  return sum
}
const REFUSED: readonly Outcome[] = ['blocked', 'hook_failed', 'guard_inactive', 'denied']
function statsOf(events: readonly SessionEvent[], interrupted: number): Stats {
  const results = events.filter(event => event.type === 'tool-result')
  return {
    steps: new Set(events.flatMap(event => event.type === 'request' ? [event.step] : [])).size,
    toolCalls: results.length + interrupted,
    blocked: results.filter(result => REFUSED.includes(result.kind)).length,
  }
}

/** A session as a Markdown text to read and to share: prompts, answers, tool calls with their results. Pure. */
import type { SessionEvent } from '../agent/session-events.js'
import { textOf } from '../agent/vocabulary.js'
import { printable } from './terminal.js'

export function markdown(events: readonly SessionEvent[]): string {
  return `${events.flatMap(section).join('\n\n')}\n`
}

function section(event: SessionEvent): string[] {
  switch (event.type) {
    case 'session': return [`# Session ${event.id}`, `Folder \`${printable(event.cwd)}\`, begun ${event.ts}${event.forkOf ? `, forked from ${event.forkOf.id} at ${event.forkOf.seq}` : ''}.`]
    case 'turn-start': return [`## Turn ${event.turn}`, quoted(event.prompt)]
    case 'message': {
      const said = printable(textOf(event)).trim()
      if (event.source.kind === 'user' && event.step > 0) return [quoted(said)]                       // came while the turn ran
      return event.role === 'assistant' && said !== '' ? [said] : event.role !== 'assistant' && event.source.kind !== 'user' ? [`*${event.source.kind} ${event.source.id ?? ''}:*`, quoted(said)] : []
    }
    case 'tool-intent': return [`**${event.name}**`, fenced(JSON.stringify(event.arguments, null, 2), 'json')]
    case 'tool-result': return [...event.kind === 'ok' ? [] : [`*${event.name}: ${event.kind}*`], fenced(event.content)]
    case 'approval': return [`*asked: ${printable(event.reason)}: ${event.answer} (by ${event.by})*`]
    case 'error': return [`*${event.phase} failed: ${printable(event.message)}*`]
    case 'turn-end': return [`*${event.reason}${event.message === undefined ? '' : `: ${printable(event.message)}`}*`]
    case 'archived': return ['*archived*']
    case 'system': case 'tools': case 'request': case 'decision': case 'usage': case 'compaction': case 'warning': return []
  }
}
const quoted = (text: string): string => printable(text).split('\n').map(line => `> ${line}`.trimEnd()).join('\n')
/** A fence longer than any in the text. */
function fenced(text: string, language = ''): string {
  const safe = printable(text), longest = Math.max(2, ...[...safe.matchAll(/`{3,}/g)].map(([ticks]) => ticks.length))
  const fence = '`'.repeat(longest + 1)
  return `${fence}${language}\n${safe}\n${fence}`
}

/**
 * May this call run? From the call as sent to a verdict: parse, fit the schema, rewrite, judge, ask. Runs nothing.
 * Invariants: judges see the call as it will run; what is refused comes with the sentence that the model reads, and with who refused it.
 */
import { isDeepStrictEqual } from 'node:util'
import { didYouMean } from '../errors.js'
import type { Ruling } from './approvals.js'
import { clip, wrongArguments, type Arguments } from './arguments.js'
import type { Verdict } from '../kernel/dispatch.js'
import type { Ask, Judged } from './hooks.js'
import type { IncomingCall } from './incoming-calls.js'
import type { OfferedTool } from './tools.js'
import type { Turn } from './turn.js'
import type { Outcome, ToolCall, ToolResult } from './vocabulary.js'

/** A call that was judged. `note` goes to the head of whatever the model reads for it. */
export type Judgement = { readonly note: string } & (
  | { readonly kind: 'run'; readonly call: ToolCall; readonly alone: boolean }
  | { readonly kind: 'answered'; readonly call: ToolCall; readonly alone: boolean; readonly result: ToolResult; readonly plugin: string | undefined }
  | { readonly kind: 'refused'; readonly call?: ToolCall; readonly outcome: Outcome; readonly content: string; readonly plugin?: string | undefined }
)
type Act = { readonly call: ToolCall; readonly alone: boolean; readonly note: string }

export async function judge(turn: Turn, { raw: { id, name }, read }: IncomingCall, offered: ReadonlySet<string>): Promise<Judgement> {
  const tool = offered.has(name) ? turn.ports.tools.get(name) : undefined
  if (!tool) return invalid(unknownTool(name, [...offered]))
  if (!read.ok) return invalid(wrongArguments(name, read.problem, tool.spec.parameters))
  const fit = tool.schema.read(read.value)
  if (!fit.ok) return invalid(wrongArguments(name, fit.problem, tool.spec.parameters))
  const { call, note } = await rewrite(turn, tool, { id, name, arguments: read.value })
  if (turn.session.mode === 'plan' && !tool.readOnly) return { kind: 'refused', call, note, outcome: 'blocked', content: `blocked: in plan mode only read-only tools run, and "${name}" is none; lay out what you would do instead` }
  return decide(turn, await turn.ask('agent/pre-tool-use', { call }), { call, note, alone: !tool.readOnly })
}

/** Handlers change the arguments before anybody judges them. */
async function rewrite(turn: Turn, tool: OfferedTool, call: ToolCall): Promise<{ call: ToolCall; note: string }> {
  const check = (value: unknown) => {
    const fit = tool.schema.read(value as Arguments)
    return fit.ok ? undefined : `the arguments don't fit the schema of tool "${call.name}": ${fit.problem}`
  }
  const { value, plugin } = await turn.ask('agent/tool-arguments', { call }, { check })
  if (isDeepStrictEqual(value, call.arguments)) return { call, note: '' }
  return {
    call: { ...call, arguments: value, originalArguments: call.arguments },
    note: `note: plugin "${plugin}" changed the arguments to ${clip(JSON.stringify(value), 300)}\n`,
  }
}

async function decide(turn: Turn, verdict: Verdict<Judged>, act: Act): Promise<Judgement> {
  const { value, plugin, failure } = verdict
  switch (value.kind) {
    case 'allow': return { kind: 'run', ...act }
    case 'answer': return { kind: 'answered', ...act, result: value.result, plugin }
    case 'ask': return askPerson(turn, verdict as Verdict<Ask>, act)
    case 'block': {
      const content = failure ? `${failure}: ${value.reason}` : `blocked by plugin "${plugin}": ${value.reason}${/[.!?]$/.test(value.reason) ? '' : '.'} The same call will be refused again; do not work around it.`
      return { kind: 'refused', ...act, outcome: failure ?? 'blocked', content, plugin }
    }
  }
}

/** The decision is final: a person says yes or no to the call that will run. */
async function askPerson(turn: Turn, { value: { reason }, plugin = 'core', answer }: Verdict<Ask>, act: Act): Promise<Judgement> {
  const { approvals, workspace } = turn.ports
  const { call } = act, session = turn.session.view()
  const log = (ruling: Ruling) => { turn.log({ type: 'approval', ...turn.at, callId: call.id, name: call.name, reason, ...ruling }) }
  let ruling = approvals.settled(session, call)
  try {
    if (!ruling) {
      await turn.tell('agent/ask', { call, reason })
      ruling = await approvals.put({ session: session.id, turn: turn.number, call: { id: call.id, name: call.name, arguments: call.arguments }, reason, plugin, signal: turn.signal })
    }
  } catch (error) {
    log({ answer: 'denied', by: 'abort' })
    throw error
  }
  log(ruling)
  await turn.commit()
  if (ruling.answer === 'denied') {
    const asked = ruling.by === 'user'
    if (!asked) turn.unanswered = true
    const content = asked ? `denied by the user (${reason})${ruling.note === undefined ? '' : `: ${ruling.note}`}` : `denied: nobody could be asked (${reason})`
    return { kind: 'refused', ...act, outcome: 'denied', content, plugin }
  }
  approvals.remember(session, call, ruling)
  workspace.approve(session, call.id)
  return answer ? { kind: 'answered', ...act, result: answer.value.result, plugin: answer.plugin } : { kind: 'run', ...act }
}

const invalid = (content: string): Judgement => ({ kind: 'refused', note: '', outcome: 'invalid', content })
function unknownTool(name: string, offered: readonly string[]): string {
  const known = offered.length === 0 ? 'there are none' : `the tools are ${clip(offered.join(', '), 1000)}`
  if (offered.includes(name)) return `tool "${name}" was there and is gone: its plugin took it back`
  return `there is no tool "${name}" here${didYouMean(name, offered) || ';'} ${known}`
}

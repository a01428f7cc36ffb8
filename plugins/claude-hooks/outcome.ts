/**
 * What commands want, from how they ended and what they said: exit code 2, or JSON on stdout after exit code 0. Pure.
 * Any other end is a failure that stops nothing, as scripts rely on.
 */
import { z } from 'harnessx'
import type { Ended } from './command.js'
import type { EventName } from './settings.js'

export interface Outcome {
  readonly block?: string | undefined
  readonly ask?: string | undefined
  /** Ends the turn. */
  readonly halt?: string | undefined
  /** For the model. */
  readonly context: readonly string[]
  /** Arguments in place of those of the call. */
  readonly input?: Readonly<Record<string, unknown>> | undefined
  /** For the user. */
  readonly told: readonly string[]
  readonly problems: readonly string[]
}

const text = z.string().optional().catch(undefined)
const Said = z.object({
  continue: z.boolean().optional().catch(undefined), stopReason: text, systemMessage: text, decision: text, reason: text,
  hookSpecificOutput: z.object({ permissionDecision: text, permissionDecisionReason: text, additionalContext: text, updatedInput: z.record(z.string(), z.unknown()).optional().catch(undefined) }).optional().catch(undefined),
})

/** Events whose plain words the model reads. */
const SPEAKING: readonly EventName[] = ['UserPromptSubmit', 'SessionStart']
/** Events that nothing can be refused in: what a command objects is for the user. */
const OBJECTING: readonly EventName[] = ['SessionStart', 'SessionEnd', 'SubagentStart', 'Notification']
export const NONE: Outcome = { context: [], told: [], problems: [] }
const NO_REASON = 'its hook gave no reason'

export function outcomeOf(event: EventName, { code, stdout, stderr, failure }: Ended): Outcome {
  const words = stdout.trim()
  if (code === 2) return OBJECTING.includes(event) ? { ...NONE, told: [stderr.trim()].filter(Boolean) } : { ...NONE, block: stderr.trim() || NO_REASON }
  if (code !== 0) return { ...NONE, problems: [failure ?? `it ended with ${code}${stderr.trim() && `: ${stderr.trim().split('\n')[0]!.slice(0, 300)}`}`] }
  const json = words.startsWith('{') ? parsed(words) : undefined
  if (!json) return { ...NONE, context: words !== '' && SPEAKING.includes(event) ? [words] : [] }
  const { permissionDecision: permission, permissionDecisionReason: why = json.reason || NO_REASON, additionalContext, updatedInput } = json.hookSpecificOutput ?? {}
  const refuses = permission === 'deny' || permission === undefined && (json.decision === 'block' || json.decision === 'deny')
  const asks = permission === 'ask' || permission === undefined && json.decision === 'ask'
  return {
    block: refuses ? why : undefined, ask: asks ? why : undefined,
    halt: json.continue === false ? json.stopReason || json.reason || 'its hook stopped the turn' : undefined,
    context: additionalContext ? [additionalContext] : [], input: updatedInput,
    told: json.systemMessage ? [json.systemMessage] : [], problems: [],
  }
}

/** Of several that ran beside each other: every word counts, the first refusal stands, the last arguments. */
export const together = (outcomes: readonly Outcome[]): Outcome => outcomes.reduce((sum, one) => ({
  block: sum.block ?? one.block, ask: sum.ask ?? one.ask, halt: sum.halt ?? one.halt, input: one.input ?? sum.input,
  context: [...sum.context, ...one.context], told: [...sum.told, ...one.told], problems: [...sum.problems, ...one.problems],
}), NONE)

function parsed(words: string): z.infer<typeof Said> | undefined {
  try { return Said.parse(JSON.parse(words)) } catch { return undefined }              // not JSON after all: plain words
}

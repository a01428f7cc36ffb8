/** Prompts and permissions between hx and an editor that speaks the Agent Client Protocol. Pure. */
import { fileURLToPath } from 'node:url'
import type { ContentBlock, PermissionOption, RequestPermissionResponse, SessionModeState, StopReason, Usage as SentUsage } from '@agentclientprotocol/sdk'
import type { ApprovalAnswer, RunResult } from '../agent/services.js'
import type { Mode, Usage } from '../agent/vocabulary.js'

/** One text of what the user wrote, dropped and mentioned. Undefined for what is not text: it was not offered to be taken. */
export function promptOf(blocks: readonly ContentBlock[]): string | undefined {
  const parts = blocks.map(block => {
    switch (block.type) {
      case 'text': return block.text
      case 'resource_link': return pathOf(block.uri)
      case 'resource': return 'text' in block.resource ? `\n<file path="${pathOf(block.resource.uri)}">\n${block.resource.text}\n</file>\n` : undefined
      default: return undefined
    }
  })
  return parts.every(part => part !== undefined) ? parts.join('').trim() : undefined
}
function pathOf(uri: string): string {
  try { return uri.startsWith('file:') ? fileURLToPath(uri) : uri } catch { return uri }      // a file of another host
}
/** `/name args`, when there is such a command. */
export function commandOf(prompt: string, names: readonly string[]): { readonly name: string; readonly args: string } | undefined {
  const [, name, args = ''] = /^\/([a-z][a-z0-9-]*)(?:\s+([\s\S]*))?$/.exec(prompt) ?? []
  return name !== undefined && names.includes(name) ? { name, args: args.trim() } : undefined
}

/** "For good" would write a rule into the config; an editor's "always" is for this session. */
export const PERMISSIONS: PermissionOption[] = [
  { optionId: 'once', kind: 'allow_once', name: 'Allow' },
  { optionId: 'session', kind: 'allow_always', name: 'Allow this very call for the session' },
  { optionId: 'denied', kind: 'reject_once', name: 'Reject' },
]
/** Undefined when nobody has answered. */
export function answerOf({ outcome }: RequestPermissionResponse): ApprovalAnswer | undefined {
  if (outcome.outcome !== 'selected') return undefined
  return outcome.optionId === 'once' || outcome.optionId === 'session' ? { answer: outcome.optionId } : { answer: 'denied' }
}

const MODES: Readonly<Record<Mode, { name: string; description: string }>> = {
  default: { name: 'Default', description: 'Asks where the policy wants it' },
  'accept-edits': { name: 'Accept edits', description: 'Edits of files need no yes' },
  plan: { name: 'Plan', description: 'Only tools that read' },
  yes: { name: 'Yes to all', description: 'Every ask is answered with yes' },
}
export const isMode = (mode: string): mode is Mode => Object.hasOwn(MODES, mode)
export const modes = (current: Mode): SessionModeState => ({ currentModeId: current, availableModes: Object.entries(MODES).map(([id, shown]) => ({ id, ...shown })) })

/** Undefined where the turn failed, which is an error of the request. */
export function stopReasonOf({ reason }: Pick<RunResult, 'reason'>): StopReason | undefined {
  switch (reason) {
    case 'completed': return 'end_turn'
    case 'truncated': return 'max_tokens'
    case 'max-steps': case 'max-cost': return 'max_turn_requests'
    case 'rejected': return 'refusal'
    case 'aborted': return 'cancelled'
    case 'failed': case 'interrupted': return undefined
  }
}
export const usageOf = ({ inputTokens, outputTokens, cachedTokens, reasoningTokens }: Usage): SentUsage => ({
  inputTokens, outputTokens, totalTokens: inputTokens + outputTokens, ...(cachedTokens !== undefined && { cachedReadTokens: cachedTokens }), ...(reasoningTokens !== undefined && { thoughtTokens: reasoningTokens }),
})

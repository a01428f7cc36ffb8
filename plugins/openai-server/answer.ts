/** What goes back, in the shapes that OpenAI documents for chat completions, their chunks, models and errors. Pure. */
import { randomUUID } from 'node:crypto'
import type { RunResult, Usage } from 'harnessx'

export type Finish = 'stop' | 'length'
interface Head { readonly id: string; readonly created: number; readonly model: string }

export const head = (model: string): Head => ({ id: `chatcmpl-${randomUUID()}`, created: Math.floor(Date.now() / 1000), model })

export const completion = (head: Head, text: string, finish: Finish, usage: Usage) => ({
  ...head, object: 'chat.completion',
  choices: [{ index: 0, message: { role: 'assistant', content: text, refusal: null }, logprobs: null, finish_reason: finish }],
  usage: usageOf(usage),
})
export const chunk = (head: Head, delta: object, finish: Finish | null = null) => ({ ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }] })
export const usageChunk = (head: Head, usage: Usage) => ({ ...head, object: 'chat.completion.chunk', choices: [], usage: usageOf(usage) })

const usageOf = ({ inputTokens, outputTokens, cachedTokens = 0, reasoningTokens = 0 }: Usage) => ({
  prompt_tokens: inputTokens, completion_tokens: outputTokens, total_tokens: inputTokens + outputTokens,
  prompt_tokens_details: { cached_tokens: cachedTokens }, completion_tokens_details: { reasoning_tokens: reasoningTokens },
})

export const model = (id: string) => ({ id, object: 'model', created: 0, owned_by: 'hx' })

export interface Problem { readonly status: number; readonly message: string; readonly type: 'invalid_request_error' | 'server_error'; readonly code: string | null; readonly param?: string | null }
export const errorBody = ({ message, type, code, param = null }: Problem) => ({ error: { message, type, param, code } })
/** A turn has effects: clients that try again by themselves are told not to. */
export const errorResponse = (problem: Problem): Response => Response.json(errorBody(problem), { status: problem.status, headers: { 'x-should-retry': 'false' } })

/** How a turn that ended counts: an answer, whole or cut, or a problem. */
export function outcomeOf({ reason, message, text }: Pick<RunResult, 'reason' | 'message' | 'text'>): { readonly finish: Finish; readonly text: string } | Problem {
  switch (reason) {
    case 'completed': return { finish: 'stop', text }
    case 'truncated': case 'max-steps': case 'max-cost': return { finish: 'length', text: text || `(${message ?? reason})` }
    case 'rejected': return { status: 400, type: 'invalid_request_error', code: 'rejected', message: message ?? 'the prompt was rejected' }
    case 'failed': case 'aborted': case 'interrupted': return { status: 500, type: 'server_error', code: reason, message: message ?? `the turn ended ${reason}` }
  }
}

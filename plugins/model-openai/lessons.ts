/**
 * What an endpoint teaches by refusing: a parameter under another name, or one that it does not know. Pure: a refusal and the body that was refused
 * give what to change from now on, or undefined when the refusal is about something else.
 */
import type { Refusal } from './failures.js'
import type { Body, Wire } from './wire.js'

export interface Lesson extends Partial<Pick<Wire, 'maxTokens' | 'streamOptions' | 'effortNone'>> { readonly about: string }

/** `first` is what the limit was called before anything was learned. */
export function lessonOf(refusal: Refusal, sent: Body, first: Wire['maxTokens']): Lesson | undefined {
  const says = (word: string): boolean => refusal.param === word || refusal.message.includes(word)
  // Newer models of OpenAI call tools with reasoning on another API only, and reason unless they are told not to.
  if (sent['tools'] !== undefined && sent['reasoning_effort'] !== 'none' && says('reasoning_effort') && /function tools/i.test(refusal.message)) {
    return { effortNone: true, about: 'it takes tools only without reasoning on this API: reasoning_effort "none" goes with tools from now on' }
  }
  if (!/unsupported|not supported|not support|unrecogni[sz]ed|unknown|unexpected|not permitted|extra (inputs|fields)/i.test(`${refusal.code} ${refusal.message}`)) return undefined
  const limit = sent['max_tokens'] !== undefined ? 'max_tokens' : sent['max_completion_tokens'] !== undefined ? 'max_completion_tokens' : undefined
  if (limit && says(limit)) {
    const other = limit === 'max_tokens' ? 'max_completion_tokens' : 'max_tokens'
    const next = limit === first ? other : 'none'
    return { maxTokens: next, about: next === 'none' ? `it refuses ${limit} too: no limit of output tokens is sent from now on` : `it refuses ${limit}: ${next} is sent from now on` }
  }
  if (sent['stream_options'] !== undefined && (says('stream_options') || says('include_usage'))) return { streamOptions: false, about: 'it refuses stream_options: token counts will be missing' }
  return undefined
}

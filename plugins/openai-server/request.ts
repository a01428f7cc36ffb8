/**
 * What clients of OpenAI's chat completions send: read with what this server can honour, refused in one sentence where it can't. Pure.
 * Options that change nothing here (temperature, max_tokens, …) are taken and left alone, since most clients always send some.
 */
import { z } from 'harnessx'

const Text = z.object({ type: z.literal('text'), text: z.string() })
const Content = z.union([z.string(), z.array(z.looseObject({ type: z.string() }))])
const Message = z.looseObject({ role: z.enum(['system', 'developer', 'user', 'assistant', 'tool', 'function']), content: Content.nullish() })
const Body = z.looseObject({
  model: z.string().min(1),
  messages: z.array(Message).min(1),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
  n: z.number().nullish(),
  tools: z.array(z.unknown()).nullish(),
  functions: z.array(z.unknown()).nullish(),
  tool_choice: z.unknown().optional(),
  response_format: z.looseObject({ type: z.string() }).nullish(),
})

export interface Said { readonly role: 'user' | 'assistant'; readonly text: string }
export interface ChatRequest {
  readonly model: string
  /** Of the client, joined; empty when it sent none. */
  readonly system: string
  /** What was said before: empty, or ends with the assistant. */
  readonly before: readonly Said[]
  /** What the user says now. */
  readonly prompt: string
  readonly stream: boolean
  readonly includeUsage: boolean
}
export type Read = { readonly ok: true; readonly request: ChatRequest } | { readonly ok: false; readonly message: string; readonly param: string | null }

export function readRequest(body: unknown): Read {
  const refuse = (message: string, param: string | null = null): Read => ({ ok: false, message, param })
  const read = Body.safeParse(body)
  if (!read.success) {
    const [issue] = read.error.issues
    return refuse(`${issue!.path.join('.') || 'the body'}: ${issue!.message}`, issue!.path.join('.') || null)
  }
  const { model, messages, stream, stream_options: streamOptions, n, tools, functions, tool_choice: toolChoice, response_format: format } = read.data
  if ((n ?? 1) !== 1) return refuse('only one choice can be had: the agent does its work once', 'n')
  if ((tools?.length ?? 0) + (functions?.length ?? 0) > 0 && toolChoice !== 'none') return refuse('tools of the client can not be called: the agent has its own', 'tools')
  if (format && format.type !== 'text') return refuse(`response_format "${format.type}" can not be promised: the agent answers in text`, 'response_format')
  const said: Said[] = [], system: string[] = []
  for (const [at, { role, content }] of messages.entries()) {
    const param = `messages.${at}`
    if (role === 'tool' || role === 'function') return refuse('results of tools of the client can not be used: the agent has its own tools', param)
    const text = textOf(content ?? '')
    if (text === undefined) return refuse('only text can be read: no images, sound or files', param)
    if (role === 'system' || role === 'developer') system.push(text)
    else said.push({ role, text })
  }
  const last = said.findLastIndex(({ role }) => role === 'assistant') + 1
  const prompt = said.slice(last).map(({ text }) => text).join('\n\n').trim()
  if (prompt === '') return refuse('the last message must be one of the user, with some text', 'messages')
  return { ok: true, request: { model, system: system.join('\n\n'), before: said.slice(0, last), prompt, stream: stream === true, includeUsage: streamOptions?.include_usage === true } }
}

function textOf(content: z.infer<typeof Content>): string | undefined {
  if (typeof content === 'string') return content
  const parts = content.map(part => Text.safeParse(part).data?.text)
  return parts.every(part => part !== undefined) ? parts.join('') : undefined
}

/** A prompt for a session that knows nothing of what was said before. */
export function wholePrompt({ before, prompt }: Pick<ChatRequest, 'before' | 'prompt'>): string {
  if (before.length === 0) return prompt
  return `What was said before, in another session:\n\n${before.map(({ role, text }) => `${role}: ${text}`).join('\n\n')}\n\nWhat the user says now:\n\n${prompt}`
}

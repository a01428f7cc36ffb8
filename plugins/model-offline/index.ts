/**
 * model-offline: the embedded offline model, to try the harness without a key. Fixed rules read a task in plain English and drive the tools that are offered;
 * no network, no chance, and it says what it is. It answers only when it is named. Shows the smallest whole `Model`: deltas, tool calls, usage, abort.
 */
import { setImmediate } from 'node:timers/promises'
import { ModelError, text, type Context, type ModelChunk, type ModelRequest, type RawToolCall, type Reply } from 'harnessx'
import { plan } from './plan.js'

export const name = 'model-offline'
const INTRODUCTION = 'This is the embedded offline model: fixed rules, no network.'

export function apply(ctx: Context): void {
  ctx.models.register({ id: 'offline', defaultModel: 'rules', models: ['rules'], onlyWhenNamed: true, ready: () => true, stream })
}

export async function* stream(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<ModelChunk> {
  const reply = replyTo(request)
  for (const piece of pieces(reply.message.content.map(part => String(part['text'])).join(''))) {
    await breath(signal)
    yield { kind: 'text', text: piece }
  }
  for (const call of reply.message.toolCalls ?? []) {
    for (const piece of pieces(call.arguments)) {
      await breath(signal)
      yield { kind: 'arguments', text: piece, callId: call.id }
    }
  }
  await breath(signal)
  yield { kind: 'reply', reply }
}

/** The whole reply; the same request always gives the same. */
export function replyTo(request: ModelRequest): Reply {
  const next = plan(request)
  const first = !request.messages.some(message => message.role === 'assistant')
  const say = first ? `${INTRODUCTION} ${next.say}` : next.say
  const before = request.messages.reduce((sum, message) => sum + (message.toolCalls?.length ?? 0), 0)
  const toolCalls: RawToolCall[] = next.kind === 'answer' ? [] : next.calls.map((call, place) => ({ id: `offline_${before + place + 1}`, name: call.name, arguments: JSON.stringify(call.arguments) }))
  return {
    message: { role: 'assistant', content: [text(say)], ...(toolCalls.length > 0 ? { toolCalls } : {}) },
    finish: toolCalls.length > 0 ? 'tool-calls' : 'stop',
    usage: { inputTokens: estimate(JSON.stringify([request.messages, request.tools])), outputTokens: estimate(say + toolCalls.map(call => call.arguments).join('')) },
    model: 'offline/rules',
  }
}

/** Four characters are about a token. */
const estimate = (value: string): number => Math.ceil(value.length / 4)

/** Words, a few at a time, as a model would stream them. */
const pieces = (value: string): string[] => value.match(/[^]{1,12}(?:\s|$)|[^]{1,12}/gu) ?? []

/** Lets others run between two pieces, and ends when the turn does. */
async function breath(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await setImmediate()
  if (signal.aborted) throw new ModelError('aborted', 'model "offline/rules" was stopped')
}

/**
 * How long a conversation is, in tokens: what the endpoint reported for the last request, and an estimate of what came after it. Knows no hook.
 * Before the first report everything is estimated: four bytes a token.
 */
import { textOf, type Message, type SessionEvent, type SessionView, type Usage } from 'harnessx'

/** The last request of a session: how many messages it had, and how many tokens they were. */
interface Reading { readonly messages: number; readonly tokens: number }

export class Meter {
  readonly #readings = new Map<string, Reading>()
  readonly #models = new Map<string, string>()

  measure({ id, messages }: SessionView): number {
    const reading = this.#readings.get(id)
    return reading && reading.messages <= messages.length ? reading.tokens + tokensOf(messages.slice(reading.messages)) : tokensOf(messages)
  }
  modelOf(session: string): string | undefined { return this.#models.get(session) }
  sent({ id, messages }: SessionView, model: string, usage: Usage | undefined): void {
    this.#models.set(id, model)
    if (usage && usage.inputTokens > 0) this.#readings.set(id, { messages: messages.length, tokens: usage.inputTokens })
  }
  /** Reads the last report from the log. */
  resumed({ id, messages }: SessionView, events: readonly SessionEvent[]): void {
    const at = events.findLastIndex(({ type }) => type === 'usage' || type === 'compaction'), usage = events[at]
    if (usage?.type !== 'usage' || usage.inputTokens === 0) return
    const later = events.slice(at).filter(({ type }) => type === 'message' || type === 'tool-result').length
    this.#models.set(id, usage.model)
    if (later <= messages.length) this.#readings.set(id, { messages: messages.length - later, tokens: usage.inputTokens })
  }
  forget(session: string): void {
    this.#readings.delete(session)
    this.#models.delete(session)
  }
}

const known = new WeakMap<Message, number>()
/** An estimate. Messages never change, so each is weighed once. */
export const tokensOf = (messages: readonly Message[]): number => messages.reduce((sum, message) => sum + weigh(message), 0)
function weigh(message: Message): number {
  let tokens = known.get(message)
  if (tokens === undefined) {
    const calls = message.toolCalls?.reduce((sum, call) => sum + call.name.length + Buffer.byteLength(call.arguments), 0) ?? 0
    tokens = Math.ceil(4 + (Buffer.byteLength(textOf(message)) + Buffer.byteLength(message.reasoning ?? '') + calls) / 4)
    known.set(message, tokens)
  }
  return tokens
}

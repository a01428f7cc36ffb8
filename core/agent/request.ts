/**
 * What the model sees, folded from the session log: a request is a pure function of the events. `Transcript` is the fold step by step, `buildRequest` the same from scratch.
 * Knows no store, no hook and no model.
 * Invariants: every call of an assistant message has exactly one answer, directly behind it and in call order; what was given out is deeply frozen and never changes.
 */
import { HarnessError } from '../errors.js'
import { Conversation } from './conversation.js'
import type { EventOf, SessionEvent } from './session-events.js'
import { text, textOf, type Message, type ModelRequest, type ToolSpec } from './vocabulary.js'

export class Transcript {
  #system: string | undefined
  #tools: readonly ToolSpec[] = []
  #request: EventOf<'request'> | undefined
  readonly #conversation = new Conversation()
  /** What the last request sent, and of what it was made. */
  #sent: { readonly messages: readonly Message[]; readonly answered: readonly Message[]; readonly system: string | undefined } | undefined

  constructor(events: Iterable<SessionEvent> = []) {
    for (const event of events) this.append(event)
  }

  get system(): string | undefined { return this.#system }
  /** All tools offered. */
  get tools(): readonly ToolSpec[] { return this.#tools }

  append(event: SessionEvent): void {
    switch (event.type) {
      case 'system': this.#system = event.text; return
      case 'tools': this.#tools = event.tools; return
      case 'request': this.#request = event; return
      case 'message': this.#conversation.add(event.seq, messageOf(event)); return
      case 'tool-result': this.#conversation.add(event.seq, resultOf(event)); return
      case 'compaction': this.#conversation.compact(event.through, event.messages.map(plain)); return
      default: return                                                                             // facts about the conversation, not part of it
    }
  }

  /** The conversation without the system text: a frozen snapshot, the same one until the next message. Calls that run are still without answer. */
  messages(): readonly Message[] { return this.#conversation.messages() }

  /** The request of the last `request` event, or what one of `next` would send. A call without a result reads as interrupted. */
  request(next: Pick<EventOf<'request'>, 'model' | 'options' | 'tools'> | undefined = this.#request): ModelRequest {
    if (!next) throw new HarnessError('internal', 'a request was to be built from a log that holds none')
    const { model, options, tools } = next
    return {
      model: model.slice(model.indexOf('/') + 1),
      messages: this.#messages(),
      tools: tools ? this.#tools.filter(tool => tools.includes(tool.name)) : this.#tools,
      options,
    }
  }

  /** With the system text before them: the same list until something in it changes. */
  #messages(): readonly Message[] {
    const answered = this.#conversation.answered(), system = this.#system
    if (this.#sent?.answered !== answered || this.#sent.system !== system) {
      this.#sent = { answered, system, messages: system === undefined || system === '' ? answered : Object.freeze([systemMessage(system)].concat(answered)) }
    }
    return this.#sent.messages
  }
}

/** The last request of these events; for an earlier one, pass the events up to its `request`. */
export const buildRequest = (events: Iterable<SessionEvent>): ModelRequest => new Transcript(events).request()

/** The first breach of "each call has exactly one answer directly behind its message", in words, or undefined. */
export function checkPairs(messages: readonly Message[]): string | undefined {
  let owed: string[] = []
  for (const [index, { role, toolCalls = [], toolCallId }] of messages.entries()) {
    if (role === 'tool') {
      const place = owed.indexOf(toolCallId ?? '')
      if (place < 0) return `message ${index + 1} answers the tool call "${toolCallId}", which is not open there`
      owed.splice(place, 1)
      continue
    }
    if (owed.length > 0) return `message ${index + 1} comes before the answer to the tool call "${owed[0]}"`
    owed = toolCalls.map(call => call.id)
  }
  return owed.length > 0 ? `the tool call "${owed[0]}" has no answer` : undefined
}

/** A rough count that never needs a tokenizer: four bytes a token, so that scripts with long encodings count for more; 1,500 at most for a part that is not text. */
export function estimateTokens(message: Message): number {
  const bytes = (value: unknown): number => value === undefined ? 0 : Buffer.byteLength(typeof value === 'string' ? value : JSON.stringify(value))
  const parts = message.content.reduce((sum, part) => part.type === 'text' ? sum : sum + Math.min(1500, bytes(part) / 4), 0)
  return Math.ceil(4 + parts + (bytes(textOf(message)) + bytes(message.reasoning) + bytes(message.toolCalls)) / 4)
}

/** Templates of some models take one system message, the first; a later one is sent as text of the user. */
const plain = (message: Message): Message => Object.freeze({ ...message, role: message.role === 'system' ? 'user' : message.role })

const messageOf = ({ role, content, source, toolCalls, reasoning, extra }: EventOf<'message'>): Message => plain({
  role, content, source,
  ...toolCalls?.length && { toolCalls },
  ...reasoning !== undefined && { reasoning },
  ...extra !== undefined && { extra },
})
const resultOf = ({ callId, name, content }: EventOf<'tool-result'>): Message =>
  Object.freeze<Message>({ role: 'tool', content: Object.freeze([Object.freeze(text(content))]), source: Object.freeze({ kind: 'tool', id: name }), toolCallId: callId })
const systemMessage = (system: string): Message => Object.freeze<Message>({ role: 'system', content: Object.freeze([Object.freeze(text(system))]), source: Object.freeze({ kind: 'core' }) })

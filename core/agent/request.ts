/**
 * What the model sees, folded from the session log: a request is a pure function of the events. `Transcript` is the fold step by step, `buildRequest` the same from scratch.
 * Knows no store, no hook and no model.
 * Invariants: every call of an assistant message has exactly one answer, directly behind it and in call order; a compaction never cuts through such a group;
 * what was given out is frozen and never changes.
 */
import { HarnessError } from '../errors.js'
import type { EventOf, SessionEvent } from './session-events.js'
import { text, textOf, type Message, type ModelRequest, type ToolSpec } from './vocabulary.js'

/** What the model reads for a call that never got its result: the process ended, or the line was lost. */
export const INTERRUPTED = 'interrupted: this call was cut off before its result was known; it may have run or not'

/** A message, with its answers when it has calls. `seq` is the last event that belongs to it. */
interface Group { seq: number; readonly message: Message; readonly answers: (Message | undefined)[] }

export class Transcript {
  #system: string | undefined
  #tools: readonly ToolSpec[] = []
  #request: EventOf<'request'> | undefined
  #groups: Group[] = []
  #snapshot: readonly Message[] | undefined

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
      case 'message': place(this.#groups, event.seq, messageOf(event)); break
      case 'tool-result': place(this.#groups, event.seq, resultOf(event)); break
      case 'compaction': this.#groups = compact(this.#groups, event); break
      default: return                                                                             // facts about the conversation, not part of it
    }
    this.#snapshot = undefined
  }

  /** The conversation without the system text: a frozen snapshot, the same one until the next message. Calls that run are still without answer. */
  messages(): readonly Message[] {
    return this.#snapshot ??= Object.freeze(this.#groups.flatMap(({ message, answers }) => [message, ...answers.filter(answer => answer !== undefined)]))
  }

  /** The request of the last `request` event, or what one of `next` would send. A call without a result reads as interrupted. */
  request(next: Pick<EventOf<'request'>, 'model' | 'options' | 'tools'> | undefined = this.#request): ModelRequest {
    if (!next) throw new HarnessError('internal', 'a request was to be built from a log that holds none')
    const { model, options, tools } = next
    const history = this.#groups.flatMap(({ message, answers }) => [message, ...answers.map((answer, index) => answer ?? unanswered(message, index))])
    return {
      model: model.slice(model.indexOf('/') + 1),
      messages: this.#system === undefined || this.#system === '' ? history : [{ role: 'system', content: [text(this.#system)], source: { kind: 'core' } }, ...history],
      tools: tools ? this.#tools.filter(tool => tools.includes(tool.name)) : this.#tools,
      options,
    }
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

/** Puts a message behind the others; one of a tool goes to the open call it answers, in the newest group, or nowhere: a result without its call can't be sent. */
function place(groups: Group[], seq: number, message: Message): void {
  if (message.role !== 'tool') {
    groups.push({ seq, message, answers: message.toolCalls?.map(() => undefined) ?? [] })
    return
  }
  const group = groups.findLast(({ answers }) => answers.length > 0)
  const index = group?.message.toolCalls?.findIndex((call, at) => call.id === message.toolCallId && !group.answers[at]) ?? -1
  if (!group || index < 0) return
  group.answers[index] = message
  group.seq = Math.max(group.seq, seq)
}

/** What lies wholly up to `through` gives way to the summary. A message whose answers come later stays with them. */
function compact(groups: readonly Group[], { through, messages }: EventOf<'compaction'>): Group[] {
  const summary: Group[] = [], newest = groups.at(-1)
  for (const message of messages) place(summary, through, plain(message))
  return [...summary, ...groups.filter(group => group.seq > through || group === newest && group.answers.includes(undefined))]
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
  Object.freeze<Message>({ role: 'tool', content: Object.freeze([text(content)]), source: { kind: 'tool', id: name }, toolCallId: callId })
const unanswered = ({ toolCalls }: Message, index: number): Message =>
  ({ role: 'tool', content: [text(INTERRUPTED)], source: { kind: 'core' }, toolCallId: toolCalls![index]!.id })

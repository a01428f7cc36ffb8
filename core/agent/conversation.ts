/**
 * The messages of a session in the order in which they are sent, kept so that the next one costs itself only, however many there are: what can't change any more is
 * written out once, and a list is that and its last few. Knows no event and no request.
 * Invariants: every answer stands directly behind its call's message, in call order; a compaction never cuts through such a group; what was given out is frozen and never changes.
 */
import { text, type Message } from './vocabulary.js'

/** What the model reads for a call that never got its result: the process ended, or the line was lost. */
export const INTERRUPTED = 'interrupted: this call was cut off before its result was known; it may have run or not'

/** A message, with its answers when it has calls. `seq` is the last event that belongs to it. */
interface Group { seq: number; readonly message: Message; readonly answers: (Message | undefined)[] }

export class Conversation {
  #groups: Group[] = []
  /** Of the newest group with calls, the only one that still takes answers. */
  #asking = -1
  #plain = new Written(({ message, answers }) => [message, ...answers.filter(answer => answer !== undefined)])
  #whole = new Written(({ message, answers }) => [message, ...answers.map((answer, index) => answer ?? unanswered(message, index))])

  /** Puts a message behind the others; one of a tool goes to the open call it answers, in the newest group with calls, or nowhere: a result without its call can't be sent. */
  add(seq: number, message: Message): void {
    if (message.role !== 'tool') {
      const answers = message.toolCalls?.map(() => undefined) ?? []
      if (answers.length > 0) this.#asking = this.#groups.length
      this.#groups.push({ seq, message, answers })
    } else {
      const group = this.#groups[this.#asking]
      const index = group?.message.toolCalls?.findIndex((call, at) => call.id === message.toolCallId && !group.answers[at]) ?? -1
      if (!group || index < 0) return
      group.answers[index] = message
      group.seq = Math.max(group.seq, seq)
    }
    this.#plain.last = this.#whole.last = undefined
  }
  /** What lies wholly up to `through` gives way to `summary`. A message whose answers come later stays with them. */
  compact(through: number, summary: readonly Message[]): void {
    const groups = this.#groups, newest = groups.at(-1)
    this.#groups = []
    this.#asking = -1
    this.#plain.clear()
    this.#whole.clear()
    for (const message of summary) this.add(through, message)
    this.#groups.push(...groups.filter(group => group.seq > through || group === newest && group.answers.includes(undefined)))
    this.#asking = this.#groups.findLastIndex(({ answers }) => answers.length > 0)
  }

  /** As it is: calls that run are without answer. The same list until the next message. */
  messages(): readonly Message[] { return this.#plain.read(this.#groups, this.#closed) }
  /** As it is sent: a call without a result reads as interrupted. */
  answered(): readonly Message[] { return this.#whole.read(this.#groups, this.#closed) }

  /** How many groups can't change any more. */
  get #closed(): number { return this.#groups[this.#asking]?.answers.includes(undefined) ? this.#asking : this.#groups.length }
}

/** Groups as one list of messages. */
class Written {
  last: readonly Message[] | undefined
  readonly #of: (group: Group) => readonly Message[]
  readonly #closed: Message[] = []
  #groups = 0
  constructor(of: (group: Group) => readonly Message[]) { this.#of = of }

  clear(): void {
    this.last = undefined
    this.#closed.length = this.#groups = 0
  }
  read(groups: readonly Group[], closed: number): readonly Message[] {
    if (this.last) return this.last
    for (; this.#groups < closed; this.#groups++) this.#closed.push(...this.#of(groups[this.#groups]!))
    return this.last = Object.freeze(this.#closed.concat(groups.slice(closed).flatMap(this.#of)))       // concat copies a list of any length within microseconds
  }
}

const unanswered = ({ toolCalls }: Message, index: number): Message =>
  Object.freeze<Message>({ role: 'tool', content: Object.freeze([Object.freeze(text(INTERRUPTED))]), source: Object.freeze({ kind: 'core' }), toolCallId: toolCalls![index]!.id })

/**
 * What the person of a chat is asked, one thing at a time: calls that need a yes, and changes that a tool may have made to what runs here. Knows no keys and no screen; the port shows.
 * Invariant: a question that is open is answered, dismissed or withdrawn before the next is put.
 */
import { onAbort } from '../../agent/abort.js'
import type { ApprovalAnswer, Approver } from '../../agent/services.js'
import { messageOf } from '../../errors.js'
import { exactRule, keepRule } from '../always.js'
import { shownDiff, tellReport } from '../held.js'
import type { Io } from '../io.js'
import type { Conversation } from './conversation.js'
import { HeldQuestion } from './held-question.js'
import { Question, type Asked } from './question.js'
import { span, wrap, type Line } from './spans.js'

export interface AskingPort {
  readonly width: number
  /** Says something for good, after what the turn has said. */
  say(lines: readonly Line[]): void
  note(text: string): void
  problem(message: string): void
  /** Something to be looked at has come or gone. */
  changed(): void
}

export class Asking {
  readonly #io: Io
  readonly #talk: Conversation
  readonly #port: AskingPort
  #open: Asked[] = []

  constructor(io: Io, talk: Conversation, port: AskingPort) {
    this.#io = io
    this.#talk = talk
    this.#port = port
  }
  get current(): Asked | undefined { return this.#open[0] }

  readonly approver: Approver = async request => {
    if (request.signal.aborted) return undefined
    const answer = await this.#put<ApprovalAnswer | undefined>(settle => {
      onAbort(request.signal, () => { settle(undefined) })
      return new Question(request, settle)
    })
    if (answer?.answer === 'always') {
      await keepRule(this.#io, this.#talk.client, request.plugin, exactRule(request)!).then(kept => { this.#port.note(kept) }, (error: unknown) => { this.#port.problem(`not kept, so it holds as long as this host runs: ${messageOf(error)}`) })
    }
    this.#show()
    return answer
  }
  /** After a turn: is there something that waits for a yes? `typing`: the person writes already, and is told only. */
  async held(typing: () => boolean): Promise<void> {
    const held = await this.#talk.held()
    if (held.length === 0) return
    const question = new HeldQuestion(held)
    if (typing()) this.#port.say(question.shown(this.#port.width))
    else for (;;) {
      const answer = await this.#put<'load' | 'leave' | 'diff'>(settle => question.asked(settle))
      if (answer === 'diff') { this.#port.say(shownDiff(held).split('\n').flatMap(line => wrap([span(line)], this.#port.width))); continue }
      this.#show()
      if (answer === 'load') { tellReport(this.#io, await this.#talk.ask(client => client.reloadHeld()), text => { this.#port.note(text) }); return }
      break
    }
    this.#port.note('not loaded: /reload --held loads it, /reload --diff shows it, putting the file back drops it')
  }

  async #put<T>(make: (settle: (answer: T) => void) => Asked): Promise<T> {
    let question: Asked | undefined
    const answer = await new Promise<T>(settle => {
      question = make(settle)
      this.#open.push(question)
      if (this.#open.length === 1) this.#show()
    })
    this.#open = this.#open.filter(one => one !== question)
    return answer
  }
  /** Puts the first question that is open. */
  #show(): void {
    const { current } = this
    if (current) {
      this.#port.say(current.shown(this.#port.width))
      current.begin()
      if (this.#io.stdout.isTTY) this.#io.stdout.write('\u0007')                   // somebody may look elsewhere
    }
    this.#port.changed()
  }
}

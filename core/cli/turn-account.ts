/** What the turns in a stream of log lines came to: the result of a turn, from the log alone, for whoever was not told of it. Pure; knows no daemon. */
import type { RunEvent, RunResult } from '../agent/services.js'
import { textOf } from '../agent/vocabulary.js'

export class TurnAccount {
  readonly #session: string
  #text = ''
  #unanswered = false
  #last = 0
  #turn = 0
  #result: RunResult | undefined
  constructor(session: string) { this.#session = session }

  /** The last `seq` that was seen. */
  get last(): number { return this.#last }
  /** The turn that is under way, or the last one; 0 before the first. */
  get turn(): number { return this.#turn }
  /** Of the last turn, once it has ended. */
  get result(): RunResult | undefined { return this.#result }

  see(event: RunEvent): void {
    if (!('seq' in event)) return
    this.#last = event.seq
    switch (event.type) {
      case 'turn-start':
        this.#turn = event.turn
        this.#text = ''
        this.#unanswered = false
        this.#result = undefined
        return
      case 'message': if (event.role === 'assistant') this.#text = textOf(event); return
      case 'approval': this.#unanswered ||= event.answer === 'denied' && (event.by === 'nobody' || event.by === 'timeout'); return
      case 'turn-end': {
        const { turn, reason, kind, message, stats, usage } = event
        this.#result = { session: this.#session, turn, reason, kind, message, stats, usage, text: this.#text, unanswered: this.#unanswered }
        return
      }
      default: return
    }
  }
  /** The place in the log is not in there any more: it comes again from its first line. */
  reset(): void { this.#last = 0 }
}

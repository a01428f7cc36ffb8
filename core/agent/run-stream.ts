/**
 * The events of one run on their way to whoever follows it. Never makes the turn wait: without a reader, or with a slow one, what is not logged (deltas, progress) is dropped
 * beyond a limit; log lines never are, the session holds them anyway. Knows no session.
 */
import type { RunEvent } from './services.js'

/** Characters of deltas and progress that wait for the reader. */
const MAX_WAITING_CHARS = 256 * 1024

export class RunStream implements AsyncIterable<RunEvent> {
  #waiting: RunEvent[] = []
  #chars = 0
  #ended = false
  #left = false
  #wake: (() => void) | undefined

  push(event: RunEvent): void {
    if (this.#left || this.#ended) return
    const chars = charsOf(event)
    if (chars > 0 && this.#chars + chars > MAX_WAITING_CHARS) return
    this.#chars += chars
    this.#waiting.push(event)
    this.#wake?.()
  }
  end(): void {
    this.#ended = true
    this.#wake?.()
  }

  /** One reader; a reader that leaves frees what waits. */
  async* [Symbol.asyncIterator](): AsyncGenerator<RunEvent, void> {
    try {
      for (;;) {
        const batch = this.#waiting
        this.#waiting = []
        this.#chars = 0
        for (const event of batch) yield event               // `yield*` would wrap each event once more
        if (this.#waiting.length > 0) continue
        if (this.#ended) return
        await new Promise<void>(resolve => { this.#wake = resolve })
      }
    } finally {
      this.#left = true
      this.#waiting = []
    }
  }
}

const charsOf = (event: RunEvent): number => event.type === 'delta' ? event.text.length : event.type === 'progress' ? event.message.length : 0

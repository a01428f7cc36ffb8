/**
 * A session that is open: its log, and what the log adds up to (conversation, system text, tools, turns). Everything that happens goes through `append`.
 * Knows no store, no hook and no plugin.
 * Invariants: what it says of itself is folded from the events, the same after a restart; a view never changes, whatever is appended later.
 */
import { isDeepStrictEqual } from 'node:util'
import { Transcript } from './request.js'
import type { SessionEvent, SessionEventBody, SessionWriter } from './session-events.js'
import type { Message, Mode, ModelRequest, SessionView, ToolSpec } from './vocabulary.js'

/** Messages between two compactions: of these, each snapshot is a beginning of the next. `last` is the final one, once the next compaction has come. */
interface Era { last?: readonly Message[] }

export class Session {
  readonly id: string
  readonly cwd: string
  readonly parent: string | undefined
  readonly depth: number
  /** Of the turn that runs. */
  mode: Mode = 'default'
  /** Is told of every event from here on. */
  onEvent: ((event: SessionEvent) => void) | undefined
  /** A folder for full outputs, made when it is first asked for. */
  readonly outputDir: () => string
  readonly #writer: SessionWriter
  readonly #transcript = new Transcript()
  readonly #callIds = new Set<string>()
  #turns = 0
  #archived = false
  #era: Era = {}
  #count = 0
  #view: SessionView | undefined

  constructor(writer: SessionWriter, outputDir: () => string) {
    const [header] = writer.events
    if (header?.type !== 'session') throw new TypeError(`session "${writer.id}" does not begin with its own line`)
    this.id = header.id
    this.cwd = header.cwd
    this.parent = header.parent
    this.depth = header.depth
    this.outputDir = outputDir
    this.#writer = writer
    for (const event of writer.events) this.#apply(event)
    this.#count = this.messages().length                               // a damaged log may hold results that answer nothing
  }

  get events(): readonly SessionEvent[] { return this.#writer.events }
  /** Turns that were begun, the running one too. */
  get turns(): number { return this.#turns }
  get archived(): boolean { return this.#archived }
  /** The system text in force, or undefined before the first. */
  get system(): string | undefined { return this.#transcript.system }
  get tools(): readonly ToolSpec[] { return this.#transcript.tools }

  /** Throws `storage_failed` once the log can't be written. */
  append(body: SessionEventBody): SessionEvent {
    const event = this.#writer.append(body)
    this.#apply(event)
    this.onEvent?.(event)
    return event
  }
  /** Resolves when everything so far is as durable as the store promises. */
  commit(): Promise<void> { return this.#writer.commit() }
  close(): Promise<void> { return this.#writer.close() }

  /** The conversation without the system text. */
  messages(): readonly Message[] { return this.#transcript.messages() }
  /** What the last `request` event sends, or what one of `next` would. */
  request(next?: Parameters<Transcript['request']>[0]): ModelRequest { return this.#transcript.request(next) }
  hasTools(tools: readonly ToolSpec[]): boolean { return tools === this.tools || isDeepStrictEqual(tools, this.tools) }
  hasCall(id: string): boolean { return this.#callIds.has(id) }

  /** The session as payloads show it. The snapshot of the messages is made when somebody first reads it, of what was there when the view was made. */
  view(): SessionView {
    if (this.#view?.mode === this.mode) return this.#view
    const { id, cwd, parent, depth, mode } = this
    const transcript = this.#transcript, era = this.#era, count = this.#count
    let messages: readonly Message[] | undefined
    const snapshot = () => {
      const all = era.last ?? transcript.messages()
      return all.length === count ? all : Object.freeze(all.slice(0, count))
    }
    return this.#view = Object.freeze({ id, cwd, parent, depth, mode, get messages() { return messages ??= snapshot() } })
  }

  #apply(event: SessionEvent): void {
    if (event.type === 'compaction') {
      this.#era.last = this.#transcript.messages()
      this.#era = {}
    }
    this.#transcript.append(event)
    switch (event.type) {
      case 'message':
        for (const { id } of event.toolCalls ?? []) this.#callIds.add(id)
        this.#count++
        break
      case 'tool-result': this.#count++; break
      case 'compaction': this.#count = this.#transcript.messages().length; break
      case 'turn-start': this.#turns = Math.max(this.#turns, event.turn); return
      case 'archived': this.#archived = true; return
      default: return
    }
    this.#view = undefined
  }
}

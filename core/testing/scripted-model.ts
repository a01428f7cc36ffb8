/**
 * The model of a test host: says what the test wrote down, in order, and keeps what it was sent. Knows no host.
 * Invariants: each reply is said once; a request beyond the script fails its turn with a sentence that counts.
 */
import type { Model, ModelChunk } from '../agent/services.js'
import { text, type Finish, type ModelRequest, type RawToolCall, type Reply, type Usage } from '../agent/vocabulary.js'

/** A whole reply. Everything may be left out. */
export interface Scripted {
  readonly text?: string
  /** Calls of tools; arguments as an object, or the raw string that a model might send. */
  readonly calls?: readonly { readonly name: string; readonly arguments: object | string; readonly id?: string }[]
  readonly reasoning?: string
  readonly usage?: Usage
  readonly finish?: Finish
  /** Thrown in place of a reply: a `ModelError`, say. */
  readonly error?: unknown
  /** Says nothing more until the turn is stopped. */
  readonly hang?: boolean
}
/** What the model says next: text, a reply, or what a function makes of the request. */
export type ScriptedReply = string | Scripted | ((request: ModelRequest) => ScriptedReply | Promise<ScriptedReply>)
/** Replies in order, or one function for all requests. */
export type Script = readonly ScriptedReply[] | ((request: ModelRequest) => ScriptedReply | Promise<ScriptedReply>)

const USAGE: Usage = { inputTokens: 1, outputTokens: 1 }

export class ScriptedModel implements Model {
  readonly id = 'scripted'
  readonly defaultModel = 'scripted'
  readonly requests: ModelRequest[] = []
  readonly #replies: ScriptedReply[]
  readonly #always: ScriptedReply | undefined
  #calls = 0

  constructor(script: Script) {
    this.#replies = typeof script === 'function' ? [] : [...script]
    this.#always = typeof script === 'function' ? script : undefined
  }
  ready(): true { return true }
  says(replies: readonly ScriptedReply[]): void { this.#replies.push(...replies) }

  async* stream(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<ModelChunk> {
    this.requests.push(request)
    let next = this.#replies.shift() ?? this.#always
    if (next === undefined) throw new Error(`the script has no reply for request ${this.requests.length}`)
    while (typeof next === 'function') next = await next(request)
    const said = typeof next === 'string' ? { text: next } : next
    if (said.text) yield { kind: 'text', text: said.text }
    if (said.hang) await untilAborted(signal)
    if (said.error !== undefined) throw said.error
    yield { kind: 'reply', reply: this.#reply(said) }
  }

  #reply({ text: words, calls = [], reasoning, usage = USAGE, finish }: Scripted): Reply {
    const toolCalls = calls.map(({ name, arguments: args, id = `call_${++this.#calls}` }): RawToolCall => ({ id, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) }))
    return {
      message: { role: 'assistant', content: words ? [text(words)] : [], ...(toolCalls.length > 0 && { toolCalls }), ...(reasoning !== undefined && { reasoning }) },
      finish: finish ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'), usage,
    }
  }
}

const untilAborted = (signal: AbortSignal): Promise<never> => new Promise((_, reject) => {
  const stop = () => { reject(signal.reason) }
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop, { once: true })
})

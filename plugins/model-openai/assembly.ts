/**
 * From the chunks of a stream to deltas and, in the end, one reply. Knows no socket and no SDK.
 * Endpoints differ in how they cut a tool call: without `index`, with one index for all, arguments before the name, ids late or never. What decides is
 * explained at `slot`. Fields that are not understood are kept, to go back as they came.
 */
import { randomUUID } from 'node:crypto'
import { ModelError, text, type Finish, type Json, type Message, type ModelChunk, type Part, type RawToolCall, type Reply, type Usage } from 'harnessx'

type Fields = Record<string, unknown>
interface Call { id: string | undefined; index: number | undefined; name: string; arguments: string; told: number; extra: Fields; inner: Fields }

const SYNONYMS: Readonly<Record<string, Finish>> = {
  stop: 'stop', eos: 'stop', end_turn: 'stop', stop_sequence: 'stop',
  tool_calls: 'tool-calls', function_call: 'tool-calls', tool_use: 'tool-calls',
  length: 'length', max_tokens: 'length', model_length: 'length',
  content_filter: 'content-filter', safety: 'content-filter', recitation: 'content-filter',
}

export class Assembly {
  text = ''
  /** A chunk said why the model stopped. */
  finished = false
  readonly #who: string
  readonly #limit: number
  readonly #earlier: () => Iterable<string>
  /** Ids that a new call can't have; looked for when the first call comes. */
  #taken: Set<string> | undefined
  readonly #owner = new Map<string, Call>()
  readonly #calls: Call[] = []
  readonly #parts: Part[] = []
  readonly #extra: Fields = {}
  #reasoning: string | undefined
  #finish: string | undefined
  #usage: Usage | undefined
  #model: string | undefined
  /** The one choice that is read, whatever others are sent beside it. */
  #choice: unknown
  #size = 0

  /** `earlier` gives the ids of earlier tool calls: a new call never gets one of them. `limit` bounds what a reply may hold, in characters. */
  constructor(who: string, limit: number, earlier: () => Iterable<string> = () => []) {
    this.#who = who
    this.#limit = limit
    this.#earlier = earlier
  }

  /** Takes one chunk, or a whole completion, and gives what is new in it. */
  *take(chunk: unknown): Generator<ModelChunk> {
    if (!isFields(chunk)) throw this.#wrong('sent a chunk that is not an object')
    if (typeof chunk['model'] === 'string' && chunk['model']) this.#model = chunk['model']
    const choices = Array.isArray(chunk['choices']) ? chunk['choices'].filter(isFields) : []
    const choice = this.#choice === undefined ? choices.find(one => placeOf(one) === 0) ?? choices[0] : choices.find(one => placeOf(one) === this.#choice)
    this.#usage = usageOf(chunk['usage']) ?? usageOf(choice?.['usage']) ?? this.#usage
    if (!choice) return
    this.#choice ??= placeOf(choice)
    const delta = choice['delta'] ?? choice['message']
    if (isFields(delta)) yield* this.#delta(delta)
    const finish = choice['finish_reason']
    if (typeof finish === 'string' && finish) { this.#finish = finish; this.finished = true }
  }

  /** The reply. `ended`: the stream said `[DONE]`. */
  reply(ended: boolean): Reply {
    if (this.#choice === undefined) throw this.#wrong('sent no choices')
    if (this.#finish === undefined && !ended) throw new ModelError('truncated', `${this.#who} ended its stream in the middle of the reply`, { partial: this.text || undefined })
    if (this.#finish === 'error' || this.#finish === 'insufficient_system_resource') throw new ModelError('overloaded', `${this.#who} gave up in the middle of the reply (${this.#finish})`, { partial: this.text || undefined })
    const said = this.#finish?.toLowerCase() ?? 'stop', finish = Object.hasOwn(SYNONYMS, said) ? SYNONYMS[said]! : 'other'
    // A reply that was cut may have cut its last call: none of its calls runs.
    const cut = finish === 'length' || finish === 'content-filter'
    const toolCalls = cut ? [] : inOrder(this.#calls).map(call => this.#finished(call))
    const extra = compact(this.#extra)
    const message: Message = {
      role: 'assistant',
      content: [...(this.text ? [text(this.text)] : []), ...this.#parts],
      ...(toolCalls.length > 0 ? { toolCalls } : {}),
      ...(this.#reasoning === undefined ? {} : { reasoning: this.#reasoning }),
      ...(extra ? { extra } : {}),
    }
    // Calls decide, not the reason: some endpoints say `stop` beside them.
    return { message, finish: toolCalls.length > 0 ? 'tool-calls' : finish === 'tool-calls' ? 'stop' : finish, ...(this.#usage ? { usage: this.#usage } : {}), ...(this.#model ? { model: this.#model } : {}) }
  }

  *#delta(delta: Fields): Generator<ModelChunk> {
    const { role: _, content, refusal, reasoning_content, reasoning, tool_calls, function_call, ...unknown } = delta
    // Gateways send both names for the same piece: the first that is there counts.
    const thought = typeof reasoning_content === 'string' ? reasoning_content : typeof reasoning === 'string' ? reasoning : undefined
    if (thought !== undefined) yield* this.#think(thought)
    if (typeof content === 'string') yield* this.#say(content)
    else for (const part of Array.isArray(content) ? content : [content]) yield* this.#part(part)
    if (typeof refusal === 'string') yield* this.#say(refusal)
    if (Array.isArray(tool_calls)) for (const call of tool_calls) if (isFields(call)) yield* this.#call(call)
    if (isFields(function_call)) yield* this.#call({ function: function_call })                    // as it was before there were several calls
    this.#keep(this.#extra, unknown)
  }

  *#say(piece: string): Generator<ModelChunk> {
    if (!piece) return
    this.#grow(piece.length)
    this.text += piece
    yield { kind: 'text', text: piece }
  }
  *#think(piece: string): Generator<ModelChunk> {
    this.#grow(piece.length)
    this.#reasoning = (this.#reasoning ?? '') + piece
    if (piece) yield { kind: 'reasoning', text: piece }
  }
  /** Content as a list: text and thinking are read; any other part is kept whole. */
  *#part(part: unknown): Generator<ModelChunk> {
    if (typeof part === 'string') return yield* this.#say(part)
    if (!isFields(part)) return
    if (typeof part['text'] === 'string' && (part['type'] ?? 'text') === 'text') return yield* this.#say(part['text'])
    if (part['type'] === 'thinking') {
      const thoughts = Array.isArray(part['thinking']) ? part['thinking'] : [part['thinking']]
      for (const one of thoughts) { const thought = isFields(one) ? one['text'] : one; if (typeof thought === 'string') yield* this.#think(thought) }
      return
    }
    if (typeof part['type'] !== 'string') return
    this.#grow(sizeOf(part))
    this.#parts.push(part as Part)
  }

  *#call(delta: Fields): Generator<ModelChunk> {
    const { index, id, type: _, function: inner, ...outer } = delta
    const { name, arguments: given, ...innerRest } = isFields(inner) ? inner : {} as Fields
    const called = typeof name === 'string' ? name : ''
    const piece = typeof given === 'string' ? given : given === undefined || given === null ? '' : JSON.stringify(given)
    const call = this.#slot(typeof index === 'number' ? index : undefined, typeof id === 'string' && id ? id : undefined, called)
    this.#grow(piece.length + called.length)
    // A name comes whole, in pieces, or again with every delta.
    if (called && called !== call.name) call.name += called
    call.arguments += piece
    this.#keep(call.extra, outer)
    this.#keep(call.inner, innerRest)
    if (!call.name || call.told === call.arguments.length) return                                  // told from the moment on that it is known which tool it is
    const news = call.arguments.slice(call.told)
    call.told = call.arguments.length
    yield { kind: 'arguments', text: news, callId: this.#identify(call) }
  }

  /**
   * The call that a delta belongs to.
   * With an index: the last call of that index, unless the delta brings another id together with a name; then it is a new one (endpoints that say 0 for all).
   * Without: the call of that id. Else the last call goes on, unless the delta brings a new id, or a name where the last call has one already.
   */
  #slot(index: number | undefined, id: string | undefined, name: string): Call {
    const last = this.#calls.at(-1)
    if (index !== undefined) {
      const found = this.#calls.findLast(call => call.index === index)
      if (found && !(id !== undefined && found.id !== undefined && id !== found.id && name && found.name)) { found.id ??= id; return found }
    } else if (id !== undefined) {
      const found = this.#calls.find(call => call.id === id)
      if (found) return found
      if (last && last.id === undefined && !(name && last.name)) { last.id = id; return last }
    } else if (last && !(name && last.name && !(name === last.name && unfinished(last.arguments)))) return last
    const call: Call = { id, index, name: '', arguments: '', told: 0, extra: {}, inner: {} }
    this.#grow(64)
    this.#calls.push(call)
    return call
  }

  /** Fixes the id: the endpoint's, or one of ours when it sent none or one that is taken. */
  #identify(call: Call): string {
    if (call.id !== undefined && this.#owner.get(call.id) === call) return call.id
    const taken = this.#taken ??= new Set(this.#earlier())
    const id = call.id !== undefined && !taken.has(call.id) ? call.id : `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`
    taken.add(id)
    this.#owner.set(id, call)
    call.id = id
    return id
  }
  #finished(call: Call): RawToolCall {
    if (!call.name) throw this.#wrong('sent a tool call without a name')
    const inner = compact(call.inner)
    const extra = compact({ ...call.extra, ...(inner ? { function: inner } : {}) })
    return { id: this.#identify(call), name: call.name, arguments: call.arguments, ...(extra ? { extra } : {}) }
  }

  #keep(into: Fields, fields: Fields): void {
    for (const [key, value] of Object.entries(fields)) {
      if (value === null || value === undefined) continue
      this.#grow(sizeOf(value))
      into[key] = merged(into[key], value)
    }
  }
  #grow(by: number): void {
    this.#size += by
    if (this.#size > this.#limit) throw new ModelError('protocol', `${this.#who} sent more than ${this.#limit} characters in one reply`, { retryable: false, partial: this.text.slice(0, 100_000) || undefined })
  }
  #wrong(what: string): ModelError { return new ModelError('protocol', `${this.#who} ${what}`, { partial: this.text || undefined }) }
}

const placeOf = (choice: Fields): unknown => choice['index'] ?? 0
/** By index where each has one of its own, else as they came. */
function inOrder(calls: readonly Call[]): readonly Call[] {
  const places = new Set(calls.map(({ index }) => index))
  return places.size < calls.length || places.has(undefined) ? calls : calls.toSorted((a, b) => a.index! - b.index!)
}

/** Arguments that go on: begun, and not yet JSON. */
function unfinished(args: string): boolean {
  if (args === '') return false
  try { JSON.parse(args); return false } catch { return true }                                     // not JSON yet is the answer, not a failure
}

/** What streams in lists is matched by `index` and what streams in strings of these names is joined; anything else is replaced by what came last. */
const JOINED = new Set(['text', 'summary', 'data', 'content', 'thinking'])
function merged(old: unknown, piece: unknown, key = ''): unknown {
  if (typeof old === 'string' && typeof piece === 'string' && JOINED.has(key)) return old + piece
  if (Array.isArray(old) && Array.isArray(piece)) {
    const list = [...old]
    for (const item of piece) {
      const at = isFields(item) && typeof item['index'] === 'number' ? list.findIndex(one => isFields(one) && one['index'] === item['index'] && one['type'] === item['type']) : -1
      if (at === -1) list.push(item); else list[at] = merged(list[at], item)
    }
    return list
  }
  if (isFields(old) && isFields(piece)) {
    const out = { ...old }
    for (const [name, value] of Object.entries(piece)) if (value !== null && value !== undefined) out[name] = merged(out[name], value, name)
    return out
  }
  return piece
}

export function usageOf(value: unknown): Usage | undefined {
  if (!isFields(value)) return undefined
  const count = (number: unknown): number | undefined => typeof number === 'number' && Number.isFinite(number) && number >= 0 ? Math.round(number) : undefined
  const input = count(value['prompt_tokens']), output = count(value['completion_tokens'])
  if (input === undefined && output === undefined) return undefined
  const inputDetails = isFields(value['prompt_tokens_details']) ? value['prompt_tokens_details'] : {} as Fields
  const outputDetails = isFields(value['completion_tokens_details']) ? value['completion_tokens_details'] : {} as Fields
  const cached = count(inputDetails['cached_tokens']) ?? count(value['prompt_cache_hit_tokens']) ?? count(value['cached_tokens'])
  const reasoning = count(outputDetails['reasoning_tokens'])
  return { inputTokens: input ?? 0, outputTokens: output ?? 0, ...(cached === undefined ? {} : { cachedTokens: cached }), ...(reasoning === undefined ? {} : { reasoningTokens: reasoning }) }
}

const isFields = (value: unknown): value is Fields => typeof value === 'object' && value !== null && !Array.isArray(value)
const sizeOf = (value: unknown): number => JSON.stringify(value)?.length ?? 0
/** Plain JSON of what was kept, or undefined when nothing was: empty lists say nothing. */
function compact(fields: Fields): Json | undefined {
  const kept = Object.entries(fields).filter(([, value]) => !(Array.isArray(value) && value.length === 0))
  return kept.length === 0 ? undefined : Object.fromEntries(kept) as Json
}

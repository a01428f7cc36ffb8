/**
 * From a judged request to a whole reply: the hook around it, each attempt that is sent, the stream and its pieces. Knows no tool and no history.
 * Invariants: an attempt is in the log before it is sent; a stream that ends without its reply is an error; an abort ends the wait at once, whether the model listens or not.
 */
import { messageOf, show } from '../errors.js'
import type { Owner } from '../kernel/registry.js'
import { link, ownerSignal, untilAborted, waitsUntilAborted } from './abort.js'
import type { Base, RequestPayload } from './hooks.js'
import { isPart } from './hook-rules.js'
import { nameOf } from './models.js'
import { ModelError, type Model, type ModelChunk } from './services.js'
import type { Turn } from './turn.js'
import { text, type Message, type ModelRequest, type Reply } from './vocabulary.js'

/** A request before it is sent; `tools` are those that the judges left. */
export type Draft = Omit<RequestPayload, keyof Base>

/** Sends the request, as often as the handlers around it ask, and gives the reply that stands. Rejects with what failed it. */
export async function requestReply(turn: Turn, draft: Draft): Promise<Reply> {
  let attempts = 0, failure: string | undefined
  const verdict = await turn.ask('agent/request', draft, {
    inner: async ({ model, options }, act) => {
      if (failure !== undefined) turn.warn(`attempt ${attempts} failed and is made again: ${failure}`)
      attempts++
      try {
        return await attempt(turn, { ...draft, model, options }, attempts, act.signal)
      } catch (error) {
        failure = messageOf(error)
        throw error
      }
    },
  })
  return readReply(verdict.value, draft.model)
}

/** `signal` is the turn's, and also aborted when a handler around the request has given up waiting. */
async function attempt(turn: Turn, { model, options, tools }: Draft, number: number, signal: AbortSignal): Promise<Reply> {
  const { models } = turn.ports
  const choice = models.resolve(model)
  turn.signal.throwIfAborted()
  turn.partial = ''
  turn.log({ type: 'request', ...turn.at, model: nameOf(choice), options, ...(tools.length < turn.session.tools.length && { tools: tools.map(tool => tool.name) }), attempt: number })
  const request = turn.session.request()
  const streaming = models.use(choice.id, signal, (entry, owner) => streamReply(entry, owner, request, signal, chunk => { pass(turn, chunk, number) }))
  if (!streaming) throw new ModelError('network', `model "${nameOf(choice)}" is gone: its plugin was unloaded`)
  const reply = await untilAborted(streaming, signal)
  if (reply.usage) {
    const usage = turn.spend(reply.usage, nameOf(choice))
    turn.log({ type: 'usage', ...turn.at, model: nameOf(choice), ...usage })
  }
  return reply
}

type Piece = Exclude<ModelChunk, { kind: 'reply' }>
/** The whole reply of one request; `pass` gets its pieces. `act` also aborts when a handler around the request has given up waiting. */
export async function streamReply(model: Model, owner: Owner, request: ModelRequest, act: AbortSignal, pass: (chunk: Piece) => void = () => {}): Promise<Reply> {
  const { signal, unlink } = link(act, ownerSignal(owner)), { wait, off } = waitsUntilAborted(signal)
  let chunks: AsyncIterator<ModelChunk> | undefined
  try {
    chunks = model.stream(request, { signal })[Symbol.asyncIterator]()
    for (;;) {
      const { done, value } = await wait(chunks.next())
      if (done) throw new ModelError('protocol', `the stream of model "${model.id}" ended without a reply`)
      if (value?.kind === 'reply') return readReply(value.reply, `${model.id}/${request.model}`)
      pass(value)
    }
  } catch (error) {
    if (signal.aborted && !act.aborted) throw new ModelError('network', `model "${model.id}" was unloaded while it answered`, { cause: error })
    throw error
  } finally {
    off()
    unlink()
    Promise.resolve(chunks?.return?.()).catch(() => {})                // it may hang or fail on its way out; nobody waits for more of it
  }
}

/** Hands a piece on: to whoever follows the run, and to the watchers. */
function pass(turn: Turn, chunk: Piece, attempt: number): void {
  if (typeof chunk?.text !== 'string') throw new ModelError('protocol', `a chunk of a stream is {kind, text} or {kind: 'reply', reply}, received ${show(chunk)}`)
  const { kind, text, callId } = chunk
  if (kind === 'text') turn.partial += text
  const delta = { kind, text, attempt, ...(callId !== undefined && { callId }) }
  turn.input.emit({ type: 'delta', ...turn.at, ...delta })
  const { hooks } = turn.ports
  if (hooks.has('agent/delta')) hooks.tell('agent/delta', { ...turn.base(), ...delta })
}

function isUsage(usage: unknown): boolean {
  if (typeof usage !== 'object' || usage === null) return false
  const { inputTokens, outputTokens, ...more } = usage as Record<string, unknown>
  return Number.isFinite(inputTokens) && Number.isFinite(outputTokens) && Object.values(more).every(value => value === undefined || Number.isFinite(value))
}

/** A reply as a model or a handler gave it, checked where the rest of the turn relies on it: what is logged of it must be readable again. */
export function readReply(reply: Reply, from: string): Reply {
  const message: Partial<Message> | undefined = reply?.message
  const wrong = (what: string) => new ModelError('protocol', `the reply of "${from}" ${what}`)
  if (typeof message !== 'object' || message === null) throw wrong(`must be {message, finish}, received ${show(reply)}`)
  const content: unknown = message.content
  if (typeof content !== 'string' && !(Array.isArray(content) && content.every(isPart))) throw wrong(`must have a message with content, a text or a list of {type, …}, received ${show(message)}`)
  if (reply.usage !== undefined && !isUsage(reply.usage)) throw wrong(`must have its usage in numbers, {inputTokens, outputTokens, …}, received ${show(reply.usage)}`)
  for (const call of message.toolCalls ?? []) {
    if (typeof call?.name !== 'string' || typeof call.arguments !== 'string') throw wrong(`must have tool calls {id, name, arguments} with arguments as sent, a string; received ${show(call)}`)
  }
  return { ...reply, model: reply.model ?? from, message: { ...message, role: 'assistant', content: typeof content === 'string' ? [text(content)] : content } }
}

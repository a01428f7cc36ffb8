/**
 * One request to one endpoint, from the socket to the reply. The only file that imports the SDK, and only when it is asked: a start without a model call is not charged for it.
 * Invariants: retries are not made here; an abort ends it at once; on every path the timers, the listener and the socket are let go of.
 */
import { ModelError, type ModelChunk, type ModelRequest } from 'harnessx'
import type { OpenAI } from 'openai'
import { Assembly } from './assembly.js'
import type { Endpoint } from './endpoint.js'
import { networkError, refusalOfText, shown, statusError, streamError, type Refusal } from './failures.js'
import { Guard } from './guard.js'
import type { Answer, Order } from './http.js'
import type { Body } from './wire.js'

/** Characters that one reply may hold. */
const REPLY = 4_000_000
/** After the model has said that it is done, only token counts may follow. */
const AFTERMATH_MS = 5_000

export async function* attempt(request: ModelRequest, body: Body, to: Endpoint, signal: AbortSignal, refused: (refusal: Refusal) => void): AsyncGenerator<ModelChunk> {
  const who = `model "${to.id}/${request.model}"`
  const stop = new AbortController()
  const abort = (): void => stop.abort()
  const assembly = new Assembly(who, REPLY, () => request.messages.flatMap(message => message.toolCalls?.map(call => call.id) ?? []))
  const guard = new Guard(who, to.limits.idleMs, (status, headers, text) => {
    const refusal = refusalOfText(text)
    refused(refusal)
    return statusError(who, status, headers, refusal, { ...to.hints, secrets: to.secrets })
  }, async (url, order) => (await import('./http.js')).send(url, order))
  let overdue = false, whole = false
  const timer = setTimeout(() => { overdue = true; stop.abort() }, to.limits.totalMs)
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    const client = await clientOf(to), by: ByGuard = { guard }
    const response = await client.post(to.path, { body, stream: true, signal: stop.signal, fetchOptions: by as object }).asResponse()
    for await (const texts of guard.chunks(response as unknown as Answer)) {
      for (const piece of together(read(texts))) yield piece                                         // `yield*` would wrap each piece once more
      if (assembly.finished) guard.idleMs = Math.min(guard.idleMs, AFTERMATH_MS)
    }
    if (stop.signal.aborted) throw new Error('aborted')
    whole = true                                                                                     // and its socket let go of
  } catch (error) {
    const failure = translate(error)
    if (failure.kind === 'aborted' || !assembly.finished) throw failure                             // whatever goes wrong after the end of a reply, the reply is whole
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    if (!whole) stop.abort()
  }
  const reply = assembly.reply(guard.ended)
  yield { kind: 'reply', reply: { ...reply, model: `${to.id}/${reply.model ?? request.model}` } }        // the source of its message, by which wire.ts knows its own

  function* read(texts: readonly string[]): Generator<ModelChunk> {
    for (const text of texts) {
      const chunk: unknown = JSON.parse(text), wrong = errorIn(chunk)
      if (wrong !== undefined) throw streamError(who, wrong, assembly.text || undefined, to.secrets)
      yield* assembly.take(chunk)
    }
  }
  function translate(error: unknown): ModelError {
    const partial = assembly.text || undefined
    if (signal.aborted) return new ModelError('aborted', `${who} was stopped`, { partial })
    if (overdue) return new ModelError('timeout', `${who} did not finish its reply within ${to.limits.totalMs / 1000} s`, { partial })
    const own = guard.failure ?? (error instanceof ModelError ? error : undefined)
    if (own) return new ModelError(own.kind, own.message, { status: own.status, retryAfterMs: own.retryAfterMs, retryable: own.retryable, partial: own.partial ?? partial })
    if (error instanceof SyntaxError) return new ModelError('protocol', `${who} sent a chunk that is not JSON`, { partial })
    switch (error instanceof Error ? error.constructor.name : '') {
      case 'APIConnectionTimeoutError': return new ModelError('timeout', `${who} did not begin to answer within ${to.limits.headersMs / 1000} s`)
      case 'OpenAIError': return new ModelError('bad_request', `${who} could not be asked: ${shown((error as Error).message, to.secrets)}`)
      default: return networkError(who, error, to.origin, guard.answered, partial, to.secrets)
    }
  }
}

/** Goes with a request through the SDK, so that one client serves them all. */
interface ByGuard { readonly guard: Guard }
const clients = new WeakMap<Endpoint, OpenAI>()

async function clientOf(to: Endpoint): Promise<OpenAI> {
  const known = clients.get(to)
  if (known) return known
  const { OpenAI } = await import('openai')
  const silent = (): void => {}
  const client = new OpenAI({
    baseURL: to.baseURL,
    apiKey: to.key ?? 'none',                                                                      // the SDK insists; the header is taken out where there is no key
    // What the SDK would take from the environment and send to whatever address.
    adminAPIKey: null, organization: null, project: null, webhookSecret: null,
    defaultHeaders: to.headers, defaultQuery: { ...to.query },
    maxRetries: 0, timeout: to.limits.headersMs,
    fetch: ((url: string, { guard, ...order }: Order & ByGuard) => guard.fetch(url, order)) as never,      // it looks at the answer's status and headers
    logLevel: 'off', logger: { error: silent, warn: silent, info: silent, debug: silent },
  })
  clients.set(to, client)
  return client
}

/** What came together and goes on from one piece to the next is one piece: each is told on its own, and a model that is fast would cost a telling for every word. */
function* together(pieces: Iterable<ModelChunk>): Generator<ModelChunk> {
  let held: ModelChunk | undefined
  try {
    for (const piece of pieces) {
      if (held && held.kind !== 'reply' && piece.kind === held.kind && piece.callId === held.callId) held = { ...held, text: held.text + piece.text }
      else {
        if (held) yield held
        held = piece
      }
    }
  } finally { if (held) yield held }                                                               // also before a failure: it had come
}

/** What went wrong, if a chunk says so: under `error`, or as a whole, as some servers do. */
function errorIn(chunk: unknown): unknown {
  const fields = chunk as { error?: unknown; object?: unknown; type?: unknown; choices?: unknown; message?: unknown; detail?: unknown } | null
  if (typeof fields !== 'object' || fields === null) return undefined
  if (fields.error) return fields.error
  return !Array.isArray(fields.choices) && (fields.object === 'error' || fields.type === 'error' || typeof fields.message === 'string' || fields.detail !== undefined) ? chunk : undefined
}

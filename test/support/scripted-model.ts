/**
 * A model endpoint that says what a test tells it to: a real HTTP server that speaks the OpenAI chat-completions protocol, streaming or not.
 * It consumes one scripted reply per request, in order, and records what it was sent, bytes and all. It can also misbehave in every way that
 * endpoints do: hang, stall, cut the socket, send a byte at a time, answer HTML. It needs nothing but Node, and close() leaves nothing behind.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { once } from 'node:events'

export interface ScriptedToolCall {
  name: string
  /** An object is written as JSON; a string is sent as it is, also when it is not JSON. */
  arguments?: object | string
  /** `call_<reply>_<place>` by default; null sends none. */
  id?: string | null
  /** Fields beside `id`, `type` and `function` (`extra_content` of Gemini, say); a `function` in it is merged. */
  extra?: Record<string, unknown>
}

export interface ScriptedReply {
  text?: string
  reasoning?: string
  /** Name of the field that carries `reasoning`. */
  reasoningField?: 'reasoning_content' | 'reasoning'
  toolCalls?: ScriptedToolCall[]
  /** Fields of the message beside role, content, reasoning and tool calls. */
  message?: Record<string, unknown>
  /** By default `tool_calls` when there are calls, else `stop`; null leaves it out. */
  finish?: string | null
  /** In the words of the protocol. false sends none, also when it was asked for. */
  usage?: Record<string, unknown> | false
  model?: string

  /** Characters in one delta (20). */
  deltaSize?: number
  /** Milliseconds between two chunks (0). */
  chunkMs?: number
  /** Is waited for before each chunk: 0, 1, … */
  before?: (chunk: number) => unknown
  /** Leave `index` out of the deltas of tool calls. */
  noIndex?: boolean
  /** Send these in place of the chunks of a reply: objects as `data:` lines, strings as they stand, bytes and all. */
  chunks?: Iterable<object | string>
  /** End the stream with `data: [DONE]` (true). */
  done?: boolean

  /** Answer with this status; `body` is then sent as it is. */
  status?: number
  headers?: Record<string, string>
  /** A whole response in place of a stream. An object is sent as JSON, a string as it stands. */
  body?: object | string
  contentType?: string
  /** Answer a streaming request with one JSON completion. */
  json?: boolean

  /** `headers`: answer nothing. `body`: send the headers and nothing else. A number: stop after that many chunks. It lasts until the client goes away. */
  hang?: 'headers' | 'body' | number
  /** Destroy the socket after this many bytes of the body. */
  cutAfter?: number
  byteByByte?: boolean
  newline?: '\n' | '\r\n' | '\r'
}

/** A request as it came. */
export interface ScriptedRequest {
  method: string
  path: string
  headers: IncomingHttpHeaders
  /** The client's port: requests of one connection have the same. */
  clientPort: number
  /** The body's very bytes. */
  raw: Buffer
  /** The body, parsed; undefined when it is no JSON. `any`, because a test reads into whatever was sent. */
  body: any
  /** Becomes true when the client went away before the answer was complete. */
  aborted: boolean
  /** Resolves when the answer is complete or the client is gone. */
  ended: Promise<void>
}

export type ScriptedAnswer = string | ScriptedReply
export type ScriptedStep = ScriptedAnswer | ((request: ScriptedRequest, index: number) => ScriptedAnswer | Promise<ScriptedAnswer>)
/** Replies in order, or one function for all. */
export type Script = ScriptedStep[] | ((request: ScriptedRequest, index: number) => ScriptedAnswer | Promise<ScriptedAnswer>)

export interface ScriptedModel {
  /** The base URL, with `/v1`. */
  readonly url: string
  readonly port: number
  /** Completion requests, in order of arrival. */
  readonly requests: ScriptedRequest[]
  /** Every other request (`/v1/models`, or a wrong path). */
  readonly others: ScriptedRequest[]
  /** Adds replies to the end of the script. */
  push(...steps: ScriptedStep[]): void
  /** Scripted replies that nobody has asked for yet. */
  readonly left: number
  /** The `count`-th completion request, as soon as it has come; rejects after `ms` (5000). */
  request(count: number, ms?: number): Promise<ScriptedRequest>
  close(): Promise<void>
}

/** Starts it on a free port of 127.0.0.1. */
export async function startScriptedModel(script: Script = [], options: { models?: string[] } = {}): Promise<ScriptedModel> {
  const steps = typeof script === 'function' ? undefined : [...script]
  const requests: ScriptedRequest[] = []
  const others: ScriptedRequest[] = []
  const waiting = new Set<() => void>()
  const closing = new AbortController()
  let taken = 0

  const server = createServer((incoming, response) => {
    serve(incoming, response).catch(error => { if (!response.headersSent) sendBody(response, 500, {}, errorBody(`the script failed: ${String(error)}`)); else response.destroy() })
  })

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    try { for await (const piece of incoming) pieces.push(piece as Buffer) } catch { return }   // the client left while it was still asking
    const request = recorded(incoming, Buffer.concat(pieces), response)
    const path = request.path.split('?')[0]!
    if (request.method === 'GET' && path.endsWith('/models')) {
      others.push(request)
      return sendBody(response, 200, {}, { object: 'list', data: (options.models ?? ['scripted']).map(id => ({ id, object: 'model', created: 0, owned_by: 'test' })) })
    }
    if (request.method !== 'POST' || !path.endsWith('/chat/completions')) {
      others.push(request)
      return sendBody(response, 404, {}, errorBody(`no such path: ${path}`))
    }
    requests.push(request)
    for (const look of [...waiting]) look()
    const index = taken++
    const step = steps ? steps.shift() : (script as (request: ScriptedRequest, index: number) => ScriptedAnswer | Promise<ScriptedAnswer>)
    if (step === undefined) return sendBody(response, 500, {}, errorBody(`the script is exhausted: request ${index + 1} has no reply`))
    const answer = typeof step === 'function' ? await step(request, index) : step
    await play(typeof answer === 'string' ? { text: answer } : answer, request, response, index, closing.signal)
  }

  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const port = (server.address() as AddressInfo).port
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    requests,
    others,
    push: (...more: ScriptedStep[]) => { if (!steps) throw new Error('the script is a function: nothing can be added to it'); steps.push(...more) },
    get left() { return steps?.length ?? 0 },
    request: (count: number, ms = 5000) => new Promise<ScriptedRequest>((resolve, reject) => {
      const stop = () => { clearTimeout(timer); waiting.delete(look) }
      const look = () => { const found = requests[count - 1]; if (found) { stop(); resolve(found) } }
      const timer = setTimeout(() => { stop(); reject(new Error(`request ${count} did not come within ${ms} ms; ${requests.length} did`)) }, ms)
      waiting.add(look)
      look()
    }),
    close: async () => {
      if (!server.listening) return
      closing.abort()
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
  }
}

function recorded(incoming: IncomingMessage, raw: Buffer, response: ServerResponse): ScriptedRequest {
  let body: unknown
  try { body = JSON.parse(raw.toString('utf8')) } catch { body = undefined }                       // recorded as bytes only
  const request: ScriptedRequest = { method: incoming.method ?? '', path: incoming.url ?? '', headers: incoming.headers, clientPort: incoming.socket.remotePort ?? 0, raw, body, aborted: false, ended: Promise.resolve() }
  request.ended = new Promise(resolve => response.once('close', () => { request.aborted = !response.writableFinished; resolve() }))
  return request
}

async function play(reply: ScriptedReply, request: ScriptedRequest, response: ServerResponse, index: number, closing: AbortSignal): Promise<void> {
  if (reply.hang === 'headers') return untilGone(request)
  if (reply.body !== undefined || reply.status !== undefined && reply.status !== 200) {
    const type = reply.contentType ?? (typeof reply.body === 'string' ? 'text/plain' : 'application/json')
    return sendBody(response, reply.status ?? 200, { 'content-type': type, ...reply.headers }, reply.body ?? errorBody(`scripted ${reply.status}`))
  }
  if (reply.json || request.body?.stream !== true) return sendBody(response, 200, { ...reply.headers }, completion(reply, request, index))

  response.writeHead(200, { 'content-type': reply.contentType ?? 'text/event-stream', 'cache-control': 'no-cache', ...reply.headers })
  response.flushHeaders()
  if (reply.hang === 'body') return untilGone(request)
  const write = writer(reply, response)
  let sent = 0
  for (const chunk of reply.chunks ?? chunks(reply, request, index)) {
    if (sent === reply.hang) return untilGone(request)
    await reply.before?.(sent)
    if (response.destroyed || !await write(typeof chunk === 'string' ? chunk : `data: ${JSON.stringify(chunk)}\n\n`)) return
    sent++
    if (reply.chunkMs) await pause(reply.chunkMs, closing)
  }
  if (sent === reply.hang) return untilGone(request)
  if (reply.done !== false && !reply.chunks) await write('data: [DONE]\n\n')
  response.end()
}

const untilGone = (request: ScriptedRequest): Promise<void> => request.ended

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const end = () => { clearTimeout(timer); signal.removeEventListener('abort', end); resolve() }
    const timer = setTimeout(end, ms)
    signal.addEventListener('abort', end, { once: true })
  })
}

/** Writes text as the reply wants it on the wire; false when the socket is gone. */
function writer(reply: ScriptedReply, response: ServerResponse): (text: string) => Promise<boolean> {
  let written = 0
  const put = async (bytes: Buffer): Promise<boolean> => {
    if (response.destroyed) return false
    const room = reply.cutAfter === undefined ? Infinity : reply.cutAfter - written
    const piece = bytes.length > room ? bytes.subarray(0, room) : bytes
    written += piece.length
    if (piece.length > 0 && !response.write(piece)) await drained(response)
    if (bytes.length < room) return !response.destroyed
    await new Promise<void>(resolve => { setImmediate(resolve) })                                  // let what was written leave before the cut
    response.socket?.destroy()
    return false
  }
  return async text => {
    const bytes = Buffer.from(reply.newline && reply.newline !== '\n' ? text.replaceAll('\n', reply.newline) : text)
    if (!reply.byteByByte) return put(bytes)
    for (let at = 0; at < bytes.length; at++) if (!await put(bytes.subarray(at, at + 1))) return false
    return true
  }
}

function drained(response: ServerResponse): Promise<void> {
  return new Promise(resolve => {
    const end = () => { response.off('drain', end).off('close', end); resolve() }
    response.on('drain', end).on('close', end)
  })
}

function sendBody(response: ServerResponse, status: number, headers: Record<string, string>, body: object | string): void {
  const bytes = Buffer.from(typeof body === 'string' ? body : JSON.stringify(body))
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': String(bytes.length), ...headers })
  response.end(bytes)
}
const errorBody = (message: string): object => ({ error: { message, type: 'scripted_error', param: null, code: null } })

// ---- the protocol
const USAGE = { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 }
const head = (reply: ScriptedReply, request: ScriptedRequest, index: number, object: string): Record<string, unknown> =>
  ({ id: `chatcmpl-${index}`, object, created: 0, model: reply.model ?? request.body?.model ?? 'scripted' })
const finishOf = (reply: ScriptedReply): string | null => reply.finish !== undefined ? reply.finish : reply.toolCalls?.length ? 'tool_calls' : 'stop'

function wireCall(call: ScriptedToolCall, index: number, place: number): Record<string, unknown> & { function: { name: string; arguments: string } } {
  const { function: inner, ...extra } = call.extra ?? {}
  const given = call.arguments ?? {}
  return {
    ...(call.id === null ? {} : { id: call.id ?? `call_${index}_${place}` }),
    type: 'function',
    ...extra,
    function: { name: call.name, arguments: typeof given === 'string' ? given : JSON.stringify(given), ...(inner as object | undefined) },
  }
}

function completion(reply: ScriptedReply, request: ScriptedRequest, index: number): object {
  const calls = reply.toolCalls?.map((call, place) => wireCall(call, index, place))
  return {
    ...head(reply, request, index, 'chat.completion'),
    choices: [{
      index: 0,
      message: {
        role: 'assistant', content: reply.text ?? null,
        ...(reply.reasoning === undefined ? {} : { [reply.reasoningField ?? 'reasoning_content']: reply.reasoning }),
        ...(calls?.length ? { tool_calls: calls } : {}), ...reply.message,
      },
      finish_reason: finishOf(reply),
    }],
    ...(reply.usage === false ? {} : { usage: reply.usage ?? USAGE }),
  }
}

function* chunks(reply: ScriptedReply, request: ScriptedRequest, index: number): Generator<object> {
  const size = reply.deltaSize ?? 20
  const chunk = (delta: object, finish: string | null = null) => ({ ...head(reply, request, index, 'chat.completion.chunk'), choices: [{ index: 0, delta, finish_reason: finish }] })
  yield chunk({ role: 'assistant', content: '', ...reply.message })
  for (const piece of pieces(reply.reasoning ?? '', size)) yield chunk({ [reply.reasoningField ?? 'reasoning_content']: piece })
  for (const piece of pieces(reply.text ?? '', size)) yield chunk({ content: piece })
  for (const [place, call] of (reply.toolCalls ?? []).entries()) {
    const { function: { name, arguments: args, ...rest }, ...outer } = wireCall(call, index, place)
    const at = reply.noIndex ? {} : { index: place }
    yield chunk({ tool_calls: [{ ...at, ...outer, function: { name, arguments: '', ...rest } }] })
    for (const piece of pieces(args, size)) yield chunk({ tool_calls: [{ ...at, function: { arguments: piece } }] })
  }
  const finish = finishOf(reply)
  if (finish !== null) yield chunk({}, finish)
  if (reply.usage !== false && (reply.usage || request.body?.stream_options?.include_usage)) yield { ...head(reply, request, index, 'chat.completion.chunk'), choices: [], usage: reply.usage ?? USAGE }
}

/** Cuts by code points, so that a delta is never half a character. */
function* pieces(text: string, size: number): Generator<string> {
  const points = [...text]
  for (let at = 0; at < points.length; at += size) yield points.slice(at, at + size).join('')
}

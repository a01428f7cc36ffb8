/**
 * The `fetch` given to the SDK: it lets through what a reply may be, and nothing else. Redirects are refused (the key goes to one origin only), other
 * content types are, a line and a body have limits, and a silent stream has a deadline. The SDK gets whole `data:` lines and an end at `[DONE]`; without
 * this it would buffer without limit, wait for ever, and print what it can not parse.
 */
import { ModelError } from 'harnessx'

export interface Limits { readonly headersMs: number; readonly idleMs: number; readonly totalMs: number }
const LINE = 1_000_000, JSON_BODY = 8_000_000, ERROR_BODY = 64_000
/** After `[DONE]` the end of the body is waited for so long, because only then the connection can serve the next request. */
const DRAIN_MS = 250, DRAIN_PIECES = 8

export class Guard {
  /** The endpoint began to answer as it should. */
  answered = false
  /** The stream said `[DONE]`, or was one whole completion. */
  ended = false
  /** What the guard itself refused: the SDK may wrap it, or take it for something else. */
  failure: ModelError | undefined
  /** How long the stream may be silent. */
  idleMs: number
  readonly #who: string
  readonly #refused: (status: number, headers: Headers, body: string) => ModelError

  constructor(who: string, idleMs: number, refused: (status: number, headers: Headers, body: string) => ModelError) {
    this.#who = who
    this.idleMs = idleMs
    this.#refused = refused
  }

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const response = await fetch(input, { ...init, redirect: 'manual' })
    const body = response.body
    if (response.status >= 300 && response.status < 400) {
      await body?.cancel()
      throw this.#fail('protocol', `answered ${response.status}, a redirect${toOrigin(response)}; redirects are refused, so that the key goes nowhere else: correct the base URL`, false)
    }
    if (!response.ok) throw this.failure = this.#refused(response.status, response.headers, body ? await this.#text(body, ERROR_BODY, true) : '')
    const type = response.headers.get('content-type')?.split(';')[0]!.trim().toLowerCase()
    this.answered = true
    if (body && (type === undefined || type === '' || type === 'text/event-stream')) return wrapped(response, this.#events(body))
    if (body && type?.endsWith('json')) return wrapped(response, this.#completion(body))
    await body?.cancel()
    throw this.#fail('protocol', `answered with ${type ?? 'nothing'} in place of a stream; does the base URL end where the API begins (often in /v1)?`, false)
  }

  /** The `data:` lines of a stream, whole and in order. Comments, ids and event names say nothing here; a name could even send the SDK another way. */
  async *#events(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    const decoder = new TextDecoder(), encoder = new TextEncoder()
    let rest = '', held = false, after = 0
    for await (const bytes of this.#read(body)) {
      if (this.ended) { if (++after > DRAIN_PIECES) return; continue }
      const piece = decoder.decode(bytes, { stream: true })
      if (!held && !/[\r\n]/.test(piece)) { this.#bound(rest += piece); continue }                   // no line ended: nothing is scanned twice
      const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/)
      this.#bound(rest = lines.pop()!)
      held = rest.endsWith('\r')                                                                     // it may be half of \r\n
      let out = ''
      for (const line of lines) {
        this.#bound(line)
        if (/^data: ?\[DONE\]/.test(line)) { this.ended = true; break }
        if (line === '' || line.startsWith('data')) out += `${line}\n`
      }
      if (out) yield encoder.encode(out)
    }
    if (this.ended) return
    const last = (rest + decoder.decode()).replace(/\r$/, '')
    if (/^data: ?\[DONE\]/.test(last)) this.ended = true
    else if (isWhole(last)) yield encoder.encode(`${last}\n\n`)
    else yield encoder.encode('\n')                                                                // half a line is no chunk
  }

  /** An endpoint that does not stream: its one JSON completion, as one event. */
  async *#completion(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    const text = await this.#text(body, JSON_BODY, false)
    let value: unknown
    try { value = JSON.parse(text) } catch { throw this.#fail('protocol', 'answered with JSON that does not parse', true) }   // reported; the parser's message would quote the text
    this.ended = true
    yield new TextEncoder().encode(`data: ${JSON.stringify(value)}\n\n`)
  }

  async #text(body: ReadableStream<Uint8Array>, most: number, cut: boolean): Promise<string> {
    const decoder = new TextDecoder()
    let text = ''
    for await (const bytes of this.#read(body)) {
      text += decoder.decode(bytes, { stream: true })
      if (text.length <= most) continue
      if (cut) return text.slice(0, most)
      throw this.#fail('protocol', `answered with more than ${most} characters`, false)
    }
    return text + decoder.decode()
  }

  /** The body, with a limit on each wait. The socket is let go of on every path. */
  async *#read(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
    const reader = body.getReader()
    try {
      for (;;) {
        const read = await this.#within(reader.read())
        if (!read || read.done) return
        yield read.value
      }
    } finally {
      await reader.cancel().catch(() => {})                                                        // it failed already: that is what the reader of this saw
    }
  }
  /** The result of one wait; nothing when the reply was complete already and only the end of the body did not come. */
  async #within<T>(work: Promise<T>): Promise<T | undefined> {
    let timer: NodeJS.Timeout | undefined
    const ms = this.ended ? DRAIN_MS : this.idleMs
    const late = new Promise<undefined>((resolve, reject) => {
      timer = setTimeout(() => { if (this.ended) resolve(undefined); else reject(this.#fail('timeout', `sent nothing for ${ms / 1000} s`, true)) }, ms)
    })
    try { return await Promise.race([work, late]) } finally { clearTimeout(timer) }
  }
  #bound(line: string): void {
    if (line.length > LINE) throw this.#fail('protocol', `sent a line of more than ${LINE} characters`, false)
  }
  #fail(kind: ModelError['kind'], what: string, retryable: boolean): ModelError {
    return this.failure = new ModelError(kind, `${this.#who} ${what}`, { retryable })
  }
}

const wrapped = (response: Response, body: AsyncGenerator<Uint8Array>): Response =>
  new Response(ReadableStream.from(body) as never, { status: response.status, headers: { 'content-type': 'text/event-stream' } })

function isWhole(line: string): boolean {
  if (!line.startsWith('data:')) return false
  try { JSON.parse(line.slice(5)); return true } catch { return false }                            // half a chunk
}

/** Where a redirect leads, without what may be secret in it. */
function toOrigin(response: Response): string {
  const location = response.headers.get('location')
  if (!location) return ''
  try { return ` to ${new URL(location, response.url).origin}` } catch { return '' }               // not a URL: nothing worth saying
}

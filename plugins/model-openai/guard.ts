/**
 * The `fetch` given to the SDK, and the reader of what it answers. It lets through what a reply may be, and nothing else: redirects are refused (the key goes to one
 * origin only), other content types are, a line and a body have limits, and a silent stream has a deadline. The SDK's own reader would buffer without limit,
 * wait for ever, print what it can not parse, and take three times as long for a token.
 */
import type { Readable } from 'node:stream'
import { ModelError } from 'harnessx'
import type { Headers } from './headers.js'
import type { Answer, Order } from './http.js'

type Refused = (status: number, headers: Headers, body: string) => ModelError
type Send = (url: string, order: Order) => Promise<Answer>
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
  readonly #refused: Refused
  readonly #send: Send

  constructor(who: string, idleMs: number, refused: Refused, send: Send) {
    this.#who = who
    this.idleMs = idleMs
    this.#refused = refused
    this.#send = send
  }

  readonly fetch = async (url: string, order: Order): Promise<Answer> => {
    const response = await this.#send(url, order)
    const body = response.body
    if (response.status >= 300 && response.status < 400) {
      body?.destroy()
      throw this.#fail('protocol', `answered ${response.status}, a redirect${toOrigin(response)}; redirects are refused, so that the key goes nowhere else: correct the base URL`, false)
    }
    if (!response.ok) throw this.failure = this.#refused(response.status, response.headers, body ? await this.#text(body, ERROR_BODY, true) : '')
    const type = typeOf(response)
    this.answered = true
    if (body && (type === '' || type === 'text/event-stream' || type.endsWith('json'))) return response
    body?.destroy()
    throw this.#fail('protocol', `answered with ${type || 'nothing'} in place of a stream; does the base URL end where the API begins (often in /v1)?`, false)
  }
  /** The texts of the chunks in an answer of `fetch`, those together that came together. */
  chunks(response: Answer): AsyncGenerator<readonly string[]> {
    const body = response.body!                              // `fetch` lets none through without
    return typeOf(response).endsWith('json') ? this.#completion(body) : this.#events(body)
  }

  /** The data of a stream's events, in order. Comments, ids and event names say nothing here. */
  async *#events(body: Readable): AsyncGenerator<readonly string[]> {
    const decoder = new TextDecoder()
    /** `data` is of an event whose end has not come. */
    let rest = '', held = false, after = 0, data: string | undefined
    const add = (line: string): void => {
      const value = line.slice(line[5] === ' ' ? 6 : 5)
      this.#bound(data = data === undefined ? value : `${data}\n${value}`)
    }
    for await (const bytes of this.#read(body)) {
      if (this.ended) { if (++after > DRAIN_PIECES) return; continue }
      const piece = decoder.decode(bytes, { stream: true })
      if (!held && !/[\r\n]/.test(piece)) { this.#bound(rest += piece); continue }                   // no line ended: nothing is scanned twice
      const lines = (rest + piece).split(/\r\n|\n|\r(?!$)/)
      this.#bound(rest = lines.pop()!)
      held = rest.endsWith('\r')                                                                     // it may be half of \r\n
      const whole: string[] = []
      for (const line of lines) {
        this.#bound(line)
        this.ended = isDone(line)
        if (data !== undefined && (line === '' || this.ended)) { whole.push(data); data = undefined }
        if (this.ended) break
        if (line.startsWith('data:')) add(line)
      }
      if (whole.length > 0) yield whole
    }
    if (this.ended) return
    const last = (rest + decoder.decode()).replace(/\r$/, '')
    this.ended = isDone(last)
    if (!this.ended && isWhole(last)) add(last)                                                      // half a line is no chunk
    if (data !== undefined) yield [data]
  }

  /** An endpoint that does not stream: its one JSON completion, as one chunk. */
  async *#completion(body: Readable): AsyncGenerator<readonly string[]> {
    const text = await this.#text(body, JSON_BODY, false)
    try { JSON.parse(text) } catch { throw this.#fail('protocol', 'answered with JSON that does not parse', true) }   // reported; the parser's message would quote the text
    this.ended = true
    yield [text]
  }

  async #text(body: Readable, most: number, cut: boolean): Promise<string> {
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

  /** The body, with a limit on each wait: silence ends it, with an error unless the reply was complete already. The socket is let go of on every path. */
  async *#read(body: Readable): AsyncGenerator<Uint8Array> {
    const pieces = body[Symbol.asyncIterator]()
    let ms = 0, waiting = false, timer: NodeJS.Timeout | undefined
    const late = (): void => { if (waiting) body.destroy(this.ended ? undefined : this.#fail('timeout', `sent nothing for ${ms / 1000} s`, true)) }
    try {
      for (;;) {
        const limit = this.ended ? DRAIN_MS : this.idleMs
        if (limit === ms) timer?.refresh()
        else {
          clearTimeout(timer)
          timer = setTimeout(late, ms = limit)
        }
        waiting = true
        const read = await pieces.next()
        waiting = false
        if (read.done) return
        yield read.value as Uint8Array
      }
    } catch (error) {
      if (!this.ended) throw error
    } finally {
      clearTimeout(timer)
      body.destroy()                                                                               // of one that was read to its end the connection stays
    }
  }
  #bound(line: string): void {
    if (line.length > LINE) throw this.#fail('protocol', `sent a line of more than ${LINE} characters`, false)
  }
  #fail(kind: ModelError['kind'], what: string, retryable: boolean): ModelError {
    return this.failure = new ModelError(kind, `${this.#who} ${what}`, { retryable })
  }
}

const typeOf = ({ headers }: Answer): string => headers.get('content-type')?.split(';')[0]!.trim().toLowerCase() ?? ''
const isDone = (line: string): boolean => /^data: ?\[DONE\]/.test(line)
function isWhole(line: string): boolean {
  if (!line.startsWith('data:')) return false
  try { JSON.parse(line.slice(5)); return true } catch { return false }                            // half a chunk
}

/** Where a redirect leads, without what may be secret in it. */
function toOrigin(response: Answer): string {
  const location = response.headers.get('location')
  if (!location) return ''
  try { return ` to ${new URL(location, response.url).origin}` } catch { return '' }               // not a URL: nothing worth saying
}

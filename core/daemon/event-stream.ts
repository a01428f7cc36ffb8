/**
 * Server-sent events to one client, at the client's own pace: hardly anything is read ahead for it, and one that takes nothing for a while loses its connection.
 * What comes in one go, or while the client is behind, goes out in one write: a fast stream costs a write for many events, a slow one waits for nothing.
 * It can resume: ids are the `seq` of the log. Writes to Node's own response: the streams of the web in between are a chain of promises for each write.
 */
import type { ServerResponse } from 'node:http'
import type { HttpBindings } from '@hono/node-server'
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response'
import type { Context as RouteContext } from 'hono'
import { VERSION } from '../version.js'
import { HEADERS, PROTOCOL } from './protocol.js'
import type { Sent } from './session-feed.js'

/** How long a client may take nothing of what is written to it. */
const STALLED_MS = 5000
/** Characters that may wait for a write before whoever sends them has to. */
const AHEAD = 16 * 1024

export type Send = (sent: Sent) => Promise<void>

/** Streams what `tell` sends; `gone` aborts when the client has left, or there is no more to tell. */
export function eventStream(context: RouteContext, tell: (send: Send, gone: AbortSignal) => Promise<void>): Response {
  const { outgoing } = context.env as HttpBindings, to = outgoing as ServerResponse
  to.writeHead(200, { [HEADERS.version]: VERSION, [HEADERS.protocol]: String(PROTOCOL), 'content-type': 'text/event-stream', 'cache-control': 'no-cache' })
  const writer = new EventWriter(to)
  tell(sent => writer.send(sent), writer.gone).then(() => { writer.end() }, () => { to.destroy() })     // its client sees a connection that broke, and asks again
  return RESPONSE_ALREADY_SENT
}

class EventWriter {
  readonly #to: ServerResponse
  readonly #gone = new AbortController()
  readonly #stalled: NodeJS.Timeout
  #waiting = ''
  #due = false
  /** While the client is behind: since when, and what waits for it. */
  #behind: { readonly since: number; readonly over: Promise<void>; readonly resolve: () => void } | undefined

  constructor(to: ServerResponse) {
    this.#to = to
    to.on('drain', () => { this.#caughtUp() }).once('close', () => { this.#leave() })
    this.#stalled = setInterval(() => {
      if (this.#behind && performance.now() - this.#behind.since > STALLED_MS) to.destroy()
    }, STALLED_MS / 5).unref()
  }
  get gone(): AbortSignal { return this.#gone.signal }

  async send({ event, data, id }: Sent): Promise<void> {
    if (this.gone.aborted) return
    this.#waiting += `event: ${event}\ndata: ${JSON.stringify(data)}\n${id === undefined ? '' : `id: ${id}\n`}\n`
    if (this.#waiting.length > AHEAD) {
      this.#write()
      await this.#behind?.over
    } else if (!this.#due) {
      this.#due = true
      process.nextTick(() => { this.#due = false; this.#write() })     // after all that follows from what has just come in
    }
  }
  end(): void {
    this.#behind = undefined                                 // what is left is the system's to deliver
    this.#write()
    this.#to.end()
    this.#leave()
  }

  #write(): void {
    if (this.#waiting === '' || this.#behind || this.gone.aborted) return
    const text = this.#waiting
    this.#waiting = ''
    if (this.#to.write(text)) return
    let resolve!: () => void
    const over = new Promise<void>(done => { resolve = done })
    this.#behind = { since: performance.now(), over, resolve }
  }
  #caughtUp(): void {
    const { resolve } = this.#behind ?? {}
    this.#behind = undefined
    this.#write()
    resolve?.()
  }
  #leave(): void {
    clearInterval(this.#stalled)
    this.#gone.abort('left')
    this.#behind?.resolve()
  }
}

/**
 * Server-sent events to one client, at the client's own pace: nothing is read ahead for it, and one that takes nothing for a while loses its connection.
 * It can resume: ids are the `seq` of the log.
 */
import type { HttpBindings } from '@hono/node-server'
import type { Context as RouteContext } from 'hono'
import { streamSSE } from 'hono/streaming'
import type { Sent } from './session-feed.js'

/** How long a client may take nothing of what is written to it. */
const STALLED_MS = 5000

export type Send = (sent: Sent) => Promise<void>

/** Streams what `tell` sends; `gone` aborts when the client has left. */
export function eventStream(context: RouteContext, tell: (send: Send, gone: AbortSignal) => Promise<void>): Response {
  const gone = new AbortController()
  return streamSSE(context, async stream => {
    stream.onAbort(() => { gone.abort() })
    let writing = 0, since = 0
    const stalled = setInterval(() => {
      if (writing > 0 && performance.now() - since > STALLED_MS) (context.env as HttpBindings).outgoing.destroy()
    }, STALLED_MS / 5).unref()
    const send: Send = async ({ event, data, id }) => {
      if (stream.aborted) return
      if (writing++ === 0) since = performance.now()
      await stream.writeSSE({ event, data: JSON.stringify(data), ...(id !== undefined && { id: String(id) }) })
      writing--
      since = performance.now()
    }
    try { await tell(send, gone.signal) } finally {
      clearInterval(stalled)
      gone.abort()
    }
  })
}

/**
 * Server-sent events to one client, at the client's own pace: hardly anything is read ahead for it, and one that takes nothing for a while loses its connection.
 * What comes while a write is under way goes out with the next one: a fast stream costs a write for many events, a slow one waits for nothing.
 * It can resume: ids are the `seq` of the log.
 */
import type { HttpBindings } from '@hono/node-server'
import type { Context as RouteContext } from 'hono'
import { streamSSE } from 'hono/streaming'
import type { Sent } from './session-feed.js'

/** How long a client may take nothing of what is written to it. */
const STALLED_MS = 5000
/** Characters that may wait for a write before whoever sends them has to. */
const AHEAD = 16 * 1024

export type Send = (sent: Sent) => Promise<void>

/** Streams what `tell` sends; `gone` aborts when the client has left. */
export function eventStream(context: RouteContext, tell: (send: Send, gone: AbortSignal) => Promise<void>): Response {
  const gone = new AbortController()
  return streamSSE(context, async stream => {
    stream.onAbort(() => { gone.abort() })
    let waiting = '', since = 0, writing: Promise<void> | undefined
    const write = async (): Promise<void> => {
      while (waiting !== '' && !stream.aborted) {
        const text = waiting
        waiting = ''
        since = performance.now()
        await stream.write(text)                             // never rejects
      }
      writing = undefined
    }
    const stalled = setInterval(() => {
      if (writing && performance.now() - since > STALLED_MS) (context.env as HttpBindings).outgoing.destroy()
    }, STALLED_MS / 5).unref()
    const send: Send = async ({ event, data, id }) => {
      if (stream.aborted) return
      waiting += `event: ${event}\ndata: ${JSON.stringify(data)}\n${id === undefined ? '' : `id: ${id}\n`}\n`
      writing ??= write()
      if (waiting.length > AHEAD) await writing
    }
    try {
      await tell(send, gone.signal)
      await writing
    } finally {
      clearInterval(stalled)
      gone.abort()
    }
  })
}

/**
 * What a connection may send at most: bytes of a body, and requests before it has read the answers. Knows no route.
 * Invariant: neither memory nor work grows with what a client sends and nobody has asked for.
 */
import type { RequestListener } from 'node:http'
import type { Socket } from 'node:net'
import type { Context, MiddlewareHandler } from 'hono'

/** Requests of one connection that may be under way. Ours sends one at a time; a line without end would be worked off even for one that has left. */
export const MAX_PIPELINED = 16

/** Passes requests on, and ends a connection that has too many under way. */
export function pipelined(answer: RequestListener): RequestListener {
  const running = new WeakMap<Socket, number>()
  return (incoming, outgoing) => {
    const { socket } = incoming, count = running.get(socket) ?? 0
    if (count >= MAX_PIPELINED) socket.destroy()
    if (socket.destroyed) return
    running.set(socket, count + 1)
    outgoing.once('close', () => { running.set(socket, running.get(socket)! - 1) })
    answer(incoming, outgoing)
  }
}

/** Refuses a body over the limit: by its length where that is said, else once so much has come. */
export function limited(maxBytes: number, refuse: (context: Context) => Response): MiddlewareHandler {
  return async (context, next) => {
    if (Number(context.req.header('content-length') ?? 0) > maxBytes) return refuse(context)
    if (context.req.header('transfer-encoding') === undefined) return next()
    const chunks: Uint8Array[] = []
    let size = 0
    for await (const chunk of context.req.raw.body ?? []) {
      size += chunk.length
      if (size > maxBytes) return refuse(context)
      chunks.push(chunk)
    }
    const { method, url, signal } = context.req.raw
    context.req.raw = new Request(url, { method, headers: context.req.header(), signal, ...(size > 0 && { body: Buffer.concat(chunks) }) })
    return next()
  }
}

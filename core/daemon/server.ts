/**
 * The daemon's HTTP routes over an app. Knows the protocol and the app; no lock and no file but the socket it is told to listen on.
 * Every route but the bare liveness needs the token; bodies are JSON of at most 1 MB; one failed run or request never reaches another.
 */
import { randomUUID, timingSafeEqual, createHash } from 'node:crypto'
import { createServer, type Server as HttpServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import { Hono, type Context as RouteContext } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import { streamSSE } from 'hono/streaming'
import type { z } from 'zod'
import type { ApprovalAnswer, Approver } from '../agent/services.js'
import type { App } from '../app.js'
import { HarnessError, messageOf } from '../errors.js'
import { VERSION } from '../version.js'
import { AbortOrderSchema, ApprovalAnswerSchema, HEADERS, MAX_BODY_BYTES, PROTOCOL, ReloadOrderSchema, ROUTES, RunOrderSchema, type WireError } from './protocol.js'

const digest = (text: string) => createHash('sha256').update(text).digest()

/** `stop` is called when a client asks for the end of the daemon. */
export function routes(app: App, token: string, stop: () => void): Hono {
  const http = new Hono()
  const expected = digest(`Bearer ${token}`)
  const approvals = new Map<string, (answer: ApprovalAnswer) => void>()

  http.get(ROUTES.live, context => context.body(null, 204))
  http.use(async (context, next) => {
    context.header(HEADERS.version, VERSION)
    context.header(HEADERS.protocol, String(PROTOCOL))
    if (!timingSafeEqual(digest(context.req.header(HEADERS.authorization) ?? ''), expected)) return refuse(context, 401, { code: 'usage', message: 'the token is missing or wrong' })
    const spoken = context.req.header(HEADERS.protocol)
    if (spoken !== String(PROTOCOL)) return refuse(context, 426, { code: 'protocol_mismatch', message: `the daemon runs ${VERSION} and speaks protocol ${PROTOCOL}, the client speaks ${spoken ?? 'none'}; restart the daemon or use the client of its version` })
    return next()
  })
  http.use(bodyLimit({ maxSize: MAX_BODY_BYTES, onError: context => refuse(context, 413, { code: 'usage', message: `a request body has at most ${MAX_BODY_BYTES} bytes` }) }))

  http.get(ROUTES.status, context => context.json(app.status()))
  http.get(ROUTES.plugins, context => context.json({ plugins: app.plugins() }))
  http.get(ROUTES.hooks, context => context.json({ hooks: app.hooks() }))
  http.get(ROUTES.tools, context => context.json({ tools: app.tools() }))
  http.get(ROUTES.models, context => context.json({ models: app.models() }))
  http.get(ROUTES.commands, context => context.json({ commands: app.commands() }))
  http.get(ROUTES.sessions, async context => context.json({ sessions: await app.sessions() }))
  http.get(ROUTES.session, async context => context.json(await app.session(context.req.param('id'))))
  http.post(ROUTES.abort, async context => {
    const { reason } = await body(context, AbortOrderSchema)
    return context.json({ aborted: app.abort(context.req.param('id'), reason) })
  })
  http.post(ROUTES.stop, context => {
    setImmediate(stop)                                       // after the answer
    return context.json({ stopping: true })
  })
  http.post(ROUTES.reload, async context => context.json(await app.reload((await body(context, ReloadOrderSchema)).ids)))
  http.post(ROUTES.approval, async context => {
    const answer = await body(context, ApprovalAnswerSchema) as ApprovalAnswer
    const waiting = approvals.get(context.req.param('id'))
    if (!waiting) return refuse(context, 404, { code: 'unknown_id', message: 'this ask is answered already, or was withdrawn' })
    waiting(answer)
    return context.json({ answered: true })
  })
  http.post(ROUTES.runs, async context => {
    const { interactive, ...order } = await body(context, RunOrderSchema)
    let tell: (name: string, data: unknown, id?: number) => Promise<void> = async () => {}
    const gone = new AbortController()                       // the client left: what it was asked is withdrawn, the turn goes on
    const approver: Approver = async request => {
      const id = randomUUID()
      try {
        return await new Promise<ApprovalAnswer | undefined>(resolve => {
          approvals.set(id, resolve)
          for (const signal of [request.signal, gone.signal]) signal.aborted ? resolve(undefined) : signal.addEventListener('abort', () => { resolve(undefined) }, { once: true, signal: gone.signal })
          const { signal: _, ...shown } = request
          tell('approval', { id, ...shown }).catch(() => { resolve(undefined) })
        })
      } finally { approvals.delete(id) }
    }
    const run = await app.run(order, interactive ? approver : undefined)   // refused before anything is streamed
    return streamSSE(context, async stream => {
      stream.onAbort(() => { gone.abort() })
      tell = (event, data, id) => stream.writeSSE({ event, data: JSON.stringify(data), ...(id !== undefined && { id: String(id) }) })
      await tell('session', { session: run.session })
      for await (const event of run.events) {
        if (stream.aborted) continue
        await ('seq' in event ? tell('log', event, event.seq) : tell(event.type, event))
      }
      await run.result.then(result => tell('result', result), (error: unknown) => tell('error', wire(error)))
    })
  })

  http.notFound(context => refuse(context, 404, { code: 'usage', message: `there is no ${context.req.method} ${context.req.path}` }))
  http.onError((error, context) => refuse(context, error instanceof HarnessError ? 400 : 500, wire(error)))
  return http
}

/** Listens on a Unix socket that only its owner can reach. */
export async function listen(http: Hono, socket: string): Promise<HttpServer> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000, maxHeaderSize: 16 * 1024 }, getRequestListener(http.fetch, { overrideGlobalObjects: false }))
  server.maxConnections = 512
  const before = process.umask(0o177)                        // 0600 from the first moment
  try {
    await new Promise<void>((resolve, reject) => { server.once('error', reject).listen(socket, () => { server.off('error', reject); resolve() }) })
  } finally { process.umask(before) }
  return server
}

async function body<T>(context: RouteContext, schema: z.ZodType<T>): Promise<T> {
  if (!/^application\/json\b/.test(context.req.header('content-type') ?? '')) throw new HarnessError('usage', 'the body must be application/json')
  let value: unknown
  try { value = await context.req.json() } catch (error) { throw new HarnessError('usage', `the body is no JSON: ${messageOf(error)}`) }
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw new HarnessError('usage', read.error.issues.map(issue => `${issue.path.join('.') || 'body'}: ${issue.message}`).join('; '))
}
const wire = (error: unknown): WireError => error instanceof HarnessError ? { code: error.code, message: error.message, place: error.place } : { code: 'internal', message: messageOf(error) }
const refuse = (context: RouteContext, status: 400 | 401 | 404 | 413 | 426 | 500, error: WireError) => context.json({ error }, status)

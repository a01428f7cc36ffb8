/**
 * The daemon's HTTP routes over an app. Knows the protocol and the app; no lock and no file but the socket it is told to listen on.
 * Every route but the bare liveness needs the token; bodies are JSON of at most 1 MB; one failed run or request never reaches another.
 */
import { randomBytes, randomUUID, timingSafeEqual } from 'node:crypto'
import { createServer, type Server as HttpServer } from 'node:http'
import type { ListenOptions } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { getRequestListener, type HttpBindings } from '@hono/node-server'
import { Hono, type Context as RouteContext } from 'hono'
import type { z } from '../z.js'
import type { OwnRun } from '../agent/lane.js'
import type { ApprovalAnswer } from '../agent/services.js'
import type { App, Status } from '../app.js'
import { HarnessError, messageOf } from '../errors.js'
import { VERSION } from '../version.js'
import { Asks } from './asks.js'
import { keyDigests } from './key-digest.js'
import { eventStream, type Send } from './event-stream.js'
import { inTurn } from './in-turn.js'
import { limited, pipelined } from './intake.js'
import { openApi } from './openapi.js'
import { HEADERS, MAX_BODY_BYTES, MAX_CONNECTIONS, MAX_TURNS, PROTOCOL, ROUTES, turnsAre } from './protocol.js'
import { AbortOrderSchema, ApprovalAnswerSchema, BeginOrderSchema, CommandOrderSchema, EventsQuerySchema, ReloadOrderSchema, RunOrderSchema, SteerOrderSchema, StopOrderSchema, type WireError } from './schemas.js'
import { sent, sessionFeed } from './session-feed.js'

/** How often an end of the last turn is looked for. */
const LOOK_MS = 50

/** Wrong tokens within a minute that are told so. */
const MAX_WRONG = 10

/** In a time that says nothing of where they differ. */
function isSame(said: string, expected: string): boolean {
  const [one, other] = [Buffer.from(said), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** What a daemon is beside its app. */
export interface DaemonFacts {
  /** Open connections, this client's too. */
  readonly connections: number
  /** How often it was started again after a crash of late. */
  readonly restarts: number
  /** Where it listens beside its socket, and what became of the last change of that. */
  readonly tcp?: string | undefined
}
/** `asks` wait for a person. */
export interface DaemonStatus extends Status, DaemonFacts { readonly asks: number }

/** How a daemon comes to its end. */
export interface Leaving {
  /** No turn begins any more. */
  leaving: boolean
  /** Aborts when the last turn has ended: what follows a session for ever lets go, what tells of a turn comes to its last word. */
  readonly over?: AbortSignal | undefined
}

/** `token` is asked for each request, so that another one counts at once. `stop` is called when a client asks for the end of the daemon. */
export function routes(app: App, token: () => Promise<string | undefined>, stop: () => void, facts: () => DaemonFacts | Promise<DaemonFacts> = () => ({ connections: 0, restarts: 0 }), door: Leaving = { leaving: false }): Hono {
  const http = new Hono()
  const asks = new Asks()
  /** Runs that have clients of their own, by the names that these know. */
  const runs = new Map<string, OwnRun>()
  /** When a wrong token came, of late. Whoever has the right one is not held up by others' guesses. */
  let wrong: number[] = []
  const turn = inTurn()

  http.use(async (_context, next) => {
    await turn()
    return next()
  })
  http.use(async (context, next) => {
    const { remoteAddress, localPort } = (context.env as HttpBindings).incoming?.socket ?? {}
    if (remoteAddress === undefined) return next()            // the socket: only its owner gets there
    const hosts = [`127.0.0.1:${localPort}`, `localhost:${localPort}`, `[::1]:${localPort}`]
    if (context.req.header('origin') === undefined && hosts.includes(context.req.header('host') ?? '')) return next()
    return refuse(context, 403, { code: 'usage', message: 'a page of a browser, or another name of this host: refused' })
  })
  http.get(ROUTES.live, context => context.body(null, 204))
  http.use(async (context, next) => {
    context.header(HEADERS.version, VERSION)
    context.header(HEADERS.protocol, String(PROTOCOL))
    const expected = await token()
    if (expected !== undefined && isSame(context.req.header(HEADERS.authorization) ?? '', `Bearer ${expected}`)) return next()
    const now = performance.now()
    wrong = [...wrong.filter(at => now - at < 60_000), now].slice(-MAX_WRONG - 1)
    if (wrong.length <= MAX_WRONG) return refuse(context, 401, { code: 'usage', message: 'the token is missing or wrong' })
    context.header('retry-after', '60')
    return refuse(context, 429, { code: 'usage', message: `the token is missing or wrong, more than ${MAX_WRONG} times within a minute` })
  })
  http.use(limited(MAX_BODY_BYTES, context => refuse(context, 413, { code: 'usage', message: `a request body has at most ${MAX_BODY_BYTES} bytes` })))
  http.use(async (context, next) => {
    const spoken = context.req.header(HEADERS.protocol)
    if (spoken === String(PROTOCOL) || context.req.path === ROUTES.stop) return next()
    const answer = spoken === undefined ? app.route(context.req.raw) : undefined      // a client of something that a plugin serves
    return answer ?? refuse(context, 426, { code: 'protocol_mismatch', message: `daemon runs ${VERSION} and speaks protocol ${PROTOCOL}, hx speaks ${spoken ?? 'none'}; ${turnsAre(app.turns())} running; "hx restart" waits for them` })
  })

  http.get(ROUTES.openapi, context => context.json(openApi()))
  http.get(ROUTES.status, async context => context.json({ ...app.status(), asks: asks.list().length, ...await facts() } satisfies DaemonStatus))
  http.get(ROUTES.ready, async context => {
    const answer = await app.ready()
    return context.json({ ...answer, ready: answer.ready && !door.leaving }, answer.ready && !door.leaving ? 200 : 503)
  })
  const salt = randomBytes(16).toString('base64url')
  http.get(ROUTES.keys, context => context.json(keyDigests(name => app.key(name), salt)))
  http.get(ROUTES.plugins, context => context.json({ plugins: app.plugins() }))
  http.get(ROUTES.hooks, context => context.json({ hooks: app.hooks() }))
  http.get(ROUTES.tools, context => context.json({ tools: app.tools() }))
  http.get(ROUTES.models, context => context.json({ models: app.models() }))
  http.get(ROUTES.commands, context => context.json({ commands: app.commands() }))
  http.post(ROUTES.command, async context => context.json(await app.command({ name: context.req.param('name'), ...await body(context, CommandOrderSchema) }, context.req.raw.signal)))
  http.get(ROUTES.sessions, async context => context.json({ sessions: await app.sessions() }))
  http.post(ROUTES.sessions, async context => context.json({ session: await app.begin((await body(context, BeginOrderSchema)).cwd) }))
  http.get(ROUTES.session, async context => context.json(await app.session(context.req.param('id'))))
  http.post(ROUTES.abort, async context => {
    const { reason, run } = await body(context, AbortOrderSchema)
    if (run === undefined) return context.json({ aborted: app.abort(context.req.param('id'), reason) })
    runs.get(run)?.abort(reason)
    return context.json({ aborted: runs.has(run) })
  })
  http.post(ROUTES.steer, async context => {
    const { prompt } = await body(context, SteerOrderSchema), session = context.req.param('id')
    const after = (await app.events(session)).at(-1)!.seq
    return context.json({ steered: app.steer(session, prompt), after })
  })
  http.post(ROUTES.archive, async context => {
    await app.archive(context.req.param('id'))
    return context.json({ archived: true })
  })
  http.post(ROUTES.stop, async context => {
    const { wait = false } = await body(context, StopOrderSchema)
    door.leaving = true
    if (wait) void idle(app).then(stop)
    else setImmediate(stop)                                  // after the answer
    return context.json({ stopping: true, turns: app.turns() })
  })
  http.post(ROUTES.reload, async context => {
    const { ids, held } = await body(context, ReloadOrderSchema)
    return context.json(held ? await app.reloadHeld() : await app.reload(ids))
  })
  http.get(ROUTES.approvals, context => context.json({ approvals: asks.list() }))
  http.post(ROUTES.approval, async context => {
    const answer = await body(context, ApprovalAnswerSchema) as ApprovalAnswer
    if (!asks.answer(context.req.param('id'), answer)) return refuse(context, 404, { code: 'unknown_id', message: 'this ask is answered already, or was withdrawn' })
    return context.json({ answered: true })
  })
  http.post(ROUTES.runs, async context => {
    const { interactive = false, detach = false, ...order } = await body(context, RunOrderSchema)
    if (door.leaving || app.turns() >= MAX_TURNS) {
      context.header('retry-after', '5')
      return refuse(context, 429, { code: 'daemon_busy', message: door.leaving ? 'the daemon stops when its turns have ended, and takes no new one; try again in a moment' : `the daemon has ${MAX_TURNS} turns already; try again when some have ended` })
    }
    let session = order.session
    const run = await app.run(order, asks.approver(() => session, detach))   // refused before anything is streamed
    session = run.session
    if (detach) return context.json({ session }, 202)
    return eventStream(context, async (send, gone) => {
      const name = randomUUID()
      runs.set(name, run)
      void run.result.catch(() => {}).finally(() => { runs.delete(name) })      // its client is told of a failure below
      const named = send({ event: 'session', data: { session, run: name } })    // before the asks of the session that are open already
      const leave = interactive ? attend(asks, run.session, send) : undefined
      gone.addEventListener('abort', () => { leave?.() })    // what it was asked is withdrawn, the turn goes on
      await named
      for await (const event of run.events) {
        if (gone.aborted) break
        await send(sent(event))
      }
      await run.result.then(result => send({ event: 'result', data: result }), (error: unknown) => send({ event: 'error', data: wire(error) }))
    })
  })
  http.get(ROUTES.events, async context => {
    const { after, follow, interactive } = valid(EventsQuerySchema, { ...context.req.query(), ...(context.req.header('last-event-id') !== undefined && { after: context.req.header('last-event-id') }) })
    const session = context.req.param('id')
    await app.events(session)                                // refused before anything is streamed
    return eventStream(context, async (send, gone) => {
      const leave = interactive ? attend(asks, session, send) : undefined
      gone.addEventListener('abort', () => { leave?.() })
      try {
        for await (const one of sessionFeed(app, session, { after: after ?? 0, until: follow === '1' ? door.over ?? gone : undefined }, gone)) await send(one)
      } catch (error) { await send({ event: 'error', data: wire(error) }) }
    })
  })

  http.notFound(context => refuse(context, 404, { code: 'usage', message: `there is no ${context.req.method} ${context.req.path}` }))
  http.onError((error, context) => {
    if (outOfDescriptors(error)) {
      context.header('retry-after', '5')
      return refuse(context, 503, { code: 'daemon_busy', message: `the daemon has as many files and connections open as it may (ulimit -n); try again when some are closed (${messageOf(error)})` })
    }
    return refuse(context, error instanceof WrongType ? 415 : error instanceof HarnessError ? 400 : 500, wire(error))
  })
  return http
}

/** Listens on a Unix socket that only its owner can reach. */
export async function listen(http: Hono, socket: string): Promise<HttpServer> {
  const before = process.umask(0o177)                        // 0600 from the first moment
  try { return await listening(http, { path: socket }) } finally { process.umask(before) }
}
/** Listens on a port of this machine. A page of a browser, or a name that leads here, gets nowhere; everybody else needs the token. */
export const listenTcp = (http: Hono, { host, port }: NonNullable<App['tcp']>): Promise<HttpServer> => listening(http, { host, port })
async function listening(http: Hono, where: ListenOptions): Promise<HttpServer> {
  const server = createServer({ headersTimeout: 10_000, requestTimeout: 30_000, connectionsCheckingInterval: 10_000, maxHeaderSize: 16 * 1024 }, pipelined(getRequestListener(http.fetch, { overrideGlobalObjects: false })))
  server.maxConnections = MAX_CONNECTIONS                    // and as many may wait to be taken in: the system refuses a client beyond that outright
  await new Promise<void>((resolve, reject) => { server.once('error', reject).listen({ ...where, backlog: MAX_CONNECTIONS }, () => { server.off('error', reject); resolve() }) })
  return server
}

/** What a page of a browser may send without asking first: a form, or plain text. */
class WrongType extends HarnessError { constructor() { super('usage', 'the body must be application/json') } }
async function body<T>(context: RouteContext, schema: z.ZodType<T>): Promise<T> {
  if (!/^application\/json\b/.test(context.req.header('content-type') ?? '')) throw new WrongType()
  let value: unknown
  try { value = await context.req.json() } catch (error) { throw new HarnessError('usage', `the body is no JSON: ${messageOf(error)}`) }
  return valid(schema, value)
}
function valid<T>(schema: z.ZodType<T>, value: unknown): T {
  const read = schema.safeParse(value)
  if (read.success) return read.data
  throw new HarnessError('usage', read.error.issues.map(issue => `${issue.path.join('.') || 'body'}: ${issue.message}`).join('; '))
}
const attend = (asks: Asks, session: string, send: Send): () => void => asks.attend(session, {
  asked: ask => { void send({ event: 'approval', data: ask }) },
  settled: id => { void send({ event: 'settled', data: { id } }) },
})
/** Resolves when no turn runs or waits, or the time is over; each turn has limits of its own. */
export async function idle(app: App, limitMs = Infinity): Promise<void> {
  for (const end = performance.now() + limitMs; app.turns() > 0 && performance.now() < end;) await sleep(LOOK_MS)
}
const wire = (error: unknown): WireError => error instanceof HarnessError ? { code: error.code, message: error.message, place: error.place } : { code: 'internal', message: messageOf(error) }
/** It, or what caused it, is that no more may be opened. */
function outOfDescriptors(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (['EMFILE', 'ENFILE'].includes((at as NodeJS.ErrnoException).code ?? '')) return true
  return false
}
const refuse = (context: RouteContext, status: 400 | 401 | 403 | 404 | 413 | 415 | 426 | 429 | 500 | 503, error: WireError) => context.json({ error }, status)

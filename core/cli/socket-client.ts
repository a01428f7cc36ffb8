/**
 * The client of a running daemon: asks over its socket what in-process.ts answers itself. Knows HTTP and the protocol, nothing of the app.
 */
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ApprovalAnswer, Approver, RunEvent, RunResult } from '../agent/services.js'
import { HEADERS, PROTOCOL, ROUTES, turnsAre, type RunEventName } from '../daemon/protocol.js'
import type { WireError } from '../daemon/schemas.js'
import type { KeyDigests } from '../daemon/key-digest.js'
import { readToken, type Endpoint } from '../daemon/endpoint.js'
import { CODES, HarnessError, type ErrorCode } from '../errors.js'
import { VERSION } from '../version.js'
import type { Ask, Client, CommandOrder, CommandOutcome, DaemonClient, RunHandle, RunOrder } from './client.js'
import { TurnAccount } from './turn-account.js'

/** A lost connection is made again this often in a row, with a growing pause. */
const RESUMES = 5, PAUSE_MS = 100

/** While more clients come than the system lets wait to be taken in, it says so at once; each comes again this often. Nobody listening is another word, and final. */
const KNOCKS = 8, CROWDED = 'EAGAIN'

/** How long a connection waits for the next question: less than the daemon keeps it, so that none goes into one that is being closed. */
const KEEP_MS = 3_000

/** A daemon that does not answer this long is held up by something that never awaits. */
const ANSWER_MS = 10_000

interface Connecting {
  /** One that speaks another protocol is given too: it can be asked to stop. */
  readonly anyVersion: boolean
  note(message: string): void
}
/** The client of the daemon behind `endpoint`; undefined when none answers there. */
export async function connectDaemon(endpoint: Endpoint, { anyVersion, note }: Connecting): Promise<DaemonClient | undefined> {
  const token = await readToken(endpoint)
  if (token === undefined) return undefined
  const client = new SocketClient(endpoint.socket, token)
  const limit = AbortSignal.timeout(ANSWER_MS)
  try {
    const { version, sessions } = await client.status(limit)
    if (version !== VERSION && !anyVersion) note(`daemon runs ${version}, hx is ${VERSION}; ${turnsAre(sessions)} running; "hx restart" waits for ${sessions === 1 ? 'it' : 'them'}`)
  } catch (error) {
    if (anyVersion && error instanceof HarnessError && error.code === 'protocol_mismatch') return client
    if (limit.aborted) throw await mute(endpoint, ANSWER_MS, error)
    if (error instanceof HarnessError && error.code === 'daemon_missing') return undefined     // no daemon, the socket of one that crashed, or it ends right now
    if (await readToken(endpoint) !== token) return connectDaemon(endpoint, { anyVersion, note })     // one that has just begun has made a token of its own
    throw error
  }
  return client
}

/** One that is there and says nothing: its process, as far as known, and what to do. */
export async function mute(endpoint: Endpoint, ms: number, cause?: unknown): Promise<HarnessError> {
  const { readMark } = await import('../daemon/run-mark.js'), pid = (await readMark(endpoint))?.pid
  return new HarnessError('daemon_missing', `the daemon of this config${pid === undefined ? '' : ` (pid ${pid})`} does not answer within ${ms / 1000} s: it is stopped, or something holds it up without end; end its process${pid === undefined ? '' : ` ("kill -9 ${pid}")`} and start it again`, { cause })
}

class SocketClient implements DaemonClient {
  readonly where = 'daemon'
  readonly #socket: string
  readonly #token: string
  /** What is asked soon after an answer goes over the same connection. */
  readonly #connections = new Agent({ keepAlive: true, timeout: KEEP_MS })
  constructor(socket: string, token: string) { this.#socket = socket; this.#token = token }

  async status(limit?: AbortSignal) { return this.#get<Awaited<ReturnType<DaemonClient['status']>>>(ROUTES.status, limit) }
  async keys() { return this.#get<KeyDigests>(ROUTES.keys) }
  async plugins() { return (await this.#get<{ plugins: Awaited<ReturnType<Client['plugins']>> }>(ROUTES.plugins)).plugins }
  async hooks() { return (await this.#get<{ hooks: Awaited<ReturnType<Client['hooks']>> }>(ROUTES.hooks)).hooks }
  async tools() { return (await this.#get<{ tools: Awaited<ReturnType<Client['tools']>> }>(ROUTES.tools)).tools }
  async models() { return (await this.#get<{ models: Awaited<ReturnType<Client['models']>> }>(ROUTES.models)).models }
  async commands() { return (await this.#get<{ commands: Awaited<ReturnType<Client['commands']>> }>(ROUTES.commands)).commands }
  async command({ name, ...order }: CommandOrder, signal: AbortSignal) { return json<CommandOutcome>(await this.#open('POST', ROUTES.command.replace(':name', encodeURIComponent(name)), order, signal)) }
  async sessions() { return (await this.#get<{ sessions: Awaited<ReturnType<Client['sessions']>> }>(ROUTES.sessions)).sessions }
  async session(id: string) { return this.#get<Awaited<ReturnType<Client['session']>>>(of(ROUTES.session, id)) }
  async reloadHeld() { return this.#post<Awaited<ReturnType<Client['reload']>>>(ROUTES.reload, { held: true }) }
  async reload(ids?: readonly string[]) { return this.#post<Awaited<ReturnType<Client['reload']>>>(ROUTES.reload, ids ? { ids } : {}) }
  hide(text: string) { return text }
  async stop(wait = false) { return (await this.#post<{ turns: number }>(ROUTES.stop, wait ? { wait } : {})).turns }
  async begin(cwd: string) { return (await this.#post<{ session: string }>(ROUTES.sessions, { cwd })).session }
  async start(order: RunOrder) { return (await this.#post<{ session: string }>(ROUTES.runs, { ...order, detach: true })).session }
  async abort(session: string, reason: string, run?: string) { return (await this.#post<{ aborted: boolean }>(of(ROUTES.abort, session), { reason: reason.slice(0, 200), ...(run !== undefined && { run }) })).aborted }
  async steer(session: string, prompt: string) {
    const { steered, after } = await this.#post<{ steered: boolean; after: number }>(of(ROUTES.steer, session), { prompt })
    return steered ? after : undefined
  }
  async archive(session: string) { await this.#post(of(ROUTES.archive, session), {}) }
  async approvals() { return (await this.#get<{ approvals: readonly Ask[] }>(ROUTES.approvals)).approvals }
  async answer(id: string, answer: ApprovalAnswer) { await this.#post(of(ROUTES.approval, id), answer) }
  async close() {}

  async run(order: RunOrder, approver?: Approver): Promise<RunHandle> {
    const stream = serverSentEvents(await this.#open('POST', ROUTES.runs, { ...order, interactive: approver !== undefined }))
    const first = await stream.next(), [named, ...more] = first.value ?? []
    if (named?.event !== 'session') throw new HarnessError('protocol_mismatch', 'the daemon did not name the session of the run')
    const { session, run } = named.data as { session: string; run: string }
    return this.#follow(session, more, stream, 'turn', approver, run)
  }
  async attach(session: string, { after, forever = false }: { after: number | 'turn'; forever?: boolean | undefined }, approver?: Approver): Promise<RunHandle> {
    return this.#follow(session, [], await this.#events(session, after, forever, approver), forever ? 'for ever' : 'turns', approver)
  }
  async #events(session: string, after: number | 'turn', forever: boolean, approver: Approver | undefined) {
    const query = new URLSearchParams({ after: String(after), ...(forever && { follow: '1' }), ...(approver && { interactive: '1' }) })
    return serverSentEvents(await this.#connect('GET', `${of(ROUTES.events, session)}?${query}`))      // an end of the connection is for whoever resumes
  }

  /** Hands on what a stream tells, and goes on where it was when the connection is lost: nothing is missed, nothing comes twice. */
  #follow(session: string, begun: readonly Told[], first: AsyncGenerator<readonly Told[]>, until: 'turn' | 'turns' | 'for ever', approver: Approver | undefined, run?: string): RunHandle {
    const forever = until === 'for ever'
    const account = new TurnAccount(session), open = new Map<string, AbortController>()
    let settle!: { resolve: (result: RunResult) => void; reject: (error: unknown) => void }
    const result = new Promise<RunResult>((resolve, reject) => { settle = { resolve, reject } })
    result.catch(() => {})                                   // read by whoever awaits the result; a stream that is left early has nobody
    const answer = (ask: Ask) => {
      if (!approver || open.has(ask.id)) return              // told again by a connection that was made again
      const withdrawn = new AbortController()
      open.set(ask.id, withdrawn)
      approver({ ...ask, signal: withdrawn.signal })
        .then(said => withdrawn.signal.aborted ? undefined : this.answer(ask.id, said ?? { answer: 'denied', note: 'the ask was not answered' }))
        .catch(() => {})                                     // answered elsewhere meanwhile, or the run has ended
    }
    const resumed = async (tries: number, cause: unknown) => {
      if (tries > RESUMES || (account.turn === 0 && !forever)) throw new HarnessError('daemon_missing', `the connection to the daemon was lost; if it still runs, so does the turn: hx attach ${session}`, { cause })
      await sleep(PAUSE_MS * tries)
      return this.#events(session, account.last, forever, approver)
    }
    /** Undefined while it goes on. */
    const take = ({ event, data }: Told): RunEvent | 'over' | undefined => {
      switch (event) {
        case 'log': case 'progress': case 'delta':
          account.see(data as RunEvent)
          return data as RunEvent
        case 'approval': answer(data as Ask); return undefined
        case 'settled': open.get((data as { id: string }).id)?.abort(); return undefined
        case 'reset': account.reset(); return undefined
        case 'result': settle.resolve(data as RunResult); return 'over'
        case 'error': settle.reject(errorOf(data as WireError)); return 'over'
        case 'end': return 'over'
        case 'session': return undefined
      }
    }
    async function* events(): AsyncGenerator<RunEvent> {
      let stream = first, come = begun, over = false
      try {
        for (let tries = 0, resumes = 0; ; resumes++) {
          let cause: unknown
          try {
            for (;;) {
              for (const told of come) {
                const event = take(told)
                if (event === 'over') { over = true; return }
                tries = 0
                if (event) yield event
                if (resumes > 0 && until === 'turn' && account.result) return   // a session's events go on with its next turn
              }
              come = []
              const next = await stream.next()
              if (next.done) break
              come = next.value
            }
          } catch (error) { cause = error }
          if (account.result && !forever) return             // only its last word was lost
          for (;;) {
            try { stream = await resumed(++tries, cause); break } catch (error) {
              if (error instanceof HarnessError) throw error
              cause = error
            }
          }
        }
      } catch (error) { settle.reject(error) } finally {
        void (over ? stream.next() : stream.return(undefined)).catch(() => {})     // at its last word the daemon ends it, and the connection is free; else it is given up
        for (const withdrawn of open.values()) withdrawn.abort()
        if (account.result) settle.resolve(account.result)   // no effect once settled
        else settle.reject(new HarnessError('daemon_missing', `the turn of session ${session} has no end in its log: its daemon ended before it did`))
      }
    }
    return { session, events: events(), result, abort: reason => { this.abort(session, reason, run).catch(error => { settle.reject(error) }) } }
  }

  async #get<T>(path: string, limit?: AbortSignal): Promise<T> { return json<T>(await this.#open('GET', path, undefined, limit)) }
  async #post<T>(path: string, body: object): Promise<T> { return json<T>(await this.#open('POST', path, body)) }
  /** As `#connect`; a daemon that ends meanwhile is said so. */
  async #open(method: string, path: string, body?: object, signal?: AbortSignal): Promise<IncomingMessage> {
    try { return await this.#connect(method, path, body, signal) } catch (error) {
      throw told(error)
    }
  }
  async #connect(method: string, path: string, body?: object, signal?: AbortSignal): Promise<IncomingMessage> {
    for (let knocks = 1; ; knocks++) {
      try { return await this.#knock(method, path, body, signal) } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== CROWDED) throw error
        if (knocks === KNOCKS) throw new HarnessError('daemon_busy', 'more clients come at once than the daemon can take in; try again in a moment', { cause: error })
        await sleep(PAUSE_MS * knocks)
      }
    }
  }
  #knock(method: string, path: string, body?: object, signal?: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        socketPath: this.#socket, method, path, agent: this.#connections, ...(signal && { signal }),
        headers: { host: 'hx', [HEADERS.authorization]: `Bearer ${this.#token}`, [HEADERS.protocol]: String(PROTOCOL), [HEADERS.version]: VERSION, ...(body && { 'content-type': 'application/json' }) },
      }, response => {
        if (response.headers[HEADERS.protocol] === undefined && response.statusCode !== 204) { response.destroy(); reject(new HarnessError('protocol_mismatch', 'what answers on the socket is no daemon of hx, or one too old to say its protocol; restart it with "hx restart"')); return }
        if ((response.statusCode ?? 500) < 400) { resolve(response); return }
        json<{ error: WireError }>(response).then(({ error }) => { reject(errorOf(error)) }, reject)
      })
      request.once('error', reject)
      request.end(body && JSON.stringify(body))
    })
  }
}

/** The end of a connection in words; other errors as they are. */
const told = (error: unknown): unknown => ['ECONNRESET', 'EPIPE', 'ENOENT', 'ECONNREFUSED'].includes((error as NodeJS.ErrnoException).code ?? '')
  ? new HarnessError('daemon_missing', 'the daemon ended before it answered; see "hx logs"', { cause: error })
  : error

interface Told { readonly event: RunEventName; readonly data: unknown }

const of = (route: string, id: string): string => route.replace(':id', encodeURIComponent(id))
const errorOf = ({ code, message, place }: WireError) => new HarnessError(code in CODES ? code as ErrorCode : 'internal', message, { place })

async function json<T>(response: IncomingMessage): Promise<T> {
  let text = ''
  try { for await (const chunk of response.setEncoding('utf8')) text += chunk as string } catch (error) { throw told(error) }
  return JSON.parse(text) as T
}

/** The events of a stream of our own daemon, those together that came together: `event:` and one `data:` line each. */
async function* serverSentEvents(response: IncomingMessage): AsyncGenerator<readonly Told[]> {
  let rest = ''
  for await (const chunk of response.setEncoding('utf8')) {
    rest += chunk as string
    const come: Told[] = []
    let from = 0
    for (let end = rest.indexOf('\n\n'); end >= 0; from = end + 2, end = rest.indexOf('\n\n', from)) {
      const event = fieldOf(rest, 'event: ', from, end), data = fieldOf(rest, 'data: ', from, end)
      if (event !== undefined && data !== undefined) come.push({ event: event as RunEventName, data: JSON.parse(data) })
    }
    rest = rest.slice(from)
    if (come.length > 0) yield come
  }
}
/** The rest of the line between `from` and `end` that begins with `name`. */
function fieldOf(text: string, name: string, from: number, end: number): string | undefined {
  for (let line = from; line < end;) {
    const next = text.indexOf('\n', line)                    // there is one: the block ends with two
    if (text.startsWith(name, line)) return text.slice(line + name.length, next)
    line = next + 1
  }
  return undefined
}

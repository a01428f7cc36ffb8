/**
 * The client of a running daemon: asks over its socket what in-process.ts answers itself. Knows HTTP and the protocol, nothing of the app.
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Approver, RunEvent, RunResult } from '../agent/services.js'
import { HEADERS, PROTOCOL, ROUTES, type RunEventName, type WireError } from '../daemon/protocol.js'
import { readToken, type Endpoint } from '../daemon/endpoint.js'
import { CODES, HarnessError, type ErrorCode } from '../errors.js'
import { VERSION } from '../version.js'
import type { Client, RunHandle, RunOrder } from './client.js'

/** The client of the daemon behind `endpoint`; undefined when none answers there. */
export async function connectDaemon(endpoint: Endpoint): Promise<Client | undefined> {
  const token = await readToken(endpoint)
  if (token === undefined) return undefined
  const client = new SocketClient(endpoint.socket, token)
  try { await client.status() } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ECONNREFUSED') return undefined     // no daemon, or the socket of one that crashed
    throw error
  }
  return client
}

class SocketClient implements Client {
  readonly where = 'daemon'
  readonly #socket: string
  readonly #token: string
  constructor(socket: string, token: string) { this.#socket = socket; this.#token = token }

  async status() { return this.#get<Awaited<ReturnType<Client['status']>>>(ROUTES.status) }
  async plugins() { return (await this.#get<{ plugins: Awaited<ReturnType<Client['plugins']>> }>(ROUTES.plugins)).plugins }
  async hooks() { return (await this.#get<{ hooks: Awaited<ReturnType<Client['hooks']>> }>(ROUTES.hooks)).hooks }
  async tools() { return (await this.#get<{ tools: Awaited<ReturnType<Client['tools']>> }>(ROUTES.tools)).tools }
  async models() { return (await this.#get<{ models: Awaited<ReturnType<Client['models']>> }>(ROUTES.models)).models }
  async commands() { return (await this.#get<{ commands: Awaited<ReturnType<Client['commands']>> }>(ROUTES.commands)).commands }
  async sessions() { return (await this.#get<{ sessions: Awaited<ReturnType<Client['sessions']>> }>(ROUTES.sessions)).sessions }
  async session(id: string) { return this.#get<Awaited<ReturnType<Client['session']>>>(ROUTES.session.replace(':id', encodeURIComponent(id))) }
  async reload(ids?: readonly string[]) { return this.#post<Awaited<ReturnType<Client['reload']>>>(ROUTES.reload, ids ? { ids } : {}) }
  async stop() { await this.#post(ROUTES.stop, {}) }
  async close() {}

  async run(order: RunOrder, approver?: Approver): Promise<RunHandle> {
    const response = await this.#open('POST', ROUTES.runs, { ...order, interactive: approver !== undefined })
    const stream = serverSentEvents(response)
    const first = await stream.next()
    if (first.done || first.value.event !== 'session') throw new HarnessError('protocol_mismatch', 'the daemon did not name the session of the run')
    const { session } = first.value.data as { session: string }
    let settle!: { resolve: (result: RunResult) => void; reject: (error: unknown) => void }
    const result = new Promise<RunResult>((resolve, reject) => { settle = { resolve, reject } })
    result.catch(() => {})                                   // read by whoever awaits the result; a stream that is left early has nobody
    const withdrawn = new AbortController()
    const answer = (ask: { id: string } & Omit<Parameters<Approver>[0], 'signal'>) => {
      approver?.({ ...ask, signal: withdrawn.signal })
        .then(said => this.#post(ROUTES.approval.replace(':id', ask.id), said ?? { answer: 'denied', note: 'the ask was not answered' }))
        .catch(() => {})                                     // answered elsewhere meanwhile, or the run has ended
    }
    async function* events(): AsyncGenerator<RunEvent> {
      try {
        for await (const { event, data } of stream) {
          if (event === 'log' || event === 'progress' || event === 'delta') yield data as RunEvent
          else if (event === 'approval') answer(data as Parameters<typeof answer>[0])
          else if (event === 'result') settle.resolve(data as RunResult)
          else if (event === 'error') settle.reject(errorOf(data as WireError))
        }
      } finally {
        withdrawn.abort()
        settle.reject(new HarnessError('daemon_missing', `the connection to the daemon was lost; the turn goes on there: hx sessions show ${session}`))   // no effect once settled
      }
    }
    return { session, events: events(), result, abort: reason => { this.#post(ROUTES.abort.replace(':id', encodeURIComponent(session)), { reason: reason.slice(0, 200) }).catch(error => { settle.reject(error) }) } }
  }

  async #get<T>(path: string): Promise<T> { return json<T>(await this.#open('GET', path)) }
  async #post<T>(path: string, body: object): Promise<T> { return json<T>(await this.#open('POST', path, body)) }
  #open(method: string, path: string, body?: object): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const request = httpRequest({
        socketPath: this.#socket, method, path, agent: false,
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

const errorOf = ({ code, message, place }: WireError) => new HarnessError(code in CODES ? code as ErrorCode : 'internal', message, { place })

async function json<T>(response: IncomingMessage): Promise<T> {
  let text = ''
  for await (const chunk of response.setEncoding('utf8')) text += chunk as string
  return JSON.parse(text) as T
}

/** The events of a stream of our own daemon: `event:` and one `data:` line each. */
async function* serverSentEvents(response: IncomingMessage): AsyncGenerator<{ event: RunEventName; data: unknown }> {
  let rest = ''
  for await (const chunk of response.setEncoding('utf8')) {
    const blocks = (rest + (chunk as string)).split('\n\n')
    rest = blocks.pop()!
    for (const block of blocks) {
      const field = (name: string) => block.split('\n').find(line => line.startsWith(`${name}: `))?.slice(name.length + 2)
      const data = field('data')
      if (data !== undefined) yield { event: field('event') as RunEventName, data: JSON.parse(data) }
    }
  }
}

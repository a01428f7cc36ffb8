/**
 * One MCP server: connected, its tools offered, connected again when it is lost.
 *
 *   connecting ──▶ ready ──▶ lost ──▶ connecting …      after a growing pause, or at once when a call wants it
 *        └──────── failed ◀──┘    any ──▶ stopped
 *
 * Invariants: one attempt at a time; the tools of a lost server stay offered, so that a crash doesn't change what the model is told; after `stop` nothing of it is left.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { messageOf, type Context, type ToolOutput, type ToolRun } from 'harnessx'
import { boundedFetch } from './bounded-fetch.js'
import type { ServerSpec } from './config.js'
import { readAnswer, type Answer } from './content.js'
import { commandEnvironment, expandHome } from './environment.js'
import { isOffered, toolName } from './names.js'
import { ServerProcess } from './process.js'
import type { Sdk } from './sdk.js'
import { Page, readTools, type ListedTool } from './tool-list.js'

/** Between two attempts: doubled up to the second, until a connection has held for the third. */
const FIRST_PAUSE_MS = 1000, LONGEST_PAUSE_MS = 60_000, HELD_MS = 30_000
/** A message that is longer ends the connection. */
const MAX_MESSAGE_BYTES = 10 * 1024 * 1024, TOO_LONG = 'sent more than 10 MB in one message and was ended'
/** How long a server over HTTP may take to hear that its session is over, and how much of its words an error has. */
const FAREWELL_MS = 1000, MOST_REASON = 300
/** Pages of a list of tools, and characters of a description that providers take. */
const MAX_PAGES = 50, MAX_DESCRIPTION = 1024, MOST_COMPLAINTS = 100

export type State = 'connecting' | 'ready' | 'failed' | 'stopped'

export class Server {
  readonly name: string
  readonly #spec: ServerSpec
  readonly #maxCharacters: number
  readonly #ctx: Context
  readonly #sdk: Sdk
  readonly #stopping = new AbortController()
  /** By the name they are offered under: what undoes it, and what it was made of. */
  readonly #offered = new Map<string, { readonly off: () => void; readonly made: string }>()
  #connecting: Promise<Client> | undefined
  #client: Client | undefined
  #pauseMs = FIRST_PAUSE_MS
  /** When the connection that is, or was, began; how the last one ended. */
  #since = 0
  #ended = 'ended'
  #later: (() => void) | undefined
  /** What went wrong last, told once. */
  #problem: string | undefined
  #listing: Promise<void> = Promise.resolve()
  #toList = false
  readonly #complaints = new Set<string>()

  constructor(name: string, spec: ServerSpec, maxCharacters: number, ctx: Context, sdk: Sdk) {
    this.name = name
    this.#spec = spec
    this.#maxCharacters = maxCharacters
    this.#ctx = ctx
    this.#sdk = sdk
  }

  get state(): State { return this.#stopping.signal.aborted ? 'stopped' : this.#client ? 'ready' : this.#connecting ? 'connecting' : 'failed' }
  get tools(): readonly string[] { return [...this.#offered.keys()] }
  get problem(): string | undefined { return this.#problem }

  /** Connects now, unless it is. Rejects with what is wrong; another attempt is then under way. */
  ready(): Promise<Client> {
    if (this.#stopping.signal.aborted) return Promise.reject(new Error(`MCP server "${this.name}" was stopped`))
    if (this.#client) return Promise.resolve(this.#client)
    this.#later?.()
    this.#later = undefined
    return this.#connecting ??= this.#connect().finally(() => { this.#connecting = undefined })
  }
  /** Takes its tools back and ends it. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error(`MCP server "${this.name}" is stopped`))
    this.#later?.()
    for (const { off } of this.#offered.values()) off()
    this.#offered.clear()
    const client = this.#client
    this.#client = undefined
    await Promise.all([client && this.#leave(client), this.#connecting?.catch(() => {})])          // an attempt under way sees the signal
  }
  /** Over HTTP a session is one of the server's until it is told otherwise. */
  async #leave(client: Client): Promise<void> {
    const { transport } = client
    if (transport instanceof this.#sdk.StreamableHTTPClientTransport) await Promise.race([transport.terminateSession().catch(() => {}), sleep(FAREWELL_MS, undefined, { ref: false })])      // one that is gone needs no farewell
    await client.close()
  }

  async #connect(): Promise<Client> {
    const { Client } = this.#sdk, { startTimeout } = this.#spec
    const client = new Client({ name: 'hx', version: '1' }, { capabilities: {} })
    const { transport, close, words, fault } = this.#transport()
    try {
      const { signal } = this.#stopping
      await withSignal(signal, own => client.connect(transport, { timeout: startTimeout, signal: own }))
      client.onerror = error => { this.#ctx.logger.debug(`server "${this.name}": ${reasonOf(error)}`) }
      client.setNotificationHandler(this.#sdk.ToolListChangedNotificationSchema, () => { this.#listAgain(client) })
      const tools = await this.#list(client)
      signal.throwIfAborted()
      client.onclose = () => {
        this.#ended = fault() ?? 'ended'
        this.#lost(client, `it ${this.#ended}${words() === '' ? '' : `; its last words: ${words()}`}`)
      }
      this.#client = client
      this.#offer(tools)
      if (this.#problem !== undefined) this.#ctx.logger.info(`server "${this.name}" is connected again`)
      this.#problem = undefined
      this.#since = performance.now()
      client.transport ?? this.#lost(client, 'it ended at once')
      return client
    } catch (error) {
      await client.close().catch(() => {})                  // what closing fails with says less than `error`
      await close()
      const said = words()
      throw this.#failed(`${this.#isTimeout(error) ? `it did not answer within ${startTimeout / 1000} s` : reasonOf(error)}${said === '' ? '' : `; its last words: ${said}`}`)
    }
  }
  #transport(): { transport: Transport; close: () => Promise<void>; words: () => string; fault: () => string | undefined } {
    const { command, args, env, cwd, url, headers } = this.#spec
    if (command !== undefined) {
      const transport = new ServerProcess({ command: expandHome(command), args: args.map(expandHome), env: { ...commandEnvironment(process.env), ...env }, cwd: expandHome(cwd ?? this.#ctx.get('host')?.configDir ?? '~') }, MAX_MESSAGE_BYTES, this.#sdk, line => { this.#ctx.logger.info(`server "${this.name}" says: ${line}`) })
      return { transport, close: () => transport.close(), words: () => transport.lastWords, fault: () => transport.saidTooMuch ? TOO_LONG : undefined }
    }
    let fault: string | undefined
    const transport = new this.#sdk.StreamableHTTPClientTransport(new URL(url!), { requestInit: { headers: { ...headers } }, fetch: boundedFetch(MAX_MESSAGE_BYTES, () => {
      fault = TOO_LONG
      void transport.close()
    }) })
    return {
      transport: transport as Transport,                    // its optional members are typed less exactly than ours
      close: () => transport.close(), words: () => '', fault: () => fault,
    }
  }

  /** Tells what is wrong when it is something new, and tries again after a pause. */
  #failed(why: string): Error {
    const { signal } = this.#stopping
    if (!signal.aborted) {
      if (this.#problem !== why) this.#ctx.logger.warn(`server "${this.name}" is not connected: ${why}; it is tried again in ${this.#pauseMs / 1000} s`)
      this.#problem = why
      this.#later = this.#ctx.setTimeout(() => { this.#later = undefined; this.ready().catch(() => {}) }, this.#pauseMs)     // told by the next #failed
      this.#pauseMs = Math.min(this.#pauseMs * 2, LONGEST_PAUSE_MS)
    }
    return new Error(`MCP server "${this.name}" is not connected: ${why}`)
  }
  #lost(client: Client, why: string): void {
    if (this.#client !== client) return
    this.#client = undefined
    if (performance.now() - this.#since > HELD_MS) this.#pauseMs = FIRST_PAUSE_MS
    void client.close().catch(() => {})                     // it is gone already, or never answers
    this.#failed(why)
  }

  // ---- tools

  async #list(client: Client): Promise<readonly ListedTool[]> {
    if (!client.getServerCapabilities()?.tools) return []
    const all: unknown[] = []
    let cursor: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const params: { cursor?: string } = cursor === undefined ? {} : { cursor }
      const { tools, nextCursor } = await withSignal(this.#stopping.signal, signal => client.request({ method: 'tools/list', params }, Page, { timeout: this.#spec.startTimeout, signal }))
      all.push(...tools)
      if (nextCursor === undefined) break
      cursor = nextCursor
    }
    const { tools, problems } = readTools(all)
    for (const problem of problems) this.#complain(problem)
    return tools
  }
  /** Once for each: lists are read again and again. */
  #complain(problem: string): void {
    if (this.#complaints.has(problem) || this.#complaints.size >= MOST_COMPLAINTS) return
    this.#complaints.add(problem)
    this.#ctx.logger.warn(`server "${this.name}": ${problem}`)
  }
  /** One look at a time; one more behind it counts for all that are asked for meanwhile. */
  #listAgain(client: Client): void {
    if (this.#toList) return
    this.#toList = true
    this.#listing = this.#listing.then(async () => {
      this.#toList = false
      const tools = await this.#list(client)
      if (this.#client === client) this.#offer(tools)
    }).catch((error: unknown) => { if (!this.#stopping.signal.aborted) this.#ctx.logger.warn(`server "${this.name}": its tools could not be listed anew, so those of before stay: ${messageOf(error)}`) })
  }
  /** What is the same stays as it is; what has changed or left is taken back. */
  #offer(tools: readonly ListedTool[]): void {
    const wanted = new Map(tools.filter(({ name }) => isOffered(name, this.#spec)).map(tool => [toolName(this.name, tool.name), { tool, made: JSON.stringify(tool) }]))
    for (const [name, { off, made }] of this.#offered) {
      if (wanted.get(name)?.made === made) continue
      off()
      this.#offered.delete(name)
    }
    for (const [name, { tool, made }] of wanted) {
      if (this.#offered.has(name)) continue
      try { this.#offered.set(name, { off: this.#register(name, tool), made }) } catch (error) { this.#complain(`its tool "${tool.name}" is left out: ${messageOf(error)}`) }
    }
  }
  #register(name: string, { name: original, description, inputSchema, readOnly }: ListedTool): () => void {
    const told = description || `The tool "${original}" of the MCP server "${this.name}".`
    return this.#ctx.tools.register({
      name, parameters: inputSchema,
      description: told.length > MAX_DESCRIPTION ? `${told.slice(0, MAX_DESCRIPTION - 1)}…` : told,
      readOnly, unconfined: true,
      execute: (args: Record<string, unknown>, run: ToolRun) => this.#call(original, args, run),
    })
  }

  async #call(tool: string, args: Record<string, unknown>, run: ToolRun): Promise<ToolOutput> {
    const client = await until(this.ready(), run.signal)
    try { return await this.#ask(client, tool, args, run) } catch (error) {
      const { cause } = error as Error
      if (this.#client === client && this.#isUnreachable(cause)) this.#lost(client, reasonOf(cause))
      if (!this.#hasForgottenUs(cause)) throw error
    }
    return this.#ask(await until(this.ready(), run.signal), tool, args, run)           // a server that was started anew has not run it
  }
  async #ask(client: Client, tool: string, args: Record<string, unknown>, run: ToolRun): Promise<ToolOutput> {
    const { timeout } = this.#spec
    const onprogress = ({ progress, total, message }: { progress: number; total?: number | undefined; message?: string | undefined }) => { run.progress(message ?? `${progress}${total === undefined ? '' : ` of ${total}`}`) }
    try {
      const answer = await withSignal(run.signal, signal => client.request({ method: 'tools/call', params: { name: tool, arguments: args } }, this.#sdk.CallToolResultSchema, { signal, timeout, resetTimeoutOnProgress: true, onprogress }))
      return await readAnswer(answer as Answer, () => run.outputDir, this.#maxCharacters)
    } catch (error) {
      run.signal.throwIfAborted()
      if (this.#isTimeout(error)) throw new Error(`MCP server "${this.name}" said nothing of "${tool}" for ${timeout / 1000} s, and was told to stop it`, { cause: error })
      if (this.#client !== client) throw new Error(`MCP server "${this.name}" ${this.#ended} while "${tool}" ran; what it did until then stays`, { cause: error })
      throw new Error(`MCP server "${this.name}": ${reasonOf(error)}`, { cause: error })
    }
  }

  #isTimeout(error: unknown): boolean { return error instanceof this.#sdk.McpError && error.code === (this.#sdk.ErrorCode.RequestTimeout as number) }
  /** A server over HTTP that was started anew knows nothing of our session. */
  #hasForgottenUs(error: unknown): boolean { return error instanceof this.#sdk.StreamableHTTPError && (error.code === 404 || (error.code === 400 && /session/i.test(error.message))) }
  #isUnreachable(error: unknown): boolean { return this.#hasForgottenUs(error) || (error instanceof TypeError && error.message === 'fetch failed') }
}

/** `fetch` keeps what went wrong in its cause. */
const reasonOf = (error: unknown): string => {
  const why = (error instanceof TypeError && error.cause ? messageOf(error.cause) : messageOf(error)).replace(/\s+/g, ' ')
  return why.length > MOST_REASON ? `${why.slice(0, MOST_REASON - 1)}…` : why
}
/** An attempt goes on for others when this call is over. */
function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => { reject(signal.reason as Error) }
    if (signal.aborted) { stop(); return }
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => { signal.removeEventListener('abort', stop) })
  })
}
/** With a signal of its own, that is let go when the act is over: the SDK would say "cancelled" of what has ended. */
async function withSignal<T>(signal: AbortSignal, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const own = new AbortController(), stop = () => { own.abort(signal.reason) }
  signal.addEventListener('abort', stop, { once: true })
  if (signal.aborted) stop()
  try { return await act(own.signal) } finally { signal.removeEventListener('abort', stop) }
}

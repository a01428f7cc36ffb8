/**
 * One MCP server: connected, its tools offered, connected again when it is lost.
 *
 *   connecting ──▶ ready ──▶ lost ──▶ connecting …      after a growing pause, or at once when a call wants it
 *        └──────── failed ◀──┘    any ──▶ stopped
 *
 * Invariants: one attempt at a time; the tools of a lost server stay offered, so that a crash doesn't change what the model is told; after `stop` nothing of it is left.
 */
import type { Client } from '@modelcontextprotocol/sdk/client/index.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { Tool as ServerTool } from '@modelcontextprotocol/sdk/types.js'
import { messageOf, type Context, type ToolOutput, type ToolRun } from 'harnessx'
import type { ServerSpec } from './config.js'
import { readAnswer, type Answer } from './content.js'
import { commandEnvironment, expandHome } from './environment.js'
import { isOffered, toolName } from './names.js'
import { ServerProcess } from './process.js'
import type { Sdk } from './sdk.js'

/** Between two attempts: doubled up to the second. */
const FIRST_PAUSE_MS = 1000, LONGEST_PAUSE_MS = 60_000
/** Pages of a list of tools, and characters of a description that providers take. */
const MAX_PAGES = 50, MAX_DESCRIPTION = 1024

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
  #later: (() => void) | undefined
  /** What went wrong last, told once. */
  #problem: string | undefined
  #listing: Promise<void> = Promise.resolve()

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
    await Promise.all([client?.close(), this.#connecting?.catch(() => {})])          // an attempt under way sees the signal
  }

  async #connect(): Promise<Client> {
    const { Client } = this.#sdk, { startTimeout } = this.#spec
    const client = new Client({ name: 'hx', version: '1' }, { capabilities: {} })
    const { transport, close, words } = this.#transport()
    try {
      const { signal } = this.#stopping
      await client.connect(transport, { timeout: startTimeout, signal })
      client.onerror = error => { this.#ctx.logger.debug(`server "${this.name}": ${reasonOf(error)}`) }
      client.setNotificationHandler(this.#sdk.ToolListChangedNotificationSchema, () => { this.#listAgain(client) })
      const tools = await this.#list(client)
      signal.throwIfAborted()
      client.onclose = () => { this.#lost(client, words() === '' ? 'it ended' : `it ended; its last words: ${words()}`) }
      this.#client = client
      this.#offer(tools)
      if (this.#problem !== undefined) this.#ctx.logger.info(`server "${this.name}" is connected again`)
      this.#problem = undefined
      this.#pauseMs = FIRST_PAUSE_MS
      client.transport ?? this.#lost(client, 'it ended at once')
      return client
    } catch (error) {
      await client.close().catch(() => {})                  // what closing fails with says less than `error`
      await close()
      const said = words()
      throw this.#failed(`${this.#isTimeout(error) ? `it did not answer within ${startTimeout / 1000} s` : reasonOf(error)}${said === '' ? '' : `; its last words: ${said}`}`)
    }
  }
  #transport(): { transport: Transport; close: () => Promise<void>; words: () => string } {
    const { command, args, env, cwd, url, headers } = this.#spec
    if (command !== undefined) {
      const transport = new ServerProcess({ command: expandHome(command), args: args.map(expandHome), env: { ...commandEnvironment(process.env), ...env }, cwd: expandHome(cwd ?? this.#ctx.get('host')?.configDir ?? '~') }, this.#sdk, line => { this.#ctx.logger.info(`server "${this.name}" says: ${line}`) })
      return { transport, close: () => transport.close(), words: () => transport.lastWords }
    }
    const transport = new this.#sdk.StreamableHTTPClientTransport(new URL(url!), { requestInit: { headers: { ...headers } } })
    return {
      transport: transport as Transport,                    // its optional members are typed less exactly than ours
      close: () => transport.close(), words: () => '',
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
    void client.close().catch(() => {})                     // it is gone already, or never answers
    this.#failed(why)
  }

  // ---- tools

  async #list(client: Client): Promise<ServerTool[]> {
    if (!client.getServerCapabilities()?.tools) return []
    const all: ServerTool[] = []
    let cursor: string | undefined
    for (let page = 0; page < MAX_PAGES; page++) {
      const { tools, nextCursor } = await client.listTools(cursor === undefined ? {} : { cursor }, { timeout: this.#spec.startTimeout, signal: this.#stopping.signal })
      all.push(...tools)
      if (nextCursor === undefined) break
      cursor = nextCursor
    }
    return all
  }
  /** One look at a time, in order: the last one counts. */
  #listAgain(client: Client): void {
    this.#listing = this.#listing.then(async () => {
      const tools = await this.#list(client)
      if (this.#client === client) this.#offer(tools)
    }).catch((error: unknown) => { if (!this.#stopping.signal.aborted) this.#ctx.logger.warn(`server "${this.name}": its tools could not be listed anew, so those of before stay: ${messageOf(error)}`) })
  }
  /** What is the same stays as it is; what has changed or left is taken back. */
  #offer(tools: readonly ServerTool[]): void {
    const wanted = new Map(tools.filter(({ name }) => isOffered(name, this.#spec)).map(tool => [toolName(this.name, tool.name), { tool, made: JSON.stringify(tool) }]))
    for (const [name, { off, made }] of this.#offered) {
      if (wanted.get(name)?.made === made) continue
      off()
      this.#offered.delete(name)
    }
    for (const [name, { tool, made }] of wanted) {
      if (this.#offered.has(name)) continue
      try { this.#offered.set(name, { off: this.#register(name, tool), made }) } catch (error) { this.#ctx.logger.warn(`server "${this.name}": its tool "${tool.name}" is left out: ${messageOf(error)}`) }
    }
  }
  #register(name: string, { name: original, title, description = '', inputSchema, annotations }: ServerTool): () => void {
    const told = description.trim() || title || `The tool "${original}" of the MCP server "${this.name}".`
    return this.#ctx.tools.register({
      name, parameters: inputSchema,
      description: told.length > MAX_DESCRIPTION ? `${told.slice(0, MAX_DESCRIPTION - 1)}…` : told,
      readOnly: annotations?.readOnlyHint === true, unconfined: true,
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
      const answer = await client.request({ method: 'tools/call', params: { name: tool, arguments: args } }, this.#sdk.CallToolResultSchema, { signal: run.signal, timeout, resetTimeoutOnProgress: true, onprogress })
      return await readAnswer(answer as Answer, () => run.outputDir, this.#maxCharacters)
    } catch (error) {
      run.signal.throwIfAborted()
      if (this.#isTimeout(error)) throw new Error(`MCP server "${this.name}" said nothing of "${tool}" for ${timeout / 1000} s, and was told to stop it`, { cause: error })
      if (this.#client !== client) throw new Error(`MCP server "${this.name}" ended while "${tool}" ran; what it did until then stays`, { cause: error })
      throw new Error(`MCP server "${this.name}": ${reasonOf(error)}`, { cause: error })
    }
  }

  #isTimeout(error: unknown): boolean { return error instanceof this.#sdk.McpError && error.code === (this.#sdk.ErrorCode.RequestTimeout as number) }
  /** A server over HTTP that was started anew knows nothing of our session. */
  #hasForgottenUs(error: unknown): boolean { return error instanceof this.#sdk.StreamableHTTPError && (error.code === 404 || (error.code === 400 && /session/i.test(error.message))) }
  #isUnreachable(error: unknown): boolean { return this.#hasForgottenUs(error) || (error instanceof TypeError && error.message === 'fetch failed') }
}

/** `fetch` keeps what went wrong in its cause. */
const reasonOf = (error: unknown): string => error instanceof TypeError && error.cause ? messageOf(error.cause) : messageOf(error)
/** An attempt goes on for others when this call is over. */
function until<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stop = () => { reject(signal.reason as Error) }
    if (signal.aborted) { stop(); return }
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => { signal.removeEventListener('abort', stop) })
  })
}

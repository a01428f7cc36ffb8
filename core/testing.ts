/**
 * `harnessx/testing`: a real host in a temporary folder for the tests of a plugin, with a scripted model for the one thing outside. For vitest, node:test and any other runner.
 * Nothing of the user's is read or written, and `close` leaves nothing behind.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { App, type AppEvent, type RunOrder } from './app.js'
import type { ApprovalAnswer, ApprovalRequest, HookInfo, Model, ModelChunk, RunEvent, RunResult, ToolInfo } from './agent/services.js'
import { text, type ModelRequest, type RawToolCall } from './agent/vocabulary.js'
import { Log, type LogRecord } from './kernel/log.js'
import type { PluginInfo, ReloadReport } from './loader/host.js'
import { trustFolders } from './loader/trust.js'
import { CONFIG_NAME, places } from './places.js'

/** What the model says next: text, calls of tools, or what a function makes of the request. */
export type ScriptedReply = string | { readonly text?: string; readonly calls?: readonly { readonly name: string; readonly arguments: object | string }[] } | ((request: ModelRequest) => ScriptedReply | Promise<ScriptedReply>)
/** A row of `plugins:`; `from` is a path from the current folder. */
export interface PluginRow { readonly name?: string; readonly id?: string; readonly from?: string; readonly config?: object; readonly required?: boolean; readonly enabled?: boolean }

export interface TestHostOptions {
  /** Files of plugins, rows, or names of shipped plugins (`tool-fs`), in the order of their handlers. A string with a slash or an ending is a path from the current folder. */
  readonly plugins: readonly (string | PluginRow)[]
  /** Consumed in order; a request beyond them fails the turn. */
  readonly replies?: readonly ScriptedReply[]
  /** Files of the workspace. */
  readonly files?: Readonly<Record<string, string>>
  /** Keys of the `agent:` section. */
  readonly agent?: object
  /** Answers asks; without it nobody can be asked. */
  readonly approve?: (request: ApprovalRequest) => ApprovalAnswer | undefined | Promise<ApprovalAnswer | undefined>
}
export interface TestRun { readonly events: readonly RunEvent[]; readonly result: RunResult; /** What the model read for each call, in order. */ readonly results: readonly string[] }

export interface TestHost {
  /** The workspace, absolute. */
  readonly folder: string
  /** What the model was sent, in order. */
  readonly requests: readonly ModelRequest[]
  readonly log: readonly LogRecord[]
  readonly events: readonly AppEvent[]
  says(...replies: readonly ScriptedReply[]): void
  /** One turn, to its end. */
  run(prompt: string, more?: Omit<RunOrder, 'prompt'>): Promise<TestRun>
  /** Writes a file of the workspace. */
  write(file: string, text: string): string
  plugins(): readonly PluginInfo[]
  hooks(): readonly HookInfo[]
  tools(): readonly ToolInfo[]
  /** Loads a plugin anew. */
  reload(id: string): Promise<ReloadReport>
  /** Changes the rows, as an edit of the config file would. */
  configure(plugins: readonly (string | PluginRow)[]): Promise<ReloadReport>
  /** Unloads everything. Throws with the names when a plugin left something behind outside its ctx. */
  close(): Promise<void>
}

/** After an unload, what is left is looked for this long. */
const LEAK_GRACE_MS = 150

export async function createTestHost(options: TestHostOptions): Promise<TestHost> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hx-testing-')))
  const folder = join(root, 'work'), config = join(root, CONFIG_NAME)
  const write = (file: string, content: string) => {
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, content)
    return path
  }
  const configure = (rows: readonly (string | PluginRow)[]) => { writeFileSync(config, JSON.stringify({ agent: { model: 'scripted', ...options.agent }, plugins: rows.map(asRow) }, null, 2)) }
  mkdirSync(folder, { recursive: true })
  for (const [file, content] of Object.entries(options.files ?? {})) write(file, content)
  configure(options.plugins)

  const log = new Log(), records: LogRecord[] = [], events: AppEvent[] = []
  log.sink(record => { records.push(record) })
  const model = new ScriptedModel(options.replies ?? [])
  const here = places({ ...process.env, HX_HOME: join(root, 'hx') })
  const trusted = options.plugins.flatMap(row => { const { from } = asRow(row); return from === undefined ? [] : [dirname(from)] })
  let app: App
  try {
    app = await App.start({ places: here, located: { file: config, layers: [config], kind: 'flag' }, cwd: folder, env: process.env, trust: trustFolders([root, here.installation.root, ...trusted]), log, models: [model] })
  } catch (error) {
    rmSync(root, { recursive: true, force: true })
    throw error
  }
  app.on(event => { events.push(event) })
  const approver = options.approve && (async (request: ApprovalRequest) => options.approve!(request))
  return {
    folder, requests: model.requests, log: records, events, write,
    says: (...replies) => { model.says(replies) },
    run: async (prompt, more = {}) => {
      const run = await app.run({ cwd: folder, ...more, prompt }, approver)
      const seen: RunEvent[] = []
      for await (const event of run.events) seen.push(event)
      return { events: seen, result: await run.result, results: seen.flatMap(event => event.type === 'tool-result' ? [event.content] : []) }
    },
    plugins: () => app.plugins(), hooks: () => app.hooks(), tools: () => app.tools(),
    reload: id => app.reload([id]),
    configure: rows => { configure(rows); return app.reload() },
    close: async () => {
      const leaks: string[] = []
      app.on(event => { if (event.type === 'leaked') leaks.push(`plugin "${event.plugin}" left ${event.count} ${event.kind}`) })
      configure([])
      await app.reload()
      await new Promise(done => { setTimeout(done, LEAK_GRACE_MS) })
      await app.stop()
      rmSync(root, { recursive: true, force: true })
      if (leaks.length > 0) throw new Error(leaks.join('; '))
    },
  }
}

const asRow = (row: string | PluginRow): PluginRow => {
  const spelled = typeof row === 'string' ? /[/\\]|\.[cm]?[jt]s$/.test(row) ? { from: row } : { name: row } : row
  if (spelled.from === undefined) return spelled
  const from = resolve(spelled.from)
  return { ...spelled, from, name: spelled.name ?? (from.split('/').pop()!.replace(/\.[cm]?[jt]s$/, '')) }
}

class ScriptedModel implements Model {
  readonly id = 'scripted'
  readonly defaultModel = 'scripted'
  readonly requests: ModelRequest[] = []
  readonly #replies: ScriptedReply[]
  #calls = 0
  constructor(replies: readonly ScriptedReply[]) { this.#replies = [...replies] }
  ready(): true { return true }
  says(replies: readonly ScriptedReply[]): void { this.#replies.push(...replies) }
  async* stream(request: ModelRequest): AsyncGenerator<ModelChunk> {
    this.requests.push(request)
    let next = this.#replies.shift()
    if (next === undefined) throw new Error(`the script has no reply for request ${this.requests.length}`)
    while (typeof next === 'function') next = await next(request)
    const said = typeof next === 'string' ? { text: next } : next
    const toolCalls: RawToolCall[] = (said.calls ?? []).map(call => ({ id: `call_${++this.#calls}`, name: call.name, arguments: typeof call.arguments === 'string' ? call.arguments : JSON.stringify(call.arguments) }))
    if (said.text) yield { kind: 'text', text: said.text }
    yield { kind: 'reply', reply: { message: { role: 'assistant', content: said.text ? [text(said.text)] : [], ...(toolCalls.length > 0 && { toolCalls }) }, finish: toolCalls.length > 0 ? 'tool-calls' : 'stop', usage: { inputTokens: 1, outputTokens: 1 } } }
  }
}

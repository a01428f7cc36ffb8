/**
 * `harnessx/testing`: a real host in a temporary folder for the tests of a plugin, with a scripted model for the one thing outside. For vitest, node:test and any other runner.
 * Nothing of the user's is read or written. Invariants: a plugin that can't be loaded fails the test with its sentence; `close` leaves nothing behind, and tells what plugins left.
 */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { MessageChannel } from 'node:worker_threads'
import { App, type AppEvent, type CommandOutcome } from './app.js'
import { HarnessError } from './errors.js'
import type { ApprovalAnswer, ApprovalRequest, CommandsService, HookInfo, RunEvent, RunInput, RunResult, ToolInfo } from './agent/services.js'
import type { ModelRequest } from './agent/vocabulary.js'
import type { Verdict } from './kernel/dispatch.js'
import type { HookName, HookOf } from './kernel/hooks.js'
import { Log, type LogRecord } from './kernel/log.js'
import type { PluginInfo, ReloadReport } from './loader/host.js'
import { trustFolders } from './loader/trust.js'
import { CONFIG_NAME, places } from './places.js'
import { forgetModules, moduleFile } from './testing/module-file.js'
import { actOf, payloadOf, type Act, type Given } from './testing/payloads.js'
import { ScriptedModel, type Script, type ScriptedReply } from './testing/scripted-model.js'

export type { Act, Given } from './testing/payloads.js'
export type { Script, Scripted, ScriptedReply } from './testing/scripted-model.js'

/** A row of `plugins:`; `from` is a path from the current folder, `module` a plugin that the test has imported itself (`import * as guard from './guard.js'`). */
export interface PluginRow { readonly name?: string; readonly id?: string; readonly from?: string; readonly module?: object; readonly config?: object; readonly required?: boolean; readonly enabled?: boolean }

export interface TestHostOptions {
  /** Files of plugins, rows, or names of shipped plugins (`tool-fs`), in the order of their handlers. A string with a slash or an ending is a path from the current folder. */
  readonly plugins: readonly (string | PluginRow)[]
  /** Consumed in order; a request beyond them fails the turn. Or a function that is asked for each. */
  readonly replies?: Script
  /** Files of the workspace. */
  readonly files?: Readonly<Record<string, string>>
  /** Keys of the `agent:` section. */
  readonly agent?: object
  /** Variables beside those of the process, as plugins are given them by `ctx.get('keys')`. */
  readonly env?: Readonly<Record<string, string>>
  /** Answers asks; without it nobody can be asked. */
  readonly approve?: (request: ApprovalRequest) => ApprovalAnswer | undefined | Promise<ApprovalAnswer | undefined>
  /** Plugins may fail to load: the test looks at `plugins()` itself. */
  readonly mayFail?: boolean
}
export interface TestRun {
  readonly events: readonly RunEvent[]
  readonly result: RunResult
  /** What the model read for each call, in order. */
  readonly results: readonly string[]
  /** Lines that were printed to stderr meanwhile. */
  readonly printed: readonly string[]
}
/** What one hook came to: `value` is what the loop would go on with. */
export type Fired<K extends HookName> = Pick<Verdict<HookOf<K>['next']>, 'value' | 'plugin' | 'failure' | 'context' | 'trace'>

export interface TestHost extends AsyncDisposable {
  /** The workspace, absolute. */
  readonly folder: string
  /** What the model was sent, in order. */
  readonly requests: readonly ModelRequest[]
  readonly log: readonly LogRecord[]
  readonly events: readonly AppEvent[]
  says(...replies: readonly ScriptedReply[]): void
  /** One turn, to its end. */
  run(prompt: string, more?: Omit<RunInput, 'prompt'>): Promise<TestRun>
  /** Fires one hook by itself. What is left out of the payload is filled in; `act` stands inside an around hook. */
  fire<K extends HookName>(hook: K, given?: Given<K>, act?: Act<K>): Promise<Fired<K>>
  /** What `/name args` comes to, in a session of its own when none is named. A `prompt` is not sent. */
  command(name: string, args?: string, session?: string): Promise<CommandOutcome>
  /** Writes a file of the workspace. */
  write(file: string, text: string): string
  /** `ctx.dataDir` of a plugin. */
  dataDir(id: string): string
  plugins(): readonly PluginInfo[]
  hooks(): readonly HookInfo[]
  tools(): readonly ToolInfo[]
  commands(): ReturnType<CommandsService['list']>
  /** Loads a plugin anew; with another module in place of the one of its row. */
  reload(id: string, module?: object): Promise<ReloadReport>
  /** Changes the rows, as an edit of the config file would. */
  configure(plugins: readonly (string | PluginRow)[]): Promise<ReloadReport>
  /** Unloads everything. Throws with the names when a plugin left something behind outside its ctx. May be called again. */
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
  const files = new Map<string, string>()                    // of modules, by the id of their row
  const configure = (rows: readonly (string | PluginRow)[]) => { writeFileSync(config, JSON.stringify({ agent: { model: 'scripted', ...options.agent }, plugins: rows.map(row => asRow(row, root, files)) }, null, 2)) }
  const log = new Log(), records: LogRecord[] = [], events: AppEvent[] = []
  log.sink(record => { records.push(record) })
  const model = new ScriptedModel(options.replies ?? [])
  const env = { ...process.env, ...options.env, HX_HOME: join(root, 'hx') }, here = places(env)
  let app: App | undefined
  const clean = () => {
    forgetModules(root)
    rmSync(root, { recursive: true, force: true })
  }
  try {
    mkdirSync(folder, { recursive: true })
    for (const [file, content] of Object.entries(options.files ?? {})) write(file, content)
    configure(options.plugins)
    const trusted = options.plugins.flatMap(row => { const { from } = asRow(row, root, files); return from === undefined ? [] : [dirname(from)] })
    app = await App.start({ places: here, located: { file: config, layers: [config], kind: 'flag' }, cwd: folder, env, trust: trustFolders([root, here.installation.root, ...trusted]), log, models: [model] })
    const failed = app.plugins().filter(({ state }) => state === 'failed')
    if (failed.length > 0 && !options.mayFail) throw new HarnessError('plugin_failed', failed.map(({ id, reason }) => reason ?? `plugin "${id}" could not be loaded`).join('; '))
  } catch (error) {
    await app?.stop()
    clean()
    throw error
  }
  const running = app
  running.on(event => { events.push(event) })
  const approver = options.approve && (async (request: ApprovalRequest) => options.approve!(request))
  let closed: Promise<void> | undefined
  const close = async () => {
    const leaks: string[] = []
    running.on(event => { if (event.type === 'leaked') leaks.push(`plugin "${event.plugin}" left ${event.count} ${event.kind}`) })
    const { port1: awake } = new MessageChannel()          // keeps the process, as the timer of the wait may not: it would be counted as one that a plugin left
    awake.on('message', () => {})
    try {
      configure([])
      await running.reload()
      await new Promise(done => { setTimeout(done, LEAK_GRACE_MS).unref() })
    } finally { awake.close() }
    await running.stop()
    clean()
    if (leaks.length > 0) throw new Error(leaks.join('; '))
  }
  const host: TestHost = {
    folder, requests: model.requests, log: records, events, write,
    says: (...replies) => { model.says(replies) },
    run: async (prompt, more = {}) => {
      const stderr = catchStderr()
      try {
        const run = await running.run({ cwd: folder, ...more, prompt }, more.approver ?? approver)
        const seen: RunEvent[] = []
        for await (const event of run.events) seen.push(event)
        return { events: seen, result: await run.result, results: seen.flatMap(event => event.type === 'tool-result' ? [event.content] : []), printed: stderr.lines() }
      } finally { stderr.stop() }
    },
    fire: (hook, given = {}, act) => running.dispatch(hook, payloadOf(hook, given, folder), { inner: act ?? actOf(hook) }),
    command: (name, args = '', session) => running.command({ name, args, session, cwd: folder }, new AbortController().signal),
    dataDir: id => join(here.data, id),
    plugins: () => running.plugins(), hooks: () => running.hooks(), tools: () => running.tools(), commands: () => running.commands(),
    reload: (id, module) => {
      const file = files.get(id)
      if (module && file === undefined) throw new HarnessError('unknown_id', `the row of plugin "${id}" names no module, so none can take its place`)
      if (module) moduleFile(root, module, file)
      return running.reload([id])
    },
    configure: rows => { configure(rows); return running.reload() },
    close: () => closed ??= close(),
    [Symbol.asyncDispose]: () => closed ??= close(),
  }
  return host
}

/** As the config file has it. */
function asRow(row: string | PluginRow, root: string, files: Map<string, string>): Omit<PluginRow, 'module'> {
  const { module, ...spelled }: PluginRow = typeof row === 'string' ? /[/\\]|\.[cm]?[jt]s$/.test(row) ? { from: row } : { name: row } : row
  if (module) {
    const name = spelled.name ?? String((module as { name?: unknown }).name ?? 'plugin'), id = spelled.id ?? name
    const file = moduleFile(root, module, files.get(id))
    files.set(id, file)
    return { ...spelled, name, from: file }
  }
  if (spelled.from === undefined) return spelled
  const from = resolve(spelled.from), file = basename(from).replace(/\.[cm]?[jt]s$/, '')
  return { ...spelled, from, name: spelled.name ?? (file === 'index' ? basename(dirname(from)) : file) }
}

function catchStderr(): { lines(): readonly string[]; stop(): void } {
  const { write } = process.stderr
  let caught = ''
  const catching = (chunk: string | Uint8Array) => { caught += String(chunk); return true }
  process.stderr.write = catching
  return { lines: () => caught.split('\n').slice(0, -1), stop: () => { if (process.stderr.write === catching) process.stderr.write = write } }
}

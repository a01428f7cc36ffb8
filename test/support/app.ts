/**
 * A whole app over a folder of plugins and a config, as `hx start` runs one: files are followed, the one scripted thing is the model. Knows no test runner, so that benches and soaks use it too.
 * Plugins reach the test through `globalThis`: they run in this process.
 */
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Model, ModelChunk, RunEvent, RunResult } from '../../core/agent/services.js'
import { text, type ModelRequest } from '../../core/agent/vocabulary.js'
import { App, type AppEvent, type RunOrder } from '../../core/app.js'
import { Log, type LogRecord } from '../../core/kernel/log.js'
import { trustAll } from '../../core/loader/trust.js'
import { CONFIG_NAME, places } from '../../core/places.js'

export type ScriptedReply = string | { readonly text?: string; readonly calls: readonly { readonly name: string; readonly arguments?: object }[] }
/** What the model says next; it is asked anew for each request. */
export type Script = (request: ModelRequest) => ScriptedReply | Promise<ScriptedReply>

export interface RunningApp {
  readonly app: App
  readonly folder: string
  readonly config: string
  readonly events: AppEvent[]
  readonly lines: LogRecord[]
  at(name: string): string
  write(name: string, content: string): string
  /** One turn to its end. */
  run(order: Partial<RunOrder> & { prompt: string }): Promise<{ readonly events: readonly RunEvent[]; readonly result: RunResult }>
  /** What was logged as a warning or error, in order. */
  complaints(): string[]
  /** Resolves with the first event from now on for which `holds`, and the moment in which it came. */
  next(holds: (event: AppEvent) => boolean): Promise<{ readonly event: AppEvent; readonly at: bigint }>
  state(id: string): string | undefined
  close(): Promise<void>
}

export interface AppFiles {
  /** Beside the config. */
  readonly files: Readonly<Record<string, string>>
  readonly config: string
  readonly script?: Script
  readonly watch?: boolean
  /** Called when the folder is there and the app is not: for links. */
  readonly prepare?: (at: (name: string) => string) => void
}

export async function startApp({ files, config, script = () => 'done', watch = true, prepare }: AppFiles): Promise<RunningApp> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hx-app-'))), folder = join(root, 'work')
  mkdirSync(folder)
  const at = (name: string) => join(folder, name)
  const write = (name: string, content: string) => {
    mkdirSync(dirname(at(name)), { recursive: true })
    writeFileSync(at(name), content)
    return at(name)
  }
  for (const [name, content] of Object.entries({ ...files, [CONFIG_NAME]: config })) write(name, content)
  prepare?.(at)
  const log = new Log(), lines: LogRecord[] = [], events: AppEvent[] = []
  log.sink(record => { lines.push(record) })
  const env = { HX_HOME: join(root, 'hx') }
  const app = await App.start({ places: places(env), located: { file: at(CONFIG_NAME), layers: [at(CONFIG_NAME)], kind: 'project' }, cwd: folder, env, trust: trustAll, log, models: [scripted(script)], watch })
  app.on(event => { events.push(event) })
  return {
    app, folder, config: at(CONFIG_NAME), events, lines, at, write,
    run: async order => {
      const { events: stream, result } = await app.run({ model: 'scripted', ...order })
      const seen: RunEvent[] = []
      for await (const event of stream) seen.push(event)
      return { events: seen, result: await result }
    },
    complaints: () => lines.flatMap(({ level, message }) => level === 'warn' || level === 'error' ? [message] : []),
    next: holds => new Promise(resolve => {
      const off = app.on(event => {
        if (!holds(event)) return
        const at = process.hrtime.bigint()
        off()
        resolve({ event, at })
      })
    }),
    state: id => app.plugins().find(plugin => plugin.id === id)?.state,
    close: async () => {
      await app.stop()
      await rm(root, { recursive: true, force: true, maxRetries: 10 })      // a process that ends may be writing still; only this one tries again
    },
  }
}

function scripted(script: Script): Model {
  let calls = 0
  return {
    id: 'scripted', defaultModel: 'scripted', ready: () => true,
    async* stream(request): AsyncGenerator<ModelChunk> {
      const said = await script(request)
      const { text: words = '', calls: asked = [] } = typeof said === 'string' ? { text: said } : said
      const toolCalls = asked.map(({ name, arguments: args = {} }) => ({ id: `call_${++calls}`, name, arguments: JSON.stringify(args) }))
      yield { kind: 'reply', reply: { message: { role: 'assistant', content: [text(words)], ...(toolCalls.length > 0 && { toolCalls }) }, finish: toolCalls.length > 0 ? 'tool-calls' : 'stop', usage: { inputTokens: 1, outputTokens: 1 } } }
    },
  }
}

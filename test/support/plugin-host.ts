/**
 * Shipped plugins on the real kernel and the real loop, in a folder of their own. The one scripted thing is the model: it plays replies and records the requests.
 * What plugins print to stderr while a turn runs is caught, line by line.
 */
import { onTestFinished } from 'vitest'
import { createAgent } from '../../core/agent/agent.js'
import { MemorySessionStore } from '../../core/agent/session-store-memory.js'
import type { CommandAnswer, RunEvent, RunInput, RunResult } from '../../core/agent/services.js'
import { text, type Message, type ModelRequest } from '../../core/agent/vocabulary.js'
import { Workspace } from '../../core/agent/workspace.js'
import type { Context, PluginModule } from '../../core/kernel/hooks.js'
import { Kernel, type Generation } from '../../core/kernel/kernel.js'
import { Log, type LogRecord } from '../../core/kernel/log.js'
import { folder, type Folder } from './folder.js'

/** One reply: text, or calls of tools (`arguments` as an object, or a raw string). */
export type ScriptedTurn = string | readonly { readonly name: string; readonly arguments: object | string }[]
export interface Row { readonly module: unknown; readonly config?: object; readonly id?: string }
export interface Ran { readonly result: RunResult; readonly events: readonly RunEvent[]; readonly printed: readonly string[]; /** What the model read for each call, in order. */ readonly results: readonly string[] }

export interface PluginHost {
  readonly folder: Folder
  readonly dataDir: string
  readonly lines: LogRecord[]
  readonly requests: ModelRequest[]
  /** One turn: the model says `replies`, then "done". */
  run(replies: readonly ScriptedTurn[], more?: Partial<RunInput>): Promise<Ran>
  /** What the model reads for one call of a tool. */
  call(name: string, args: object | string, more?: Partial<RunInput>): Promise<Ran & { readonly read: string }>
  /** What `/name args` says. */
  command(name: string, args: string, session: string): Promise<CommandAnswer | undefined>
  /** Mounts another version of a row and switches it in for the old one. */
  reload(id: string, row: Row): Promise<void>
  unload(id: string): Promise<void>
  /** What is registered, by whom: `hook id`, `tool id`. */
  registered(): readonly string[]
}

export async function pluginHost(rows: readonly Row[], options: { files?: Readonly<Record<string, string>>; protectedPaths?: (cwd: string) => string[] } = {}): Promise<PluginHost> {
  const work = folder(options.files), data = folder()
  const log = new Log(), lines: LogRecord[] = []
  log.sink(record => { lines.push(record) })
  const kernel = new Kernel({ log })
  const store = new MemorySessionStore()
  const workspace = new Workspace({ protectedPaths: () => options.protectedPaths?.(work.path) ?? [], home: data.path })
  const agent = createAgent({ kernel, store, memoryStore: store, workspace, cwd: work.path })
  const script: ScriptedTurn[] = [], requests: ModelRequest[] = []

  const mounted = new Map<string, Generation>()
  let version = 0
  const mount = async ({ module, config = {}, id }: Row, place: number): Promise<Generation> => {
    const plugin = module as PluginModule
    const checked = await plugin.Config?.['~standard'].validate(config)
    if (checked?.issues) throw new Error(checked.issues.map(({ message }) => message).join('; '))
    return kernel.mount(plugin, { id: id ?? plugin.name, row: place, version: ++version, config: checked ? checked.value : config, dataDir: data.path })
  }
  const all: Row[] = [...rows, { module: scriptedModel(script, requests) }]
  for (const [place, row] of all.entries()) {
    const generation = await mount(row, place)
    kernel.switch([generation])
    mounted.set(generation.id, generation)
  }
  const drop = async (generation: Generation) => {
    kernel.retire(generation)
    await kernel.drain(generation, 1000)
    await kernel.dispose(generation, 200)
  }
  onTestFinished(async () => {
    await agent.stop(1000)
    for (const generation of [...kernel.generations()].reverse()) await kernel.dispose(generation, 200)
  })

  const run: PluginHost['run'] = async (replies, more = {}) => {
    script.push(...replies, 'done')
    const stderr = catchStderr()
    try {
      const { events, result } = await agent.agents.run({ prompt: 'go', cwd: work.path, ...more })
      const seen: RunEvent[] = []
      for await (const event of events) seen.push(event)
      return { result: await result, events: seen, printed: stderr.lines(), results: seen.flatMap(event => event.type === 'tool-result' ? [event.content] : []) }
    } finally { stderr.stop(); script.length = 0 }
  }
  return {
    folder: work, dataDir: data.path, lines, requests, run,
    call: async (name, args, more) => {
      const ran = await run([[{ name, arguments: args }]], more)
      return { ...ran, read: ran.results.at(-1) ?? '' }
    },
    command: (name, args, session) => agent.commands.run(name, args, { session, signal: new AbortController().signal }),
    reload: async (id, row) => {
      const old = mounted.get(id)!
      const next = await mount({ ...row, id }, old.row)
      kernel.switch([next], [old])
      mounted.set(id, next)
      await drop(old)
    },
    registered: () => [...kernel.hooks.list().flatMap(({ hook, handlers }) => handlers.map(({ plugin }) => `${hook} ${plugin}`)), ...agent.tools.list().map(({ name, plugin }) => `${name} ${plugin}`), ...agent.commands.list().map(({ name, plugin }) => `/${name} ${plugin}`)].sort(),
    unload: async id => {
      kernel.switch([], [mounted.get(id)!])
      await drop(mounted.get(id)!)
    },
  }
}

function scriptedModel(script: ScriptedTurn[], requests: ModelRequest[]): PluginModule {
  let calls = 0
  return {
    name: 'scripted-model',
    apply(ctx: Context) {
      ctx.models.register({
        id: 'scripted', defaultModel: 'one', ready: () => true,
        async *stream(request) {
          requests.push(request)
          const reply = script.shift() ?? 'the script is exhausted'
          const message: Message = typeof reply === 'string'
            ? { role: 'assistant', content: [text(reply)] }
            : { role: 'assistant', content: [], toolCalls: reply.map(({ name, arguments: args }) => ({ id: `call_${++calls}`, name, arguments: typeof args === 'string' ? args : JSON.stringify(args) })) }
          yield { kind: 'reply', reply: { message, finish: message.toolCalls ? 'tool-calls' : 'stop', usage: { inputTokens: 10, outputTokens: 5 } } } as const
        },
      })
    },
  }
}

/** A tool that gives what it is told to, for tests of what comes before and after. */
export const echoTool = (give: (args: Record<string, unknown>) => unknown, { name = 'echo', readOnly = false } = {}): Row => ({
  id: `tool-${name}`,
  module: {
    name: `tool-${name}`,
    apply(ctx: Context) { ctx.tools.register({ name, description: 'Gives what the test says.', readOnly, parameters: { type: 'object' }, execute: (args: Record<string, unknown>) => give(args) as string } as never) },
  },
})

function catchStderr(): { lines(): readonly string[]; stop(): void } {
  const write = process.stderr.write
  let caught = ''
  process.stderr.write = (chunk: string | Uint8Array) => { caught += String(chunk); return true }
  return { lines: () => caught.split('\n').slice(0, -1), stop: () => { process.stderr.write = write } }
}

/** A whole agent for one test: a real kernel, store and workspace in a folder of its own, with a scripted model for the one thing outside. */
import { onTestFinished } from 'vitest'
import { createAgent, type Agent } from '../../core/agent/agent.js'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { MemorySessionStore } from '../../core/agent/session-store-memory.js'
import type { Model, ModelChunk, RunEvent, RunInput, RunResult, Tool } from '../../core/agent/services.js'
import type { EventOf, SessionEvent, SessionEventType, SessionStore } from '../../core/agent/session-events.js'
import type { AgentConfig } from '../../core/agent/turn.js'
import { text, textOf, type Finish, type ModelRequest, type RawToolCall, type Reply, type Usage } from '../../core/agent/vocabulary.js'
import { Workspace } from '../../core/agent/workspace.js'
import type { Context } from '../../core/kernel/hooks.js'
import { Kernel, type Generation, type MountOptions } from '../../core/kernel/kernel.js'
import { Log, type LogRecord } from '../../core/kernel/log.js'
import { folder, type Folder } from './folder.js'

/** Name and arguments, then id and unknown fields if they matter; a string of arguments goes as it is. */
export type ScriptedCall = readonly [name: string, args: object | string, id?: string, extra?: RawToolCall['extra']]
/** One reply of the script. `hang` waits for the abort after the chunks; `deaf` doesn't even notice that. */
export interface ScriptedReply {
  readonly text?: string
  readonly reasoning?: string
  readonly calls?: readonly ScriptedCall[]
  readonly finish?: Finish
  readonly usage?: Usage
  readonly chunks?: readonly string[]
  readonly error?: unknown
  readonly hang?: boolean
  readonly deaf?: boolean
  /** The stream ends without its reply. */
  readonly cut?: boolean
}
export type Script = readonly (ScriptedReply | string | ((request: ModelRequest) => ScriptedReply | string))[]

export class ScriptedModel implements Model {
  readonly id: string
  readonly defaultModel = 'default'
  readonly requests: ModelRequest[] = []
  #script: Script[number][] = []
  #calls = 0
  constructor(id = 'scripted') { this.id = id }

  ready(): true | string { return true }
  says(...script: Script): this { this.#script.push(...script); return this }
  async* stream(request: ModelRequest, { signal }: { signal: AbortSignal }): AsyncGenerator<ModelChunk> {
    this.requests.push(request)
    const next = this.#script.shift()
    if (next === undefined) throw new Error('the script has no further reply')
    const step = typeof next === 'function' ? next(request) : next
    const scripted: ScriptedReply = typeof step === 'string' ? { text: step } : step
    for (const chunk of scripted.chunks ?? []) yield { kind: 'text', text: chunk }
    if (scripted.deaf) await new Promise(() => {})
    if (scripted.hang) await new Promise((_, reject) => { signal.addEventListener('abort', () => { reject(signal.reason) }) })
    if (scripted.error !== undefined) throw scripted.error
    if (!scripted.cut) yield { kind: 'reply', reply: this.#reply(scripted) }
  }
  #reply({ text: said = '', reasoning, calls = [], finish, usage = { inputTokens: 10, outputTokens: 2 } }: ScriptedReply): Reply {
    const toolCalls = calls.map(([name, args, id, extra]) => ({ id: id ?? `c${++this.#calls}`, name, arguments: typeof args === 'string' ? args : JSON.stringify(args), ...(extra !== undefined && { extra }) }))
    return {
      message: { role: 'assistant', content: [text(said)], ...(toolCalls.length > 0 && { toolCalls }), ...(reasoning !== undefined && { reasoning }) },
      finish: finish ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'), usage,
    }
  }
}

export interface Ran extends RunResult { readonly events: readonly RunEvent[]; readonly log: readonly SessionEvent[] }
export interface TestAgent {
  readonly agent: Agent
  readonly kernel: Kernel
  readonly store: SessionStore
  readonly model: ScriptedModel
  readonly folder: Folder
  readonly cwd: string
  readonly lines: readonly LogRecord[]
  /** Mounts a plugin and switches it in; later ones stand later in the order. */
  plugin(id: string, apply: (ctx: Context) => unknown, options?: Partial<MountOptions>): Promise<Generation>
  /** A plugin that offers these tools. */
  tools(...tools: readonly Tool[]): Promise<Generation>
  /** One turn from its prompt to its end. */
  run(prompt: string, more?: Partial<RunInput>): Promise<Ran>
}

export async function testAgent({ config, store: given }: { config?: Partial<AgentConfig>; store?: SessionStore } = {}): Promise<TestAgent> {
  const own = folder(), lines: LogRecord[] = [], log = new Log()
  log.sink(record => { lines.push(record) })
  const kernel = new Kernel({ log })
  const store = given ?? new FileSessionStore({ folder: own.at('sessions') }), memoryStore = new MemorySessionStore()
  const workspace = new Workspace({ protectedPaths: () => [], home: own.path })
  own.write('work/README.md', 'hello\n')
  const cwd = own.at('work')
  const agent = createAgent({ kernel, store, memoryStore, workspace, config, cwd })
  let rows = 0
  const plugin: TestAgent['plugin'] = async (id, apply, options = {}) => {
    const generation = await kernel.mount({ name: id, apply }, { id, row: rows++, version: 1, config: {}, dataDir: own.at(`data/${id}`), ...options })
    try { kernel.switch([generation]) } catch (error) { await kernel.dispose(generation); throw error }
    return generation
  }
  onTestFinished(async () => {
    await agent.stop(3000)
    for (const generation of [...kernel.generations()].reverse()) await kernel.dispose(generation)
    memoryStore.dispose()
  })
  const model = new ScriptedModel()
  await plugin('model-scripted', ctx => { ctx.models.register(model) })
  return {
    agent, kernel, store, model, folder: own, cwd, lines, plugin,
    tools: (...tools) => plugin(`tools-${rows}`, ctx => { for (const tool of tools) ctx.tools.register(tool) }),
    run: async (prompt, more = {}) => finished(await agent.agents.run({ prompt, cwd, ...more })),
  }
}

export async function finished(run: { readonly events: AsyncIterable<RunEvent>; readonly result: Promise<RunResult> }): Promise<Ran> {
  const events: RunEvent[] = []
  for await (const event of run.events) events.push(event)
  return { ...await run.result, events, log: events.filter((event): event is SessionEvent => 'seq' in event) }
}

export const ofType = <T extends SessionEventType>(log: readonly RunEvent[], type: T): EventOf<T>[] => log.filter((event): event is EventOf<T> => event.type === type)
/** A request's conversation in short: `user: …`, `assistant: …`, `tool c1: …`. */
export const conversation = (request: ModelRequest): string[] =>
  request.messages.filter(message => message.role !== 'system').map(message => `${message.role}${message.toolCallId === undefined ? '' : ` ${message.toolCallId}`}: ${textOf(message)}`)
/** Resolves once `holds`; fails after two seconds. A promise would hold at once, so its type is refused. */
export async function until<T>(holds: () => T extends PromiseLike<unknown> ? never : T, what = 'the condition', ms = 2000): Promise<void> {
  const end = performance.now() + ms
  while (!holds()) {
    if (performance.now() > end) throw new Error(`${what} did not come true within ${ms / 1000} s`)
    await new Promise(resolve => { setTimeout(resolve, 1) })
  }
}

/** Hooks without a host: owners, a dispatcher that knows the agent's hooks, and plugins made of nothing but a scope. */
import { declareHooks } from '../../core/agent/hook-rules.js'
import type { Message } from '../../core/agent/vocabulary.js'
import { Dispatcher, type Report } from '../../core/kernel/dispatch.js'
import type { Handler, HandlerOptions, HookName, Payload } from '../../core/kernel/hooks.js'
import { type Owner, Owners, type Scope } from '../../core/kernel/owners.js'

export interface TestPlugin {
  readonly owner: Owner
  readonly scope: Scope
  on<K extends HookName>(hook: K, handler: Handler<K>, options?: HandlerOptions<K>): () => void
  /** A scope at the place of this call, as `ctx.inject` makes it; its owner comes and goes apart. */
  child(): TestPlugin
  /** Takes back everything it registered. */
  undo(): void
}
export interface TestHooks {
  readonly owners: Owners
  readonly hooks: Dispatcher
  readonly reports: Report[]
  /** Live at once, unless `stage` says otherwise. The next row unless `row` does. */
  plugin(id: string, how?: { row?: number; stage?: Owner['stage']; generation?: number }): TestPlugin
}

export function testHooks(): TestHooks {
  const owners = new Owners()
  const reports: Report[] = []
  const hooks = new Dispatcher(owners, report => { reports.push(report) })
  declareHooks(hooks)
  let rows = 0
  const plugin: TestHooks['plugin'] = (id, { row = rows++, stage = 'live', generation = 1 } = {}) => make({ id, row, stage, generation }, () => [])
  function make(owner: Owner, place: () => readonly number[]): TestPlugin {
    const undos = new Set<() => unknown>()
    let calls = 0
    const scope: Scope = {
      owner,
      path: () => [...place(), ++calls],
      effect: undo => {
        undos.add(undo)
        return () => { if (undos.delete(undo)) undo() }
      },
    }
    return {
      owner, scope,
      on(hook, handler, options) { return hooks.registerHandler(scope, hook, handler, options, this.on) },
      child() {
        const at = scope.path()
        return make({ ...owner }, () => at)
      },
      undo() { for (const undo of [...undos].reverse()) { undos.delete(undo); undo() } },
    }
  }
  return { owners, hooks, reports, plugin }
}

export const message = (content: string): Message => ({ role: 'user', content: [{ type: 'text', text: content }] })
export const texts = (messages: readonly Message[]): string[] => messages.map(({ content }) => content.map(part => String(part.text)).join(''))

const base = (signal: AbortSignal) => ({ session: { id: 's1', cwd: '/work', depth: 0, messages: [] as Message[], mode: 'default' as const }, turn: 1, step: 0, signal })
/** Payloads of the hooks that the tests dispatch most. */
export const payloads = {
  call: (name = 'bash', args: Record<string, unknown> = { command: 'ls' }, signal = new AbortController().signal): Payload<'agent/pre-tool-use'> => ({ ...base(signal), call: { id: 'c1', name, arguments: args } }),
  prompt: (...contents: string[]): Payload<'agent/user-prompt-submit'> => ({ ...base(new AbortController().signal), prompt: contents[0] ?? '', messages: contents.map(message) }),
  step: (...contents: string[]): Payload<'agent/pre-step'> => ({ ...base(new AbortController().signal), messages: contents.map(message) }),
  request: (tools: readonly string[] = ['bash', 'read_file'], signal = new AbortController().signal): Payload<'agent/pre-request'> => ({
    ...base(signal), model: 'deepseek/chat', options: { temperature: 1, max_tokens: 100 }, messages: [message('hi')], tools: tools.map(name => ({ name, description: name, parameters: {} })),
  }),
  result: (content = 'out', name = 'bash'): Payload<'agent/post-tool-use'> => ({ ...payloads.call(name), result: { content, isError: false }, elapsedMs: 3 }),
  stop: (): Payload<'agent/stop'> => ({ ...base(new AbortController().signal), reply: 'done', stats: { steps: 1, toolCalls: 0, blocked: 0 }, stopHookActive: false }),
  sections: (...texts: string[]): Payload<'agent/system-prompt'> => ({ ...base(new AbortController().signal), sections: texts.map(text => ({ id: text, text })) }),
  turn: (signal = new AbortController().signal): Payload<'agent/turn-start'> => ({ ...base(signal), prompt: 'hi' }),
  delta: (text = 'a'): Payload<'agent/delta'> => ({ ...base(new AbortController().signal), kind: 'text', text, attempt: 1 }),
}

/** A promise and how to settle it. */
export function deferred<T = void>(): { readonly promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void } {
  let resolve!: (value: T) => void, reject!: (error: unknown) => void
  const promise = new Promise<T>((yes, no) => { resolve = yes; reject = no })
  return { promise, resolve, reject }
}
/** Lets everything that can go on without time or I/O go on. */
export const settled = (): Promise<void> => new Promise(resolve => { setImmediate(resolve) })
export const sleep = (ms: number): Promise<void> => new Promise(resolve => { setTimeout(resolve, ms) })

/** Fails the test if anything is left to the process as an unhandled rejection. */
export async function withoutUnhandled(run: () => Promise<void>): Promise<void> {
  const unhandled: unknown[] = []
  const note = (error: unknown) => { unhandled.push(error) }
  process.on('unhandledRejection', note)
  try {
    await run()
    await sleep(5)
  } finally { process.off('unhandledRejection', note) }
  if (unhandled.length > 0) throw new AggregateError(unhandled, `${unhandled.length} unhandled rejections`)
}

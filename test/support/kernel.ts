/** A kernel with core's hooks declared, what it logged, and the few moves that tests of the kernel and the host share. */
import { onTestFinished } from 'vitest'
import { declareHooks } from '../../core/agent/hook-rules.js'
import type { Payload } from '../../core/kernel/hooks.js'
import type { Context, PluginModule } from '../../core/kernel/hooks.js'
import { Kernel, type Generation, type Leak, type MountOptions } from '../../core/kernel/kernel.js'
import { Log, type LogRecord } from '../../core/kernel/log.js'
import type { Registry } from '../../core/kernel/registry.js'
import { HarnessError } from '../../core/errors.js'
import { folder } from './folder.js'

declare module '../../core/kernel/hooks.js' {
  interface Services { numbers: { register(name: string, value: number): () => void } }
}

export interface TestKernel {
  readonly kernel: Kernel
  readonly numbers: Registry<number>
  readonly lines: LogRecord[]
  readonly leaks: Leak[]
  readonly dataDir: string
  text(): string
  mount(apply: (ctx: Context, config: any) => unknown, options?: Partial<MountOptions> & { module?: Partial<PluginModule> }): Promise<Generation>
  /** Mounted and switched in. */
  live(apply: (ctx: Context, config: any) => unknown, options?: Partial<MountOptions> & { module?: Partial<PluginModule> }): Promise<Generation>
  /** What the judges of a tool call come to. */
  judge(more?: { tool?: string; args?: Record<string, unknown> }): Promise<{ kind: string; reason?: string; plugin?: string | undefined; failure?: string | undefined }>
}

export function testKernel(): TestKernel {
  const log = new Log(), lines: LogRecord[] = [], leaks: Leak[] = []
  log.sink(record => { lines.push(record) })
  const kernel = new Kernel({ log })
  kernel.leaked = found => { leaks.push(...found) }
  declareHooks(kernel.hooks)
  // A registry as the agent's are: one owner to a name.
  const numbers = kernel.registry<number>('number', (entry, present) => { throw new HarnessError('already_registered', `number "${entry.slot}" of plugin "${entry.owner.id}" belongs to plugin "${present.owner.id}"`) })
  kernel.service('numbers', scope => ({ register: (name, value) => numbers.add(scope, name, value) }))
  const dataDir = folder().at('data')
  const mount: TestKernel['mount'] = (apply, { module, ...options } = {}) => kernel.mount({ name: 'test', apply: apply as PluginModule['apply'], ...module }, { id: 'test', row: 0, version: 1, config: {}, dataDir, ...options })
  onTestFinished(async () => { for (const generation of [...kernel.generations()].reverse()) await kernel.dispose(generation, 200) })
  return {
    kernel, numbers, lines, leaks, dataDir, mount,
    text: () => lines.map(({ level, message }) => `${level} ${message}`).join('\n'),
    live: async (apply, options) => {
      const generation = await mount(apply, options)
      kernel.switch([generation])
      return generation
    },
    judge: more => judge(kernel, more),
  }
}

export async function judge(kernel: Kernel, { tool = 'bash', args = {} }: { tool?: string; args?: Record<string, unknown> } = {}) {
  const { value, plugin, failure } = await kernel.hooks.dispatch('agent/pre-tool-use', payloadOf(tool, args))
  return { ...value as { kind: string; reason?: string }, plugin, failure }
}
export const payloadOf = (tool = 'bash', args: Record<string, unknown> = {}): Payload<'agent/pre-tool-use'> => ({
  session: { id: 's1', cwd: '/', depth: 0, messages: [] } as never, turn: 1, step: 0, signal: new AbortController().signal,
  call: { id: 'c1', name: tool, arguments: args },
})

/** What a promise was rejected with. */
export async function failure(work: Promise<unknown> | (() => unknown)): Promise<HarnessError> {
  try { await (typeof work === 'function' ? work() : work) } catch (error) { return error as HarnessError }
  throw new Error('it did not fail')
}
/** Resolves once `holds` is true; fails after two seconds. */
export async function until(holds: () => unknown, what = 'the condition'): Promise<void> {
  const end = performance.now() + 2000
  while (!await holds()) {
    if (performance.now() > end) throw new Error(`${what} did not come true within 2 s`)
    await new Promise(resolve => { setTimeout(resolve, 2) })
  }
}
export interface Deferred<T = void> { readonly promise: Promise<T>; resolve(value: T): void; reject(error: unknown): void }
export function deferred<T = void>(): Deferred<T> {
  let resolve!: (value: T) => void, reject!: (error: unknown) => void
  const promise = new Promise<T>((yes, no) => { resolve = yes; reject = no })
  return { promise, resolve, reject }
}

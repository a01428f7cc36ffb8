/**
 * The tools that plugins offer to the model, and the service `ctx.tools`. Knows no call and no hook: who may run a tool is decided in tool-calls.ts, and only tool-run.ts runs one.
 * Invariants: a name belongs to one owner unless another says `override`; what is offered is in config order; a schema is read once, when its tool is registered.
 */
import { HarnessError, messageOf, show } from '../errors.js'
import type { Disposer } from '../kernel/hooks.js'
import type { Kernel } from '../kernel/kernel.js'
import type { Owner, Registry, Scope } from '../kernel/registry.js'
import { readParameters, type Schema } from './arguments.js'
import type { Tool, ToolInfo, ToolRun, ToolsService } from './services.js'
import { UnconfinedSpans } from './unconfined-spans.js'
import type { ToolSpec } from './vocabulary.js'

/** A registered tool, read and checked. */
export interface OfferedTool {
  readonly spec: ToolSpec
  readonly schema: Schema
  readonly readOnly: boolean
  readonly unconfined: boolean | 'programs'
  readonly override: boolean
  execute(args: unknown, run: ToolRun): unknown
}

const NAME = /^[A-Za-z0-9_-]{1,64}$/

export class Tools {
  readonly #registry: Registry<OfferedTool>
  /** When calls ran whose effects are not confined to the workspace. */
  readonly spans = new UnconfinedSpans()
  #offered: { entries: readonly unknown[]; specs: readonly ToolSpec[] } | undefined

  constructor(kernel: Kernel) {
    this.#registry = kernel.registry<OfferedTool>('tool', (entry, present) => {
      if (entry.owner === present.owner) throw new HarnessError('already_registered', `plugin "${entry.owner.id}" registers tool "${entry.slot}" twice; give one of them another name`)
      if (entry.value.override !== present.value.override) return
      throw new HarnessError('already_registered', `tool "${entry.slot}" of plugin "${entry.owner.id}" already belongs to plugin "${present.owner.id}"; ${entry.value.override ? 'both say override: true, drop one of them' : 'say override: true to take its place'}`)
    })
  }

  /** `ctx.tools` of one plugin. */
  view(scope: Scope): ToolsService {
    const register = (tool: Tool): Disposer => this.#register(scope, tool, register)
    return { register, list: () => this.list() }
  }
  list(): ToolInfo[] {
    return this.#visible().map(({ owner, value: { spec, readOnly, unconfined } }) => ({ name: spec.name, plugin: owner.id, description: spec.description, parameters: spec.parameters, readOnly, unconfined }))
  }
  /** What the model is told of, in config order; the same array until something changes. */
  specs(): readonly ToolSpec[] {
    const entries = this.#visible()
    const last = this.#offered
    if (last?.entries.length === entries.length && entries.every((entry, at) => entry === last.entries[at])) return last.specs
    this.#offered = { entries, specs: Object.freeze(entries.map(({ value }) => value.spec)) }
    return this.#offered.specs
  }
  get(name: string): OfferedTool | undefined { return this.#registry.get(name)?.value }
  names(): readonly string[] { return this.#registry.slots() }
  /** Runs `work` as a call of the tool's plugin; undefined when nobody has the name. `confined`: programs of this call are. What the call leaves running counts until it is over, as `linger` is told. */
  use<R>(name: string, confined: boolean, signal: AbortSignal, work: (tool: OfferedTool, owner: Owner, linger: (over: Promise<unknown>) => void) => Promise<R>): Promise<R> | undefined {
    return this.#registry.use(name, async (tool, { owner }) => {
      if (!tool.unconfined || (tool.unconfined === 'programs' && confined)) return work(tool, owner, () => {})
      const end = this.spans.begin()
      try { return await work(tool, owner, over => {
        const ended = this.spans.begin()
        void over.then(() => { ended() }, () => { ended() })
      }) } finally { end() }
    }, signal)
  }

  /** Calls of that kind that run now. */
  get unconfined(): number { return this.spans.running }

  #visible() { return this.#registry.entries().filter(entry => this.#registry.get(entry.slot) === entry) }

  #register(scope: Scope, tool: Tool, below: (tool: Tool) => Disposer): Disposer {
    const offered = read(tool, `plugin "${scope.owner.id}"`)
    return this.#registry.add(scope, offered.spec.name, offered, { prepend: offered.override, origin: this.#registry.origin(scope, below) })
  }
}

/** A tool as its author wrote it, checked: TypeScript is not everybody's. */
function read(tool: Tool, who: string): OfferedTool {
  const wrong = (what: string, cause?: unknown) => new HarnessError('plugin_invalid', `${who}: ${what}`, { cause })
  if (typeof tool !== 'object' || tool === null) throw wrong(`a tool is an object with name, description, parameters and execute, received ${show(tool)}`)
  const { name, description, parameters, readOnly = false, unconfined = false, override = false } = tool
  if (typeof name !== 'string' || !NAME.test(name)) throw wrong(`a tool's name has 1 to 64 of A-Z, a-z, 0-9, "_" and "-", received ${show(name)}`)
  if (typeof description !== 'string' || description.trim() === '') throw wrong(`tool "${name}": description must be a text that tells the model what it does, received ${show(description)}`)
  if (typeof parameters !== 'object' || parameters === null) throw wrong(`tool "${name}": parameters must be a zod object or a JSON Schema, received ${show(parameters)}`)
  if (typeof tool.execute !== 'function') throw wrong(`tool "${name}": execute must be a function, received ${show(tool.execute)}`)
  for (const [key, value] of Object.entries({ readOnly, override })) if (typeof value !== 'boolean') throw wrong(`tool "${name}": ${key} must be true or false, received ${show(value)}`)
  if (typeof unconfined !== 'boolean' && unconfined !== 'programs') throw wrong(`tool "${name}": unconfined must be true, false or "programs", received ${show(unconfined)}`)
  let schema: Schema
  try { schema = readParameters(parameters) } catch (error) { throw wrong(`tool "${name}": ${messageOf(error)}`, error) }
  return { spec: Object.freeze({ name, description, parameters: schema.json }), schema, readOnly, unconfined, override, execute: (args, run) => tool.execute(args as never, run) }
}

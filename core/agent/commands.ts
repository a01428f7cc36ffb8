/** The commands that plugins offer (`/name` in chat and editors), and the service `ctx.commands`. Knows no terminal. */
import { didYouMean, HarnessError, show } from '../errors.js'
import type { Disposer } from '../kernel/hooks.js'
import type { Kernel } from '../kernel/kernel.js'
import type { Registry, Scope } from '../kernel/registry.js'
import type { Command, CommandContext, CommandAnswer, CommandsService } from './services.js'
import { untilAborted } from './abort.js'

const NAME = /^[a-z][a-z0-9-]{0,31}$/

export class Commands {
  readonly #registry: Registry<Command>
  constructor(kernel: Kernel) {
    this.#registry = kernel.registry<Command>('command', (entry, present) => {
      throw new HarnessError('already_registered', `command "/${entry.slot}" of plugin "${entry.owner.id}" already belongs to plugin "${present.owner.id}"; give one of them another name`)
    })
  }

  /** `ctx.commands` of one plugin. */
  view(scope: Scope): CommandsService {
    const register = (command: Command): Disposer => this.#register(scope, command, register)
    return { register, list: () => this.list() }
  }
  list(): ReturnType<CommandsService['list']> {
    return this.#registry.entries().map(({ slot, owner, value }) => ({ name: slot, plugin: owner.id, description: value.description }))
  }
  /** Whether a session has to be begun for it; for an unknown one nothing is made. */
  needsSession(name: string): boolean { return (this.#registry.get(name)?.value.needsSession ?? true) && this.#registry.get(name) !== undefined }
  /** Runs `/name args` and gives its answer. */
  async run(name: string, args: string, context: CommandContext): Promise<CommandAnswer | undefined> {
    const running = this.#registry.use(name, async command => command.run(args, context))
    if (!running) throw new HarnessError('unknown_id', `there is no command "/${name}"${didYouMean(name, this.#registry.slots())}`)
    const said: unknown = await untilAborted(running, context.signal)
    if (typeof said === 'string') return said
    const prompt = typeof said === 'object' && said !== null ? (said as { prompt?: unknown }).prompt : undefined
    return typeof prompt === 'string' && prompt.trim() !== '' ? { prompt } : undefined
  }

  #register(scope: Scope, command: Command, below: (command: Command) => Disposer): Disposer {
    const wrong = (what: string) => new HarnessError('plugin_invalid', `plugin "${scope.owner.id}": ${what}`)
    if (typeof command !== 'object' || command === null) throw wrong(`a command is an object with name, description and run, received ${show(command)}`)
    if (typeof command.name !== 'string' || !NAME.test(command.name)) throw wrong(`a command's name has 1 to 32 of a-z, 0-9 and "-" and begins with a letter, received ${show(command.name)}`)
    if (typeof command.description !== 'string') throw wrong(`command "/${command.name}": description must be a text, received ${show(command.description)}`)
    if (typeof command.run !== 'function') throw wrong(`command "/${command.name}": run must be a function, received ${show(command.run)}`)
    return this.#registry.add(scope, command.name, command, { origin: this.#registry.origin(scope, below) })
  }
}

/**
 * The models that plugins offer, the service `ctx.models`, and the choice of one. Knows no request and no protocol.
 * A model is named `<id>/<model>`: the registry id up to the first slash, then the endpoint's own name, which may hold slashes itself.
 */
import { didYouMean, HarnessError, messageOf, show } from '../errors.js'
import { runAs } from '../kernel/async-context.js'
import type { Disposer } from '../kernel/hooks.js'
import type { Kernel } from '../kernel/kernel.js'
import type { Owner, Registry, Scope } from '../kernel/registry.js'
import type { Model, ModelInfo, ModelsService } from './services.js'

/** What to ask whom for. */
export interface ModelChoice { readonly id: string; readonly model: string }

const ID = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$/
const NO_MODEL = 'no model: set DEEPSEEK_API_KEY or OPENAI_API_KEY, point OPENAI_BASE_URL at a local server, or try --offline'

export class Models {
  readonly #registry: Registry<Model>
  constructor(kernel: Kernel) {
    this.#registry = kernel.registry<Model>('model', (entry, present) => {
      throw new HarnessError('already_registered', `model "${entry.slot}" of plugin "${entry.owner.id}" already belongs to plugin "${present.owner.id}"; give one of them another id`)
    })
  }

  /** `ctx.models` of one plugin, but for `ask`. */
  view(scope: Scope): Omit<ModelsService, 'ask'> {
    const register = (model: Model): Disposer => this.#register(scope, model, register)
    return { register, list: () => this.list() }
  }
  list(): ModelInfo[] {
    return this.#registry.entries().map(({ slot, owner, value }) => {
      const ready = readiness(value, owner)
      return { id: slot, plugin: owner.id, ready: ready === true, ...(ready !== true && { reason: ready }), defaultModel: value.defaultModel, models: value.models ?? [] }
    })
  }

  /** The model of that name, or the first ready one in config order. `no_model` or `unknown_id` when there is none; nothing was asked of an endpoint yet. */
  pick(name?: string): ModelChoice {
    if (name === undefined) {
      const first = this.#registry.entries().find(({ value, owner }) => !value.onlyWhenNamed && value.defaultModel !== undefined && readiness(value, owner) === true)
      if (!first) throw new HarnessError('no_model', NO_MODEL + this.#mistakes())
      return { id: first.slot, model: first.value.defaultModel! }
    }
    const choice = this.resolve(name)
    const { value, owner } = this.#registry.get(choice.id)!, ready = readiness(value, owner)
    if (ready !== true) throw new HarnessError('no_model', `model "${name}" is not ready: ${ready}`)
    return choice
  }
  /** `<id>/<model>` or `<id>` taken apart. */
  resolve(name: string): ModelChoice {
    const slash = name.indexOf('/')
    const id = slash < 0 ? name : name.slice(0, slash)
    const entry = this.#registry.get(id)
    if (!entry) throw this.#unknown(name, id)
    const model = slash < 0 ? entry.value.defaultModel : name.slice(slash + 1)
    if (!model) throw new HarnessError('unknown_id', `model "${name}" lacks the name of the endpoint's model; write "${id}/<model>"`)
    return { id, model }
  }
  /** Runs `work` as a call of the model's plugin; undefined when nobody has the id any more. */
  use<R>(id: string, signal: AbortSignal, work: (model: Model, owner: Owner) => Promise<R>): Promise<R> | undefined {
    return this.#registry.use(id, (model, { owner }) => work(model, owner), signal)
  }

  /** What is set, and set wrong: a reason that does not ask to set something. */
  #mistakes(): string {
    const reasons = this.#registry.entries().filter(({ value }) => !value.onlyWhenNamed).map(({ value, owner }) => readiness(value, owner)).filter(reason => reason !== true && !/^set /.test(reason))
    return reasons.length === 0 ? '' : ` (not ready: ${reasons.join('; ')})`
  }
  #unknown(name: string, id: string): HarnessError {
    const entries = this.#registry.entries()
    const full = entries.flatMap(({ slot, value }) => (value.models ?? []).map(model => `${slot}/${model}`))
    const meant = full.find(model => model.endsWith(`/${name}`))                       // somebody left the id out
    const hint = meant ? `; did you mean "${meant}"?` : didYouMean(id, entries.map(({ slot }) => slot))
    const known = entries.length ? `known: ${entries.map(({ slot }) => `"${slot}"`).join(', ')}` : 'no plugin offers any'
    return new HarnessError('unknown_id', `model "${name}" does not exist (${known})${hint}`)
  }
  #register(scope: Scope, model: Model, below: (model: Model) => Disposer): Disposer {
    const wrong = (what: string) => new HarnessError('plugin_invalid', `plugin "${scope.owner.id}": ${what}`)
    if (typeof model !== 'object' || model === null) throw wrong(`a model is an object with id, ready and stream, received ${show(model)}`)
    if (typeof model.id !== 'string' || !ID.test(model.id)) throw wrong(`a model's id has 1 to 64 of A-Z, a-z, 0-9, "_", "." and "-" and no slash, received ${show(model.id)}`)
    for (const key of ['ready', 'stream'] as const) if (typeof model[key] !== 'function') throw wrong(`model "${model.id}": ${key} must be a function, received ${show(model[key])}`)
    return this.#registry.add(scope, model.id, model, { origin: this.#registry.origin(scope, below) })
  }
}

/** `ready()` is a plugin's: what it throws is a reason like any other. */
function readiness(model: Model, owner: Owner): true | string {
  try {
    const ready = runAs(owner, () => model.ready())
    return ready === true ? true : typeof ready === 'string' ? ready : `ready() must give true or a sentence, it gave ${show(ready)}`
  } catch (error) { return messageOf(error) }
}

export const nameOf = ({ id, model }: ModelChoice): string => `${id}/${model}`

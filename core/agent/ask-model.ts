/**
 * `ctx.models.ask`: one request of a plugin to a model, outside of any session: a summary, a title, a judgement. Knows no turn and no store.
 * Invariants: whoever judges requests judges this one, whoever stands around them stands around it; it has no tools; what it costs is spent from the turn that it is for; it ends with its plugin.
 */
import { isAbsolute } from 'node:path'
import { HarnessError, show } from '../errors.js'
import type { Scope } from '../kernel/registry.js'
import { link, ownerSignal, untilAborted } from './abort.js'
import { priced, priceOf, type Purse } from './cost.js'
import type { Base } from './hooks.js'
import { nameOf } from './models.js'
import { readReply, streamReply } from './reply.js'
import { ModelError, type ModelAsk } from './services.js'
import { newSessionId } from './session-id.js'
import type { Ports } from './turn.js'
import { text, type Message, type MessageInput, type Reply } from './vocabulary.js'

export interface AskPorts extends Pick<Ports, 'hooks' | 'models' | 'config'> {
  /** Of the turn of a session that runs. */
  purseOf(session: string): Purse | undefined
  /** Where it is asked when no session says so. */
  readonly cwd: string
}

export async function askModel({ hooks, models, config, purseOf, cwd }: AskPorts, { owner }: Scope, ask: ModelAsk): Promise<Reply> {
  const messages = toMessages(ask, owner.id), { session, options = {} } = ask
  const { signal, unlink } = link(ask.signal, ownerSignal(owner))
  try {
    const base: Base = { session: { id: newSessionId(), cwd: session?.cwd ?? cwd, depth: (session?.depth ?? -1) + 1, messages, ...(session && { parent: session.id, mode: session.mode }) }, turn: 0, step: 0, signal }
    const draft = { model: nameOf(models.pick(ask.model ?? config().model)), options, messages, tools: [] }
    const judged = await hooks.dispatch('agent/pre-request', { ...base, ...draft })
    if (judged.value.kind === 'reject') throw new HarnessError('model_failed', `the request of plugin "${owner.id}" was rejected${judged.plugin === undefined ? '' : ` by plugin "${judged.plugin}"`}: ${judged.value.reason}`)
    const { value } = await hooks.dispatch('agent/request', { ...base, ...draft, model: judged.value.model, options: judged.value.options }, {
      inner: async ({ model, options }, act) => {
        const choice = models.resolve(model), request = { model: choice.model, options, messages, tools: [] }
        const streaming = models.use(choice.id, act.signal, (entry, by) => streamReply(entry, by, request, act.signal))
        if (!streaming) throw new ModelError('network', `model "${nameOf(choice)}" is gone: its plugin was unloaded`)
        const reply = await untilAborted(streaming, act.signal)
        if (reply.usage && session) purseOf(session.id)?.spend(priced(reply.usage, priceOf(config().prices, nameOf(choice))).cost ?? 0)
        return reply
      },
    })
    return readReply(value, judged.value.model)
  } finally {
    unlink()
  }
}

function toMessages({ messages, session }: ModelAsk, plugin: string): readonly Message[] {
  const wrong = (what: string) => new HarnessError('usage', `plugin "${plugin}": models.ask ${what}`)
  if (!Array.isArray(messages) || messages.length === 0) throw wrong(`needs messages, a list that is not empty, received ${show(messages)}`)
  if (session !== undefined && (typeof session?.id !== 'string' || !isAbsolute(session.cwd ?? ''))) throw wrong(`takes the session of a payload or a run, received ${show(session)}`)
  return messages.map((message: MessageInput): Message => {
    const { role, content } = typeof message === 'string' ? { role: 'user' as const, content: message } : message
    if (!['system', 'user', 'assistant'].includes(role) || (typeof content !== 'string' && !Array.isArray(content))) throw wrong(`takes messages that are strings or {role: system, user or assistant, content}, received ${show(message)}`)
    return { role, content: typeof content === 'string' ? [text(content)] : content, source: { kind: 'plugin', id: plugin } }
  })
}

/**
 * The agent loop. One turn, top to bottom:
 *
 *   turn-start → user-prompt-submit → ┌ step-start → pre-step → append → system-prompt → pre-request → request → append reply → tool calls → step-end ┐ → stop → turn-end
 *                                     └─────────────────────────── until no call is owed, and `stop` lets it end ─────────────────────────────────────┘
 *
 * Knows no plugin, file, socket or screen; its facts leave through the session log.
 * Invariants: every start has exactly one end, on every path; what the model sees is in the log before it is sent; `stop` runs only where the turn would complete, `error` only where it fails.
 */
import { HarnessError, messageOf, readable } from '../errors.js'
import type { Verdict } from '../kernel/dispatch.js'
import { dollars } from './cost.js'
import type { Entered } from './hooks.js'
import { readCalls } from './incoming-calls.js'
import { requestReply, type Draft } from './reply.js'
import { estimateTokens } from './request.js'
import { ModelError, type RunResult } from './services.js'
import type { Session } from './session.js'
import { coreSections, systemText } from './system-prompt.js'
import { runToolCalls } from './tool-calls.js'
import { Halt, sinceMs, Turn, type Ports, type TurnEnd, type TurnInput } from './turn.js'
import { textOf, userMessage, type Message, type Reply } from './vocabulary.js'

/** Runs one turn to its end. Never rejects: whatever happens is the reason of its end. */
export async function runTurn(ports: Ports, session: Session, input: TurnInput): Promise<RunResult> {
  const turn = new Turn(ports, session, input)
  try {
    return await finish(turn, await begin(turn).catch((error: unknown) => failed(turn, error)))
  } finally {
    turn.dispose()
  }
}

async function begin(turn: Turn): Promise<TurnEnd> {
  const { prompt, source } = turn.input
  try {
    turn.log({ type: 'turn-start', turn: turn.number, prompt, source })
  } finally {
    await turn.tell('agent/turn-start', { prompt })                                                 // its end is told in any case
  }
  const messages = [userMessage(prompt, source)]
  if (source.kind !== 'user' && source.kind !== 'agent') return converse(turn, messages)             // nobody's prompt: a plugin speaks on its own account
  const submitted = await turn.ask('agent/user-prompt-submit', { prompt, messages })
  return submitted.value.kind === 'reject' ? rejected(submitted, submitted.value.reason) : converse(turn, submitted.value.messages)
}

/** Steps until the agent owes no answer. `pending` is what the next step appends. */
async function converse(turn: Turn, pending: readonly Message[]): Promise<TurnEnd> {
  for (let continuations = 0, limit = limitOf(turn); ; limit = limitOf(turn)) {
    if (limit) return limit
    const { end, owed, context } = await takeStep(turn, pending)
    if (end) return end
    const steered = limitOf(turn) ? [] : await takeSteering(turn)                                       // what can't be taken is left for a turn of its own
    pending = [...context, ...steered]
    if (owed || steered.length > 0) continue
    const more = await mayStop(turn, continuations++)
    if (!more) return { reason: 'completed' }
    pending = [more]
  }
}

/** The end of a turn that may take no further step. */
function limitOf({ input, ports, stats }: Turn): TurnEnd | undefined {
  const { maxSteps, maxCost } = ports.config()
  if (stats.steps >= (input.maxSteps ?? maxSteps)) return { reason: 'max-steps', message: 'step limit reached, the task is unfinished' }
  if (maxCost !== undefined && input.purse.total >= maxCost) return { reason: 'max-cost', message: `cost limit reached (${dollars(input.purse.total)} of agent.maxCost ${dollars(maxCost)}), the task is unfinished` }
  return undefined
}

/** What came for this turn while it ran, as far as it is let in. */
async function takeSteering(turn: Turn): Promise<readonly Message[]> {
  const entering: Message[] = []
  for (const { prompt, source } of turn.input.steering?.() ?? []) {
    const submitted = await turn.ask('agent/user-prompt-submit', { prompt, messages: [userMessage(prompt, source)] })
    if (submitted.value.kind === 'reject') turn.warn(`a prompt for the running turn was left out: ${rejected(submitted, submitted.value.reason).message}`)
    else entering.push(...submitted.value.messages)
  }
  return entering
}

/** What a step came to: the end of the turn, or whether the model is owed another step, and what its tools' handlers want it to see. */
interface Taken { readonly end?: TurnEnd | undefined; readonly owed: boolean; readonly context: readonly Message[] }
const ending = (end: TurnEnd): Taken => ({ end, owed: false, context: [] })

async function takeStep(turn: Turn, pending: readonly Message[]): Promise<Taken> {
  turn.signal.throwIfAborted()
  turn.beginStep()
  const started = performance.now(), { toolCalls } = turn.stats
  try {
    await turn.tell('agent/step-start', {})
    const entered = await turn.ask('agent/pre-step', { messages: pending })
    if (entered.value.kind === 'reject') return ending(rejected(entered, entered.value.reason))
    await enterStep(turn, entered.value, entered.plugin)
    turn.phase = 'request'
    await describe(turn)
    const draft = draftRequest(turn)
    const sent = await turn.ask('agent/pre-request', draft)
    if (sent.value.kind === 'reject') return ending(rejected(sent, sent.value.reason))
    const { model, options, tools } = sent.value
    turn.count('steps')
    return await takeReply(turn, await requestReply(turn, { ...draft, model, options, tools: draft.tools.filter(tool => tools.includes(tool.name)) }), new Set(tools))
  } finally {
    await turn.ended('agent/step-end', { usage: turn.stepUsage, elapsedMs: sinceMs(started), toolCalls: turn.stats.toolCalls - toolCalls })
  }
}

/** Appends what was let in, after what it compacts. */
async function enterStep(turn: Turn, { messages, compact }: Extract<Entered, { kind: 'enter' }>, plugin: string | undefined): Promise<void> {
  const { session } = turn
  if (compact) await compactLog(turn, compact, plugin)
  for (const { role, content, source } of messages) {
    session.append({ type: 'message', ...turn.at, role: role === 'tool' ? 'user' : role, content, source: source ?? { kind: 'core' } })     // only a call has a result
  }
  if (messages.length > 0) setImmediate(() => { session.commit().catch(() => {}) })                  // when the request has left; nothing of its reply passes the next commit, which has what failed here
}

async function compactLog(turn: Turn, { through, messages }: NonNullable<Extract<Entered, { kind: 'enter' }>['compact']>, plugin: string | undefined): Promise<void> {
  const { session } = turn, last = session.events.at(-1)!.seq                                        // a log that lost lines has fewer than that
  if (!Number.isInteger(through) || through < 1 || through > last) {
    turn.warn(`plugin "${plugin}" wants to compact through ${through}, which is no line of this session (1 to ${last}); nothing was compacted`)
    return
  }
  const tokens = () => session.messages().reduce((sum, message) => sum + estimateTokens(message), 0)
  const before = tokens(), first = messages[0]?.source
  session.append({ type: 'compaction', ...turn.at, through, messages, source: first?.kind === 'plugin' ? first : { kind: 'plugin', id: plugin } })
  await turn.tell('agent/compacted', { through, before, after: tokens() })
}

/** Logs the system prompt and the tools where they are not what the log says already. */
async function describe(turn: Turn): Promise<void> {
  const { session, ports } = turn
  const { value, trace } = await turn.dispatch('agent/system-prompt', { sections: coreSections(ports.config().system, session.cwd) })
  const text = systemText(value)
  if (text !== (session.system ?? '')) {
    turn.record('agent/system-prompt', trace)
    session.append({ type: 'system', text })
  }
  const tools = ports.tools.specs()
  if (!session.hasTools(tools)) session.append({ type: 'tools', tools })
}

function draftRequest(turn: Turn): Draft {
  const model = turn.input.model, options = {}
  return { ...turn.session.request({ model, options }), model }
}

/** Logs the reply and settles what it calls for. `offered` are the tools it may call. */
async function takeReply(turn: Turn, { message, finish, model }: Reply, offered: ReadonlySet<string>): Promise<Taken> {
  const { session } = turn
  turn.text = textOf(message)
  turn.partial = ''
  const cut = finish === 'length' || finish === 'content-filter'                                              // its last call may be half a call
  const calls = cut ? [] : readCalls(message.toolCalls ?? [], id => session.hasCall(id))
  const { content, reasoning, extra } = message
  if (calls.length > 0 || turn.text !== '' || reasoning) {
    session.append({
      type: 'message', ...turn.at, role: 'assistant', content, source: { kind: 'model', id: model },
      ...(calls.length > 0 && { toolCalls: calls.map(call => call.raw) }), ...(reasoning !== undefined && { reasoning }), ...(extra !== undefined && { extra }),
    })
  } else turn.warn('the reply was empty')
  await session.commit()
  if (finish === 'length') return ending({ reason: 'truncated', message: 'the reply was cut at its length limit, the task is unfinished' })
  if (finish === 'content-filter') throw new HarnessError('model_failed', `model "${model}" withheld its reply (content filter)`)
  return { owed: calls.length > 0, context: await runToolCalls(turn, calls, offered) }
}

/** May the turn complete? A message means: go on, with it. */
async function mayStop(turn: Turn, continuations: number): Promise<Message | undefined> {
  turn.phase = 'stop'
  const { value, plugin } = await turn.ask('agent/stop', { reply: turn.text, stats: turn.stats, stopHookActive: continuations > 0 })
  if (value.kind === 'stop') return undefined
  const { maxContinuations } = turn.ports.config()
  if (continuations < maxContinuations) return { ...value.message, source: { kind: 'plugin', id: plugin } }
  turn.warn(`plugin "${plugin}" asks to go on again after ${maxContinuations} continuations, the limit of a turn (agent.maxContinuations); the turn ends`)
  return undefined
}

const rejected = ({ plugin, failure }: Verdict, reason: string): TurnEnd =>
  ({ reason: 'rejected', kind: failure, message: failure ? `${failure}: ${reason}` : plugin === undefined ? reason : `rejected by plugin "${plugin}": ${reason}` })

/** What the turn ends with after a throw: stopped, cut, or failed. */
async function failed(turn: Turn, thrown: unknown): Promise<TurnEnd> {
  const error = readable(thrown), message = messageOf(error), { reason } = turn.signal
  if (turn.signal.aborted) return reason instanceof Halt ? { reason: reason.reason, message: reason.message } : { reason: 'aborted', message: messageOf(reason) }
  const code = error instanceof HarnessError ? error.code : error instanceof ModelError || turn.phase === 'request' ? 'model_failed' : 'internal'
  const phase = code === 'storage_failed' ? 'storage' : turn.phase
  const partial = (error instanceof ModelError ? error.partial : undefined) ?? turn.partial
  await report(turn, { phase, code, message, ...(partial !== '' && { partial }) })
  if (error instanceof ModelError && error.kind === 'truncated') return { reason: 'truncated', message }
  await turn.tell('agent/error', { error: { message, code }, phase })
  return { reason: 'failed', message }
}

async function report(turn: Turn, error: { phase: string; code: string; message: string; partial?: string }): Promise<void> {
  try {
    turn.log({ type: 'error', ...turn.at, ...error })
  } catch (cause) {                                                                                            // the log itself is what failed
    turn.ports.log.error(`session "${turn.session.id}": ${error.message}`, { cause: messageOf(cause) })
  }
}

async function finish(turn: Turn, end: TurnEnd): Promise<RunResult> {
  const { session } = turn
  const facts = () => ({ usage: turn.usage, elapsedMs: turn.elapsedMs, stats: turn.stats })
  try {
    session.append({ type: 'turn-end', turn: turn.number, ...end, ...facts() })
    await session.commit()
  } catch (error) {                                                                                            // whatever it came to can't be kept
    if (end.reason !== 'failed') end = await failed(turn, error)
  }
  await turn.ended('agent/turn-end', { reason: end.reason, kind: end.kind, ...facts() })
  return { session: session.id, turn: turn.number, ...end, text: turn.text, unanswered: turn.unanswered, stats: turn.stats, usage: turn.usage }
}

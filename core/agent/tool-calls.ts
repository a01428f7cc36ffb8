/**
 * The calls of one reply: judged one by one in order, run, answered in call order.
 *
 *   start → judge ─ refused ────────────────────────────────┐
 *              └─ may run → intent → run (with neighbours) ──┴→ result appended → end
 *
 * Read-only neighbours run together, up to a limit; any other call is a barrier: it runs alone, and the next is judged after its end. A refused call is no barrier.
 * Invariants: every call id gets exactly one answer, on every path; every tool-start has one tool-end; an intent is durable before its call runs.
 */
import { messageOf } from '../errors.js'
import type { IncomingCall } from './incoming-calls.js'
import { judge, type Judgement } from './tool-judgement.js'
import { carryOut, interrupted, notRun, type Ended } from './tool-run.js'
import type { Turn } from './turn.js'
import type { Json, Message, Outcome, SentToolCall } from './vocabulary.js'

/** One call on its way. */
interface Case { readonly incoming: IncomingCall; started: boolean; judgement?: Judgement }

/** Answers every call, and gives the messages that handlers want the model to see after the answers. Rejects when the turn can't go on, after answering what is left. */
export async function runToolCalls(turn: Turn, calls: readonly IncomingCall[], offered: ReadonlySet<string>): Promise<readonly Message[]> {
  turn.phase = 'tool'
  const cases = calls.map((incoming): Case => ({ incoming, started: false }))
  const owed = new Set(cases)
  const context: Message[] = []
  let group: Case[] = []
  const settle = async () => {
    const ends = await run(turn, group)
    for (const one of group.splice(0)) {
      const ended = await ends.get(one)!
      owed.delete(one)
      await answer(turn, one, ended)
      context.push(...ended.context)
    }
  }
  try {
    for (const one of cases) {
      one.judgement = await start(turn, one, offered)
      if (isBarrier(one)) await settle()
      group.push(one)
      const running = group.filter(mayRun).length
      if (isBarrier(one) || running === 0 || running >= turn.ports.config().maxParallel) await settle()
    }
    await settle()
    return context
  } finally {
    for (const one of owed) await abandon(turn, one)
  }
}

const mayRun = ({ judgement }: Case): boolean => judgement?.kind !== 'refused'
const isBarrier = ({ judgement }: Case): boolean => judgement !== undefined && judgement.kind !== 'refused' && judgement.alone

async function start(turn: Turn, one: Case, offered: ReadonlySet<string>): Promise<Judgement> {
  turn.signal.throwIfAborted()
  turn.count('toolCalls')
  one.started = true
  await turn.tell('agent/tool-start', { call: asSent(one) })
  return judge(turn, one.incoming, offered)
}

/** Begins what may run, all at once. */
async function run(turn: Turn, group: readonly Case[]): Promise<ReadonlyMap<Case, Promise<Ended>>> {
  const intents = group.flatMap(({ judgement }) => judgement?.kind === 'run' ? [judgement.call] : [])
  for (const { id, name, arguments: args, originalArguments } of intents) {
    turn.log({ type: 'tool-intent', ...turn.at, callId: id, name, arguments: args as Json, ...(originalArguments && { originalArguments: originalArguments as Json }) })
  }
  if (intents.length > 0) await turn.commit()
  const ends = new Map(group.map(one => [one, endOf(turn, one)]))
  for (const end of ends.values()) end.catch(() => {})                 // they are awaited in order; one behind a failure must not go unhandled
  return ends
}

async function endOf(turn: Turn, { judgement }: Case): Promise<Ended> {
  if (!judgement) return interrupted()
  if (judgement.kind === 'refused') return notRun(judgement.outcome, judgement.note + judgement.content, judgement.plugin)
  try {
    return await carryOut(turn, judgement)
  } catch (error) {
    if (turn.signal.aborted) return interrupted()
    throw error
  }
}

async function answer(turn: Turn, one: Case, { outcome, result, elapsedMs, plugin }: Ended): Promise<void> {
  const { id, name } = one.incoming.raw
  if (REFUSED.includes(outcome)) turn.count('blocked')
  try {
    turn.log({ type: 'tool-result', ...turn.at, callId: id, name, kind: outcome, ...(plugin !== undefined && { plugin }), ...result, elapsedMs })
    await turn.commit()
  } finally {
    turn.ports.workspace.forget(turn.session.view(), id)
    if (one.started) await turn.ended('agent/tool-end', { call: asRun(one), result, outcome, elapsedMs, plugin })
  }
}
const REFUSED: readonly Outcome[] = ['blocked', 'hook_failed', 'guard_inactive', 'denied']

/** The turn can't go on; the call gets its answer all the same. */
async function abandon(turn: Turn, one: Case): Promise<void> {
  const { judgement } = one
  const ended = judgement?.kind === 'refused' ? await endOf(turn, one) : interrupted(judgement ? undefined : 'interrupted: the turn was stopped before this call ran')
  try {
    await answer(turn, one, ended)
  } catch (error) {
    turn.ports.log.warn(`session "${turn.session.id}": call "${one.incoming.raw.id}" stays without its answer until the session is opened again: ${messageOf(error)}`)     // why the turn ends is on its way up already
  }
}

const asSent = ({ incoming: { raw: { id, name }, sent, read } }: Case): SentToolCall => ({ id, name, arguments: read.ok ? read.value : sent })
/** With the arguments as rewritten, once they are. */
const asRun = (one: Case): SentToolCall => ({ ...asSent(one), ...(one.judgement && 'call' in one.judgement && one.judgement.call && { arguments: one.judgement.call.arguments }) })

/**
 * Runs one call that may run, and only here is a tool executed. Whatever happens, out comes a result: a tool never throws through the loop.
 * Invariants: the hook stands around every run; a tool that doesn't listen to its signal is let go, and what it does later is dropped.
 */
import { messageOf, show } from '../errors.js'
import type { Owner } from '../kernel/registry.js'
import { link, onAbort, ownerSignal, untilAborted } from './abort.js'
import { INTERRUPTED } from './conversation.js'
import type { ToolRun } from './services.js'
import type { Judgement } from './tool-judgement.js'
import type { OfferedTool } from './tools.js'
import { sinceMs, type Turn } from './turn.js'
import type { Message, Outcome, ToolCall, ToolResult } from './vocabulary.js'

/** How a call ended, as the log and the model get it. */
export interface Ended {
  readonly outcome: Outcome
  readonly result: ToolResult
  readonly elapsedMs: number
  readonly plugin?: string | undefined
  /** What handlers want the model to see after the results. */
  readonly context: readonly Message[]
}
export const notRun = (outcome: Outcome, content: string, plugin?: string): Ended => ({ outcome, result: { content, isError: true }, elapsedMs: 0, plugin, context: [] })
export const interrupted = (content: string = INTERRUPTED): Ended => notRun('interrupted', content)

/** A tool whose plugin has to let go has this long to end by itself. */
const LET_GO_MS = 1000

/** Runs or answers the call. Rejects only when the turn is aborted. */
export async function carryOut(turn: Turn, judgement: Exclude<Judgement, { kind: 'refused' }>): Promise<Ended> {
  const { call, note } = judgement
  const started = performance.now()
  const own = judgement.kind === 'answered' ? judgement.result : await use(turn, call)
  const elapsedMs = judgement.kind === 'answered' ? 0 : sinceMs(started)
  const { value, context = [] } = await turn.ask('agent/post-tool-use', { call, result: own, elapsedMs })
  return {
    outcome: value.isError ? 'failed' : 'ok', result: { content: note + value.content, isError: value.isError }, elapsedMs,
    plugin: judgement.kind === 'answered' ? judgement.plugin : undefined, context,
  }
}

async function use(turn: Turn, call: ToolCall): Promise<ToolResult> {
  try {
    const { value } = await turn.ask('agent/tool-use', { call }, { inner: (_, act) => execute(turn, call, act.signal) })
    return value
  } catch (error) {
    turn.signal.throwIfAborted()
    return { content: messageOf(error), isError: true }
  }
}

/** The act itself, on the account of the tool's plugin. `signal` is also aborted when a handler around it has given up waiting. */
async function execute(turn: Turn, call: ToolCall, signal: AbortSignal): Promise<ToolResult> {
  const gone = new AbortController()
  const confined = turn.ports.workspace.confinement(turn.session.view(), call.id) !== undefined
  const running = turn.ports.tools.use(call.name, confined, signal, async (tool, owner, linger) => {
    const free = letGoOf(call, owner, gone)
    try { return await runTool(turn, call, tool, owner, signal, linger) } finally { free() }
  })
  if (!running) throw new Error(`tool "${call.name}" is gone: its plugin was unloaded`)
  return untilAborted(untilAborted(running, signal), gone.signal)
}

async function runTool(turn: Turn, call: ToolCall, tool: OfferedTool, owner: Owner, act: AbortSignal, linger: ToolRun['lingers']): Promise<ToolResult> {
  const { ports, session } = turn
  const fit = tool.schema.read(call.arguments)                         // once more: the tool may have been reloaded since it was judged, and defaults are filled in
  if (!fit.ok) throw new Error(`the arguments don't fit the schema of tool "${call.name}" any more: ${fit.problem}`)
  const { signal, unlink } = link(act, ownerSignal(owner))
  let over = false
  const run: ToolRun = {
    session: ports.workspace.callView(session.view(), call.id), ...turn.at, callId: call.id, signal,
    get outputDir() { return session.outputDir() },
    launch: argv => ports.workspace.confinement(session.view(), call.id)?.launch(argv) ?? argv,
    get standing() { return ports.workspace.confinement(session.view(), call.id)?.standing },
    lingers: linger,
    progress: message => { if (!over) turn.input.emit({ type: 'progress', callId: call.id, name: call.name, message: String(message) }) },
  }
  try {
    return toResult(await tool.execute(fit.value, run), call.name)
  } finally {
    over = true
    unlink()
  }
}

/** When the plugin has to let go, its tool ends soon or is let go too. */
function letGoOf(call: ToolCall, owner: Owner, gone: AbortController): () => void {
  const signal = ownerSignal(owner)
  if (!signal) return () => {}
  let timer: NodeJS.Timeout | undefined
  const off = onAbort(signal, () => {
    timer = setTimeout(() => { gone.abort(new Error(`tool "${call.name}": its plugin "${owner.id}" was unloaded while it ran`)) }, LET_GO_MS)
  })
  return () => { off(); clearTimeout(timer) }
}

function toResult(output: unknown, name: string): ToolResult {
  if (typeof output === 'string') return { content: output, isError: false }
  const { content, isError = false } = (output ?? {}) as { content?: unknown; isError?: unknown }
  if (typeof content === 'string' && typeof isError === 'boolean') return { content, isError }
  throw new Error(`tool "${name}" gave no result: a string or {content, isError?} was expected, received ${show(output)}`)
}

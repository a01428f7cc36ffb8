/**
 * `hx acp`: an editor drives the agent over standard input and output, in the Agent Client Protocol. A front end like `hx agent`: the daemon of this config answers, else this process.
 * Invariants: stdout carries the protocol and nothing else; the host is looked for when it is first needed, so that what is wrong reaches the editor as an error it can show.
 */
import { Readable, Writable } from 'node:stream'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { agent, MessageTooLargeError, ndJsonStream, PROTOCOL_VERSION, RequestError, type AgentContext, type AnyMessage, type SessionUpdate } from '@agentclientprotocol/sdk'
import { onAbort, untilAborted } from '../agent/abort.js'
import type { Approver } from '../agent/services.js'
import type { Mode } from '../agent/vocabulary.js'
import { HarnessError, messageOf, show } from '../errors.js'
import { VERSION } from '../version.js'
import { answerOf, commandOf, isMode, modes, PERMISSIONS, promptOf, stopReasonOf, usageOf } from './acp-prompt.js'
import { note, Updates } from './acp-updates.js'
import type { Client } from './client.js'
import { connect } from './connect.js'
import type { Io } from './io.js'
import { onSignals } from './signals.js'

interface Options { model?: string; offline?: boolean; mode?: Mode; plugin: string[]; without: string[]; safe?: boolean }
/** `mode` is what the editor said last, and stays when it loads the session anew; another process begins with its own. */
interface Open { readonly cwd: string; readonly updates: Updates; mode: Mode; cancel: ((reason: string) => void) | undefined }

export async function acp(io: Io, { model, offline, mode = 'default', plugin, without, safe = false }: Options): Promise<number> {
  if (offline && model !== undefined) throw new HarnessError('usage', '--offline and --model exclude each other')
  const open = new Map<string, Open>()
  let connecting: Promise<Client> | undefined
  const host = (): Promise<Client> => connecting ??= connect(io, { plugins: plugin, without, safe, watch: true }).catch((error: unknown) => {
    connecting = undefined                                   // once it is mended, the next request finds it
    throw error
  })

  const opened = async (id: string, cwd: string) => {
    const readers = new Set((await (await host()).tools()).filter(({ readOnly }) => readOnly).map(({ name }) => name))
    const session: Open = { cwd, updates: new Updates(cwd, name => readers.has(name)), mode: open.get(id)?.mode ?? mode, cancel: undefined }
    open.set(id, session)
    return session
  }
  const sessionOf = (id: string): Open => {
    const session = open.get(id)
    if (!session) throw RequestError.invalidParams({ sessionId: id }, `session "${id}" is not open here; use session/new or session/load`)
    return session
  }
  const tell = async (editor: AgentContext, sessionId: string, updates: readonly SessionUpdate[]) => {
    for (const update of updates) await editor.notify('session/update', { sessionId, update })
  }
  /** After the answer that names the session. */
  const tellCommands = (editor: AgentContext, sessionId: string) => {
    setImmediate(() => {
      host().then(async client => {
        const availableCommands = (await client.commands()).map(({ name, description }) => ({ name, description, input: { hint: '' } }))
        await tell(editor, sessionId, [{ sessionUpdate: 'available_commands_update', availableCommands }])
      }).catch((error: unknown) => { io.note(`hx: commands could not be told: ${messageOf(error)}`) })
    })
  }
  const withoutServers = (servers: readonly unknown[]) => {
    if (servers.length > 0) io.note('hx: MCP servers of the editor are not used; add them to the plugin "mcp" of the config')
  }

  const approver = (editor: AgentContext, sessionId: string): Approver => async ({ turn, call, reason, plugin: asking, signal }) => {
    const { updates } = sessionOf(sessionId)
    await tell(editor, sessionId, updates.begin(turn, call.id, call.name, call.arguments))
    const toolCall = updates.asked(turn, call.id, call.name, call.arguments, `${asking} asks: ${reason}`)
    return untilAborted(editor.request('session/request_permission', { sessionId, toolCall, options: PERMISSIONS }, { cancellationSignal: signal }).then(answerOf), signal)
  }
  async function prompt(editor: AgentContext, sessionId: string, words: string, signal: AbortSignal) {
    const session = sessionOf(sessionId), client = await host()
    const command = commandOf(words, (await client.commands()).map(({ name }) => name))
    if (command) {
      const said = await client.command({ ...command, session: sessionId, cwd: session.cwd }, signal)
      if (said.text !== undefined) await tell(editor, sessionId, [note(said.text)])
      if (said.prompt === undefined) return { stopReason: 'end_turn' as const }
      words = said.prompt
    }
    signal.throwIfAborted()                                  // while the host was looked for
    const run = await client.run({ prompt: words, session: sessionId, cwd: session.cwd, model: offline ? 'offline' : model, mode: session.mode }, approver(editor, sessionId))
    const off = onAbort(signal, () => { run.abort(messageOf(signal.reason)) })
    try { for await (const event of run.events) await tell(editor, sessionId, session.updates.of(event)) } finally { off() }
    const result = await run.result, stopReason = stopReasonOf(result)
    if (stopReason === undefined) throw new HarnessError('model_failed', result.message ?? `the turn ended ${result.reason}`)
    if (stopReason !== 'end_turn' && stopReason !== 'cancelled' && result.message !== undefined) await tell(editor, sessionId, [note(`\n\n${result.message}`)])
    return { stopReason, usage: usageOf(result.usage) }
  }

  const app = agent({ name: 'hx' })
    .onRequest('initialize', () => ({
      protocolVersion: PROTOCOL_VERSION,
      agentInfo: { name: 'harnessx', title: 'HarnessX', version: VERSION },
      agentCapabilities: { loadSession: true, promptCapabilities: { embeddedContext: true }, sessionCapabilities: { list: {} } },
      authMethods: [],
    }))
    .onRequest('authenticate', () => ({}))
    .onRequest('session/new', ({ params: { cwd, mcpServers }, client }) => answering(async () => {
      withoutServers(mcpServers)
      const sessionId = await (await host()).begin(cwd)
      const session = await opened(sessionId, cwd)
      tellCommands(client, sessionId)
      return { sessionId, modes: modes(session.mode) }
    }))
    .onRequest('session/load', ({ params: { sessionId, cwd, mcpServers }, client }) => answering(async () => {
      withoutServers(mcpServers)
      if (open.get(sessionId)?.cancel) throw RequestError.invalidParams(undefined, `session "${sessionId}" has a turn that runs; cancel it, or wait for its end`)
      const { events } = await (await host()).session(sessionId), [header] = events
      const session = await opened(sessionId, header?.type === 'session' ? header.cwd : cwd)       // a session keeps its workspace
      for (const event of events) await tell(client, sessionId, session.updates.of(event, { replay: true }))
      tellCommands(client, sessionId)
      return { modes: modes(session.mode) }
    }))
    .onRequest('session/list', ({ params: { cwd } }) => answering(async () => {
      const all = await (await host()).sessions()
      return { sessions: all.filter(one => one.parent === undefined && !one.archived && (cwd == null || one.cwd === cwd)).map(({ id, cwd, title, updatedAt }) => ({ sessionId: id, cwd, title, updatedAt })) }
    }))
    .onRequest('session/set_mode', ({ params: { sessionId, modeId } }) => {
      if (!isMode(modeId)) throw RequestError.invalidParams({ modeId }, `there is no mode "${modeId}"`)
      sessionOf(sessionId).mode = modeId
      return {}
    })
    .onRequest('session/prompt', ({ params, client }) => answering(async () => {
      const session = sessionOf(params.sessionId), words = promptOf(params.prompt)
      if (words === undefined) throw RequestError.invalidParams(undefined, 'only text and text files can be read: no images and no sound')
      if (session.cancel) throw RequestError.invalidParams(undefined, `session "${params.sessionId}" has a turn that runs; cancel it, or wait for its end`)
      const stop = new AbortController()
      session.cancel = reason => { stop.abort(new Error(reason)) }
      try { return await prompt(client, params.sessionId, words, stop.signal) } catch (error) {
        if (stop.signal.aborted) return { stopReason: 'cancelled' as const }
        throw error
      } finally { session.cancel = undefined }
    }))
    .onNotification('session/cancel', ({ params: { sessionId } }) => { open.get(sessionId)?.cancel?.('cancelled in the editor') })

  const signals = onSignals()
  const { readable, writable } = ndJsonStream(Writable.toWeb(io.stdout) as WritableStream<Uint8Array>, Readable.toWeb(io.stdin) as ReadableStream<Uint8Array>)
  const filter = messagesOnly<AnyMessage>((line: string) => { io.note(`hx: ${line}`) })
  const read = readable.pipeTo(filter.writable).then(() => undefined, (error: unknown) => error)
  const connection = app.connect({ readable: filter.readable, writable })
  signals.first = () => { connection.close() }
  try {
    await connection.closed
    const broken = await Promise.race([read, nextTurn()])                // the connection is closed first, and doesn't say why
    if (broken instanceof MessageTooLargeError) throw new HarnessError('usage', `the editor sent a message of more than ${broken.maxMessageBytes} bytes, so the connection is ended`, { cause: broken })
    return signals.code ?? 0
  } finally {
    signals.off()
    await connecting?.then(client => client.close(), () => {})           // what kept it from starting, the editor was told
  }
}

/** A line that is JSON and no message (`null`, a list, nothing that is asked or answered) is left out with a word: the SDK would end the connection over it. */
function messagesOnly<T>(note: (line: string) => void): TransformStream<T, T> {
  return new TransformStream({
    transform(message, controller) {
      if (isMessage(message)) controller.enqueue(message)
      else note(`a line of the editor is no message of the protocol and is left out: ${show(message)}`)
    },
  })
}

function isMessage(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false
  return 'method' in value ? typeof value.method === 'string' : 'id' in value && ('result' in value || 'error' in value)
}

/** An editor shows the message of an error, and no more. */
async function answering<T>(work: () => Promise<T>): Promise<T> {
  try { return await work() } catch (error) {
    if (error instanceof RequestError) throw error
    const code = error instanceof HarnessError ? error.code : 'internal'
    throw code === 'session_missing' ? new RequestError(-32002, messageOf(error), { code }) : new RequestError(-32603, messageOf(error), { code })
  }
}

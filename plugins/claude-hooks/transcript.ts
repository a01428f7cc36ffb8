/**
 * The conversation of a session as a file that hook scripts can read: JSON lines in the shape of Claude Code's transcripts, written before a script runs. Knows no hook.
 * Invariants: only what is new is appended; a conversation that was compacted is written anew; a session's file goes with the session.
 */
import { appendFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { textOf, type Message, type SessionView } from 'harnessx'
import { theirInput, theirName } from './tools.js'

export class Transcripts {
  readonly #folder: () => string
  /** What stands in a session's file, and the write that goes on. */
  readonly #written = new Map<string, { messages: readonly Message[]; done: Promise<void> }>()
  constructor(folder: () => string) { this.#folder = folder }

  /** Brings the file up to date and gives its path. Rejects when it can't be written. */
  async of(session: SessionView): Promise<string> {
    const path = this.#path(session.id), { messages } = session, before = this.#written.get(session.id)
    const grown = before !== undefined && before.messages.length <= messages.length && before.messages.at(-1) === messages[before.messages.length - 1]
    const lines = messages.slice(grown ? before.messages.length : 0).map(message => `${JSON.stringify(lineOf(message, session))}\n`).join('')
    const done = (before?.done.catch(() => {}) ?? Promise.resolve()).then(() => grown ? appendFile(path, lines) : writeFile(path, lines, { mode: 0o600 }))
    this.#written.set(session.id, { messages, done })
    try { await done } catch (error) {
      this.#written.delete(session.id)
      throw error
    }
    return path
  }
  async forget(session: string): Promise<void> {
    if (this.#written.delete(session)) await rm(this.#path(session), { force: true })
  }
  #path(session: string): string { return join(this.#folder(), `${session}.jsonl`) }
}

function lineOf(message: Message, { id, cwd }: SessionView): object {
  const text = textOf(message)
  const content = message.role === 'tool' ? [{ type: 'tool_result', tool_use_id: message.toolCallId, content: text }]
    : message.role === 'assistant' ? [...text ? [{ type: 'text', text }] : [], ...(message.toolCalls ?? []).map(call => ({ type: 'tool_use', id: call.id, name: theirName(call.name), input: inputOf(call.name, call.arguments, cwd) }))]
    : text
  const role = message.role === 'assistant' ? 'assistant' : 'user'
  return { type: role, message: { role, content }, sessionId: id, cwd }
}
function inputOf(tool: string, args: string, cwd: string): unknown {
  try { return theirInput(tool, JSON.parse(args) as Record<string, unknown>, cwd) } catch { return args }            // as the model sent it: no JSON, or no object
}

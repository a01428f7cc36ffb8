/**
 * The calls of a reply on their way into the log: what the protocol needs of them is made to hold here, so that no reply can poison the requests after it.
 * Knows no tool. Invariants: an id is given once per session; a name and arguments that are logged can be sent back to any endpoint.
 */
import { randomUUID } from 'node:crypto'
import { parseArguments, type Arguments, type Read } from './arguments.js'
import type { RawToolCall } from './vocabulary.js'

/** A call of the model: as it goes to the log, what was sent, and what that reads as. */
export interface IncomingCall {
  readonly raw: RawToolCall
  readonly sent: string
  readonly read: Read<Arguments>
}

/** `taken`: is the id of an earlier call of the session? Some endpoints number the calls of each reply anew, some models repeat one. */
export function readCalls(calls: readonly RawToolCall[], taken: (id: string) => boolean): IncomingCall[] {
  const ids = new Set<string>()
  return calls.map(call => {
    const id = typeof call.id === 'string' && call.id !== '' && !ids.has(call.id) && !taken(call.id) ? call.id : freshId()
    ids.add(id)
    const read = parseArguments(call.arguments)
    // Endpoints refuse a history with a name outside the protocol's alphabet, or with arguments that are no object; the result says what was wrong with it.
    const raw = { ...call, id, name: protocolName(call.name), arguments: read.ok && call.arguments.trim() !== '' ? call.arguments : '{}' }
    return { raw, sent: call.arguments, read }
  })
}

const freshId = (): string => `call_${randomUUID().replaceAll('-', '').slice(0, 24)}`
const protocolName = (name: string): string => name.replace(/[^A-Za-z0-9_-]/g, '_').slice(0, 64) || '_'

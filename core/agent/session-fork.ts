/** A new session that begins as another one was at some event. Works on any store; the old session is only read. */
import { HarnessError } from '../errors.js'
import type { SessionEvent, SessionEventBody, SessionStore } from './session-events.js'
import { newSessionId } from './session-id.js'
import { closing } from './session-repair.js'

/** Takes over the events up to and including `seq`, and closes the turn that was running there. Returns the id of the new session, which is closed again. */
export async function forkSession(store: SessionStore, id: string, seq: number, newId: string = newSessionId()): Promise<string> {
  const { events } = await store.read(id), [header, ...rest] = events
  const last = events.at(-1)!.seq
  if (header?.type !== 'session' || !Number.isInteger(seq) || seq < 1 || seq > last) throw new HarnessError('unknown_id', `session "${id}" has no event ${seq}; it has 1 to ${last}`)
  const writer = await store.create({ id: newId, cwd: header.cwd, depth: 0, forkOf: { id, seq } })
  try {
    const renumbered = new Map([[1, 1]])                                                           // a log that lost lines has gaps, the new one has none
    for (const event of rest) {
      if (event.seq > seq) break
      if (event.type === 'archived') continue
      renumbered.set(event.seq, writer.append(bodyOf(event, renumbered)).seq)
    }
    for (const body of closing(writer.events)) writer.append(body)
  } finally {
    await writer.close()
  }
  return newId
}

function bodyOf(event: SessionEvent, renumbered: ReadonlyMap<number, number>): SessionEventBody {
  const { seq: _seq, ts: _ts, ...body } = event
  if (body.type !== 'compaction') return body
  const through = [...renumbered].reduce((most, [old, now]) => old <= body.through ? Math.max(most, now) : most, 0)
  return { ...body, through }
}

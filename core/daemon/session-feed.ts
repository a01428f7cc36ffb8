/**
 * What a client that follows a session is sent: the log from where it was, then what happens, in order, without a gap or a duplicate. Knows no HTTP.
 * Log lines that wait for a slow reader are the session's own objects; of what is not logged only so much waits (run-stream.ts).
 */
import { onAbort } from '../agent/abort.js'
import { RunStream } from '../agent/run-stream.js'
import type { RunEvent } from '../agent/services.js'
import type { SessionEvent } from '../agent/session-events.js'
import type { App } from '../app.js'
import type { RunEventName } from './protocol.js'

export interface Sent { readonly event: RunEventName; readonly data: unknown; readonly id?: number | undefined }
export interface From {
  /** The last `seq` that the client has, or where the last turn began. */
  readonly after: number | 'turn'
  /** Go on when no turn runs, until this aborts. */
  readonly until?: AbortSignal | undefined
}

export const sent = (event: RunEvent): Sent => 'seq' in event ? { event: 'log', data: event, id: event.seq } : { event: event.type, data: event }

/** Ends with the turns that run or wait, unless it goes on, and when `gone` aborts. Rejects before anything is yielded when there is no such session. */
export async function* sessionFeed(app: App, session: string, { after, until }: From, gone: AbortSignal): AsyncGenerator<Sent, void> {
  const live = new RunStream()
  const unfollow = app.follow(session, { push: event => { live.push(event) }, rest: () => { if (!until) live.end() } })
  const offs = [gone, until].map(signal => signal && onAbort(signal, () => { live.end() }))
  try {
    const past = await app.events(session), newest = past.at(-1)?.seq ?? 0
    let last = after === 'turn' ? lastTurn(past) : after
    if (last > newest) {                                     // it has lines that are not in this log: another log, or one that lost its end
      yield { event: 'reset', data: { after: last, newest } }
      last = 0
    }
    if (!until && !app.isBusy(session)) live.end()
    for (const event of past) if (event.seq > last) yield sent(event)
    last = newest
    for await (const event of live) {
      if ('seq' in event && event.seq <= last) continue
      yield sent(event)
    }
    if (!until) yield { event: 'end', data: { session } }    // one that goes on comes again
  } finally {
    for (const off of offs) off?.()
    unfollow()
  }
}

/** The `seq` before the last turn. */
function lastTurn(events: readonly SessionEvent[]): number {
  return (events.findLast(event => event.type === 'turn-start')?.seq ?? 1) - 1
}

/**
 * Asks to a person, and the service `ctx.approvals`. Knows who can be asked for which session, not how: an approver is a terminal, a client or an editor.
 * Invariants: an ask gets one answer and has a limit; when its turn ends, or an answer is there, it is withdrawn; nobody to ask means no.
 */
import { createHash } from 'node:crypto'
import { HarnessError } from '../errors.js'
import type { Dispatcher } from '../kernel/dispatch.js'
import { within } from '../kernel/limits.js'
import type { Scope } from '../kernel/registry.js'
import { link, untilAborted } from './abort.js'
import type { ApprovalAnswer, ApprovalRequest, ApprovalsService, Approver } from './services.js'
import type { EventOf } from './session-events.js'
import type { Mode, SessionView, ToolCall } from './vocabulary.js'

type Logged = EventOf<'approval'>
/** An answer, and whose it is. */
export interface Ruling { readonly answer: Logged['answer']; readonly by: Logged['by']; readonly note?: string | undefined }
/** Who speaks for the person of a session while its turn runs. */
export interface Person { readonly mode: Mode; readonly approver: Approver | undefined }

const NOBODY: Ruling = { answer: 'denied', by: 'nobody' }
class Unanswered extends Error {}

export class Approvals {
  readonly #hooks: Dispatcher
  readonly #timeoutMs: () => number
  readonly #persons = new Map<string, Person>()
  /** Digests of calls that need no second yes: per session, and for good per workspace. */
  readonly #remembered = new Map<string, Set<string>>()
  readonly #always = new Set<string>()

  constructor(hooks: Dispatcher, timeoutMs: () => number) {
    this.#hooks = hooks
    this.#timeoutMs = timeoutMs
  }

  /** `ctx.approvals` of one plugin. */
  view(scope: Scope): ApprovalsService {
    return {
      ask: async ({ session, title, reason, signal }) => {
        const { mode } = this.#persons.get(session) ?? { mode: 'default' }
        if (mode === 'yes') return true
        const call = { id: title, name: title, arguments: {} }
        const ruling = await this.put({ session, turn: 0, call, reason, plugin: scope.owner.id, signal: signal ?? new AbortController().signal })
        return ruling.answer !== 'denied'
      },
    }
  }

  /** While a turn runs; the disposer ends it. */
  attend(session: string, person: Person): () => void {
    this.#persons.set(session, person)
    return () => { if (this.#persons.get(session) === person) this.#persons.delete(session) }
  }
  person(session: string): Person | undefined { return this.#persons.get(session) }
  /** The session is closed. */
  forget(session: string): void { this.#remembered.delete(session) }

  /** What is settled without asking: by the mode, or by an earlier answer about this very call. */
  settled(session: SessionView, call: ToolCall): Ruling | undefined {
    if (session.mode === 'yes') return { answer: 'once', by: 'mode' }
    const key = digest(call)
    if (this.#remembered.get(session.id)?.has(key)) return { answer: 'session', by: 'user' }
    return this.#always.has(`${session.cwd}\0${key}`) ? { answer: 'always', by: 'user' } : undefined
  }
  remember(session: SessionView, call: ToolCall, { answer }: Ruling): void {
    if (answer === 'session') this.#remembered.set(session.id, (this.#remembered.get(session.id) ?? new Set()).add(digest(call)))
    if (answer === 'always') this.#always.add(`${session.cwd}\0${digest(call)}`)
  }

  /** Puts it to the person of the session. Rejects only with the reason of the request's signal. */
  async put(request: ApprovalRequest): Promise<Ruling> {
    const approver = this.#persons.get(request.session)?.approver
    if (!approver) return NOBODY
    const limitMs = this.#timeoutMs()
    const withdrawn = new AbortController()
    const { signal, unlink } = link(request.signal, withdrawn.signal)
    try {
      const asking = async () => approver({ ...request, signal })
      return read(await this.#hooks.waiting(() => untilAborted(within(limitMs, asking(), () => new Unanswered()), request.signal)))
    } catch (error) {
      if (request.signal.aborted) throw request.signal.reason
      return error instanceof Unanswered ? { answer: 'denied', by: 'timeout' } : NOBODY           // an approver that fails could ask nobody
    } finally {
      withdrawn.abort(new HarnessError('aborted', 'this ask is settled'))
      unlink()
    }
  }
}

/** An answer from outside, taken for a yes only when it is one of the three. */
function read(answer: ApprovalAnswer | undefined): Ruling {
  switch (answer?.answer) {
    case 'once': case 'session': case 'always': return { answer: answer.answer, by: 'user' }
    case 'denied': return { answer: 'denied', by: 'user', ...(typeof answer.note === 'string' && answer.note !== '' && { note: answer.note }) }
    default: return NOBODY
  }
}

/** Tool and arguments, whatever the order of their keys. */
const digest = ({ name, arguments: args }: ToolCall): string => createHash('sha256').update(JSON.stringify([name, sorted(args)])).digest('base64')
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value).sort(([a], [b]) => a < b ? -1 : 1).map(([key, part]) => [key, sorted(part)])
}

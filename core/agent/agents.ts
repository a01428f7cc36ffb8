/**
 * Runs agents: which sessions are open, who may start a turn, and how they end. The service `ctx.agents`. Knows stores and lanes, not the order of a turn.
 * Invariants: a session is open once, however many ask for it; nothing is logged for a run that is refused; a session that rests is closed after a while and opened again by itself.
 */
import { isAbsolute } from 'node:path'
import { enclosing } from '../kernel/async-context.js'
import { within } from '../kernel/limits.js'
import type { Scope } from '../kernel/registry.js'
import { HarnessError, messageOf, show } from '../errors.js'
import { Purse } from './cost.js'
import { Lane, TurnActivity, type Closed, type Opened, type Order, type OwnRun } from './lane.js'
import { nameOf } from './models.js'
import type { AgentsService, RunEvent, RunInput } from './services.js'
import { Session } from './session.js'
import type { SessionEvent, SessionHeader, SessionStore, SessionWriter } from './session-events.js'
import { newSessionId } from './session-id.js'
import { Halt, type Ports } from './turn.js'
import type { Mode } from './vocabulary.js'

export interface AgentsOptions {
  readonly store: SessionStore
  /** For sessions that end with the process. */
  readonly memoryStore: SessionStore
  /** Workspace of a new session when its caller names none. */
  readonly cwd?: string | undefined
}

/** Is told of what happens in one session, whoever caused it. */
export interface Follower {
  push(event: RunEvent): void
  /** No turn runs or waits any more. */
  rest(): void
}

/** Sessions without a turn stay open this long, and so many of them at most: each holds a file and a lock. */
const REST_MS = 600_000
const MAX_RESTING = 32
/** How long turns get to end at a shutdown. */
const STOP_MS = 6000

export class Agents implements AgentsService {
  readonly #ports: Ports
  readonly #options: AgentsOptions
  readonly #lanes = new Map<string, Promise<Lane>>()
  readonly #closing = new Map<string, Promise<void>>()
  /** Open lanes without a turn, the longest resting first. */
  readonly #resting = new Map<Lane, NodeJS.Timeout>()
  readonly #busy = new Map<string, Lane>()
  /** Open sessions that are kept in memory only. */
  readonly #ephemeral = new Set<string>()
  readonly #followers = new Map<string, Set<Follower>>()
  #stopped = false

  constructor(ports: Ports, options: AgentsOptions) {
    this.#ports = ports
    this.#options = options
  }

  /** `ctx.agents` of one plugin. */
  view({ owner }: Scope): AgentsService {
    return {
      run: input => this.run(input, owner.id),
      list: () => this.list(), abort: (session, reason) => this.abort(session, reason), archive: session => this.archive(session),
    }
  }
  /** `by`: the plugin that asks for it. */
  async run(input: RunInput, by?: string): Promise<OwnRun> {
    const order = this.#order(input, by)
    for (;;) {
      const lane = await this.#lane(input)
      this.#assertRunning()
      if (lane.closing) continue
      if (lane.session.archived) {
        if (!lane.busy) await this.#close(lane, 'closed')              // it was opened for nothing
        throw new HarnessError('session_archived', `session "${lane.session.id}" is archived and takes no further prompt; start a new one`)
      }
      if (input.ifIdle && lane.busy) throw new HarnessError('session_busy', `session "${lane.session.id}": a turn runs; without --if-idle the prompt waits for its end`)
      return this.#start(lane, order)
    }
  }
  /** Makes a session that waits for its first prompt. */
  async begin(cwd: string): Promise<string> {
    this.#assertRunning()
    const lane = await this.#lane({ prompt: '', cwd })
    await lane.session.commit()
    this.#rest(lane)
    return lane.session.id
  }
  /** Hands a prompt of the user to the turn of a session that runs: it takes it at its next step, or, when it ends before, another turn does. False when none runs. */
  steer(session: string, prompt: string): boolean {
    this.#assertRunning()
    if (prompt.trim() === '') throw new HarnessError('usage', 'a prompt must be a text that is not empty')
    return this.#busy.get(session)?.steer({ prompt, source: { kind: 'user' } }) ?? false
  }
  list(): ReturnType<AgentsService['list']> { return [...this.#busy.values()].map(lane => lane.status) }
  /** Stops the turn that runs, whoever asked for it; those that wait go on. */
  abort(session: string, reason = 'stopped by the user'): boolean {
    return this.#busy.get(session)?.abort(new Halt('aborted', reason)) ?? false
  }
  /** Follows a session, open or not, from here on; what is returned ends that. */
  follow(session: string, follower: Follower): () => void {
    const followers = this.#followers.get(session) ?? new Set()
    this.#followers.set(session, followers.add(follower))
    return () => {
      followers.delete(follower)
      if (followers.size === 0 && this.#followers.get(session) === followers) this.#followers.delete(session)
    }
  }
  /** What the turn of a session that runs spends from. */
  purseOf(session: string): Purse | undefined { return this.#busy.get(session)?.purse }
  isBusy(session: string): boolean { return this.#busy.has(session) }
  /** Everything in the log of a session so far. */
  async read(session: string): Promise<readonly SessionEvent[]> {
    const lane = await this.#lanes.get(session)?.catch(() => undefined)      // the store says what is wrong with it
    return lane ? [...lane.session.events] : (await this.#storeOf(this.#ephemeral.has(session)).read(session)).events
  }
  /** The session's folder for full outputs, there or not. */
  outputPath(session: string): string { return this.#storeOf(this.#ephemeral.has(session)).outputPath(session) }
  /** Is the session of a turn that runs archived meanwhile? */
  isArchived(session: string): boolean { return this.#busy.get(session)?.session.archived ?? false }
  /** Its turn's next step is rejected; then the session is closed. */
  async archive(session: string): Promise<void> {
    const lane = await this.#open(session, () => this.#resume(session, this.#options.store))
    try {
      if (!lane.session.archived) lane.session.append({ type: 'archived' })
      await lane.session.commit()
    } finally {
      const closed = this.#close(lane, 'archived')
      if (!lane.busy) await closed                                     // a turn that archives its own session would wait for itself
    }
  }
  /** Its client has left: closed once its turns have ended. */
  async close(session: string): Promise<void> {
    const lane = await this.#lanes.get(session)
    if (lane) await this.#close(lane, 'closed')
  }
  /** Refuses new turns, stops those that run, and closes every session. */
  async stop(limitMs = STOP_MS): Promise<void> {
    this.#stopped = true
    const opened = await Promise.allSettled(this.#lanes.values())
    for (const lane of this.#busy.values()) lane.halt(new Halt('interrupted', 'the host shuts down'))
    for (const lane of opened) if (lane.status === 'fulfilled') void this.#close(lane.value, 'shutdown')
    const all = Promise.all(this.#closing.values())
    await within(limitMs, all, () => new Error(`${this.#closing.size} sessions did not end within ${limitMs} ms`)).catch((error: unknown) => { this.#ports.log.warn(messageOf(error)) })
  }

  // ---- who may run what

  #order(input: RunInput, by: string | undefined): Order {
    this.#assertRunning()
    if (typeof input?.prompt !== 'string' || input.prompt.trim() === '') throw new HarnessError('usage', `a prompt must be a text that is not empty, received ${show(input?.prompt)}`)
    for (const activity of enclosing()) {
      if (activity instanceof TurnActivity && activity.session === input.session) throw new HarnessError('session_busy', `session "${input.session}": this prompt comes from inside its own turn, which can't wait for itself; let a stop handler continue the turn, or prompt from a timer`)
    }
    const { prompt, maxSteps, signal, parent, mode = 'default' } = input
    if (maxSteps !== undefined && !(Number.isInteger(maxSteps) && maxSteps > 0)) throw new HarnessError('usage', `maxSteps must be a positive integer, received ${show(maxSteps)}`)
    if (!STRICTEST_FIRST.includes(mode)) throw new HarnessError('usage', `mode must be one of ${STRICTEST_FIRST.join(', ')}, received ${show(mode)}`)
    const above = parent && this.#ports.approvals.person(parent.session)
    if (by !== undefined) this.#assertAnswers(by, input.approver ? 'an approver' : above || mode === 'default' || mode === 'plan' ? undefined : `mode "${mode}"`)
    return {
      prompt, maxSteps, signal,
      source: input.source ?? (parent ? { kind: 'agent', id: parent.session } : { kind: 'user' }),
      model: nameOf(this.#ports.models.pick(input.model ?? this.#ports.config().model)),
      mode: above ? stricter(above.mode, input.mode ?? above.mode) : mode,
      purse: new Purse(parent && this.purseOf(parent.session)),
      approver: input.approver ?? above?.approver,                    // who is asked for the outer turn is asked for the inner one
    }
  }
  /** Whether a call may run is the user's to say, unless the config names the plugin. */
  #assertAnswers(plugin: string, how: string | undefined): void {
    if (how === undefined || this.#ports.config().approvers.includes(plugin)) return
    throw new HarnessError('usage', `plugin "${plugin}" may not answer for the user: it began a turn with ${how} of its own; agent.approvers in the config names the plugins that may`)
  }
  #assertRunning(): void {
    if (this.#stopped) throw new HarnessError('aborted', 'the host shuts down and takes no new prompt')
  }

  // ---- open sessions

  #start(lane: Lane, order: Order): OwnRun {
    clearTimeout(this.#resting.get(lane))
    this.#resting.delete(lane)
    this.#busy.set(lane.session.id, lane)
    const run = lane.run(order)
    const ended = run.result.catch((error: unknown) => { this.#ports.log.error(`session "${lane.session.id}": ${messageOf(error)}`) })
    void ended.then(result => {
      const left = lane.takeSteering()                                   // came too late for that turn
      if (result?.reason !== 'aborted' && !this.#stopped) for (const prompt of left) this.#start(lane, { ...order, ...prompt, purse: new Purse(), signal: undefined })
      this.#rest(lane)
    })
    return run
  }
  #rest(lane: Lane): void {
    if (lane.busy) return
    this.#busy.delete(lane.session.id)
    for (const follower of this.#followers.get(lane.session.id) ?? []) follower.rest()
    if (lane.closing) return
    this.#resting.set(lane, setTimeout(() => { void this.#close(lane, 'closed') }, REST_MS).unref())
    if (this.#resting.size > MAX_RESTING) for (const [longest] of this.#resting) { void this.#close(longest, 'closed'); break }
  }

  #lane({ session, parent, ephemeral, cwd }: RunInput): Promise<Lane> {
    const kept = this.#storeOf(ephemeral)
    if (session !== undefined) return this.#open(session, () => this.#resume(session, kept))
    const id = newSessionId()
    if (ephemeral) this.#ephemeral.add(id)
    return this.#open(id, () => this.#create(kept, { id, cwd: this.#workspace(cwd, parent?.session), ...(parent && { parent: parent.session }), depth: parent ? parent.depth + 1 : 0 }))
  }
  #storeOf(ephemeral = false): SessionStore { return ephemeral ? this.#options.memoryStore : this.#options.store }
  #workspace(cwd: string | undefined, parent: string | undefined): string {
    const folder = cwd ?? this.#busy.get(parent ?? '')?.session.cwd ?? this.#options.cwd
    if (folder === undefined || !isAbsolute(folder)) throw new HarnessError('usage', `cwd must be the absolute path of the workspace of a new session, received ${show(folder)}`)
    return folder
  }
  async #create(store: SessionStore, header: SessionHeader): Promise<Lane> { return this.#openLane(store, await store.create(header), 'new') }
  async #resume(id: string, store: SessionStore): Promise<Lane> {
    const writer = await store.open(id)
    return this.#openLane(store, writer, writer.events.length === 1 ? 'new' : isFreshFork(writer) ? 'fork' : 'resume')
  }
  #openLane(store: SessionStore, writer: SessionWriter, opened: Opened): Lane {
    const tell = (event: RunEvent) => { for (const follower of this.#followers.get(writer.id) ?? []) follower.push(event) }
    return new Lane(this.#ports, new Session(writer, () => store.outputDir(writer.id)), opened, tell)
  }
  /** The lane of a session, opened by whoever is first; one that is closing is waited for and opened again. */
  #open(id: string, open: () => Promise<Lane>): Promise<Lane> {
    const there = this.#lanes.get(id)
    if (there) return there
    const opening = Promise.resolve(this.#closing.get(id)).then(open)
    this.#lanes.set(id, opening)
    opening.catch(() => { this.#lanes.delete(id) })                     // its callers get the reason
    return opening
  }
  #close(lane: Lane, reason: Closed): Promise<void> {
    const { id } = lane.session
    clearTimeout(this.#resting.get(lane))
    this.#resting.delete(lane)
    if (lane.closing) return this.#closing.get(id) ?? Promise.resolve()
    this.#lanes.delete(id)
    this.#ephemeral.delete(id)
    const closed = lane.close(reason)
      .catch((error: unknown) => { this.#ports.log.error(`session "${id}" could not be closed: ${messageOf(error)}`) })
      .finally(() => { if (this.#closing.get(id) === closed) this.#closing.delete(id) })
    this.#closing.set(id, closed)
    return closed
  }
}

/** A fork that has had no turn of its own. */
function isFreshFork({ events: [header, ...events] }: SessionWriter): boolean {
  const fork = header?.type === 'session' ? header.forkOf : undefined
  return fork !== undefined && !events.some(event => event.type === 'turn-start' && event.seq > fork.seq)
}

const STRICTEST_FIRST: readonly Mode[] = ['plan', 'default', 'accept-edits', 'yes']
/** A turn that another started is never let through more than that one. */
const stricter = (a: Mode, b: Mode): Mode => STRICTEST_FIRST.indexOf(a) < STRICTEST_FIRST.indexOf(b) ? a : b

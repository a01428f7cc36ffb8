/**
 * One conversation with whoever hosts it: which session, which model and mode, and a way back when the host goes away. Knows no terminal and no key.
 *
 *   no session ──first prompt or command──▶ session ──/new──▶ no session        /continue, --session: another session
 *
 * Invariants: a prompt is sent once, or it is said that it is not known; what the log holds survives the host.
 */
import { addUsage, NO_USAGE } from '../../agent/cost.js'
import type { Approver, Mode, RunEvent, RunResult } from '../../agent/services.js'
import type { SessionEvent } from '../../agent/session-events.js'
import type { Usage } from '../../agent/vocabulary.js'
import { HarnessError } from '../../errors.js'
import type { HeldFile } from '../../loader/held-changes.js'
import type { Client, RunHandle } from '../client.js'

export interface ConversationOptions {
  readonly client: Client
  readonly cwd: string
  readonly session: string | undefined
  readonly model: string | undefined
  readonly mode: Mode | undefined
  /** Finds a host anew. */
  connect(): Promise<Client>
  /** Says something about the conversation itself. */
  note(message: string): void
}
export interface Cost { readonly usage: Usage; readonly turns: number; /** Of tasks that its turns started in sessions of their own. */ readonly inside: Usage }

export class Conversation {
  readonly #options: ConversationOptions
  #client: Client
  session: string | undefined
  model: string | undefined
  mode: Mode
  /** The model that answered last, and what the turns of this conversation have cost so far. */
  answered: string | undefined
  spent: number | undefined
  #running: RunHandle | undefined

  constructor(options: ConversationOptions) {
    this.#options = options
    this.#client = options.client
    this.session = options.session
    this.model = options.model
    this.mode = options.mode ?? 'default'
  }
  get client(): Client { return this.#client }
  get busy(): boolean { return this.#running !== undefined }

  /** One turn to its end. Undefined when its end is not known: the host went away meanwhile, which `lost` is told before anybody else. */
  async turn(prompt: string, approver: Approver | undefined, see: (event: RunEvent) => void, lost: () => void): Promise<RunResult | undefined> {
    const { cwd } = this.#options
    const handle = this.#running = await this.#again(client => client.run({ prompt, session: this.session, cwd, model: this.model, mode: this.mode }, approver))
    this.session = handle.session
    try {
      for await (const event of handle.events) {
        this.#learn(event)
        see(event)
      }
      return await handle.result
    } catch (error) {
      if (!isGone(error)) throw error
      lost()
      this.#options.note('the daemon went away while the turn ran; what was done is in the session')
      await this.#reconnect()
      return undefined
    } finally { this.#running = undefined }
  }
  #learn(event: RunEvent): void {
    if (event.type === 'request') this.answered = event.model
    if (event.type === 'turn-end' && event.usage.cost !== undefined) this.spent = (this.spent ?? 0) + event.usage.cost
  }
  /** Stops the turn that runs. */
  abort(): void { this.#running?.abort('stopped by the user') }
  /** Hands words to the turn that runs; false when it is over. */
  async steer(prompt: string): Promise<boolean> { return this.session !== undefined && await this.#client.steer(this.session, prompt) !== undefined }

  /** Runs a command of a plugin; what it has to say, and a prompt to send. */
  async command(name: string, args: string, signal: AbortSignal): Promise<{ readonly text?: string | undefined; readonly prompt?: string | undefined }> {
    const outcome = await this.ask(client => client.command({ name, args, session: this.session, cwd: this.#options.cwd }, signal))
    this.session = outcome.session
    return outcome
  }
  /** Asks the host something that may be asked twice. */
  ask<T>(question: (client: Client) => Promise<T>): Promise<T> { return this.#again(question) }

  async events(): Promise<readonly SessionEvent[]> {
    const { session } = this
    return session === undefined ? [] : (await this.ask(client => client.session(session))).events
  }
  /** What this session has cost, from its log, and the sessions below it. */
  async cost(): Promise<Cost> {
    const own = (await this.events()).flatMap(event => event.type === 'turn-end' ? [event.usage] : [])
    const all = await this.ask(client => client.sessions())
    let inside = NO_USAGE
    const below = new Set(this.session === undefined ? [] : [this.session])
    for (let grown = true; grown;) {
      grown = false
      for (const { id, parent } of all) {
        if (parent === undefined || !below.has(parent) || below.has(id)) continue
        below.add(id)
        grown = true
        for (const event of (await this.ask(client => client.session(id))).events) if (event.type === 'turn-end') inside = addUsage(inside, event.usage)
      }
    }
    return { usage: own.reduce(addUsage, NO_USAGE), turns: own.length, inside }
  }
  /** Changes of what runs here that a tool may have made, and that wait for a yes. */
  async held(): Promise<readonly HeldFile[]> { return (await this.ask(client => client.status())).held }
  async close(): Promise<void> { await this.#client.close() }

  async #again<T>(question: (client: Client) => Promise<T>): Promise<T> {
    try { return await question(this.#client) } catch (error) {
      if (!isGone(error)) throw error
      if (wasSent(error)) {
        await this.#reconnect()
        throw new HarnessError('daemon_missing', 'the daemon went away while it was asked, so it is not known whether it heard; look at the session, then ask again', { cause: error })
      }
      await this.#reconnect()
      return question(this.#client)
    }
  }
  async #reconnect(): Promise<void> {
    if (this.#client.where !== 'daemon') return
    await this.#client.close()
    this.#client = await this.#options.connect()
    this.#options.note(this.#client.where === 'daemon' ? 'connected to the daemon again' : 'no daemon runs any more: this process hosts the conversation from here on')
  }
}

/** Nobody is there, the connection broke, or another daemon with another token has come. */
function isGone(error: unknown): boolean {
  const { code, message = '' } = (error ?? {}) as NodeJS.ErrnoException
  return ['ENOENT', 'ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'daemon_missing'].includes(code ?? '') || message === 'aborted' || message.includes('the token is missing or wrong') || message.includes('takes no new one')
}
/** It may have been heard before the connection broke. */
const wasSent = (error: unknown): boolean => ['ECONNRESET', 'EPIPE'].includes((error as NodeJS.ErrnoException).code ?? '') || (error as Error).message === 'aborted'

/**
 * The listener beside the socket: follows `server.tcp` of the config in force. The new one is opened before the old one is closed; where that fails, the old one stays.
 * Knows no route. Clients of a listener that is closed lose their connection, never their turn.
 */
import type { Server } from 'node:http'
import { HarnessError, messageOf } from '../errors.js'
import type { App } from '../app.js'
import type { Logger } from '../kernel/log.js'

type TcpAddress = NonNullable<App['tcp']>

export class TcpDoor {
  readonly #listen: (where: TcpAddress) => Promise<Server>
  readonly #log: Logger
  #open: { readonly where: TcpAddress; readonly server: Server } | undefined
  #problem: string | undefined
  #moving: Promise<void> = Promise.resolve()

  constructor(listen: (where: TcpAddress) => Promise<Server>, log: Logger) { this.#listen = listen; this.#log = log }

  get server(): Server | undefined { return this.#open?.server }
  /** For people; undefined when there is nothing to say. */
  get state(): string | undefined { return [this.#open && named(this.#open.where), this.#problem].filter(Boolean).join('; ') || undefined }

  /** At the start: `config_invalid` when it can not be listened on. */
  async open(where: TcpAddress | undefined): Promise<void> {
    if (!where) return
    try { this.#open = { where, server: await this.#listen(where) } } catch (error) {
      throw new HarnessError('config_invalid', `${refused(where, error)}; choose another, or leave server.tcp out`, { cause: error })
    }
  }
  /** After an edit of the config. Never rejects. */
  follow(where: TcpAddress | undefined): Promise<void> { return this.#moving = this.#moving.then(() => this.#move(where)) }
  async #move(where: TcpAddress | undefined): Promise<void> {
    const before = this.#open
    this.#problem = undefined
    if (where?.host === before?.where.host && where?.port === before?.where.port) return
    try { this.#open = where && { where, server: await this.#listen(where) } } catch (error) {
      this.#problem = `${refused(where!, error)}${before ? `; it goes on with ${named(before.where)}` : ''}`
      this.#log.error(this.#problem)
      return
    }
    this.#log.info(where ? `listens on ${named(where)} as well` : `does not listen on ${named(before!.where)} any more`)
    before?.server.close()
    before?.server.closeAllConnections()
  }
}

const named = ({ host, port }: TcpAddress): string => `${host.includes(':') ? `[${host}]` : host}:${port}`
const refused = ({ host, port }: TcpAddress, error: unknown): string => `server.tcp: ${host} port ${port} can not be listened on (${messageOf(error)})`

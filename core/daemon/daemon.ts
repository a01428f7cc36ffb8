/**
 * One daemon: the lock, the app, the server, and the order in which they begin and end.
 * Begin: lock → folder → app → token → socket. End: no new requests → turns → plugins → socket and token → lock. Whoever has the lock may clear what a crash left.
 */
import { rm } from 'node:fs/promises'
import type { Server as HttpServer } from 'node:http'
import { HarnessError } from '../errors.js'
import { acquireLock } from '../kernel/lock.js'
import type { App } from '../app.js'
import { securedFolder, writeToken, type Endpoint } from './endpoint.js'
import { listen, routes } from './server.js'

export interface Daemon {
  readonly endpoint: Endpoint
  /** Resolves when a client has asked it to stop. */
  readonly asked: Promise<void>
  stop(): Promise<void>
}

/** Starts the daemon of `endpoint`; `daemon_running` when another process has its lock. */
export async function startDaemon(endpoint: Endpoint, startApp: () => Promise<App>): Promise<Daemon> {
  await securedFolder(endpoint)
  const lock = await acquireLock(endpoint.lock)
  if (!lock) throw new HarnessError('daemon_running', 'a daemon already runs for this config; see "hx status"')
  let app: App | undefined, server: HttpServer | undefined
  const stop = async () => {
    const closed = server && new Promise<void>(done => { server!.close(() => { done() }) })
    await app?.stop()
    server?.closeAllConnections()
    await closed
    await Promise.all([endpoint.socket, endpoint.token].map(file => rm(file, { force: true })))
    await lock.release()
  }
  let ask!: () => void
  const asked = new Promise<void>(resolve => { ask = resolve })
  try {
    app = await startApp()
    await rm(endpoint.socket, { force: true })
    server = await listen(routes(app, await writeToken(endpoint), ask), endpoint.socket)
  } catch (error) {
    await stop()
    throw error
  }
  let stopping: Promise<void> | undefined
  return { endpoint, asked, stop: () => stopping ??= stop() }
}

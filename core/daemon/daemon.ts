/**
 * One daemon: the lock, the app, the server, and the order in which they begin and end.
 * Begin: folder → lock → app → token → socket → mark. End: no new requests → turns → plugins → socket, token and mark → lock. Whoever has the lock may clear what a crash left.
 */
import { rm } from 'node:fs/promises'
import type { Server as HttpServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '../errors.js'
import { acquireLock } from '../kernel/lock.js'
import type { App } from '../app.js'
import { securedFolder, writeToken, type Endpoint } from './endpoint.js'
import { clearMark, readMark, writeMark, type RunMark } from './run-mark.js'
import { listen, listenTcp, routes } from './server.js'
import { VERSION } from '../version.js'

/** A client that looks whether the lock is free has it for a moment. */
const LOOKED_MS = 50

export interface Daemon {
  readonly endpoint: Endpoint
  /** Resolves when a client has asked it to stop. */
  readonly asked: Promise<void>
  stop(): Promise<void>
}

/** Starts the daemon of `endpoint`; `daemon_running` when another process has its lock. `startApp` is told of the one before, when that was not stopped. */
export async function startDaemon(endpoint: Endpoint, how: Pick<RunMark, 'trust' | 'foreground'>, startApp: (crashed: RunMark | undefined) => Promise<App>): Promise<Daemon> {
  await securedFolder(endpoint)
  const lock = await acquireLock(endpoint.lock) ?? await sleep(LOOKED_MS).then(() => acquireLock(endpoint.lock))
  if (!lock) throw new HarnessError('daemon_running', 'a daemon already runs for this config; see "hx status"')
  const servers: HttpServer[] = []
  let app: App | undefined
  const stop = async () => {
    const closed = servers.map(server => new Promise<void>(done => { server.close(() => { done() }) }))
    await app?.stop()
    for (const server of servers) server.closeAllConnections()
    await Promise.all(closed)
    await Promise.all([rm(endpoint.socket, { force: true }), rm(endpoint.token, { force: true }), clearMark(endpoint)])
    await lock.release()
  }
  let ask!: () => void
  const asked = new Promise<void>(resolve => { ask = resolve })
  try {
    app = await startApp(await readMark(endpoint))
    await rm(endpoint.socket, { force: true })
    const http = routes(app, await writeToken(endpoint), ask)
    servers.push(await listen(http, endpoint.socket))
    if (app.tcp) servers.push(await listenTcp(http, app.tcp))
    await writeMark(endpoint, { pid: process.pid, version: VERSION, ...how })
  } catch (error) {
    await stop()
    throw error
  }
  let stopping: Promise<void> | undefined
  return { endpoint, asked, stop: () => stopping ??= stop() }
}

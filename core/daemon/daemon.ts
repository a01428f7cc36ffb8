/**
 * One daemon: the lock, the app, the server, and the order in which they begin and end.
 * Begin: folder → lock → app → token → socket → mark. End: no new requests → turns → plugins → socket, token and mark → lock. Whoever has the lock may clear what a crash left.
 */
import { rm } from 'node:fs/promises'
import type { Server as HttpServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '../errors.js'
import { acquireLock } from '../kernel/lock.js'
import type { Logger } from '../kernel/log.js'
import type { App } from '../app.js'
import { readToken, securedFolder, writeToken, type Endpoint } from './endpoint.js'
import { keepMet } from './keep-met.js'
import { clearMark, readMark, recentStrikes, writeMark, type RunMark } from './run-mark.js'
import { watchMemory } from './memory.js'
import { idle, listen, listenTcp, routes } from './server.js'
import { TcpDoor } from './tcp-door.js'
import { VERSION } from '../version.js'
import { startWatchdog } from './watchdog.js'

/** A client that looks whether the lock is free has it for a moment. */
const LOOKED_MS = 50
/** How long answers that are under way may take when all turns have ended: a client that reads has its last word long before. */
const LAST_WORDS_MS = 1000
/** How long turns may go on when memory is nearly used up. */
const EXHAUSTED_MS = 30_000

export interface Daemon {
  readonly endpoint: Endpoint
  /** Resolves when a client has asked it to stop. */
  readonly asked: Promise<void>
  /** Resolves, with why, when it can not go on: memory is nearly used up. It takes no new turn any more. */
  readonly exhausted: Promise<string>
  /** `crashed`: it is to be started again by the next client. */
  stop(how?: { readonly crashed: boolean }): Promise<void>
}

/** Starts the daemon of `endpoint`; `daemon_running` when another process has its lock. `startApp` is told of the one before, when that was not stopped, and tells of the app before its first plugin. */
export async function startDaemon(endpoint: Endpoint, how: Pick<RunMark, 'trust' | 'foreground'>, log: Logger, startApp: (crashed: RunMark | undefined, begins: (app: App) => void) => Promise<App>): Promise<Daemon> {
  await securedFolder(endpoint)
  const lock = await acquireLock(endpoint.lock) ?? await sleep(LOOKED_MS).then(() => acquireLock(endpoint.lock))
  if (!lock) throw new HarnessError('daemon_running', 'a daemon already runs for this config; see "hx status"')
  let app: App | undefined, door: TcpDoor | undefined, watching: (() => Promise<void>) | undefined, unwatch: (() => void) | undefined, leave: (() => Promise<void>) | undefined
  const sockets: HttpServer[] = []                            // the newest listens; those before it had their path taken away
  const servers = () => [...sockets, door?.server].filter(server => server !== undefined)
  const over = new AbortController(), way = { leaving: false, over: over.signal }
  const stop = async ({ crashed = false } = {}) => {
    await leave?.()
    const closed = servers().map(server => new Promise<void>(done => { server.close(() => { done() }) }))
    await app?.stop()
    over.abort()
    unwatch?.()
    await watching?.()
    const ended = () => Promise.race([Promise.all(closed), sleep(LAST_WORDS_MS)])
    await ended()
    for (const server of servers()) server.closeAllConnections()
    await ended()                                              // a connection that came while this process broke is none the server knows of, and it would wait for its client
    await Promise.all([rm(endpoint.socket, { force: true }), rm(endpoint.token, { force: true }), !crashed && clearMark(endpoint)])
    await lock.release()
  }
  let ask!: () => void
  const asked = new Promise<void>(resolve => { ask = resolve })
  let exhaust!: (why: string) => void
  const exhausted = new Promise<string>(resolve => { exhaust = resolve })
  try {
    app = await startApp(await readMark(endpoint), begun => { watching = startWatchdog(begun, endpoint) })
    await rm(endpoint.socket, { force: true })
    await writeToken(endpoint)
    const host = app, http = routes(host, () => readToken(endpoint), ask, async () => ({ connections: await connections(servers()), restarts: (await recentStrikes(endpoint)).length, tcp: door?.state }), way)
    const answer = async () => { sockets.push(await listen(http, endpoint.socket)) }, mark = () => writeMark(endpoint, { pid: process.pid, version: VERSION, ...how })
    await answer()
    door = new TcpDoor(where => listenTcp(http, where), log)
    await door.open(host.tcp)
    host.on(({ type }) => { if (type === 'config-applied') void door!.follow(host.tcp) })
    unwatch = watchMemory(sentence => {
      way.leaving = true
      log.error(`memory is nearly used up: ${sentence}; no new turn is taken, and the process ends when those that run have ended`, { turns: host.turns() })
      void idle(host, EXHAUSTED_MS).then(() => { exhaust(sentence) })
    })
    await mark()
    leave = keepMet(endpoint, { mark, listen: async () => { sockets.at(-1)!.close(); await answer() } }, log)      // closed first: closing removes whatever has its path
  } catch (error) {
    await stop()
    throw error
  }
  let stopping: Promise<void> | undefined
  return { endpoint, asked, exhausted, stop: how => stopping ??= stop(how) }
}

const connections = async (servers: readonly HttpServer[]): Promise<number> =>
  (await Promise.all(servers.map(server => new Promise<number>(resolve => { server.getConnections((error, count) => { resolve(error ? 0 : count) }) })))).reduce((all, count) => all + count, 0)

/**
 * Finds who answers a command: the running daemon of this config, or this process. The in-process host is loaded only when it is needed.
 */
import { existsSync, realpathSync } from 'node:fs'
import { resolve } from 'node:path'
import type { AppOptions } from '../app.js'
import type { Level } from '../kernel/log.js'
import { endpointOf, type Endpoint } from '../daemon/endpoint.js'
import { HarnessError } from '../errors.js'
import { locate, shipped, type Located } from '../loader/locate.js'
import { places, type Places } from '../places.js'
import type { SessionStore } from '../agent/session-events.js'
import type { Client, DaemonClient, OwnClient } from './client.js'
import type { Io } from './io.js'

/** How a command changes the host that it runs in; a daemon can not be changed so, and is left alone. */
export interface HostChanges {
  /** Files of plugins to load as well. */
  readonly plugins?: readonly string[] | undefined
  /** Ids to leave out. */
  readonly without?: readonly string[] | undefined
  /** The shipped config alone. */
  readonly safe?: boolean | undefined
  /** A host of this process follows edits, like a daemon. Another way to run it, not another host. */
  readonly watch?: boolean | undefined
  /** A person who doesn't trust the folder's config gets the user's own layer, instead of a refusal. */
  readonly orOwn?: boolean | undefined
  /** Nobody is asked: what a person types is meant for somebody else. */
  readonly unasked?: boolean | undefined
}
export interface Found { readonly places: Places; readonly located: Located; readonly cwd: string; readonly endpoint: Endpoint }

/** Looks at names only; reads no file of the folder. */
export function find(io: Io, safe = false, config = io.globals.config): Found {
  const { cwd } = io
  const here = places(io.env)
  const located = safe ? shipped(here) : locate({ flag: config, env: io.env, cwd, places: here })
  if (located.note !== undefined) io.note(io.paintNote('yellow', `hx: ${located.note}`))
  return { places: here, located, cwd, endpoint: endpointOf(here.run, realpathSync(located.file)) }
}

export async function connect(io: Io, changes: HostChanges = {}): Promise<OwnClient | DaemonClient> {
  const found = find(io, changes.safe)
  const changed = (changes.plugins?.length ?? 0) + (changes.without?.length ?? 0) > 0 || changes.safe === true
  const daemon = changed ? undefined : await daemonOf(io, found) ?? await revived(io, found)
  if (daemon) return daemon
  const options = await appOptions(io, found, { ...changes, orOwn: true })
  const [{ App }, { inProcess }] = await Promise.all([import('../app.js'), import('./in-process.js')])
  return inProcess(await App.start({ ...options, watch: changes.watch }))
}
/** One that crashed left its mark; most starts find none, and don't load what brings a daemon up. */
const revived = async (io: Io, found: Found): Promise<DaemonClient | undefined> =>
  existsSync(found.endpoint.mark) ? (await import('./launch.js')).revive(io, found) : undefined
/** Does `work` with whoever answers, and lets go of it. */
export async function withClient<T>(io: Io, changes: HostChanges, work: (client: Client) => Promise<T>): Promise<T> {
  const client = await connect(io, changes)
  try { return await work(client) } finally { await client.close() }
}
/** Where sessions are kept: no config and no plugin is needed for that. */
export async function sessionStore(io: Io, told?: (message: string) => void): Promise<SessionStore> {
  const [{ FileSessionStore }, { Log }] = await Promise.all([import('../agent/session-store-file.js'), import('../kernel/log.js')])
  const log = new Log()
  log.sink(io.logSink())
  return new FileSessionStore({ folder: places(io.env).sessions, report: told ?? ((message, level) => { log.write(level, message) }) })
}
/** The running daemon of this config, or undefined. */
export const runningDaemon = (io: Io): Promise<DaemonClient | undefined> => daemonOf(io, find(io))

/** The same for a config that was found. `anyVersion`: also one that speaks another protocol, which can be asked to stop and nothing else. */
export async function daemonOf(io: Io, { endpoint }: Found, { anyVersion = false } = {}): Promise<DaemonClient | undefined> {
  if (!existsSync(endpoint.socket)) return undefined
  const { connectDaemon } = await import('./socket-client.js')
  return connectDaemon(endpoint, { anyVersion, note: message => { io.note(io.paintNote('yellow', `hx: ${message}`)) } })
}

/** Asks for trust first. `least` is from which level on the host's log is shown here, without -q and -v; a warning when left out, and nothing where nobody looks. */
export async function appOptions(io: Io, asked: Found, changes: HostChanges = {}, least: (() => Level) | 'nothing' = () => 'warn'): Promise<AppOptions> {
  const [{ Log }, { admit }, { guardProcess }, { enter }] = await Promise.all([import('../kernel/log.js'), import('./admission.js'), import('./own-process.js'), import('../kernel/async-context.js')])
  guardProcess(io.env)
  const { found, trust } = await admit(io, asked, changes)
  const log = new Log()
  if (least !== 'nothing') {
    const sink = io.logSink(least)
    log.sink(record => { enter(undefined, sink, record) }, io.shown(least))   // the host shows it, whoever logged it: it is no print of a plugin, which a chat and a daemon treat otherwise
  }
  const plugins = (changes.plugins ?? []).map(file => resolve(found.cwd, file))
  const fatal = (error: unknown) => { process.exit(io.fail(error)) }
  return { places: found.places, located: found.located, cwd: found.cwd, env: io.env, log, trust, plugins, without: changes.without, fatal }
}

/**
 * `hx start`, `hx stop` and `hx restart`: the daemon of this config. In the foreground it is this process, for a service manager: stopped by SIGTERM or Ctrl-C, exit 0.
 * In the background it is a process of its own (launch.ts).
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { App } from '../app.js'
import { startDaemon } from '../daemon/daemon.js'
import { turnsAre } from '../daemon/protocol.js'
import { clearMark, readMark } from '../daemon/run-mark.js'
import { HarnessError } from '../errors.js'
import { appOptions, daemonOf, find, runningDaemon, type Found } from './connect.js'
import type { Io } from './io.js'
import { isFree, launch, LOOK_MS, logFile, PIPE } from './launch.js'
import { onSignals } from './signals.js'

/** How long a daemon may take to stop: its own deadline is ten seconds. */
const GONE_MS = 15_000

export async function start(io: Io, options: { foreground?: boolean }): Promise<number> {
  const found = find(io)
  if (options.foreground) return foreground(io, found)
  const running = await runningDaemon(io)
  if (running) {
    await running.close()
    return told(io, found, 'a daemon runs already for this config')
  }
  return background(io, found)
}

async function foreground(io: Io, found: Found): Promise<number> {
  const piped = process.env[PIPE]
  let app: App | undefined
  const options = await appOptions(io, found, {}, () => app?.logLevel ?? 'info')
  const env = piped === undefined ? io.env : { ...JSON.parse(readFileSync(Number(piped), 'utf8')) as NodeJS.ProcessEnv, ...io.env }
  delete process.env[PIPE]
  const signals = onSignals()
  const stopped = new Promise<void>(resolve => { signals.first = () => { resolve() } })
  let fatal!: (error: unknown) => void
  const broken = new Promise<never>((_, reject) => { fatal = reject })
  broken.catch(() => {})                                     // it may break before anybody waits for it
  try {
    const daemon = await startDaemon(found.endpoint, { trust: io.globals.trust === true, foreground: piped === undefined }, async () => app = await App.start({ ...options, env, watch: true, fatal }))
    io.note(`hx: the daemon of ${found.located.file} listens on ${found.endpoint.socket} (pid ${process.pid})`)
    tellManager(io)
    try {
      if (signals.code === undefined) await Promise.race([stopped, daemon.asked, broken])
    } finally { await daemon.stop() }
    return 0
  } catch (error) {
    if (!(error instanceof HarnessError) || error.code !== 'daemon_running') throw error
    return told(io, found, 'a daemon runs already for this config')
  } finally { signals.off() }
}

/** Under systemd with Type=notify: ready. */
function tellManager(io: Io): void {
  if (!io.env['NOTIFY_SOCKET']) return
  execFile('systemd-notify', ['--ready', `--pid=${process.pid}`], { timeout: 5000 }, error => { if (error) io.note(`hx: the service manager could not be told that the daemon is ready: ${error.message}`) })
}

async function background(io: Io, found: Found, trust = io.globals.trust === true): Promise<number> {
  if (await isFree(found.endpoint.lock)) await clearMark(found.endpoint)      // whoever says "start" forgets the crashes before
  const { daemon, pid } = await launch(io, found, trust)
  await daemon.close()
  return told(io, found, `the daemon of ${found.located.file} is running (pid ${pid}); its log is ${logFile(found)}`)
}

export async function stop(io: Io): Promise<number> {
  const found = find(io)
  const daemon = await daemonOf(io, found, { anyVersion: true })
  if (!daemon) return told(io, found, 'no daemon is running for this config')
  await daemon.stop()
  for (const deadline = performance.now() + GONE_MS; !await isFree(found.endpoint.lock);) {
    if (performance.now() > deadline) throw new HarnessError('internal', `the daemon did not stop within ${GONE_MS / 1000} s; see "hx status"`)
    await sleep(LOOK_MS)
  }
  return told(io, found, 'the daemon has stopped')
}

/** Ends the daemon once its turns have ended, and starts it anew: with this version of hx, this shell's environment, the trust that it had. */
export async function restart(io: Io, options: { now?: boolean }): Promise<number> {
  const found = find(io)
  const daemon = await daemonOf(io, found, { anyVersion: true })
  if (!daemon) return background(io, found)
  const mark = await readMark(found.endpoint)
  const turns = await daemon.stop(!options.now)
  if (turns > 0) io.note(`hx: ${turnsAre(turns)} running; ${options.now ? 'stopped by --now' : 'the daemon takes no new one and waits for the end ("hx restart --now" does not)'}`)
  const signals = onSignals()
  try {
    for (const deadline = performance.now() + GONE_MS; !await isFree(found.endpoint.lock); await sleep(LOOK_MS)) {
      if (signals.code !== undefined) {
        io.note('hx: not waited for; the daemon stops when its turns have ended, and "hx start" starts it anew')
        return signals.code
      }
      if (options.now && performance.now() > deadline) throw new HarnessError('internal', `the daemon did not stop within ${GONE_MS / 1000} s; see "hx logs"`)
    }
  } finally { signals.off() }
  if (mark?.foreground) return told(io, found, 'the daemon has stopped; it ran in the foreground, so whoever started it starts it anew')
  return background(io, found, mark?.trust === true || io.globals.trust === true)
}

function told(io: Io, { located, endpoint }: Found, message: string): number {
  if (io.json) io.line({ config: located.file, socket: endpoint.socket, message })
  else io.note(`hx: ${message}`)
  return 0
}

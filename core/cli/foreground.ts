/**
 * The daemon in this very process: `hx start --foreground`, for a service manager or a person at a terminal, and what launch.ts starts in the background.
 * Stopped by SIGTERM, Ctrl-C or a client: 0. Ended by a mistake that is no plugin's: a crash report, and 1. What it says goes into its log, and to the terminal if there is one.
 */
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { App } from '../app.js'
import { writeCrashReport } from '../daemon/crash-report.js'
import { startDaemon } from '../daemon/daemon.js'
import { keepLog } from '../daemon/keep-log.js'
import { HarnessError, messageOf } from '../errors.js'
import { makeFolder } from '../kernel/folder.js'
import type { Logger } from '../kernel/log.js'
import { VERSION } from '../version.js'
import { appOptions, type Found } from './connect.js'
import type { Io } from './io.js'
import { daemonName, lastWords, logFile, PIPE } from './launch.js'
import { onSignals } from './signals.js'

/** The exit code; undefined when another process is the daemon. */
export async function foreground(io: Io, found: Found): Promise<number | undefined> {
  const piped = process.env[PIPE], alone = piped !== undefined
  delete process.env[PIPE]
  let app: App | undefined
  const level = () => io.globals.verbose ? 'debug' : app?.logLevel ?? 'info'
  const options = await appOptions(io, found, {}, alone ? 'nothing' : level)
  const env = alone ? { ...JSON.parse(readFileSync(Number(piped), 'utf8')) as NodeJS.ProcessEnv, ...io.env } : io.env
  const { log } = options, say = log.part('daemon'), signals = onSignals()
  const stopped = new Promise<string>(resolve => { signals.first = resolve })
  let fatal!: (error: unknown) => void, closeLog = () => {}
  const broken = new Promise<never>((_, reject) => { fatal = reject })
  broken.catch(() => {})                                     // it may break before anybody waits for it
  try {
    const daemon = await startDaemon(found.endpoint, { trust: io.globals.trust === true, foreground: !alone }, say, async (crashed, begins) => {
      makeFolder(found.places.logs)
      closeLog = keepLog(log, { file: logFile(found), least: level, alone })
      if (crashed) say.warn(`the daemon before this one (pid ${crashed.pid}, version ${crashed.version}) ended without being stopped`, { said: lastWords(found) })
      return app = await App.start({ ...options, env, serves: true, watch: true, fatal, begins })
    })
    say.info(`the daemon of ${found.located.file} listens on ${found.endpoint.socket} (pid ${process.pid})`, { version: VERSION, node: process.version, trust: io.globals.trust === true })
    tellManager(io, say)
    let crashed = false
    try {
      if (signals.code === undefined) say.info(`the daemon stops: ${await Promise.race([stopped, daemon.asked.then(() => 'a client asked for it'), daemon.exhausted.then(why => { throw new HarnessError('internal', `memory was nearly used up: ${why}`) }), broken])}`, { turns: app?.turns() })
    } catch (error) {
      crashed = true
      say.error('an error that is no plugin\'s; the process can not be relied on any more', { report: reported(error) })
      throw error
    } finally { await daemon.stop({ crashed }) }
    say.info('the daemon has stopped')
    return 0
  } catch (error) {
    if (error instanceof HarnessError && error.code === 'daemon_running') return undefined
    say.error(messageOf(error))
    throw error
  } finally {
    signals.off()
    closeLog()
  }

  /** Where it is written, or why it is not. */
  function reported(error: unknown): string {
    const facts = { turns: app?.turns(), plugins: app?.plugins().map(({ id, state, version }) => `${id} ${state} ${version}`) }
    try { return writeCrashReport(found.places.logs, { daemon: daemonName(found), error, facts }, log.secrets) } catch (failed) { return messageOf(failed) }
  }
}

/** Under systemd with Type=notify: ready. */
function tellManager(io: Io, say: Logger): void {
  if (!io.env['NOTIFY_SOCKET']) return
  execFile('systemd-notify', ['--ready', `--pid=${process.pid}`], { timeout: 5000 }, error => { if (error) say.warn(`the service manager could not be told that the daemon is ready: ${error.message}`) })
}

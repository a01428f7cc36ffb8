/**
 * `hx start` and `hx stop`: the daemon of this config. In the foreground it is this process, for a service manager: stopped by SIGTERM or Ctrl-C, exit 0.
 * In the background it is a process of its own, with a small environment: what else stands in this one's, keys among it, goes over a pipe and is seen by no other process.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { App } from '../app.js'
import { startDaemon } from '../daemon/daemon.js'
import { HarnessError } from '../errors.js'
import { acquireLock } from '../kernel/lock.js'
import { makeFolder } from '../places.js'
import { appOptions, find, runningDaemon, type Found } from './connect.js'
import type { Io } from './io.js'
import { onSignals } from './signals.js'
import { oneLine } from './terminal.js'

/** How long a daemon may take to answer, and to stop: its own deadline is ten seconds. */
const READY_MS = 30_000, GONE_MS = 15_000
const LOOK_MS = 20
/** Names the pipe to a daemon in the background. */
const PIPE = 'HX_ENV_FD'
const KEPT = /^(PATH|HOME|LANG|LC_\w+|TERM|TMPDIR|USER|LOGNAME|SHELL|TZ|XDG_\w+|HX_\w+|NO_COLOR)$/

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
  const options = await appOptions(io, found)
  const env = piped === undefined ? io.env : { ...JSON.parse(readFileSync(Number(piped), 'utf8')) as NodeJS.ProcessEnv, ...io.env }
  delete process.env[PIPE]
  const signals = onSignals()
  const stopped = new Promise<void>(resolve => { signals.first = () => { resolve() } })
  let fatal!: (error: unknown) => void
  const broken = new Promise<never>((_, reject) => { fatal = reject })
  broken.catch(() => {})                                     // it may break before anybody waits for it
  try {
    const daemon = await startDaemon(found.endpoint, () => App.start({ ...options, env, watch: true, fatal }))
    io.note(`hx: the daemon of ${found.located.file} listens on ${found.endpoint.socket} (pid ${process.pid})`)
    try {
      if (signals.code === undefined) await Promise.race([stopped, daemon.asked, broken])
    } finally { await daemon.stop() }
    return 0
  } catch (error) {
    if (!(error instanceof HarnessError) || error.code !== 'daemon_running') throw error
    return told(io, found, 'a daemon runs already for this config')
  } finally { signals.off() }
}

async function background(io: Io, found: Found): Promise<number> {
  const log = join(makeFolder(found.places.logs), `${basename(found.endpoint.socket, '.sock')}.log`)
  const out = openSync(log, 'a', 0o600)
  const { small, rest } = divided(io.env)
  const { json: _, quiet: __, ...globals } = io.globals
  const flags = ['--config', found.located.file, ...(globals.trust ? ['--trust'] : []), ...(globals.verbose ? ['--verbose'] : [])]
  const child = spawn(process.execPath, ['--max-semi-space-size=8', process.argv[1]!, ...flags, 'start', '--foreground'], {
    detached: true, cwd: dirname(found.located.file), env: { ...small, [PIPE]: '3' }, stdio: ['ignore', out, out, 'pipe'],
  })
  closeSync(out)
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  const pipe = child.stdio[3] as NodeJS.WritableStream
  pipe.on('error', () => {})                                 // it ended before it read; its exit is the news
  pipe.end(JSON.stringify(rest))
  for (const deadline = performance.now() + READY_MS; performance.now() < deadline;) {
    const daemon = await runningDaemon(io)
    if (daemon) {
      await daemon.close()
      child.unref()
      return told(io, found, `the daemon of ${found.located.file} is running (pid ${child.pid}); its log is ${log}`)
    }
    const code = await Promise.race([ended, sleep(LOOK_MS)])
    if (code !== undefined) throw new HarnessError(code === 3 ? 'untrusted' : code === 2 ? 'config_invalid' : 'internal', `the daemon did not start: ${lastLine(log)}`)
  }
  child.kill('SIGKILL')
  throw new HarnessError('internal', `the daemon did not answer within ${READY_MS / 1000} s; see ${log}`)
}

export async function stop(io: Io): Promise<number> {
  const found = find(io)
  const daemon = await runningDaemon(io)
  if (!daemon) return told(io, found, 'no daemon is running for this config')
  await daemon.stop()
  for (const deadline = performance.now() + GONE_MS; !await isFree(found.endpoint.lock);) {
    if (performance.now() > deadline) throw new HarnessError('internal', `the daemon did not stop within ${GONE_MS / 1000} s; see "hx status"`)
    await sleep(LOOK_MS)
  }
  return told(io, found, 'the daemon has stopped')
}

/** The lock is the last thing that a daemon lets go of, however it ends. */
async function isFree(name: string): Promise<boolean> {
  const lock = await acquireLock(name)
  await lock?.release()
  return lock !== undefined
}
function told(io: Io, { located, endpoint }: Found, message: string): number {
  if (io.json) io.line({ config: located.file, socket: endpoint.socket, message })
  else io.note(`hx: ${message}`)
  return 0
}
function divided(env: NodeJS.ProcessEnv): { small: NodeJS.ProcessEnv; rest: NodeJS.ProcessEnv } {
  const entries = Object.entries(env)
  return { small: Object.fromEntries(entries.filter(([name]) => KEPT.test(name))), rest: Object.fromEntries(entries.filter(([name]) => !KEPT.test(name))) }
}
const lastLine = (file: string): string => oneLine(readFileSync(file, 'utf8').trim().split('\n').at(-1)?.replace(/^hx: /, '') ?? '', 400)

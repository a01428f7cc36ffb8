/**
 * Brings a daemon of a config up as a process of its own, with a small environment: what else stands in this one's, keys among it, goes over a pipe and is seen by no other process.
 * One that crashed is brought up again by the next client, a few times; one that was stopped is not.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, renameSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { readMark, strike } from '../daemon/run-mark.js'
import { HarnessError } from '../errors.js'
import { acquireLock } from '../kernel/lock.js'
import { makeFolder } from '../kernel/folder.js'
import type { DaemonClient } from './client.js'
import { daemonOf, type Found } from './connect.js'
import type { Io } from './io.js'
import { oneLine } from './terminal.js'

/** How long a daemon may take to answer. */
const READY_MS = 30_000
export const LOOK_MS = 20
/** Names the pipe to a daemon in the background. */
export const PIPE = 'HX_ENV_FD'
const KEPT = /^(PATH|HOME|LANG|LC_\w+|TERM|TMPDIR|USER|LOGNAME|SHELL|TZ|XDG_\w+|HX_HOME|HX_CONFIG|NO_COLOR)$/

/** What the files of a daemon are called. */
export const daemonName = ({ endpoint }: Pick<Found, 'endpoint'>): string => basename(endpoint.socket, '.sock')
/** Where a daemon writes what it and its plugins say. */
export const logFile = (found: Found): string => join(found.places.logs, `${daemonName(found)}.log`)
/** Where the streams of one in the background lead: what comes here was said before its log was open, or by Node itself when it died. */
const streamFile = (found: Found): string => join(found.places.logs, `${daemonName(found)}.out`)
/** What the daemon before this one left there. */
export const lastWords = (found: Found): string => tailOf(`${streamFile(found)}.1`)

/** Resolves when it answers. Without a pid: another process was faster, or was there. */
export async function launch(io: Io, found: Found, trust: boolean): Promise<{ readonly daemon: DaemonClient; readonly pid: number | undefined }> {
  makeFolder(found.places.logs)
  const streams = streamFile(found)
  try { renameSync(streams, `${streams}.1`) } catch (error) { if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error }
  const out = openSync(streams, 'a', 0o600)
  const { small, rest } = divided(io.env)
  const flags = ['--config', found.located.file, ...(trust ? ['--trust'] : []), ...(io.globals.verbose ? ['--verbose'] : [])]
  const child = spawn(process.execPath, ['--max-semi-space-size=8', process.argv[1]!, ...flags, 'start', '--foreground'], {
    detached: true, cwd: dirname(found.located.file), env: { ...small, [PIPE]: '3' }, stdio: ['ignore', out, out, 'pipe'],
  })
  closeSync(out)
  const ended = once(child, 'exit').then(([code]) => code as number | null)
  const pipe = child.stdio[3] as NodeJS.WritableStream
  pipe.on('error', () => {})                                 // it ended before it read; its exit is the news
  pipe.end(JSON.stringify(rest))
  for (const deadline = performance.now() + READY_MS; performance.now() < deadline;) {
    const daemon = await daemonOf(io, found)
    if (daemon) {
      child.unref()
      return { daemon, pid: child.exitCode === 0 ? undefined : child.pid }
    }
    const code = await Promise.race([ended, sleep(LOOK_MS)])
    if (code === 0) await sleep(LOOK_MS)                     // somebody else's was faster
    else if (code !== undefined) {
      const why = lastSentence(streams)
      if (why === '') throw new HarnessError('storage_failed', `the daemon did not start, and could not write why to "${streams}"; is the disk full? see "hx doctor"`, { place: { file: streams } })
      throw new HarnessError(code === 3 ? 'untrusted' : code === 2 ? 'config_invalid' : 'internal', `the daemon did not start: ${why}`)
    }
  }
  if (child.exitCode === 0) throw await (await import('./socket-client.js')).mute(found.endpoint, READY_MS)
  child.kill('SIGKILL')
  throw new HarnessError('internal', `the daemon did not answer within ${READY_MS / 1000} s; see "hx logs"`)
}

/** Brings up again what crashed. Undefined when nothing did, when it crashed too often, or when its own starter does that. */
export async function revive(io: Io, found: Found): Promise<DaemonClient | undefined> {
  const mark = await readMark(found.endpoint)
  if (!mark || mark.foreground) return undefined
  for (const deadline = performance.now() + READY_MS; !await isFree(found.endpoint.lock); await sleep(10 * LOOK_MS)) {      // another client brings it up, or it is about to stop
    const daemon = await daemonOf(io, found)
    if (daemon ?? performance.now() > deadline) return daemon
  }
  if (!await readMark(found.endpoint)) return undefined      // it was stopped meanwhile, as it should be
  if (!await strike(found.endpoint)) {
    io.note(io.paintNote('yellow', 'hx: the daemon of this config crashed several times within minutes and is not started again; this command runs in a process of its own; see "hx logs", then "hx start"'))
    return undefined
  }
  io.note(io.paintNote('yellow', 'hx: the daemon of this config had crashed and is started again; see "hx logs"'))
  return (await launch(io, found, mark.trust || io.globals.trust === true)).daemon
}

/** The lock is the last thing that a daemon lets go of, however it ends. */
export async function isFree(name: string): Promise<boolean> {
  const lock = await acquireLock(name)
  await lock?.release()
  return lock !== undefined
}

function divided(env: NodeJS.ProcessEnv): { small: NodeJS.ProcessEnv; rest: NodeJS.ProcessEnv } {
  const entries = Object.entries(env)
  return { small: Object.fromEntries(entries.filter(([name]) => KEPT.test(name))), rest: Object.fromEntries(entries.filter(([name]) => !KEPT.test(name))) }
}
const tailOf = (file: string): string => { try { return readFileSync(file, 'utf8').trim().slice(-4000) } catch { return '' } }             // there is none
/** What hx said last; a stack may follow it. */
function lastSentence(file: string): string {
  const lines = tailOf(file).split('\n')
  return oneLine((lines.findLast(line => line.startsWith('hx: ')) ?? lines.at(-1) ?? '').replace(/^hx: /, ''), 400)
}

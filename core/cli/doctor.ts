/**
 * `hx doctor`: looks at what hx needs and has, changes nothing, and says for each finding what to type next. Reads a folder's config only when that is trusted.
 * `ok` and `note` are for information; a `finding` makes exit code 1.
 */
import { accessSync, constants, existsSync, lstatSync, readFileSync, statfsSync, statSync, watch } from 'node:fs'
import { dirname, join } from 'node:path'
import { execFile } from 'node:child_process'
import semver from 'semver'
import { readMark } from '../daemon/run-mark.js'
import { at, messageOf } from '../errors.js'
import { checkConfig } from '../loader/read-config.js'
import { either, trustAll, trustFolders } from '../loader/trust.js'
import { TrustStore, trustStored } from '../loader/trust-store.js'
import { places, type Places } from '../places.js'
import { VERSION } from '../version.js'
import { daemonOf, find, sessionStore, type Found } from './connect.js'
import type { Io } from './io.js'
import { isFree } from './launch.js'
import { onPath, otherHx } from './other-hx.js'
import { counted, oneLine } from './terminal.js'

export interface Check { readonly check: string; readonly state: 'ok' | 'note' | 'finding'; readonly message: string; readonly next?: string | undefined }
const ok = (check: string, message: string): Check => ({ check, state: 'ok', message })
const note = (check: string, message: string, next?: string): Check => ({ check, state: 'note', message, next })
const finding = (check: string, message: string, next: string): Check => ({ check, state: 'finding', message, next })

const LEAST_FREE = 200 * 1024 * 1024, LEAST_FILES = 1024, LEAST_WATCHES = 8192, MOST_SESSIONS = 200, LIMIT_MS = 5000

export async function doctor(io: Io): Promise<number> {
  const here = places(io.env)
  const found = tried('config', () => find(io))
  const checks = [
    node(here), path(io, here), ...folders(here), disk(here), files(), inotify(here), await sandbox(io),
    ...('check' in found ? [found] : [...config(io, found), ...await daemon(io, found)]),
    ...await sessions(io).catch((error: unknown) => [finding('sessions', messageOf(error), `ls -ld ${here.sessions}`)]),
  ]
  const bad = checks.filter(({ state }) => state === 'finding').length
  if (io.json) io.line({ ok: bad === 0, checks })
  else {
    const marks = { ok: io.paint('green', 'ok      '), note: io.paint('yellow', 'note    '), finding: io.paint('red', 'finding ') }
    for (const { check, state, message, next } of checks) io.say(`${marks[state]}${check.padEnd(10)} ${oneLine(message, 400)}${next === undefined ? '' : `\n${' '.repeat(19)}${io.paint('bold', next)}`}`)
    io.say(bad === 0 ? '\nnothing is wrong' : `\n${counted(bad, 'finding')}`)
  }
  return bad === 0 ? 0 : 1
}

function tried<T>(check: string, look: () => T): T | Check {
  try { return look() } catch (error) { return finding(check, messageOf(error), 'hx init') }
}

function node({ installation }: Places): Check {
  const { engines } = JSON.parse(readFileSync(join(installation.root, 'package.json'), 'utf8')) as { engines: { node: string } }
  return semver.satisfies(process.version, engines.node) ? ok('node', `${process.version}, hx ${VERSION}`) : finding('node', `${process.version} is not one that hx ${VERSION} is made for (${engines.node})`, 'install Node 22 or later, then: hx doctor')
}
function path(io: Io, { installation }: Places): Check {
  const other = otherHx(io.env['PATH'], installation.root)
  if (other !== undefined) return finding('path', `another hx comes first on the PATH: ${other}; this one is in ${installation.root}`, 'type -a hx')
  return onPath('hx', io.env['PATH']) ? ok('path', 'hx on the PATH is this one') : note('path', `hx is not on the PATH; this one is in ${installation.root}`, `npm install --global ${installation.root}`)
}
/** What holds keys, sessions and the socket belongs to us alone, and can be written or made. */
function folders({ config, state, run }: Places): Check[] {
  return [config, state, run].flatMap((folder): Check[] => {
    const standing = nearest(folder)
    if (!canWrite(standing)) return [finding('folders', `${folder} can not be ${standing === folder ? 'written' : `made: ${standing} can not be written`}`, 'set HX_HOME to a folder of yours, then: hx doctor')]
    if (standing !== folder) return []
    const { uid, mode } = lstatSync(folder)
    if (process.getuid && uid !== process.getuid()) return [finding('folders', `${folder} belongs to another user`, 'set HX_HOME to a folder of yours, then: hx doctor')]
    return (mode & 0o077) === 0 || (folder === config && (mode & 0o022) === 0) ? [ok('folders', `${folder} is for its owner`)] : [finding('folders', `${folder} is open to others (mode ${(mode & 0o777).toString(8)})`, `chmod 700 ${folder}`)]
  })
}
/** The folder itself, or the first above it that is there. */
const nearest = (folder: string): string => existsSync(folder) ? folder : nearest(dirname(folder))
function canWrite(folder: string): boolean {
  try { accessSync(folder, constants.W_OK | constants.X_OK); return statSync(folder).isDirectory() } catch { return false }      // read-only, or not ours
}
function disk({ state }: Places): Check {
  const folder = nearest(state), { bavail, bsize } = statfsSync(folder), free = bavail * bsize, megabytes = `${Math.floor(free / 1024 / 1024)} MB free`
  return free >= LEAST_FREE ? ok('disk', `${megabytes} for sessions and logs`) : finding('disk', `${megabytes} at ${folder}, where sessions and logs are kept`, `df -h ${folder}`)
}
function files(): Check {
  if (!existsSync('/proc/self/limits')) return note('files', 'the limit of open files can not be read here', 'ulimit -n')
  const limit = Number(/^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? Infinity)
  return limit >= LEAST_FILES ? ok('files', `${limit} may be open`) : finding('files', `only ${limit} files may be open; a daemon with many clients needs ${LEAST_FILES}`, `ulimit -n ${LEAST_FILES}`)
}
function inotify({ installation }: Places): Check {
  try { watch(installation.root).close() } catch (error) { return finding('watching', `files can not be watched (${messageOf(error)}); edits would be looked for by polling`, 'sudo sysctl fs.inotify.max_user_instances=512 fs.inotify.max_user_watches=65536') }
  const limit = (name: string) => { const file = `/proc/sys/fs/inotify/${name}`; return existsSync(file) ? Number(readFileSync(file, 'utf8')) : Infinity }
  const watches = limit('max_user_watches')
  return watches >= LEAST_WATCHES ? ok('watching', 'edits of config and plugins can be followed') : finding('watching', `only ${watches} files may be watched`, 'sudo sysctl fs.inotify.max_user_watches=65536')
}
async function sandbox(io: Io): Promise<Check> {
  if (process.platform !== 'linux') return note('sandbox', 'bubblewrap is a thing of Linux; commands of the agent run with your rights')
  if (!onPath('bwrap', io.env['PATH'])) return note('sandbox', 'bubblewrap (bwrap) is not installed; commands of the agent run with your rights', 'install the package bubblewrap, then: hx doctor')
  const works = await new Promise<boolean>(resolve => { execFile('bwrap', ['--ro-bind', '/', '/', '--unshare-pid', '--', '/bin/true'], { timeout: LIMIT_MS }, error => { resolve(error === null) }) })
  return works ? ok('sandbox', 'bubblewrap works') : note('sandbox', 'bubblewrap is installed and does not work here; commands of the agent run with your rights', 'bwrap --ro-bind / / --unshare-pid -- /bin/true')
}
function config(io: Io, { located, places: here }: Found): Check[] {
  const { file, note: nearly } = located
  const near = nearly === undefined ? [] : [finding('config', nearly, `mv ${/^"([^"]+)"/.exec(nearly)?.[1] ?? ''} ${/rename it to (\S+)/.exec(nearly)?.[1] ?? ''}`)]
  const trust = io.globals.trust ? trustAll : either(trustFolders([here.installation.root, here.config]), trustStored(new TrustStore(here.trust), file))
  if (!trust.allows({ kind: 'config', file })) return [...near, note('config', `${file} is not trusted, so nothing of it was read`, 'hx trust')]
  const { entries, problems } = checkConfig({ located, places: here, env: io.env, trust })
  return [
    ...near, ...problems.map(problem => finding('config', `${at(problem)} ${problem.message}`, 'hx config check')),
    ...entries.filter(entry => entry.enabled && entry.missing).map(entry => finding('config', messageOf(entry.missing), 'hx config check')),
    ...(problems.length === 0 ? [ok('config', `${file} (${located.kind}), ${entries.filter(entry => entry.enabled).length} of ${entries.length} plugins enabled`)] : []),
  ]
}
async function daemon(io: Io, found: Found): Promise<Check[]> {
  const client = await daemonOf(io, found, { anyVersion: true }).catch((error: unknown) => finding('daemon', messageOf(error), 'hx restart --now'))
  if (client && 'check' in client) return [client]
  if (!client) {
    if (!await isFree(found.endpoint.lock)) return [finding('daemon', 'a process has the lock of this config\'s daemon and does not answer on its socket', 'hx logs')]
    const mark = await readMark(found.endpoint)
    return [mark ? finding('daemon', `the last daemon of this config (pid ${mark.pid}) ended without being stopped`, 'hx logs') : note('daemon', 'no daemon runs for this config', 'hx start')]
  }
  try {
    const status = await client.status(), plugins = await client.plugins()
    return [
      status.version === VERSION ? ok('daemon', `pid ${status.pid}, ${status.config.state === 'in force' ? 'config in force' : 'config rejected'}`) : finding('daemon', `the daemon runs ${status.version}, this is ${VERSION}`, 'hx restart'),
      ...(status.config.state === 'rejected' ? [finding('daemon', `the last edit of the config was rejected: ${status.config.problem ?? ''}`, 'hx config check')] : []),
      ...plugins.filter(({ state }) => state === 'failed' || state === 'quarantined').map(({ id, state, reason }) => finding('plugins', `"${id}" is ${state}${reason === undefined ? '' : `: ${reason}`}`, `hx plugins info ${id}`)),
      ...plugins.filter(({ state, lastError }) => state === 'active' && lastError !== undefined).map(({ id, lastError }) => finding('plugins', lastError!, `hx plugins info ${id}`)),
    ]
  } catch (error) { return [finding('daemon', messageOf(error), 'hx restart')] } finally { await client.close() }
}
async function sessions(io: Io): Promise<Check[]> {
  const leftOut: string[] = [], store = await sessionStore(io, message => { leftOut.push(message) })
  const all = await store.list(), newest = all.slice(0, MOST_SESSIONS)
  const damaged = leftOut.map(message => finding('sessions', message, `ls -l ${places(io.env).sessions}`))
  for (const { id } of newest) {
    const lines = await store.read(id).then(({ problems }) => problems.length, (error: unknown) => messageOf(error))
    if (lines !== 0) damaged.push(finding('sessions', `session ${id}: ${typeof lines === 'string' ? lines : `${counted(lines, 'line')} can't be read`}`, `hx sessions show ${id}`))
  }
  return damaged.length > 0 ? damaged : [ok('sessions', `${newest.length === all.length ? counted(all.length, 'session') : `the newest ${newest.length} of ${all.length} sessions`}, no damage`)]
}

/**
 * Where a daemon is met: its socket, token, marks and lock, all named after its config file. Knows no HTTP.
 * The lock decides who is the daemon, never a file; the folder belongs to us alone, or nothing is opened in it.
 */
import { randomBytes } from 'node:crypto'
import { lstatSync, readFileSync, type Stats } from 'node:fs'
import { chmod, lstat, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { HarnessError, messageOf } from '../errors.js'
import { makeFolder } from '../kernel/folder.js'
import { nameDigest } from '../kernel/name-digest.js'

/** Node cuts longer paths silently and listens somewhere else. */
const MAX_SOCKET_PATH = 100
const TOKEN_BYTES = 32

export interface Endpoint {
  readonly folder: string
  readonly socket: string
  readonly token: string
  /** That it serves, and how often it was started after a crash (run-mark.ts). */
  readonly mark: string
  readonly strikes: string
  readonly lock: string
}

/** The endpoint of the daemon of this config file (its real path). */
export function endpointOf(runFolder: string, configFile: string): Endpoint {
  const name = nameDigest(configFile).slice(0, 16)
  const file = (kind: string) => join(runFolder, `${name}.${kind}`)
  return { folder: runFolder, socket: file('sock'), token: file('token'), mark: file('running'), strikes: file('strikes'), lock: `daemon:${configFile}` }
}

/** Refuses a run folder that others could have prepared: a link, another's, or one that group or others may write to. */
export async function securedFolder({ folder, socket }: Endpoint): Promise<void> {
  if (Buffer.byteLength(socket) > MAX_SOCKET_PATH) throw new HarnessError('usage', `the socket path "${socket}" is longer than ${MAX_SOCKET_PATH} bytes, which the system cuts; set XDG_RUNTIME_DIR or HX_HOME to a shorter path`)
  try { makeFolder(folder) } catch (error) { throw new HarnessError('usage', `the run folder "${folder}" can not be made (${messageOf(error)}); set XDG_RUNTIME_DIR or HX_HOME`, { cause: error }) }
  const wrong = notSafe(await lstat(folder))
  if (wrong) throw new HarnessError('usage', `the run folder "${folder}" ${wrong}, so no socket is opened in it; remove it, or set XDG_RUNTIME_DIR or HX_HOME`)
}

const isOurs = ({ uid }: Stats): boolean => !process.getuid || uid === process.getuid()
/** Why others could have prepared this folder. */
const notSafe = (found: Stats): string | undefined =>
  !found.isDirectory() ? 'is not a folder' : !isOurs(found) ? 'belongs to another user' : (found.mode & 0o022) !== 0 ? 'can be written to by others' : undefined

/** Makes the token that every request has to show: 32 random bytes, for the owner alone. */
export async function writeToken({ token }: Endpoint): Promise<void> {
  const secret = randomBytes(TOKEN_BYTES).toString('base64url')
  await rm(token, { force: true })
  await writeFile(token, secret, { mode: 0o600, flag: 'wx' })
  await chmod(token, 0o600)
}
/**
 * The token of the daemon, or undefined when there is none; never one that another user wrote, or that is shown in a folder where others could have put the socket.
 * Read for every request, at once: the file is tiny, and turns in the thread pool take longer than it.
 */
export async function readToken({ folder, token }: Endpoint): Promise<string | undefined> {
  try {
    const found = lstatSync(token)
    if (!found.isFile() || !isOurs(found) || notSafe(lstatSync(folder)) !== undefined) return undefined
    const secret = readFileSync(token, 'utf8').trim()
    return secret.length < TOKEN_BYTES ? undefined : secret
  } catch (error) {
    if (['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined
    throw error
  }
}

/**
 * Reads and writes a file without trusting its path: what was opened is asked where it is, and only then used. So nobody can swap a folder for a link in between.
 * Who is admitted is the caller's `check`, which throws; it gets real paths only. Knows no session and no policy.
 * Linux answers through /proc/self/fd, and a held folder is written through there too. Elsewhere the path is compared with what was opened, by device and inode.
 */
import { constants, existsSync, type Stats } from 'node:fs'
import { access, lstat, mkdir, open, readlink, realpath, rename, stat, unlink, type FileHandle } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import { basename, dirname, join } from 'node:path'

/** Throws when a real path is not admitted. */
export type Check = (real: string) => void

const CHUNK = 256 * 1024
/** Where the system shows what is open; undefined where it doesn't. */
const OPENED = process.platform === 'linux' && existsSync('/proc/self/fd') ? '/proc/self/fd' : undefined
const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY } = constants

/** At most `maxBytes` from `offset` on. `file` is absolute and real. */
export async function readContained(file: string, check: Check, { offset = 0, maxBytes = Infinity }: { offset?: number | undefined; maxBytes?: number | undefined } = {}): Promise<Buffer> {
  const handle = await open(file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)                              // not blocking: a pipe that nobody writes would hold us
  try {
    check(await whereIs(handle, file))
    refuseOther(await handle.stat(), file)
    const chunks: Buffer[] = []
    for (let total = 0; total < maxBytes;) {
      const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafe(Math.min(CHUNK, maxBytes - total)), 0, undefined, offset + total)
      if (bytesRead === 0) break
      chunks.push(buffer.subarray(0, bytesRead))
      total += bytesRead
    }
    return Buffer.concat(chunks)
  } finally {
    await handle.close()
  }
}

/** Makes or replaces a file as a whole; readers see the old one or the new one. Missing folders are made. `file` is absolute and real. */
export async function writeContained(file: string, check: Check, data: string | Uint8Array, { mode }: { mode?: number | undefined } = {}): Promise<void> {
  const folder = await holdFolder(dirname(file), basename(file), check)
  const target = join(folder.path, basename(file)), draft = join(folder.path, `.hx-${randomBytes(6).toString('hex')}.tmp`)
  try {
    const present = await lstatIfAny(target)
    if (present) {
      refuseOther(present, file)
      await access(target, constants.W_OK)                                                        // a rename would pass over a read-only file
    }
    const handle = await open(draft, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode ?? 0o666)
    try {
      await handle.writeFile(data)
      const keep = mode ?? (present && present.mode & 0o7777)
      if (keep !== undefined) await handle.chmod(keep)
      if (present && process.getuid?.() === 0) await handle.chown(present.uid, present.gid)       // root works in somebody's folder: theirs stays theirs
      await handle.sync()
    } finally {
      await handle.close()
    }
    await rename(draft, target)
  } catch (error) {
    await unlink(draft).catch(() => {})                                                           // it may never have been made; the first error is the one that counts
    throw error
  } finally {
    await folder.handle.close()
  }
}

interface Held { readonly handle: FileHandle; /** Leads to the held folder, whatever is swapped. */ readonly path: string }

/** Opens a folder, makes it when it is missing, and holds it. `rest` is what will be reached below: that is what is checked, before anything is made. */
async function holdFolder(folder: string, rest: string, check: Check): Promise<Held> {
  try {
    return await hold(folder, folder, rest, check)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  const parent = await holdFolder(dirname(folder), join(basename(folder), rest), check)
  try {
    const path = join(parent.path, basename(folder))
    await mkdir(path).catch((error: NodeJS.ErrnoException) => { if (error.code !== 'EEXIST') throw error })   // another call may have made it meanwhile
    return await hold(path, folder, rest, check)
  } finally {
    await parent.handle.close()
  }
}
async function hold(path: string, name: string, rest: string, check: Check): Promise<Held> {
  const handle = await open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
  try {
    check(join(await whereIs(handle, name), rest))
    return { handle, path: OPENED === undefined ? name : `${OPENED}/${handle.fd}` }
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** The real path of what is open. */
async function whereIs(handle: FileHandle, path: string): Promise<string> {
  if (OPENED !== undefined) return readlink(`${OPENED}/${handle.fd}`)
  const real = await realpath(path), [opened, there] = [await handle.stat(), await stat(real)]
  if (opened.dev !== there.dev || opened.ino !== there.ino) throw Object.assign(new Error(`"${path}" changed while it was opened`), { code: 'EAGAIN' })
  return real
}
async function lstatIfAny(path: string): Promise<Stats | undefined> {
  try {
    return await lstat(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
function refuseOther(stats: Stats, path: string): void {
  if (stats.isDirectory()) throw Object.assign(new Error(`EISDIR: "${path}" is a directory`), { code: 'EISDIR' })
  if (!stats.isFile()) throw Object.assign(new Error(`EINVAL: "${path}" is not a regular file`), { code: 'EINVAL' })
}

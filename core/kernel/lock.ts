/**
 * A lock between processes of one user and machine that the kernel releases when its process ends, kill -9 included: nothing to clean, nothing to judge stale.
 * Linux: a listening socket in the abstract namespace, whose name exists as long as the socket does (and is seen inside one network namespace only).
 * Elsewhere: `O_EXLOCK` on a lock file, which stays and means nothing by itself. Knows no daemon and no session; a name is any string.
 */
import { constants } from 'node:fs'
import { open } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeFolder } from './folder.js'
import { nameDigest } from './name-digest.js'

export interface Lock {
  /** Lets go. May be called again. */
  release(): Promise<void>
}

/** The lock of that name, or undefined while somebody has it, in this process too. It does not keep the process alive. `folder` is where lock files stand, where there are any. */
export function acquireLock(name: string, folder?: string): Promise<Lock | undefined> {
  const hash = nameDigest(name)
  return process.platform === 'linux' ? listen(`\0hx-${uid()}-${hash}`) : lockFile(folder ?? join(tmpdir(), `hx-${uid()}-locks`), hash)
}

function listen(path: string): Promise<Lock | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer(connection => { connection.destroy() })
    server.once('error', (error: NodeJS.ErrnoException) => error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error))
    server.listen({ path, exclusive: true }, () => {
      server.unref()
      resolve({ release: () => new Promise(done => { server.close(() => { done() }) }) })         // closing one that is closed says so to the callback: it is as released as can be
    })
  })
}

/** From fcntl.h of macOS and the BSDs; Node passes flags on as they are but does not name these. */
const O_EXLOCK = 0x20, O_NONBLOCK = 0x4

async function lockFile(folder: string, hash: string): Promise<Lock | undefined> {
  makeFolder(folder)
  try {
    const handle = await open(join(folder, `${hash}.lock`), constants.O_RDWR | constants.O_CREAT | O_EXLOCK | O_NONBLOCK, 0o600)
    return { release: () => handle.close() }
  } catch (error) {
    if (['EAGAIN', 'EWOULDBLOCK'].includes(String((error as NodeJS.ErrnoException).code))) return undefined
    throw error
  }
}

const uid = (): number => process.getuid?.() ?? 0

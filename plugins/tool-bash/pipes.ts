/**
 * Two real pipes for a child's stdout and stderr. What Node makes itself are sockets, which no program can open again as /dev/stdout or /dev/stderr.
 */
import { execFile } from 'node:child_process'
import { closeSync, constants, openSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

export interface Pipes {
  readonly stdout: Socket
  readonly stderr: Socket
  /** The child's ends; to be closed here once it has them. */
  readonly childEnds: readonly [number, number]
}

const MKFIFO_MS = 5000

/** Named pipes, because Node can make no others; their names are gone when this resolves. */
export async function makePipes(): Promise<Pipes> {
  const folder = await mkdtemp(join(tmpdir(), 'hx-bash-'))
  const names = [join(folder, 'stdout'), join(folder, 'stderr')] as const
  try {
    await promisify(execFile)('mkfifo', ['-m', '600', ...names], { timeout: MKFIFO_MS })
    const [stdout, stderr] = [ends(names[0]), ends(names[1])]
    return { stdout: readable(stdout.read), stderr: readable(stderr.read), childEnds: [stdout.write, stderr.write] }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The reading end first and without waiting: a pipe can only be opened for writing when somebody reads. */
function ends(name: string): { read: number; write: number } {
  const read = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    return { read, write: openSync(name, constants.O_WRONLY) }
  } catch (error) {
    closeSync(read)
    throw error
  }
}
const readable = (fd: number): Socket => new Socket({ fd, readable: true, writable: false })

/**
 * Two real pipes for a child's stdout and stderr. What Node makes itself are sockets, which no program can open again as /dev/stdout or /dev/stderr.
 * Making them takes a process, as long as a shell takes to start: so the pair for the next command is made while this one runs.
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
interface Ends { readonly read: number; readonly write: number }

const MKFIFO_MS = 5000

/** Gives pairs of pipes, and holds one in reserve: open descriptors, nothing that Node would wait for. */
export class PipeSupply {
  #reserve: Promise<readonly [Ends, Ends] | undefined> | undefined
  #closed = false

  /** Undefined where none can be made. */
  async take(): Promise<Pipes | undefined> {
    const reserve = this.#reserve
    this.#reserve = undefined
    const ends = await reserve ?? await made()
    return ends && { stdout: readable(ends[0].read), stderr: readable(ends[1].read), childEnds: [ends[0].write, ends[1].write] }
  }
  /** For the next command. */
  prepare(): void {
    if (!this.#closed) this.#reserve ??= made()
  }
  async close(): Promise<void> {
    this.#closed = true
    const ends = await this.#reserve
    this.#reserve = undefined
    ends?.forEach(close)
  }
}

/** The temporary folder may be full or read-only: that is no failure of the command. */
const made = (): Promise<readonly [Ends, Ends] | undefined> => makeEnds().catch(() => undefined)

/** Named pipes, because Node can make no others; their names are gone when this resolves. */
async function makeEnds(): Promise<readonly [Ends, Ends]> {
  const folder = await mkdtemp(join(tmpdir(), 'hx-bash-'))
  const names = [join(folder, 'stdout'), join(folder, 'stderr')] as const
  try {
    await promisify(execFile)('mkfifo', ['-m', '600', ...names], { timeout: MKFIFO_MS })
    const first = open(names[0])
    try { return [first, open(names[1])] } catch (error) { close(first); throw error }
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The reading end first and without waiting: a pipe can only be opened for writing when somebody reads. */
function open(name: string): Ends {
  const read = openSync(name, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    return { read, write: openSync(name, constants.O_WRONLY) }
  } catch (error) {
    closeSync(read)
    throw error
  }
}
const close = ({ read, write }: Ends): void => { closeSync(read); closeSync(write) }
const readable = (fd: number): Socket => new Socket({ fd, readable: true, writable: false })

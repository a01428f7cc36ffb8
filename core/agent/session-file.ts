/**
 * One session file open for writing. Owns the descriptor and the writer's lock. One `write` a record, so that a kill tears at most the last one.
 * Invariants: the file ends with a whole record after every append, also after one that failed; `events` holds what the file holds.
 * An append that fails takes nothing in and may be tried again, when there is space. A sync that fails is the end of this writer: the kernel may have dropped
 * what it could not write, so only reading the file again tells what is there.
 */
import { closeSync, fdatasync, fdatasyncSync, fsyncSync, ftruncateSync, openSync, rmSync, writeSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { HarnessError, messageOf } from '../errors.js'
import { makeFolder } from '../kernel/folder.js'
import type { Lock } from '../kernel/lock.js'
import type { SessionEvent, SessionEventBody, SessionWriter } from './session-events.js'
import { closed } from './session-id.js'
import { encode, spilledLine } from './session-record.js'

/** none: the kernel writes when it likes (a kill loses nothing, a power failure may). commit: on the disk at each commit. always: before `append` returns. */
export type Durability = 'none' | 'commit' | 'always'

/** The calls that fail when a disk is full or broken. */
export interface Disk {
  write(fd: number, data: Uint8Array, offset: number, length: number, position: number): number
  truncate(fd: number, size: number): void
  sync(fd: number): Promise<void>
  syncNow(fd: number): void
}
export const disk: Disk = { write: writeSync, truncate: ftruncateSync, sync: promisify(fdatasync), syncNow: fdatasyncSync }

/** Larger records stand in a file of their own, so that reading the log stays cheap. */
const SPILL_BYTES = 256 * 1024

export interface Opened { readonly id: string; readonly fd: number; readonly size: number; readonly events: SessionEvent[]; readonly lock: Lock; /** Where large records go. */ readonly records: string; /** Of a new file: puts its name on the disk. */ readonly name?: (() => Promise<void>) | undefined }

export class SessionFile implements SessionWriter {
  readonly id: string
  readonly events: readonly SessionEvent[]
  readonly #events: SessionEvent[]
  readonly #records: string
  readonly #lock: Lock
  readonly #durability: Durability
  readonly #disk: Disk
  readonly #now: () => Date
  #fd: number | undefined
  /** Bytes of whole records; what has been synced of them; whether more than that may stand in the file. */
  #size: number
  #synced: number
  #ragged = false
  #syncing: Promise<void> | undefined
  readonly #name: Opened['name']
  #named: Promise<void> | undefined
  #broken: HarnessError | undefined

  constructor(opened: Opened, options: { durability: Durability; disk: Disk; now: () => Date }) {
    this.id = opened.id
    this.events = this.#events = opened.events
    this.#fd = opened.fd
    this.#size = opened.size
    this.#synced = 0                                                                              // whoever wrote it before may not have synced it
    this.#records = opened.records
    this.#lock = opened.lock
    this.#name = opened.name
    this.#durability = options.durability
    this.#disk = options.disk
    this.#now = options.now
  }

  append(body: SessionEventBody): SessionEvent {
    const fd = this.#writable()
    const { event, line } = encode((this.#events.at(-1)?.seq ?? 0) + 1, this.#now().toISOString(), body)
    try {
      this.#trim(fd)
      this.#write(fd, Buffer.from(`${this.#spill(event, line)}\n`))
    } catch (error) {
      throw new HarnessError('storage_failed', `session "${this.id}" could not be written (${messageOf(error)}); this event is not in it, earlier ones are; make space and try again`, { cause: error })
    }
    if (this.#durability === 'always') this.#syncNow(fd)
    this.#events.push(event)
    return event
  }

  /** One sync serves all who wait for it: who comes while one runs shares the next. */
  async commit(): Promise<void> {
    const fd = this.#writable(), size = this.#size
    if (this.#durability !== 'commit') return
    this.#named ??= this.#name?.()                                                                // both syncs of a new file run at once
    this.#named?.catch(() => {})                                                                  // told below, unless the other fails first
    while (this.#synced < size) {
      await (this.#syncing ??= this.#sync(fd))
      if (this.#broken) throw this.#broken
    }
    await this.#named
  }

  async close(): Promise<void> {
    const fd = this.#fd
    if (fd === undefined) return
    try {
      if (!this.#broken) await this.commit()
    } finally {
      if (this.#fd !== undefined) {                                                               // another close may have come first
        this.#fd = undefined
        try { closeSync(fd) } catch (error) {
          throw new HarnessError('storage_failed', `session "${this.id}": the disk took an error to the end (${messageOf(error)}); open the session again to see what is there`, { cause: error })
        } finally { await this.#lock.release() }                                                   // the descriptor is gone, whatever closing it said
      }
    }
  }

  #writable(): number {
    if (this.#broken) throw this.#broken
    if (this.#fd === undefined) throw closed(this.id)
    return this.#fd
  }

  /** Writes all of it or nothing. */
  #write(fd: number, data: Uint8Array): void {
    this.#ragged = true
    try {
      writeAll(this.#disk, fd, data, this.#size)
    } catch (error) {
      try { this.#trim(fd) } catch { /* it is tried again before the next append, and a reader takes the rest for an unfinished record */ }
      throw error
    }
    this.#size += data.length
    this.#ragged = false
  }
  #trim(fd: number): void {
    if (!this.#ragged) return
    this.#disk.truncate(fd, this.#size)
    this.#ragged = false
  }

  /** The line for the log; a large record is put beside it first, and is there for good before the log speaks of it. */
  #spill(event: SessionEvent, line: string): string {
    if (Buffer.byteLength(line) <= SPILL_BYTES) return line
    const name = `${event.seq}.json`, file = join(this.#records, name)
    const made = makeFolder(this.#records)
    const fd = openSync(file, 'w', 0o600)
    try {
      writeAll(this.#disk, fd, Buffer.from(line), 0)
      if (this.#durability !== 'none') this.#disk.syncNow(fd)
    } catch (error) {
      drop(file)
      throw error
    } finally {
      letGo(fd)
    }
    if (this.#durability !== 'none') for (let folder = this.#records, levels = made ? 3 : 1; levels > 0; levels--, folder = dirname(folder)) syncFolder(folder)
    return spilledLine(event, name)
  }

  async #sync(fd: number): Promise<void> {
    const size = this.#size
    try {
      await this.#disk.sync(fd)
      this.#synced = size
    } catch (error) {
      this.#broken = this.#unconfirmed(error)
    } finally {
      this.#syncing = undefined
    }
  }
  #syncNow(fd: number): void {
    try {
      this.#disk.syncNow(fd)
      this.#synced = this.#size
    } catch (error) {
      throw this.#broken = this.#unconfirmed(error)
    }
  }
  #unconfirmed(error: unknown): HarnessError {
    return new HarnessError('storage_failed', `session "${this.id}": the disk did not confirm what was written (${messageOf(error)}); open the session again to see what is there`, { cause: error })
  }
}

/** Closes what is synced, only read, or given up: the descriptor is gone, and there is nothing to tell of it, whatever closing it says. */
export function letGo(fd: number): void {
  try { closeSync(fd) } catch { /* see above */ }
}

/** Removes what was not to be: the failure that led here is told, and what stays harms nobody. */
export function drop(file: string): void {
  try { rmSync(file, { force: true }) } catch { /* see above */ }
}

/** A full disk first takes a part without an error, then fails. */
export function writeAll(disk: Disk, fd: number, data: Uint8Array, position: number): void {
  for (let done = 0; done < data.length;) {
    const written = disk.write(fd, data, done, data.length - done, position + done)
    if (written === 0) throw new Error('the disk took nothing')
    done += written
  }
}

/** The same, and nothing else waits for it. */
export async function syncFolderLater(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try { await handle.sync() } finally { await handle.close() }
}
/** Makes the names in a folder last: a new file is lost with its folder's entry. */
export function syncFolder(folder: string): void {
  const fd = openSync(folder, 'r')
  try { fsyncSync(fd) } finally { letGo(fd) }
}

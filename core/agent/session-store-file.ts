/**
 * Sessions as files: `<id>.jsonl` in one folder, beside it `<id>.damaged` with what could not be read, and a folder `<id>` with large records and full outputs.
 * Owns names, modes (0700, 0600) and repair. Only `open` repairs, and only under the writer's lock; reading never changes anything.
 * No file of the folder can stop the store: what is no session is left out and told.
 */
import { constants, fsyncSync, lstatSync, openSync, readFileSync, realpathSync, renameSync, fstatSync, chmodSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { HarnessError, messageOf, notStored } from '../errors.js'
import { makeFolder } from '../kernel/folder.js'
import { acquireLock, type Lock } from '../kernel/lock.js'
import type { SessionEvent, SessionEventBody, SessionHeader, SessionProblem, SessionStore, SessionSummary, SessionWriter } from './session-events.js'
import { disk, drop, letGo, SessionFile, syncFolder, syncFolderLater, writeAll, type Disk, type Durability } from './session-file.js'
import { busy, checkName, isSessionId, missing, taken } from './session-id.js'
import { lookOf, SessionIndex, type IndexEntry } from './session-index.js'
import { checkVersion, headerBody, newestFirst, type Unspill } from './session-record.js'
import { closing } from './session-repair.js'
import { scan, type Scan } from './session-scan.js'
import { readSummary } from './session-summary.js'
import { SharedSync } from './shared-sync.js'

export interface FileStoreOptions {
  /** Made when it is missing. */
  readonly folder: string
  /** Read anew for each session that is opened. */
  readonly durability?: Durability | (() => Durability)
  /** Is told of what is no session, once each, as a warning; and what mends itself, for whoever debugs. */
  readonly report?: (message: string, level: 'warn' | 'debug') => void
  readonly disk?: Disk
  readonly now?: () => Date
}

/** How many files are read in one go before others get their turn. */
const LIST_BATCH = 50
/** As much as a record of a turn has. */
const PROBE_BYTES = 4096
/** What says that a record has no file. Anything else (no descriptors, a broken disk) says nothing of the record. */
const NOT_THERE = ['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP']
const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants

export class FileSessionStore implements SessionStore {
  readonly #folder: string
  readonly #options: { readonly durability: Durability; readonly disk: Disk; readonly now: () => Date }
  readonly #report: NonNullable<FileStoreOptions['report']>
  readonly #index: SessionIndex
  readonly #told = new Set<string>()
  /** Of the folder's names: sessions that begin together wait for one sync, and nobody else waits for it. */
  readonly #folderSync = new SharedSync(() => syncFolderLater(this.#folder))
  #probes = 0

  constructor({ folder, durability = 'commit', report = () => {}, disk: calls = disk, now = () => new Date() }: FileStoreOptions) {
    this.#folder = folder
    this.#options = { get durability() { return typeof durability === 'function' ? durability() : durability }, disk: calls, now }
    this.#report = report
    this.#index = new SessionIndex(join(folder, 'index.json'), message => { report(message, 'debug') })
  }

  async create(header: SessionHeader): Promise<SessionWriter> {
    checkName(header.id)
    const { id } = header, file = this.#file(id)
    this.#makeFolder()
    const lock = await this.#lock(id)
    let fd: number | undefined
    try {
      fd = openSync(file, O_RDWR | O_CREAT | O_EXCL, 0o600)
      const { durability } = this.#options, name = () => this.#folderSync.request().catch((error: unknown) => { throw asStorage(error, `session "${id}" could not be made`) })
      const writer = new SessionFile({ id, fd, size: 0, events: [], lock, records: this.#records(id), name }, this.#options)
      writer.append(headerBody(header))
      if (durability === 'always') await name()
      return writer
    } catch (error) {
      if (fd !== undefined) { letGo(fd); drop(file) }                        // else it is not ours
      await lock.release()
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw taken(id)
      throw asStorage(error, `session "${id}" could not be made`)
    }
  }

  async open(id: string): Promise<SessionWriter> {
    letGo(this.#openFile(id, O_RDONLY))                                                        // missing is told before busy
    const lock = await this.#lock(id)
    let fd: number | undefined
    try {
      fd = this.#openFile(id, O_RDWR)
      const found = this.#scan(id, fd)
      const { size, fd: sound } = this.#repair(id, fd, found)
      fd = sound
      const writer = new SessionFile({ id, fd, size, events: [...found.events], lock, records: this.#records(id) }, this.#options)
      for (const body of [...repairNote(id, found), ...closing(found.events)]) writer.append(body)
      await writer.commit()
      return writer
    } catch (error) {
      if (fd !== undefined) letGo(fd)
      await lock.release()
      throw asStorage(error, `session "${id}" could not be opened for writing`)
    }
  }

  async read(id: string): Promise<{ events: readonly SessionEvent[]; problems: readonly SessionProblem[] }> {
    const fd = this.#openFile(id, O_RDONLY)
    try {
      const { events, problems } = this.#scan(id, fd)
      return { events, problems }
    } finally {
      letGo(fd)
    }
  }

  async list(): Promise<readonly SessionSummary[]> {
    const names = await readdir(this.#folder).catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return []
      throw asStorage(error, `the folder of the sessions, "${this.#folder}", can not be read`)
    })
    const now = this.#options.now().getTime(), known = await this.#index.read(), entries = new Map<string, IndexEntry>(), unsettled: SessionSummary[] = []
    let count = 0, same = 0
    for (const name of names) {
      if (!name.endsWith('.jsonl')) continue
      if (++count % LIST_BATCH === 0) await new Promise(setImmediate)
      const id = name.slice(0, -'.jsonl'.length), stats = lstatSync(join(this.#folder, name), { throwIfNoEntry: false })
      const look = stats?.isFile() ? lookOf(stats, now) : undefined, entry = known.get(id)
      if (entry && entry.look === look) {
        entries.set(id, entry)
        same++
        continue
      }
      const summary = this.#summary(id)
      if (summary && look !== undefined) entries.set(id, { look, summary })
      else if (summary) unsettled.push(summary)
    }
    await this.#index.keep(entries, entries.size + known.size - 2 * same)
    return newestFirst([...unsettled, ...[...entries.values()].map(({ summary }) => summary)])
  }

  async probe(): Promise<void> {
    this.#makeFolder()
    const file = join(this.#folder, `.probe-${process.pid}-${++this.#probes}`)
    try {
      const fd = openSync(file, O_RDWR | O_CREAT | O_EXCL, 0o600)
      try {
        writeAll(this.#options.disk, fd, Buffer.alloc(PROBE_BYTES, '.'), 0)
        await this.#options.disk.sync(fd)
      } finally { letGo(fd) }
    } catch (error) {
      throw asStorage(error, `sessions can not be written to "${this.#folder}"`)
    } finally { drop(file) }
  }

  outputDir(id: string): string {
    const path = this.outputPath(id)
    makeFolder(path)
    return path
  }
  outputPath(id: string): string {
    checkName(id)
    return join(this.#folder, id, 'output')
  }

  #file(id: string): string { return join(this.#folder, `${id}.jsonl`) }
  #records(id: string): string { return join(this.#folder, id, 'records') }
  #unspill(id: string): Unspill {
    return file => {
      try { return readFileSync(join(this.#records(id), file)) } catch (error) {
        if (NOT_THERE.includes(String((error as NodeJS.ErrnoException).code))) throw error
        throw asStorage(error, `a large record of session "${id}" can not be read`)
      }
    }
  }

  #makeFolder(): void {
    try {
      const found = statSync(this.#folder, { throwIfNoEntry: false })                              // nearly always there: one look, then
      if (!found?.isDirectory()) makeFolder(this.#folder)
      if ((found ?? statSync(this.#folder)).mode & 0o077) chmodSync(this.#folder, 0o700)
    } catch (error) {
      throw asStorage(error, `the folder of the sessions, "${this.#folder}", can not be used`)
    }
  }

  async #lock(id: string): Promise<Lock> {
    const lock = await acquireLock(`session ${realpathSync.native(this.#folder)}/${id}`).catch((error: unknown) => { throw asStorage(error, `session "${id}" could not be locked`) })
    if (!lock) throw busy(id)
    return lock
  }

  /** Only a regular file is a session: a pipe would block, a link may lead anywhere. */
  #openFile(id: string, flags: number): number {
    if (!isSessionId(id)) throw missing(id)
    let fd: number | undefined
    try {
      fd = openSync(this.#file(id), flags | O_NOFOLLOW | O_NONBLOCK)
      if (fstatSync(fd).isFile()) return fd
      letGo(fd)
    } catch (error) {
      if (fd !== undefined) letGo(fd)
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') throw missing(id)
      if (code !== 'EISDIR' && code !== 'ELOOP' && code !== 'ENXIO') throw asStorage(error, `session "${id}" can not be opened`)
    }
    throw new HarnessError('session_damaged', `session "${id}" can not be read: "${this.#file(id)}" is not a file`)
  }

  #scan(id: string, fd: number): Scan {
    const found = scan(readFileSync(fd), this.#unspill(id))
    checkVersion(id, found.events[0])
    return found
  }

  /** Leaves whole records only. Bad lines in the middle are kept in `<id>.damaged` before they leave the log. */
  #repair(id: string, fd: number, { kept, bad, torn, unended }: Scan): { fd: number; size: number } {
    const calls = this.#options.disk, { size } = fstatSync(fd)
    if (bad.length > 0) {
      const aside = openSync(join(this.#folder, `${id}.damaged`), O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
      try {
        writeAll(calls, aside, joined(bad), fstatSync(aside).size)
        fsyncSync(aside)
      } finally {
        letGo(aside)
      }
      return this.#replace(id, fd, joined(kept))
    }
    if (torn > 0) calls.truncate(fd, size - torn)
    if (unended) writeAll(calls, fd, Buffer.from('\n'), size)
    return { fd, size: size - torn + (unended ? 1 : 0) }
  }
  #replace(id: string, fd: number, data: Uint8Array): { fd: number; size: number } {
    const draft = join(this.#folder, `${id}.repair`)
    const sound = openSync(draft, O_RDWR | O_CREAT | O_NOFOLLOW, 0o600)
    try {
      this.#options.disk.truncate(sound, 0)
      writeAll(this.#options.disk, sound, data, 0)
      fsyncSync(sound)
      renameSync(draft, this.#file(id))
      syncFolder(this.#folder)
    } catch (error) {
      letGo(sound)
      drop(draft)
      throw error
    }
    letGo(fd)
    return { fd: sound, size: data.length }
  }

  #summary(id: string): SessionSummary | undefined {
    let fd: number | undefined
    try {
      fd = this.#openFile(id, O_RDONLY)
      return readSummary(id, fd, this.#unspill(id))
    } catch (error) {
      if (!this.#told.has(id)) this.#report(`"${this.#file(id)}" is left out of the list of sessions: ${messageOf(error)}`, 'warn')
      this.#told.add(id)
      return undefined
    } finally {
      if (fd !== undefined) letGo(fd)
    }
  }
}

/** Says in the log what its repair took away. */
function repairNote(id: string, { events, bad, torn }: Scan): SessionEventBody[] {
  const done = [
    ...torn > 0 ? [`${torn} bytes of an unfinished record were cut from its end`] : [],
    ...bad.length > 0 ? [`${bad.length} unreadable ${bad.length === 1 ? 'line was' : 'lines were'} set aside in "${id}.damaged"`] : [],
  ]
  const turn = events.findLast(event => event.type === 'turn-start')?.turn ?? 0
  return done.length > 0 ? [{ type: 'warning', turn, step: 0, message: `the log of this session was repaired: ${done.join('; ')}` }] : []
}

const joined = (lines: readonly Uint8Array[]): Buffer => Buffer.concat(lines.flatMap(line => [line, Buffer.from('\n')]))
const asStorage = (error: unknown, what: string): HarnessError =>
  error instanceof HarnessError ? error : notStored(what, error)

/**
 * Tells when a followed file has other content than what is loaded. The only file that knows chokidar; knows no plugin, no config and no host.
 *
 *   event, re-check or rescan ▶ look (bytes against the loaded text) ▶ whole? ▶ changed(files) ▶ told
 *                                                 absent, empty, a mere beginning, unparsable: looked at again for a while, then handed over all the same
 *
 * An event only means "look"; what counts is the content. One `changed` at a time; what comes meanwhile is the next batch. The same text is never handed over twice.
 * Folders are watched, not files: one watch a folder. chokidar drops the last of several quick writes, so each event is followed by looks at 20, 60 and 200 ms, and every 30 s all files are asked.
 */
import { basename, dirname, join, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FSWatcher } from 'chokidar'
import { messageOf } from '../errors.js'
import type { Logger } from '../kernel/log.js'
import type { Texts } from './files.js'
import { existing, read, realPath, signature, stat } from './on-disk.js'

export interface WatcherOptions {
  /** What is loaded, and what was looked for and may appear. */
  readonly files: () => Iterable<string>
  /** The text of a file as it is in use; undefined when it is not. */
  readonly text: (file: string) => string | undefined
  /** These have changed, together; `texts` is what was found whole, and what is to be taken in. A rejection is reported unless a further change mends it soon. */
  readonly changed: (files: readonly string[], texts: Texts) => Promise<void>
  /** False when this text can't be meant, because somebody is still writing: it has to stand still for a moment first. */
  readonly whole?: (file: string, text: string) => boolean
  /** How long this text has to stand still first: for files of which half is a valid whole. None when left out. */
  readonly settleMs?: (file: string, text: string) => number
  readonly report: (problem: WatchProblem) => void
  readonly log: Logger
}
export interface WatchProblem { readonly files: readonly string[]; readonly error: unknown }

/** After the last event of a file. */
const RECHECK_MS = [20, 60, 200]
/** How long a text has to stand still that isn't there, is empty or a mere beginning; and one that doesn't parse or was refused. */
const CUT_MS = 250, BROKEN_MS = 160
/** Between looks at a file that does not stand still yet, doubling. */
const FIRST_PAUSE_MS = 2, LONGEST_PAUSE_MS = 64
/** A file that never stands still is handed over as it is. */
const PATIENCE_MS = 5_000
/** More files than this at once are a checkout: wait until no new one has come for a while. */
const BURST_FILES = 3, BURST_QUIET_MS = 15, BURST_MS = 250
const RESCAN_MS = 30_000, POLL_MS = 1_000, READY_MS = 5_000
const NO_MORE_WATCHES = new Set(['ENOSPC', 'EMFILE', 'ENFILE'])

export class Watcher {
  readonly #options: WatcherOptions
  #chokidar: FSWatcher | undefined
  /** Real paths of what is watched, with the inode that is watched. */
  readonly #folders = new Map<string, number>()
  /** Real path → the followed files that it means. */
  #paths = new Map<string, Set<string>>()
  #files = new Set<string>()
  /** Every folder that one of either is below. */
  #above = new Set<string>()
  readonly #seen = new Map<string, string>()
  readonly #pending = new Set<string>()
  /** The text that was handed over last, where it isn't the one in use now. */
  readonly #told = new Map<string, string | undefined>()
  readonly #rechecks = new Map<string, NodeJS.Timeout[]>()
  /** Told of by events; rechecked once the work on them is done. */
  readonly #touched = new Set<string>()
  #rescan: NodeJS.Timeout | undefined
  #late: NodeJS.Timeout | undefined
  #working = false
  /** Ends the pause of a work that waits for a text that is not there yet. */
  #wake = () => {}
  #closed = false

  constructor(options: WatcherOptions) { this.#options = options }

  /** Resolves when nothing can be missed any more. */
  async start(): Promise<void> {
    const { watch } = await import('chokidar')
    const chokidar = watch([], { depth: 0, ignoreInitial: true, atomic: false, ignored: path => !this.#folders.has(path) })
    this.#chokidar = chokidar
    chokidar._nodeFsHandler._handleRead = () => undefined                // it would list the whole folder before it tells of an event: half of all the time from a save to us, for a list that nobody reads
    chokidar.on('raw', (_, name, details) => { const { watchedPath } = details as { watchedPath?: string }; if (name && watchedPath) this.#event(watchedPath, name) })
    chokidar.on('error', error => { this.#failed(error as NodeJS.ErrnoException) })
    const ready = new Promise<void>(resolve => { chokidar.once('ready', () => { resolve() }) })
    this.#follow()
    this.#every(RESCAN_MS)
    if (this.#folders.size > 0) await Promise.race([ready, sleep(READY_MS, undefined, { ref: false })])
    for (const file of this.#files) this.#look(file)         // what changed between loading and watching
  }

  /** To be called when other files may be loaded or looked for than before. */
  follow(): void {
    const files = new Set(this.#options.files())
    if (files.size !== this.#files.size || [...files].some(file => !this.#files.has(file))) this.#follow(files)
  }
  /** Where the files really are: links may lead elsewhere, and folders may be others than before. */
  #follow(files: Set<string> = new Set(this.#options.files())): void {
    if (this.#closed) return
    this.#files = files
    this.#paths = new Map()
    const wanted = new Set<string>(), realFolders = new Map<string, string>()
    for (const file of this.#files) {
      const folder = dirname(file), real = realPath(file)
      const realFolder = realFolders.get(folder) ?? existing(folder)
      realFolders.set(folder, realFolder)
      wanted.add(realFolder)
      if (real !== undefined && real !== file) wanted.add(dirname(real))
      // A linked folder: the link itself may come to lead elsewhere.
      if (realFolder !== folder) wanted.add(existing(dirname(folder)))
      for (const path of [join(realPath(folder) ?? folder, basename(file)), real]) if (path !== undefined) setOf(this.#paths, path).add(file)
    }
    this.#above = foldersAbove([...this.#paths.keys(), ...this.#files])
    for (const file of this.#told.keys()) if (!this.#files.has(file)) this.#told.delete(file)
    for (const file of this.#seen.keys()) if (!this.#files.has(file)) this.#seen.delete(file)
    this.#watch(wanted)
  }

  async close(): Promise<void> {
    this.#closed = true
    clearInterval(this.#rescan)
    clearTimeout(this.#late)
    for (const timer of [...this.#rechecks.values()].flat()) clearTimeout(timer)
    this.#rechecks.clear()
    this.#pending.clear()
    await this.#chokidar?.close()
  }

  // ---- what is watched

  #watch(wanted: ReadonlySet<string>): void {
    if (!this.#chokidar) return
    for (const folder of this.#folders.keys()) if (!wanted.has(folder)) this.#unwatch(folder)
    for (const folder of wanted) {
      const inode = stat(folder)?.ino
      if (inode === undefined || this.#folders.get(folder) === inode) continue
      this.#unwatch(folder)                                              // another folder of the same name may stand there now
      this.#folders.set(folder, inode)
      this.#chokidar.add(folder)
      for (const file of this.#below(folder)) this.#recheck(file)        // it takes a moment until the watch is set
    }
  }

  #unwatch(folder: string): void {
    if (this.#folders.delete(folder)) this.#chokidar?.unwatch(folder)
  }

  /** `name` in, or the watched folder itself. */
  #event(folder: string, name: string): void {
    if (this.#closed) return
    const path = join(folder, name)
    const files = this.#paths.get(path)
    if (files) for (const file of files) { this.#touched.add(file); this.#look(file) }
    const moved = basename(folder) === name ? [path, folder] : [path]
    if (moved.length > 1) this.#unwatch(folder)                          // its own end is told under its own name; another one may get its inode
    const below = moved.flatMap(one => this.#below(one))
    if (below.length === 0) return
    this.#follow()                                                        // a folder on the way to followed files came, went or was swapped
    for (const file of below) { this.#touched.add(file); this.#look(file) }
  }
  #below(folder: string): string[] {
    if (!this.#above.has(folder)) return []                              // asked at each event, mostly of a file
    const found = [...this.#paths].filter(([path]) => path.startsWith(folder + sep)).flatMap(([, files]) => [...files])
    return [...found, ...[...this.#files].filter(file => file.startsWith(folder + sep))]
  }

  #failed(error: NodeJS.ErrnoException): void {
    if (!NO_MORE_WATCHES.has(error.code ?? '')) { this.#options.log.warn(`the file watcher failed: ${messageOf(error)}; files are still asked every ${RESCAN_MS / 1000} s`); return }
    const chokidar = this.#chokidar
    if (!chokidar) return
    this.#chokidar = undefined
    this.#folders.clear()
    this.#every(POLL_MS)
    this.#options.log.warn(`the system allows no more file watches (${error.code}): loaded files are asked every ${POLL_MS / 1000} s instead; raise fs.inotify.max_user_watches or the limit of open files, and restart`)
    void chokidar.close()
  }

  // ---- when to look

  #every(ms: number): void {
    clearInterval(this.#rescan)
    for (const file of this.#files) this.#seen.set(file, signature(file))
    this.#rescan = setInterval(() => {
      this.#follow()
      for (const file of this.#files) {
        const now = signature(file)
        if (this.#seen.get(file) !== now) this.#look(file)
        this.#seen.set(file, now)
      }
    }, ms)
    this.#rescan.unref()
  }
  #recheck(file: string): void {
    for (const timer of this.#rechecks.get(file) ?? []) clearTimeout(timer)
    this.#rechecks.set(file, RECHECK_MS.map((ms, index) => setTimeout(() => {
      if (index === RECHECK_MS.length - 1) this.#rechecks.delete(file)
      if (!this.#isTold(file, read(file))) this.#look(file)
    }, ms).unref()))
    clearTimeout(this.#late)
    this.#late = setTimeout(() => { this.#follow() }, RECHECK_MS.at(-1)).unref()   // once, however many files were saved: it asks for the real path of each
  }
  #look(file: string): void {
    if (this.#closed) return
    this.#pending.add(file)
    if (this.#working) { this.#wake(); return }
    this.#working = true
    void this.#work().finally(() => {
      this.#working = false
      if (this.#closed) return
      for (const file of this.#touched) this.#recheck(file)
      this.#touched.clear()
      for (const late of this.#pending) { this.#look(late); break }      // came between the last look and this line
    })
  }

  // ---- looking

  async #work(): Promise<void> {
    let pause = FIRST_PAUSE_MS
    let failed: { texts: Texts; error: unknown } | undefined
    const still = new Map<string, { text: string | undefined; since: number; first: number }>()
    while (this.#pending.size > 0 && !this.#closed) {
      await new Promise(setImmediate)
      await this.#burst()
      const texts = new Map([...this.#pending].map(file => [file, read(file)]))
      for (const [file, text] of texts) if (!failed?.texts.has(file) && this.#isTold(file, text)) { texts.delete(file); this.#pending.delete(file) }
      const now = performance.now()
      let left = 0
      for (const [file, text] of texts) {
        const before = still.get(file)
        if (!before || before.text !== text) { still.set(file, { text, since: now, first: before?.first ?? now }); pause = FIRST_PAUSE_MS }
        const { since, first } = still.get(file)!
        if (now - first < PATIENCE_MS) left = Math.max(left, this.#stillFor(file, text, failed?.texts) - (now - since))
      }
      if (texts.size === 0) continue
      if (left > 0) {
        await this.#pause(Math.min(pause, left), [...texts.values()].some(text => !text))
        pause = Math.min(pause * 2, LONGEST_PAUSE_MS)
        continue
      }
      this.#pending.clear()
      if (failed && equal(texts, failed.texts)) {
        this.#tell(texts)
        this.#options.report({ files: [...texts.keys()], error: failed.error })
        failed = undefined
      } else {
        try {
          await this.#options.changed([...texts.keys()], texts)
          this.#tell(texts)
          failed = undefined
        } catch (error) {
          failed = { texts, error }
          for (const file of texts.keys()) this.#pending.add(file)       // tried once more only if a text changes; else reported when it has stood still
          continue
        }
      }
      still.clear()
      pause = FIRST_PAUSE_MS
    }
  }

  /** How long this text has to stand still before it is handed over. */
  #stillFor(file: string, text: string | undefined, failed: Texts | undefined): number {
    if (looksCut(text, this.#options.text(file))) return CUT_MS
    if (failed?.has(file) && failed.get(file) === text) return BROKEN_MS
    return this.#options.whole?.(file, text!) === false ? BROKEN_MS : this.#options.settleMs?.(file, text!) ?? 0
  }
  /** A file that is absent or empty is in the middle of a save: its next event ends the pause at once. Other texts are looked at on time, however fast they grow. */
  async #pause(ms: number, awaited: boolean): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    await new Promise<void>(resolve => {
      timer = setTimeout(resolve, ms).unref()
      if (awaited) this.#wake = resolve
    })
    clearTimeout(timer)
    this.#wake = () => {}
  }
  async #burst(): Promise<void> {
    const end = performance.now() + BURST_MS
    for (let size = 0; this.#pending.size > BURST_FILES && this.#pending.size !== size && performance.now() < end;) {
      size = this.#pending.size
      await sleep(BURST_QUIET_MS, undefined, { ref: false })
    }
  }
  #isTold(file: string, text: string | undefined): boolean {
    return text === (this.#told.has(file) ? this.#told.get(file) : this.#options.text(file))
  }
  #tell(texts: Texts): void {
    for (const [file, text] of texts) {
      if (text === this.#options.text(file)) this.#told.delete(file)
      else this.#told.set(file, text)
    }
  }
}

/** Not there, empty, or the beginning of what is in use: the middle of a save, most likely. */
const looksCut = (text: string | undefined, inUse: string | undefined): boolean =>
  text === undefined || text === '' || (inUse !== undefined && text.length < inUse.length && inUse.startsWith(text))

function foldersAbove(paths: readonly string[]): Set<string> {
  const folders = new Set<string>()
  for (const path of paths) for (let folder = dirname(path); !folders.has(folder); folder = dirname(folder)) folders.add(folder)
  return folders
}
function setOf(map: Map<string, Set<string>>, key: string): Set<string> {
  const present = map.get(key) ?? new Set()
  map.set(key, present)
  return present
}
const equal = (a: ReadonlyMap<string, unknown>, b: ReadonlyMap<string, unknown>): boolean => a.size === b.size && [...a].every(([key, value]) => b.has(key) && b.get(key) === value)

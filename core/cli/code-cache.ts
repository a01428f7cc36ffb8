/**
 * Keeps the code of this build compiled in a folder, for Node 20, which has no such cache of its own: V8's code cache, by file.
 * What was compiled up to the end of the run goes in, so the next run compiles nothing that this one needed. Goes when Node 20 is not supported any more.
 * Invariants: a text is never run with the cache of another (a build has a folder of its own); a cache that can't be read or written is done without.
 */
import { closeSync, existsSync, fstatSync, mkdirSync, openSync, readdirSync, readFileSync, readSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, sep } from 'node:path'
import { Script } from 'node:vm'

/** More than the largest file has, and how long it is kept. */
const DESK_BYTES = 2 * 1024 * 1024, DESK_MS = 5_000
/** Folders of builds that nothing was written to for so long are removed. */
const STALE_MS = 30 * 24 * 60 * 60 * 1000

/** A call of `import`, not the word in a text: behind a cache Node 20 no longer knows whose it is, and fails it. */
const IMPORTS = /[^'"`.\w$]import\(/
/** What V8 asks for beside the text: its own version, and flags, of which a daemon has others than a command. */
const engine = (): string => encodeURIComponent([process.version, ...process.execArgv, process.env['NODE_OPTIONS'] ?? ''].join(' ')).slice(0, 200)

type Load = (module: NodeModule, file: string) => void

export function keepCompiled(folder: string): void {
  const built = __dirname + sep
  const cache = join(folder, `${readFileSync(join(built, 'build-id'), 'utf8')}-${engine()}`)
  const fresh = new Map<string, Script>()
  const desk = new Desk()
  // `require.extensions` is the one way in that Node documents, and it works with its registry of modules: whoever requires a file of ours gets the same one.
  const { extensions } = createRequire(__filename)
  const otherwise = extensions['.js'] as Load
  extensions['.cjs'] = (module: NodeModule, file: string) => {
    const text = file.startsWith(built) ? desk.wrapped(file) : undefined
    if (text === undefined || IMPORTS.test(text)) { otherwise(module, file); return }
    const kept = join(cache, file.slice(built.length).replaceAll(sep, '+'))
    const script = new Script(text, { filename: file, cachedData: desk.kept(kept) })
    if (script.cachedDataRejected !== false) fresh.set(kept, script)
    const run = script.runInThisContext() as (exports: unknown, require: (id: string) => unknown, module: NodeModule, file: string, folder: string) => void
    run.call(module.exports, module.exports, id => module.require(id), module, file, dirname(file))
  }
  process.on('exit', () => { if (fresh.size > 0) write(folder, cache, fresh) })
}

const NONE = Buffer.alloc(0), HEAD = Buffer.from('(function (exports, require, module, __filename, __dirname) { '), TAIL = Buffer.from('\n})')
/** One buffer for all that is read, one file after another: where memory is touched for the first time a start pays for each page of it. What is returned holds until the next is read. */
class Desk {
  #buffer = NONE

  /** The text of a file of ours as a function; in one piece, and not joined later. */
  wrapped(file: string): string {
    return this.#read(file, HEAD, TAIL).toString('latin1')   // the build writes ASCII
  }
  /** V8 believes what it is given, and dies of half a file: so each begins with the seal of the rest. */
  kept(file: string): Buffer | undefined {
    let kept: Buffer
    try { kept = this.#read(file) } catch { return undefined }         // not there yet, or not ours to read: compiled anew
    const code = kept.subarray(SEAL_BYTES)
    return seal(code).equals(kept.subarray(0, SEAL_BYTES)) ? code : undefined
  }

  #read(file: string, head = NONE, tail = NONE): Buffer {
    const from = openSync(file, 'r')
    try {
      const all = head.length + fstatSync(from).size + tail.length
      const buffer = this.#ofAtLeast(all)
      head.copy(buffer)
      let end = head.length
      for (let read = -1; read !== 0 && end < all - tail.length; end += read) read = readSync(from, buffer, end, all - tail.length - end, null)
      return buffer.subarray(0, end + tail.copy(buffer, end))
    } finally { closeSync(from) }
  }
  #ofAtLeast(bytes: number): Buffer {
    if (this.#buffer.length < bytes) {
      this.#buffer = Buffer.allocUnsafeSlow(Math.max(bytes, DESK_BYTES))
      setTimeout(() => { this.#buffer = NONE }, DESK_MS).unref()       // a daemon needs it at its start only
    }
    return this.#buffer
  }
}

/** A file is cut, or loses whole blocks of 4 KB: so its length tells, and eight words of each block. A digest of all would need node:crypto, which takes longer to load than all of these files to read. */
const SEAL_BYTES = 8, WORDS_APART = 128
function seal(code: Buffer): Buffer {
  const words = new Int32Array(code.buffer, code.byteOffset, code.length >> 2)               // both V8's buffers and what stands behind a seal begin at whole words
  let sum = 0
  for (let at = 0; at < words.length; at += WORDS_APART) sum = Math.imul(sum, 31) + words[at]! | 0
  const made = Buffer.alloc(SEAL_BYTES)
  made.writeUInt32LE(code.length)
  made.writeInt32LE(sum, 4)
  return made
}

/** Level by level, as kernel/folder.ts says why; that file is part of what is kept here, so it is not loaded for this. False where it can't be made. */
export function make(folder: string): boolean {
  if (existsSync(folder)) return true
  try {
    if (make(dirname(folder))) mkdirSync(folder, { mode: 0o700 })
  } catch { /* no place, no rights, or somebody made it just now: what stands there tells */ }
  return existsSync(folder)
}
function write(folder: string, cache: string, scripts: ReadonlyMap<string, Script>): void {
  try {
    if (!make(cache)) return
    for (const [file, script] of scripts) {
      const temporary = `${file}.${process.pid}`
      const code = script.createCachedData()
      writeFileSync(temporary, Buffer.concat([seal(code), code]), { mode: 0o600 })
      renameSync(temporary, file)
    }
    for (const name of readdirSync(folder)) {
      const path = join(folder, name)
      if (path !== cache && Date.now() - statSync(path).mtimeMs > STALE_MS) rmSync(path, { recursive: true, force: true })
    }
  } catch { /* no place, no rights: the next start is slower, and nothing else */ }
}

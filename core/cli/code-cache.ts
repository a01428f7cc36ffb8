/**
 * Keeps the code of this build compiled in a folder, for Node 20, which has no such cache of its own: V8's code cache, by file.
 * What was compiled up to the end of the run goes in, so the next run compiles nothing that this one needed. Goes when Node 20 is not supported any more.
 * Invariants: a text is never run with the cache of another (a build has a folder of its own); a cache that can't be read or written is done without.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, sep } from 'node:path'
import { cachedDataVersionTag } from 'node:v8'
import { Script } from 'node:vm'

const DIGEST_BYTES = 32
/** Folders of builds that nothing was written to for so long are removed. */
const STALE_MS = 30 * 24 * 60 * 60 * 1000

/** A call of `import`, not the word in a text: behind a cache Node 20 no longer knows whose it is, and fails it. */
const IMPORTS = /[^'"`.\w$]import\(/

type Load = (module: NodeModule, file: string) => void

export function keepCompiled(folder: string): void {
  const built = __dirname + sep
  const cache = join(folder, `${readFileSync(join(built, 'build-id'), 'utf8')}-${cachedDataVersionTag().toString(16)}`)      // a daemon has other flags than a command
  const fresh = new Map<string, Script>()
  // `require.extensions` is the one way in that Node documents, and it works with its registry of modules: whoever requires a file of ours gets the same one.
  const { extensions } = createRequire(__filename)
  const otherwise = extensions['.js'] as Load
  extensions['.cjs'] = (module: NodeModule, file: string) => {
    const text = file.startsWith(built) ? readFileSync(file, 'latin1') : undefined        // the build writes ASCII
    if (text === undefined || IMPORTS.test(text)) { otherwise(module, file); return }
    const kept = join(cache, file.slice(built.length).replaceAll(sep, '+'))
    const script = new Script(`(function (exports, require, module, __filename, __dirname) { ${text}\n})`, { filename: file, cachedData: read(kept) })
    if (script.cachedDataRejected !== false) fresh.set(kept, script)
    const run = script.runInThisContext() as (exports: unknown, require: (id: string) => unknown, module: NodeModule, file: string, folder: string) => void
    run.call(module.exports, module.exports, id => module.require(id), module, file, dirname(file))
  }
  process.on('exit', () => { if (fresh.size > 0) write(folder, cache, fresh) })
}

/** V8 believes what it is given, and dies of half a file: so each begins with a digest of the rest. */
function read(file: string): Buffer | undefined {
  let kept: Buffer
  try { kept = readFileSync(file) } catch { return undefined }       // not there yet, or not ours to read: compiled anew
  const code = kept.subarray(DIGEST_BYTES)
  return digest(code).equals(kept.subarray(0, DIGEST_BYTES)) ? code : undefined
}
const digest = (code: Buffer): Buffer => createHash('sha256').update(code).digest()

/** Level by level, as kernel/folder.ts says why; that file is part of what is kept here, so it is not loaded for this. */
function make(folder: string): void {
  if (existsSync(folder)) return
  make(dirname(folder))
  mkdirSync(folder, { mode: 0o700 })
}
function write(folder: string, cache: string, scripts: ReadonlyMap<string, Script>): void {
  try {
    make(cache)
    for (const [file, script] of scripts) {
      const temporary = `${file}.${process.pid}`
      const code = script.createCachedData()
      writeFileSync(temporary, Buffer.concat([digest(code), code]), { mode: 0o600 })
      renameSync(temporary, file)
    }
    for (const name of readdirSync(folder)) {
      const path = join(folder, name)
      if (path !== cache && Date.now() - statSync(path).mtimeMs > STALE_MS) rmSync(path, { recursive: true, force: true })
    }
  } catch { /* no place, no rights: the next start is slower, and nothing else */ }
}

/**
 * From a specifier and the file that names it to what it means: a module of the host, a package for Node's own loader, or a file that belongs to the graph.
 * Real paths identify files, as in Node. Asks trust before it looks at a folder.
 */
import { basename, dirname, extname, resolve as resolvePath, sep } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { HarnessError } from '../errors.js'
import { Files } from './files.js'
import { isBuiltin, packageFile, privateTarget } from './package-target.js'

export type Target =
  /** Answered by the host itself. */
  | { readonly kind: 'host'; readonly name: string }
  /** Loaded by Node, once and for all. */
  | { readonly kind: 'native'; readonly url: string }
  /** Plugin source. `link` is the path that led there, when it is another than the real one. */
  | { readonly kind: 'file'; readonly file: string; readonly link?: string | undefined }

/** What an import without extension, or of a compiled file, may mean. */
const ENDINGS = ['.ts', '.mts', '.js', '.mjs', '.json', `${sep}index.ts`, `${sep}index.js`]
const SOURCES = new Set(['.ts', '.mts', '.tsx', '.js', '.mjs', '.jsx', '.json'])

export interface ResolveOptions {
  readonly isHost: (specifier: string) => boolean
  /** Throws when nothing of this file may be read. */
  readonly ask: (file: string) => void
}

export class Resolver {
  readonly #options: ResolveOptions
  constructor(options: ResolveOptions) { this.#options = options }

  /** Throws `module_not_found` in words that lack only the place. */
  resolve(specifier: string, from: string, files: Files): Target {
    if (this.#options.isHost(specifier)) return { kind: 'host', name: specifier }
    if (isBuiltin(specifier) || /^(data|https?):/.test(specifier)) return { kind: 'native', url: specifier }
    if (specifier.startsWith('file:')) return this.#file(fileURLToPath(specifier), specifier, files)
    if (/^\.{0,2}\//.test(specifier) || specifier === '.' || specifier === '..') return this.#file(resolvePath(dirname(from), decodeURI(specifier)), specifier, files)
    if (specifier.startsWith('#')) {
      const target = privateTarget(specifier, dirname(from), files)
      return typeof target === 'string' ? this.resolve(target, from, files) : this.#file(target.file, specifier, files)
    }
    return this.#package(specifier, from, files)
  }

  #package(specifier: string, from: string, files: Files): Target {
    const found = packageFile(specifier, dirname(from), files)
    if (!found) throw new HarnessError('module_not_found', `package "${specifier}" is not installed for ${dirname(from)}; install it there, or correct the name`)
    const file = files.isFile(found.file) ? files.real(found.file) : found.file
    const root = files.real(found.root)
    // A linked workspace package is source of ours, and so is the very package that the importing file is in.
    const source = !file.includes(`${sep}node_modules${sep}`) || from.startsWith(root + sep)
    return source ? this.#file(found.file, specifier, files) : { kind: 'native', url: pathToFileURL(file).href }
  }

  #file(path: string, specifier: string, files: Files): Target {
    this.#options.ask(path)
    const found = candidates(path).find(candidate => files.try(candidate))
    if (found === undefined) throw new HarnessError('module_not_found', `"${specifier}" leads nowhere; looked for ${path}${extname(path) === '' ? ` and ${ENDINGS.map(ending => `${basename(path)}${ending}`).join(', ')}` : ''}`)
    const file = files.real(found)
    if (file !== found) this.#options.ask(file)
    if (!SOURCES.has(extname(file))) return { kind: 'native', url: pathToFileURL(file).href }
    return { kind: 'file', file, ...(file !== found && { link: found }) }
  }
}

/** The paths that may be meant, the first that is there counts: as written, `x.js` for `x.ts`, without extension, a folder. */
function candidates(path: string): string[] {
  const typed = /\.[mc]?jsx?$/.test(path) ? [path.replace(/js(x?)$/, 'ts$1')] : []
  return [path, ...typed, ...ENDINGS.map(ending => path + ending)]
}

/**
 * From a row of the config to the file of its module. Knows the order of places, reads no module.
 * `from` is a path from the row's own config file or a package; without it: ./plugins/<name>, a shipped plugin, the package harnessx-plugin-<name>.
 */
import { readdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { didYouMean, HarnessError } from '../errors.js'
import type { Installation } from '../places.js'
import type { ConfigRow } from './config.js'
import type { Files } from './files.js'
import { packageFile } from './package-target.js'

const ENDINGS = ['.ts', '.js', '.mts', '.mjs', '/index.ts', '/index.js', '/index.mts', '/index.mjs']

export interface EntryFile {
  readonly file: string
  /** It stands in ./plugins and hides the shipped plugin of that name. */
  readonly shadows?: boolean
  /** Nothing is there: why, and where a file would have been found. */
  readonly missing?: HarnessError
  readonly looked: readonly string[]
}
type Row = Pick<ConfigRow, 'id' | 'name' | 'from' | 'origin' | 'at'>

export function entryFile(row: Row, installation: Installation, files: Files): EntryFile {
  const folder = dirname(row.origin)
  if (row.from !== undefined) return fromWritten(row, row.from, folder, files)
  const own = endings(join(folder, 'plugins', row.name)), shipped = shippedPaths(row.name, installation)
  // The installation's own config means the plugins it came with, also where their sources stand beside it.
  const atHome = row.origin === installation.config
  const looked = atHome ? [...shipped, ...own] : [...own, ...shipped]
  const file = looked.find(path => files.isFile(path))
  if (file !== undefined) return { file, looked, ...(!atHome && own.includes(file) && !shipped.includes(file) && shipped.some(path => files.isFile(path)) && { shadows: true }) }
  return fromPackage(row, `harnessx-plugin-${row.name}`, folder, files, looked, [...braced(own), 'a shipped plugin'], () => meant(row.name, join(folder, 'plugins'), installation.plugins))
}

function fromWritten(row: Row, from: string, folder: string, files: Files): EntryFile {
  const home = /^~(?=\/|$)/.test(from)
  if (!home && !isAbsolute(from) && !/^\.{1,2}(\/|$)/.test(from)) return fromPackage(row, from, folder, files, [])
  const path = home ? join(homedir(), from.slice(1)) : resolve(folder, from)
  const looked = [path, ...endings(path)]
  const file = looked.find(candidate => files.isFile(candidate))
  if (file === undefined) return { file: path, looked, missing: notFound(row, braced(looked)) }
  return isSource(file) ? { file, looked } : { file, looked, missing: new HarnessError('plugin_invalid', `plugin "${row.id}": from must name a TypeScript or JavaScript file, received "${from}"`, { place: row.at }) }
}
function fromPackage(row: Row, name: string, folder: string, files: Files, looked: readonly string[], before: readonly string[] = [], hint = () => ''): EntryFile {
  const first = looked[0] ?? join(folder, 'node_modules', name)
  try {
    const found = packageFile(name, folder, files)
    return found ? { file: found.file, looked } : { file: first, looked, missing: notFound(row, [...before, `the package "${name}" in node_modules`], hint()) }
  } catch (error) {
    if (error instanceof HarnessError) return { file: first, looked, missing: new HarnessError(error.code, `plugin "${row.id}": ${error.message}`, { place: row.at, cause: error }) }
    throw error
  }
}
const notFound = (row: Row, places: readonly string[], hint = ''): HarnessError =>
  new HarnessError('module_not_found', `plugin "${row.id}" was not found; looked for ${places.join(', ')}${hint}`, { place: row.at })
/** A path with all its endings, in one word. */
const braced = (looked: readonly string[]): string[] => [...new Set(looked.map(path => path.replace(/(\/index)?\.[mc]?[jt]s$/, '')))].map(path => `${path}{${ENDINGS.join(',')}}`)

const isSource = (file: string): boolean => /\.[mc]?[jt]sx?$/.test(file)
const endings = (path: string): string[] => ENDINGS.map(ending => path + ending)
const shippedPaths = (name: string, { built, plugins }: Installation): string[] =>
  built ? [join(plugins, `${name}.cjs`)] : [join(plugins, `${name}.ts`), join(plugins, name, 'index.ts')]
/** What else it may be that stands there. */
function meant(name: string, own: string, shipped: string): string {
  const names = namesIn(own)
  return names.includes(name) ? `; what is called "${name}" in ${own} is no file, and no folder with an index file` : didYouMean(name, [...names, ...namesIn(shipped)])
}
/** The names of the plugins in a folder, as a row would say them; where there is no folder, none can be meant. */
function namesIn(folder: string): string[] {
  try { return readdirSync(folder).filter(name => !/\.(?:test|spec)\.|^tsconfig/.test(name)).map(name => name.replace(/\.[cm]?[jt]s$/, '')) } catch { return [] }
}

/**
 * Where a package specifier leads, as Node's own ES module resolution says (`exports`, `imports`, conditions, patterns, `main`). Reads package.json files only.
 * What is found goes to Node's loader by its URL, so host and plugins share one instance; knowing the file is what lets linked packages count as plugin source.
 */
import { readFileSync } from 'node:fs'
import { builtinModules } from 'node:module'
import { dirname, join, sep } from 'node:path'
import { HarnessError } from '../errors.js'
import type { Files } from './files.js'

type Target = string | null | readonly Target[] | { readonly [condition: string]: Target }
interface Manifest { readonly name?: string; readonly main?: string; readonly exports?: Target; readonly imports?: Readonly<Record<string, Target>> }
/** A file, and the folder of the package that it was found in. */
export interface PackageFile { readonly file: string; readonly root: string }

const CONDITIONS = new Set(['node', 'import', 'default', 'node-addons', ...(process.features.require_module ? ['module-sync'] : [])])
const BUILTINS = new Set(builtinModules)

export const isBuiltin = (specifier: string): boolean => specifier.startsWith('node:') || BUILTINS.has(specifier)

/** The file of `name` or `name/sub/path`, seen from a folder; undefined when no such package is there. Throws when the package doesn't offer that path. */
export function packageFile(specifier: string, folder: string, files: Files): PackageFile | undefined {
  const { name, subpath } = split(specifier)
  const own = ownPackage(folder, files)
  if (own?.manifest.name === name && own.manifest.exports !== undefined) return exported(own, subpath, name, files)
  for (let at = folder; ; at = dirname(at)) {
    const root = join(at, 'node_modules', name)
    if (!at.endsWith(`${sep}node_modules`) && files.isFolder(root)) return inPackage({ root, manifest: manifestOf(root, files) ?? {} }, subpath, name, files)
    if (at === dirname(at)) return undefined
  }
}

/** The target of `#name` in the package that `folder` belongs to: a file of it, or another specifier. */
export function privateTarget(specifier: string, folder: string, files: Files): PackageFile | string {
  const own = ownPackage(folder, files)
  const found = own?.manifest.imports && match(own.manifest.imports, specifier)
  const target = found && pick(found.target, found.star)
  if (!own || !target) throw new HarnessError('module_not_found', `"${specifier}" is not defined under "imports" in ${own ? join(own.root, 'package.json') : 'any package.json above'}`)
  return target.startsWith('./') ? { file: join(own.root, target), root: own.root } : target
}

interface Package { readonly root: string; readonly manifest: Manifest }

function inPackage(found: Package, subpath: string, name: string, files: Files): PackageFile {
  if (found.manifest.exports !== undefined) return exported(found, subpath, name, files)
  if (subpath !== '.') return { file: join(found.root, subpath), root: found.root }
  const { main } = found.manifest
  const candidates = [...(main ? [main, `${main}.js`, `${main}.json`, join(main, 'index.js')] : []), 'index.js'].map(path => join(found.root, path))
  const file = candidates.find(candidate => files.isFile(candidate))
  if (file === undefined) throw new HarnessError('module_not_found', `package "${name}" has no main file (looked for ${candidates.join(', ')})`)
  return { file, root: found.root }
}
function exported({ root, manifest }: Package, subpath: string, name: string, files: Files): PackageFile {
  const { exports } = manifest
  const map = isConditions(exports) && Object.keys(exports).some(key => key.startsWith('.')) ? exports : { '.': exports! }
  const found = match(map, subpath)
  const target = found && pick(found.target, found.star)
  if (!target?.startsWith('./')) throw new HarnessError('module_not_found', `package "${name}" does not export "${subpath}" to an import (${join(root, 'package.json')})`)
  const file = join(root, target)
  if (!files.isFile(file)) throw new HarnessError('module_not_found', `package "${name}" exports "${subpath}" as "${target}", which does not exist (${join(root, 'package.json')}); is it built?`)
  return { file, root }
}

/** The exact key, else the pattern with the longest text before its `*`. */
function match(map: Readonly<Record<string, Target>>, key: string): { target: Target; star: string } | undefined {
  if (Object.hasOwn(map, key) && !key.includes('*')) return { target: map[key]!, star: '' }
  const patterns = Object.keys(map).filter(pattern => pattern.includes('*')).sort((a, b) => b.indexOf('*') - a.indexOf('*') || b.length - a.length)
  for (const pattern of patterns) {
    const [before, after] = pattern.split('*') as [string, string]
    if (key.startsWith(before) && key !== before && key.endsWith(after) && key.length >= pattern.length) return { target: map[pattern]!, star: key.slice(before.length, key.length - after.length) }
  }
  return undefined
}
/** The first target whose conditions hold; null says "not for you". */
function pick(target: Target | undefined, star: string): string | null | undefined {
  if (typeof target === 'string') return target.replaceAll('*', star)
  if (Array.isArray(target)) {
    for (const one of target as readonly Target[]) { const found = pick(one, star); if (found) return found }
    return undefined
  }
  if (!isConditions(target)) return target as null | undefined
  for (const [condition, inner] of Object.entries(target)) {
    if (!CONDITIONS.has(condition)) continue
    const found = pick(inner, star)
    if (found !== undefined) return found
  }
  return undefined
}
const isConditions = (target: Target | undefined): target is { readonly [condition: string]: Target } => typeof target === 'object' && target !== null && !Array.isArray(target)

function split(specifier: string): { name: string; subpath: string } {
  const parts = specifier.split('/')
  const length = specifier.startsWith('@') ? 2 : 1
  return { name: parts.slice(0, length).join('/'), subpath: parts.length > length ? `./${parts.slice(length).join('/')}` : '.' }
}
/** The nearest package.json upwards, as far as the next node_modules. */
function ownPackage(folder: string, files: Files): Package | undefined {
  for (let root = folder; !root.endsWith(`${sep}node_modules`); root = dirname(root)) {
    const manifest = manifestOf(root, files)
    if (manifest) return { root, manifest }
    if (root === dirname(root)) return undefined
  }
  return undefined
}
function manifestOf(root: string, files: Files): Manifest | undefined {
  const file = join(root, 'package.json')
  return files.once(`manifest ${file}`, () => {
    if (!files.isFile(file)) return undefined
    try { return JSON.parse(readFileSync(file, 'utf8')) as Manifest } catch (cause) { throw new HarnessError('module_not_found', `${file} is not JSON`, { cause, place: { file } }) }
  })
}

/** What a package says of itself, and what its source says that it would hang on. Read as text; nothing of it is run. */
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { extname, join } from 'node:path'
import semver from 'semver'
import { z } from '../z.js'
import { HarnessError } from '../errors.js'
import { VERSION } from '../version.js'

const ManifestShape = z.looseObject({
  name: z.string(), version: z.string().default('0.0.0'), description: z.string().optional(),
  keywords: z.array(z.string()).default([]), peerDependencies: z.record(z.string(), z.string()).default({}),
})
export type Manifest = z.infer<typeof ManifestShape>
/** As its source names them; what is made up at run time isn't seen. */
export interface Wants { readonly hooks: readonly string[]; readonly inject: readonly string[]; readonly provides: readonly string[]; readonly imports: readonly string[] }

export const KEYWORD = 'harnessx-plugin'
/** Beyond it nobody looks. */
const MOST_FILES = 500, MOST_BYTES = 1024 * 1024

export function readManifest(root: string): Manifest {
  const file = join(root, 'package.json')
  const read = existsSync(file) ? ManifestShape.safeParse(JSON.parse(readFileSync(file, 'utf8'))).data : undefined
  if (!read) throw new HarnessError('plugin_invalid', `"${root}" is no package: its package.json is missing or has no name`)
  return read
}
/** Why this package is no plugin for this host, in one sentence. */
export function packageProblem({ name, version, keywords, peerDependencies }: Manifest): string | undefined {
  const range = peerDependencies['harnessx']
  if (!keywords.includes(KEYWORD) && range === undefined) return `package "${name}" is no plugin of harnessx: it has neither the keyword "${KEYWORD}" nor a peer range for harnessx`
  if (range !== undefined && semver.validRange(range) === null) return `package "${name}" ${version} has a peer range for harnessx that can't be read: "${range}"`
  if (range !== undefined && !semver.satisfies(VERSION, range, { includePrerelease: true })) return `package "${name}" ${version} is for harnessx ${range}, and this is ${VERSION}; take another version of one of the two`
  return undefined
}
/** What its author should know, in one sentence; it is taken all the same. */
export const packageNote = ({ name, keywords }: Manifest): string | undefined =>
  keywords.includes(KEYWORD) ? undefined : `package "${name}" is found by nobody who looks for plugins: its package.json lacks the keyword "${KEYWORD}"`

/** `path`: a file, or the folder of a package. */
export function wants(path: string): Wants {
  const texts = sources(realpathSync(path))
  const all = (pattern: RegExp) => [...new Set(texts.flatMap(text => [...text.matchAll(pattern)].map(match => match[1]!)))].sort()
  const lists = (name: string) => [...new Set(all(new RegExp(`\\b${name}\\s*(?::[^=]+)?=\\s*\\[([^\\]]*)\\]`, 'g')).flatMap(list => [...list.matchAll(/['"]([^'"]+)['"]/g)].map(match => match[1]!)))].sort()
  return {
    hooks: all(/\.on\(\s*['"`]([\w-]+\/[\w-]+)['"`]/g), inject: lists('inject'),
    provides: [...new Set([...lists('provides'), ...all(/\.provide\(\s*['"`]([\w-]+)['"`]/g)])].sort(),
    imports: all(/(?:\bfrom|\bimport|\brequire\()\s*\(?['"]([^'"./][^'"]*)['"]/g).filter(name => name !== 'harnessx'),
  }
}
function sources(path: string): string[] {
  if (statSync(path).isFile()) return [readFileSync(path, 'utf8')]
  const files = readdirSync(path, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile() && /^\.[mc]?[jt]sx?$/.test(extname(entry.name)) && !/\.d\.[mc]?ts$|\.test\./.test(entry.name))
    .map(entry => join(entry.parentPath, entry.name)).filter(file => !file.slice(path.length).includes('/node_modules/'))
  return files.slice(0, MOST_FILES).filter(file => statSync(file).size <= MOST_BYTES).map(file => readFileSync(file, 'utf8'))
}

/**
 * Which config files are in force. Looks at names only: nothing is opened here, so nothing needs trust yet.
 * `--config`, HX_CONFIG, the nearest upwards, the user's, the shipped one. The user's own file is a layer under a project's; the shipped one stands alone.
 */
import { lstatSync, realpathSync, statSync } from 'node:fs'
import { dirname, isAbsolute, join, resolve } from 'node:path'
import { HarnessError } from '../errors.js'
import { CONFIG_NAME, type Places } from '../places.js'

export interface Located {
  /** The file that edits go to and that names the daemon. */
  readonly file: string
  /** Lowest layer first: the user's file, then `file`. */
  readonly layers: readonly string[]
  readonly kind: 'flag' | 'env' | 'project' | 'user' | 'shipped'
  /** A file whose name is nearly right. */
  readonly note?: string | undefined
}

export interface Search {
  /** `--config` */
  readonly flag?: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
  /** Where the search upwards begins, and what relative paths are relative to. */
  readonly cwd: string
  readonly places: Places
}

export function locate({ flag, env, cwd, places }: Search): Located {
  const named = flag ?? (env['HX_CONFIG'] || undefined)
  const user = isConfig(places.userConfig) ? places.userConfig : undefined
  if (named !== undefined) {
    const file = isAbsolute(named) ? named : resolve(cwd, named)
    if (!isFile(file)) throw new HarnessError('config_missing', `the config file "${file}" ${isThere(file) ? 'is not a file' : 'does not exist'} (named by ${flag === undefined ? 'HX_CONFIG' : '--config'})`, { place: { file } })
    return layered(file, user, flag === undefined ? 'env' : 'flag')
  }
  const { file, note } = upwards(cwd)
  if (file !== undefined && !(user && same(file, user))) return { ...layered(file, user, 'project'), note }
  if (user !== undefined) return { file: user, layers: [user], kind: 'user', note }
  return { file: places.installation.config, layers: [places.installation.config], kind: 'shipped', note }
}

/** The config alone that the installation came with: `--safe`. */
export const shipped = (places: Places): Located => ({ file: places.installation.config, layers: [places.installation.config], kind: 'shipped' })

/** The user's own config, else the shipped one: what is left when the one of the folder is not trusted. */
export const withoutProject = (places: Places): Located =>
  isConfig(places.userConfig) ? { file: places.userConfig, layers: [places.userConfig], kind: 'user' } : shipped(places)

/** The file that `enable`, `disable` and the like may edit. */
export function editable(located: Located): string {
  if (located.kind === 'shipped') throw new HarnessError('config_missing', 'there is no harness.config.yaml here or above, only the shipped one, which stays as it is; make your own with "hx init"')
  return located.file
}

function layered(file: string, user: string | undefined, kind: Located['kind']): Located {
  return { file, layers: user === undefined || same(user, file) ? [file] : [user, file], kind }
}
function upwards(start: string): { file?: string; note?: string } {
  let note: string | undefined
  for (let folder = resolve(start); ; folder = dirname(folder)) {
    const file = join(folder, CONFIG_NAME)
    if (isConfig(file)) return { file, ...(note && { note }) }
    const nearly = join(folder, CONFIG_NAME.replace('.yaml', '.yml'))
    if (isFile(nearly)) note ??= `"${nearly}" is not read; rename it to ${CONFIG_NAME}`
    if (folder === dirname(folder)) return note === undefined ? {} : { note }
  }
}
function isFile(path: string): boolean {
  try { return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false } catch (error) {
    if (['ENOTDIR', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '')) return false     // a file where a folder was expected, a link to itself: as good as nothing there
    throw error
  }
}
/** Something stands there, if only a link to nothing. */
function isThere(path: string): boolean {
  try { return lstatSync(path, { throwIfNoEntry: false }) !== undefined } catch { return false }            // a file where a folder was expected
}
/** A config whose link is broken must not be passed over in silence. */
function isConfig(file: string): boolean {
  if (isFile(file)) return true
  if (isThere(file)) throw new HarnessError('config_missing', `"${file}" is not a file, or a link that leads to none; mend or remove it, since another config in its place might allow more`, { place: { file } })
  return false
}
const same = (a: string, b: string): boolean => a === b || realpathSync(a) === realpathSync(b)

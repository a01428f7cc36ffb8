/**
 * What a config would run, for a person who has to decide about it: its text and the names of files, and nothing else. No module is opened, no reference resolved, no `.env` read.
 * Throws `config_invalid` for a text that can't be read: what can't be shown can't be agreed to.
 */
import { existsSync, realpathSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import type { Places } from '../places.js'
import { invalid, parseLayers } from './config.js'
import { parseConfigText } from './config-text.js'
import { entryFile } from './entry-file.js'
import { Files } from './files.js'
import type { Located } from './locate.js'
import { readText } from './text-file.js'

export interface PreviewRow {
  readonly id: string
  readonly name: string
  readonly from: string
  /** Comes with the installation, the user's own layer, or the config that is asked about (its folder, or from outside of it). */
  readonly origin: 'shipped' | 'user' | 'folder' | 'outside'
  /** It is not there (yet). */
  readonly missing: boolean
  /** As written: references are not resolved. */
  readonly config: Readonly<Record<string, unknown>>
}
export interface Preview {
  readonly config: string
  /** Enabled rows, in the order of their handlers. */
  readonly plugins: readonly PreviewRow[]
  readonly disabled: readonly string[]
  /** Further keys of the file, as written: folders that tools may use, listeners, models. */
  readonly settings: Readonly<Record<string, unknown>>
  /** The `.env` beside it, when there is one. */
  readonly env?: string
  /** Folders outside that its plugins stand in. */
  readonly also: readonly string[]
}

export function preview({ file, layers }: Located, { installation, config: userFolder }: Places): Preview {
  const texts = layers.map(layer => ({ file: layer, text: readText(layer) }))
  const { config, problems } = parseLayers(texts)
  if (!config) throw invalid(problems)
  const files = new Files(), folder = realpathSync(dirname(file))
  const rows = config.plugins.filter(({ enabled }) => enabled).map((row): PreviewRow => {
    const found = entryFile(row, installation, files), from = found.missing ? found.file : files.real(found.file)
    const within = (place: string) => from.startsWith((existsSync(place) ? realpathSync(place) : place) + sep)
    return { id: row.id, name: row.name, from, missing: found.missing !== undefined, config: row.config, origin: within(installation.plugins) ? 'shipped' : within(userFolder) ? 'user' : within(folder) ? 'folder' : 'outside' }
  })
  const { plugins: _, version: __, ...settings } = parseConfigText(texts.at(-1)!.text, file).value as Record<string, unknown>
  const env = join(dirname(file), '.env')
  return {
    config: file, plugins: rows, disabled: config.plugins.filter(({ enabled }) => !enabled).map(({ id }) => id), settings, ...(existsSync(env) && { env }),
    also: [...new Set(rows.flatMap(({ origin, missing, from }) => origin === 'outside' && !missing ? [codeFolder(from)] : []))],
  }
}

/** The package that a file belongs to, else the folder it stands in. */
function codeFolder(file: string): string {
  const inPackage = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(file)
  return inPackage ? inPackage[0] : dirname(file)
}

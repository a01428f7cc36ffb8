/**
 * From the files of the disk to what the host wants: config, entries, environment. Reads; decides nothing that config.ts or entry-file.ts could decide.
 * Trust is asked for each file before it is opened. A config with a problem yields no half of one: it throws, and the caller keeps what is in force.
 */
import { readFileSync, statSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { HarnessError } from '../errors.js'
import type { Places } from '../places.js'
import { freeze, invalid, parseLayers, type Config, type ConfigRow, type Problem } from './config.js'
import { MAX_BYTES } from './config-limits.js'
import { parseEnvFile, withEnvFile } from './env-file.js'
import type { EntrySpec } from './entry.js'
import { entryFile, type EntryFile } from './entry-file.js'
import { Files, type TextSource } from './files.js'
import { interpolate } from './interpolate.js'
import type { Located } from './locate.js'
import { readText } from './text-file.js'
import { ask, type Trust } from './trust.js'

type Env = Readonly<Record<string, string | undefined>>

export interface ReadOptions {
  readonly located: Located
  readonly places: Places
  readonly env: Env
  readonly trust: Trust
  /** `--plugin PATH`, absolute: loaded as well, after all others. */
  readonly extra?: readonly string[]
  /** `--without ID` */
  readonly without?: readonly string[]
  /** Read already: these are what is judged, whatever stands on the disk by now. */
  readonly read?: TextSource | undefined
}
export interface ConfigInForce {
  readonly config: Config
  readonly entries: readonly EntrySpec[]
  /** The process's environment over the `.env` files beside the config. Never to be put into `process.env`, nor into a tool's. */
  readonly env: Env
  readonly notes: readonly Problem[]
  /** What references in configs of plugins became. */
  readonly secrets: readonly string[]
  /** Every text that was read, by file: what the watcher compares with. */
  readonly texts: ReadonlyMap<string, string>
  /** Where modules, and `.env` files, that were not found would have been: when one appears, the config is to be read again. */
  readonly looked: readonly string[]
}

/** Throws `untrusted` or `config_invalid` in one sentence. */
export function readConfig(options: ReadOptions): ConfigInForce {
  const { problems, ...read } = checkConfig(options)
  if (problems.length > 0 || !read.config) throw invalid(problems)
  return { ...read, config: read.config }
}

/** The same with every problem, for `hx config check`. */
export function checkConfig({ located, places, env, trust, extra = [], without = [], read }: ReadOptions): Omit<ConfigInForce, 'config'> & { readonly config: Config | undefined; readonly problems: readonly Problem[] } {
  const texts = new Map<string, string>(), looked: string[] = []
  const layers = located.layers.map(file => {
    ask(trust, { kind: 'config', file })
    const text = read?.get(file) ?? readText(file)
    texts.set(file, text)
    return { file, text }
  })
  const parsed = parseLayers(layers)
  const environment = located.layers.reduce<Env>((below, file) => {
    const beside = join(dirname(file), '.env')
    const text = trust.allows({ kind: 'env', file: beside }) ? (read?.has(beside) ? read.get(beside) : readIfThere(beside)) : undefined
    if (text === undefined) { looked.push(beside); return below }
    texts.set(beside, text)
    return { ...below, ...parseEnvFile(text) }
  }, {})
  const resolved = withEnvFile(env, environment as Record<string, string>)

  const files = new Files(read), problems = [...parsed.problems], notes = [...parsed.notes], secrets: string[] = []
  if (located.note !== undefined) notes.push({ file: located.file, message: located.note })
  const entries = withExtra(switchedOff(parsed.rows, parsed.config ? without : []), parsed.config ? extra : []).map((row, index): EntrySpec => {
    const found = entryFile(row, places.installation, files)
    if (found.missing) looked.push(...found.looked)
    if (found.shadows) notes.push({ ...row.at, message: `plugin "${row.id}" is ${found.file}, which hides the shipped plugin "${row.name}"` })
    const { value, unresolved, secrets: revealed } = row.enabled ? interpolate(row.config, { env: resolved, read: readReference }) : { value: row.config, unresolved: [], secrets: [] }
    secrets.push(...revealed)
    problems.push(...unresolved.map(({ path, message }) => ({ ...row.place(path), message: `plugin "${row.id}": ${message}` })))
    return entrySpec(row, index, found, value)
  })
  return { config: parsed.config, problems, notes, entries, env: resolved, secrets, texts, looked }
}

function entrySpec(row: ConfigRow, index: number, { file, missing }: EntryFile, config: unknown): EntrySpec {
  const { id, name, enabled, required, config: written, at, place } = row
  return { id, name, from: file, config: freeze(config), written, enabled, required, row: index, at, place, ...(missing && { missing }) }
}
function switchedOff(rows: readonly ConfigRow[], without: readonly string[]): readonly ConfigRow[] {
  const unknown = without.find(id => !rows.some(row => row.id === id))
  if (unknown !== undefined) throw new HarnessError('unknown_id', `--without "${unknown}": the config has no such entry; it has ${rows.map(row => `"${row.id}"`).join(', ')}`)
  return rows.map(row => without.includes(row.id) ? { ...row, enabled: false } : row)
}
function withExtra(rows: readonly ConfigRow[], paths: readonly string[]): readonly ConfigRow[] {
  const extra = paths.map(extraRow)
  const taken = extra.find(({ id }, index) => rows.some(row => row.id === id) || extra.findIndex(other => other.id === id) < index)
  if (taken) throw new HarnessError('usage', `--plugin "${taken.from}": there is an entry "${taken.id}" already; rename the file, or leave the other out with --without ${taken.id}`)
  return [...rows, ...extra]
}
/** Required: whoever names a plugin for one run wants no run without it. */
function extraRow(path: string): ConfigRow {
  const name = basename(path).replace(/\.m?[jt]s$/, ''), here = { file: path }
  return { id: name === 'index' ? basename(dirname(path)) : name, name, enabled: true, required: true, locked: false, config: {}, from: resolve(path), origin: path, at: here, place: () => here }
}

function readIfThere(file: string): string | undefined {
  return statSync(file, { throwIfNoEntry: false })?.isFile() ? readText(file) : undefined
}
function readReference(file: string): string {
  if (!file.startsWith('/')) throw new HarnessError('config_invalid', 'the path must be absolute')
  const found = statSync(file)
  if (!found.isFile() || found.size > MAX_BYTES) throw new HarnessError('config_invalid', `must be a file of at most ${MAX_BYTES / 1024} KB`)
  return readFileSync(file, 'utf8')
}

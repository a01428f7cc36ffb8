/**
 * harness.config.yaml: texts of one or two layers to one frozen config, or to problems with file, line and column. Pure; reading and resolving modules is read-config.ts.
 * Order of rows: the user's first, then the project's; a project row of the same id replaces key by key at the user's place, unless that row is locked.
 */
import { basename } from 'node:path'
import { at, HarnessError, type Place } from '../errors.js'
import { parseConfigText, type ConfigText, type Problem } from './config-text.js'
import { issuesOf, SECTION_NAMES, Sections, type Row } from './config-schema.js'

export type { Problem } from './config-text.js'

/** One row of `plugins:`, merged. */
export interface ConfigRow {
  readonly id: string
  readonly name: string
  readonly enabled: boolean
  readonly required: boolean
  readonly locked: boolean
  /** As written: references are not resolved yet. */
  readonly config: Readonly<Record<string, unknown>>
  readonly from?: string | undefined
  /** The file that `from`, or the row, stands in: what relative paths are relative to. */
  readonly origin: string
  /** Where the row stands. */
  readonly at: Place
  /** Where a part of its config stands. */
  place(path: readonly PropertyKey[]): Place
}
export interface Config extends Readonly<Sections> { readonly plugins: readonly ConfigRow[] }
export interface ParsedConfig {
  /** Undefined when there are problems. */
  readonly config: Config | undefined
  /** The rows that can be read, whatever is wrong elsewhere: so that problems of plugins are not hidden by those of the file. */
  readonly rows: readonly ConfigRow[]
  readonly problems: readonly Problem[]
  /** What a person should know although it is no mistake. */
  readonly notes: readonly Problem[]
}

export const parseConfig = (text: string, file: string): ParsedConfig => parseLayers([{ text, file }])

/** Lowest layer first. */
export function parseLayers(layers: readonly { readonly text: string; readonly file: string }[]): ParsedConfig {
  const texts = layers.map(({ text, file }) => parseConfigText(text, file))
  const notes: Problem[] = []
  const problems = texts.flatMap(text => text.problems.length > 0 ? [...text.problems] : problemsOf(text))
  if (problems.length > 0) return { config: undefined, rows: mergeRows(texts.map(soundRows), notes).filter(row => row.name !== ''), problems, notes }
  const rows = mergeRows(texts.map(text => rowsOf(text)), notes)
  const nameless = rows.filter(row => row.name === '').map(row => ({ ...row.at, message: `the row "${row.id}" needs a name: there is no row of that id in a lower layer` }))
  if (nameless.length > 0) return { config: undefined, rows: rows.filter(row => row.name !== ''), problems: nameless, notes }
  return { config: freeze({ ...Sections.parse(mergeSections(texts)), plugins: rows }), rows, problems, notes }
}

/** The problems as the one error that a command ends with. */
export function invalid(problems: readonly Problem[]): HarnessError {
  const [first, ...more] = problems
  const place: Place = { file: first!.file, line: first!.line, column: first!.column }
  return new HarnessError('config_invalid', `${at({ ...place, file: basename(place.file) })} ${first!.message}${more.length > 0 ? ` (and ${more.length} more)` : ''}`, { place })
}

function problemsOf(text: ConfigText): Problem[] {
  const issues = issuesOf(text.value)
  if (issues.length > 0) return issues.map(({ path, message, key }) => ({ ...(key ? text.keyPlace(path) : text.place(path)), message }))
  const first = new Map<string, ConfigRow>(), found: Problem[] = []
  for (const row of rowsOf(text)) {
    const other = first.get(row.id)
    if (other) found.push({ ...row.at, message: `the id "${row.id}" stands here and in line ${other.at.line}; give one of the two rows another id` })
    else first.set(row.id, row)
  }
  return found
}

/** The rows of one layer, and the keys that each one names. */
type LayerRow = ConfigRow & { readonly named: ReadonlySet<string> }

function rowsOf(text: ConfigText, isSound: (index: number) => boolean = () => true): LayerRow[] {
  const { plugins = [] } = text.value as { plugins?: readonly (string | Row)[] }
  return plugins.flatMap((written, index): LayerRow[] => {
    if (!isSound(index)) return []
    const row: Row = typeof written === 'string' ? { name: written } : written
    return [{
      id: row.id ?? row.name!, name: row.name ?? '', enabled: row.enabled ?? true, required: row.required ?? false, locked: row.locked ?? false,
      config: row.config ?? {}, from: row.from, origin: text.file,
      at: text.place(['plugins', index]),
      place: path => text.place(['plugins', index, 'config', ...path]),
      named: new Set(Object.keys(row)),
    }]
  })
}
/** Those of a file with mistakes that have none themselves. */
function soundRows(text: ConfigText): LayerRow[] {
  const { plugins } = (text.value ?? {}) as { plugins?: unknown }
  if (!Array.isArray(plugins)) return []
  const wrong = new Set(issuesOf(text.value).map(({ path }) => path[0] === 'plugins' ? path[1] : undefined))
  return rowsOf(text, index => !wrong.has(index))
}

function mergeRows(layers: readonly (readonly LayerRow[])[], notes: Problem[]): ConfigRow[] {
  const rows = new Map<string, ConfigRow>()
  for (const { named, ...row } of layers.flat()) {
    const below = rows.get(row.id)
    if (below?.locked) notes.push({ ...row.at, message: `the row "${row.id}" has no effect: it is locked in ${at(below.at)}` })
    else rows.set(row.id, below ? over(below, row, named) : row)
  }
  return [...rows.values()]
}
function over(below: ConfigRow, row: ConfigRow, named: ReadonlySet<string>): ConfigRow {
  return {
    ...below, at: row.at,
    ...(named.has('name') && { name: row.name }),
    ...(named.has('from') && { from: row.from, origin: row.origin }),
    ...(named.has('enabled') && { enabled: row.enabled }),
    ...(named.has('required') && { required: row.required }),
    ...(named.has('locked') && { locked: row.locked }),
    ...(named.has('config') && { config: row.config, place: row.place }),
  }
}

function mergeSections(texts: readonly ConfigText[]): Record<string, unknown> {
  const merged: Record<string, unknown> = {}
  for (const { value } of texts) for (const name of SECTION_NAMES) {
    const section = (value as Record<string, object | undefined>)[name]
    if (section !== undefined) merged[name] = mergeMaps(merged[name], section)
  }
  return merged
}

/** Key by key, maps within maps too; anything else of the upper one stands. */
function mergeMaps(lower: unknown, upper: unknown): unknown {
  if (!isMap(lower) || !isMap(upper)) return upper
  const merged: Record<string, unknown> = { ...lower }
  for (const [key, value] of Object.entries(upper)) merged[key] = mergeMaps(Object.hasOwn(lower, key) ? lower[key] : undefined, value)
  return merged
}
const isMap = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Deeply. */
export function freeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value)
    for (const inner of Object.values(value)) freeze(inner)
  }
  return value
}

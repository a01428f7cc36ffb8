/**
 * The config in force, value by value, with where each comes from: a line of a file, or the default. Pure. References are shown as written, so that no secret is.
 */
import type { Place } from '../errors.js'
import type { ConfigRow } from './config.js'
import { SECTION_NAMES, Sections } from './config-schema.js'
import { parseConfigText } from './config-text.js'

export interface Explained {
  /** `agent.maxSteps`, `plugins.permission.config.ask`. */
  readonly key: string
  readonly value: unknown
  /** Undefined for a default. */
  readonly place?: Place | undefined
}
interface Layer { readonly file: string; readonly text: string }

/** Of layers without mistakes, the lowest first. `defaults`: what the plugins themselves add to what is written, by id. */
export function explain(layers: readonly Layer[], rows: readonly ConfigRow[], defaults: ReadonlyMap<string, unknown> = new Map()): Explained[] {
  const texts = layers.map(({ text, file }) => parseConfigText(text, file)), topFirst = texts.toReversed()
  const merged: Record<string, unknown> = {}
  for (const { value } of texts) for (const name of SECTION_NAMES) merged[name] = { ...merged[name] as object | undefined, ...(value as Record<string, object | undefined>)[name] }
  const written = (path: readonly string[]): Place | undefined => topFirst.find(({ value }) => at(value, path) !== undefined)?.keyPlace(path)
  const sections = Object.entries(Sections.parse(merged)).filter(([name]) => name !== 'version').flatMap(([name, section]) => leaves([name], section).map(([path, value]): Explained => ({ key: path.join('.'), value, place: written(path) ?? within(path, written) })))
  return [...sections, ...rows.flatMap(row => ofRow(row, topFirst, defaults.get(row.id)))]
}

/** A row's own keys, then its config; what it does not say is the default. */
function ofRow(row: ConfigRow, topFirst: readonly ReturnType<typeof parseConfigText>[], filled: unknown): Explained[] {
  const named = (key: string): Place | undefined => {
    for (const text of topFirst) {
      const list = ((text.value as { plugins?: readonly unknown[] }).plugins ?? []), index = list.findIndex(one => idOf(one) === row.id)
      const one = list[index]
      if (index < 0 || (typeof one === 'string' ? key !== 'name' : !Object.hasOwn(one as object, key))) continue
      return typeof one === 'string' ? text.place(['plugins', index]) : text.keyPlace(['plugins', index, key])
    }
    return undefined
  }
  const { id, name, from, enabled, required, locked, config } = row, key = `plugins.${id}`
  return [
    { key: `${key}.name`, value: name, place: named('name') },
    ...(from === undefined ? [] : [{ key: `${key}.from`, value: from, place: named('from') }]),
    { key: `${key}.enabled`, value: enabled, place: named('enabled') },
    ...(required || named('required') ? [{ key: `${key}.required`, value: required, place: named('required') }] : []),
    ...(locked ? [{ key: `${key}.locked`, value: locked, place: named('locked') }] : []),
    ...leaves([], config).filter(([path]) => path.length > 0).map(([path, value]): Explained => ({ key: [key, 'config', ...path].join('.'), value, place: row.place(path) })),
    ...leaves([], filled).filter(([path]) => path.length > 0 && at(config, path) === undefined && !path.some((_, end) => isLeaf(at(config, path.slice(0, end + 1))))).map(([path, value]): Explained => ({ key: [key, 'config', ...path].join('.'), value })),
  ]
}
const idOf = (row: unknown): unknown => typeof row === 'string' ? row : (row as { id?: unknown; name?: unknown }).id ?? (row as { name?: unknown }).name
/** A default inside a map that is written has no line of its own; a value inside a written list has its list's. */
const within = (path: readonly string[], written: (path: readonly string[]) => Place | undefined): Place | undefined => path.length > 2 ? written(path.slice(0, 2)) : undefined

/** Maps are walked, lists and plain values are the ends. */
function leaves(path: readonly string[], value: unknown): [path: readonly string[], value: unknown][] {
  return isLeaf(value) || value === undefined ? [[path, value]] : Object.entries(value as object).flatMap(([key, inner]) => leaves([...path, key], inner))
}
const isLeaf = (value: unknown): boolean => value !== undefined && (typeof value !== 'object' || value === null || Array.isArray(value) || Object.keys(value).length === 0)
const at = (value: unknown, path: readonly string[]): unknown => path.reduce<unknown>((inner, key) => typeof inner === 'object' && inner !== null ? (inner as Record<string, unknown>)[key] : undefined, value)

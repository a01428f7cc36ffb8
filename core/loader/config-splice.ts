/**
 * YAML text with one value set, added or removed, and every other character as it was. Knows no key of the config.
 * The library says what the result must mean (its own edit of the document) and where things stand; the change is cut into the text, read again, and compared. Where a cut can't say it, the library's own printing is the answer, which keeps comments and order but not every blank.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Document, isCollection, isMap, isScalar, isSeq, type Node, type Pair, stringify, type YAMLMap, type YAMLSeq } from 'yaml'
import { HarnessError } from '../errors.js'
import { parseYaml } from './config-text.js'

type Path = readonly (string | number)[]
type Ranged = Node & { range: [number, number, number] }

/** Sets the value at `path`, with the maps above it that are missing. */
export const setAt = (whole: string, path: Path, value: unknown): string => inItsForm(whole, text =>
  edited(text, path, (parent, key) => { parent[key] = value }, doc => { doc.setIn(path, doc.createNode(value)) }, doc => cutIn(text, doc, path, value)))
/** Adds an item to the end of the list at `path`. */
export const appendAt = (whole: string, path: Path, value: unknown): string => inItsForm(whole, text => {
  const present = (parseYaml(text).getIn(path, true) as Node | undefined)
  if (!isSeq(present)) return setAt(text, path, [value])
  return edited(text, path, (parent, key) => { (parent[key] as unknown[]).push(value) }, doc => { doc.addIn(path, doc.createNode(value)) }, () => {
    if (present.items.length === 0) return replaced(text, present as YAMLSeq & Ranged, `[${print(value)}]`)
    if (present.flow) return inserted(text, endOf(last(present.items) as Node), `, ${print(value)}`)
    return line(text, (present as Ranged).range[1], `${' '.repeat(column(text, (present as Ranged).range[0]))}- ${print(value)}`)
  })
})
/** Takes out the value at `path`. */
export const removeAt = (whole: string, path: Path): string => inItsForm(whole, text =>
  edited(text, path, (parent, key) => { if (Array.isArray(parent)) parent.splice(key as number, 1); else delete parent[key] }, doc => { doc.deleteIn(path) }, doc => {
    const list = doc.getIn(path.slice(0, -1), true) as Node | undefined
    const item = doc.getIn(path, true) as Ranged | undefined
    if (!isSeq(list) || list.flow || list.items.length === 1 || !item) return undefined
    const start = text.lastIndexOf('\n', item.range[0]) + 1
    return text.slice(0, start) + text.slice(isScalar(item) ? item.range[2] : item.range[1])
  }))

/** A byte order mark stays, and line ends that are all CRLF stay so: the edit is made between them. */
function inItsForm(whole: string, edit: (text: string) => string): string {
  const mark = whole.startsWith('\ufeff') ? '\ufeff' : '', text = whole.slice(mark.length), crlf = text.includes('\r\n') && !/(?<!\r)\n/.test(text)
  return mark + (crlf ? edit(text.replaceAll('\r\n', '\n')).replaceAll('\n', '\r\n') : edit(text))
}

/** `plainly` is the change in plain values, `edit` in the document, `cut` in the text. The first says what the others must mean: an anchor ties places together, and one that is changed changes them all. */
function edited(text: string, path: Path, plainly: (parent: Values, key: string | number) => void, edit: (doc: Document) => void, cut: (doc: Document) => string | undefined): string {
  const doc = parseYaml(text)
  if (doc.errors.length > 0) throw new HarnessError('internal', 'a text with a mistake in it was to be edited')
  const changed = copyOf(doc.toJS() ?? {})
  plainly(parentOf(changed, path), path.at(-1)!)
  const meaning = copyOf(changed)                            // without what is undefined
  const means = (result: string): boolean => {
    const read = parseYaml(result)
    return read.errors.length === 0 && isDeepStrictEqual(copyOf(read.toJS()), meaning)
  }
  try {
    const short = cut(doc as Document)
    if (short !== undefined && means(short)) return short
    const wanted = parseYaml(text)
    edit(wanted as Document)
    const printed = wanted.toString({ lineWidth: 0, flowCollectionPadding: true })
    if (means(printed)) return printed
  } catch (error) {
    throw new HarnessError('config_invalid', TIED, { cause: error })
  }
  throw new HarnessError('config_invalid', TIED)
}
const TIED = 'this can not be changed by itself, since an anchor ("&name") and its alias ("*name") tie it to another place of the file; write the value out in both places, or make the change by hand; nothing was written'

type Values = Record<string | number, unknown>
/** A copy in which no two places are one object. */
const copyOf = (values: unknown): Values => JSON.parse(JSON.stringify(values)) as Values
/** With the maps that are missing on the way. */
const parentOf = (values: Values, path: Path): Values => path.slice(0, -1).reduce<Values>((at, key) => (at[key] ??= {}) as Values, values)

function cutIn(text: string, doc: Document, path: Path, value: unknown): string | undefined {
  if (path.length === 0) return undefined
  const present = doc.getIn(path, true) as Node | undefined
  if (present) return !isCollection(present) || present.flow ? replaced(text, present as Ranged, print(value)) : undefined
  const above = path.slice(0, -1), key = path.at(-1)!
  const parent = (above.length === 0 ? doc.contents : doc.getIn(above, true)) as Node | null | undefined
  if (!parent) return cutIn(text, doc, above, { [key]: value })
  if (!isMap(parent)) return undefined
  return intoMap(text, parent as YAMLMap & Ranged, `${print(key)}: ${print(value)}`)
}
function intoMap(text: string, map: YAMLMap & Ranged, pair: string): string | undefined {
  if (map.flow && map.items.length === 0) return replaced(text, map, `{ ${pair} }`)
  if (map.flow) {
    const { key, value } = last(map.items) as Pair<Node, Node | null>
    return inserted(text, endOf(value && endOf(value) > 0 ? value : key), `, ${pair}`)
  }
  return line(text, map.range[1], ' '.repeat(column(text, map.range[0])) + pair)
}

/** In one line, as it may stand inside any collection. */
const print = (value: unknown): string => stringify(value, { collectionStyle: 'flow', lineWidth: 0, blockQuote: false, flowCollectionPadding: true }).trim()
const last = <T>(items: readonly T[]): T => items[items.length - 1]!
const endOf = (node: Node): number => (node as Ranged).range[1]
const column = (text: string, offset: number): number => offset - (text.lastIndexOf('\n', offset - 1) + 1)
const inserted = (text: string, offset: number, piece: string): string => text.slice(0, offset) + piece + text.slice(offset)
function replaced(text: string, { range: [start, end] }: Ranged, piece: string): string {
  return text.slice(0, start) + (start === end && text[start - 1] === ':' ? ' ' : '') + piece + text.slice(end)
}
/** A line of its own at `offset`, which is the beginning of one or the end of the text. */
function line(text: string, offset: number, piece: string): string {
  const before = text.slice(0, offset)
  return `${before}${before === '' || before.endsWith('\n') ? '' : '\n'}${piece}\n${text.slice(offset)}`
}

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
export function setAt(text: string, path: Path, value: unknown): string {
  return edited(text, doc => { doc.setIn(path, doc.createNode(value)) }, doc => cutIn(text, doc, path, value))
}
/** Adds an item to the end of the list at `path`. */
export function appendAt(text: string, path: Path, value: unknown): string {
  const present = (parseYaml(text).getIn(path, true) as Node | undefined)
  if (!isSeq(present)) return setAt(text, path, [value])
  return edited(text, doc => { doc.addIn(path, doc.createNode(value)) }, () => {
    if (present.items.length === 0) return replaced(text, present as YAMLSeq & Ranged, `[${print(value)}]`)
    if (present.flow) return inserted(text, endOf(last(present.items) as Node), `, ${print(value)}`)
    return line(text, (present as Ranged).range[1], `${' '.repeat(column(text, (present as Ranged).range[0]))}- ${print(value)}`)
  })
}
/** Takes out the value at `path`. */
export function removeAt(text: string, path: Path): string {
  return edited(text, doc => { doc.deleteIn(path) }, doc => {
    const list = doc.getIn(path.slice(0, -1), true) as Node | undefined
    const item = doc.getIn(path, true) as Ranged | undefined
    if (!isSeq(list) || list.flow || list.items.length === 1 || !item) return undefined
    const start = text.lastIndexOf('\n', item.range[0]) + 1
    return text.slice(0, start) + text.slice(isScalar(item) ? item.range[2] : item.range[1])
  })
}

function edited(text: string, edit: (doc: Document) => void, cut: (doc: Document) => string | undefined): string {
  const doc = parseYaml(text)
  if (doc.errors.length > 0) throw new HarnessError('internal', 'a text with a mistake in it was to be edited')
  const wanted = parseYaml(text)
  edit(wanted as Document)
  const printed = wanted.toString({ lineWidth: 0, flowCollectionPadding: true })
  const meaning = parseYaml(printed).toJS()
  const result = cut(doc as Document)
  if (result !== undefined) {
    const read = parseYaml(result)
    if (read.errors.length === 0 && isDeepStrictEqual(read.toJS(), meaning)) return result
  }
  return printed
}

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

/**
 * YAML text to plain values and back to places: the only file that knows the YAML library. Knows no key of the config.
 * YAML 1.2 core schema, one document, string keys, no tags, no merge keys, no cycles. What comes out is fresh plain data; `__proto__` can't be a key.
 */
import { type Document, isAlias, isMap, isNode, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument, visit, type YAMLMap } from 'yaml'
import type { Place } from '../errors.js'
import { MAX_DEPTH, tooMuch } from './config-limits.js'
import { readPlain } from './config-plain.js'

/** One thing that is wrong, where it stands. */
export interface Problem { readonly file: string; readonly line?: number | undefined; readonly column?: number | undefined; readonly message: string }
export interface ConfigText {
  readonly file: string
  readonly text: string
  /** Undefined when there are problems. */
  readonly value: unknown
  readonly problems: readonly Problem[]
  /** Where the value at `path` stands, or the nearest thing above it that there is. */
  place(path: readonly PropertyKey[]): Place
  /** Where the key stands that ends `path`. */
  keyPlace(path: readonly PropertyKey[]): Place
}

const MAX_ALIASES = 20
/** One edit is asked about several times on its way, and compared with the text before it; a user's and a project's file make two of each. */
const MOST_RECENT = 4
const recent: ConfigText[] = []
type Doc = Document.Parsed

/** The parsed document as the library holds it, for edits that keep comments. */
export const parseYaml = (text: string, lines?: LineCounter): Doc =>
  parseDocument(text, { version: '1.2', schema: 'core', merge: false, uniqueKeys: false, prettyErrors: false, ...(lines && { lineCounter: lines }) })

export function parseConfigText(text: string, file: string): ConfigText {
  const known = recent.find(one => one.text === text && one.file === file)
  if (known) return known
  const parsed = parse(text, file)
  recent.unshift(parsed)
  recent.splice(MOST_RECENT)
  return parsed
}

function parse(text: string, file: string): ConfigText {
  const limit = tooMuch(text)
  if (limit) return { file, text, value: undefined, problems: [{ file, ...lineAndColumn(text, limit.offset), message: limit.message }], place: () => ({ file }), keyPlace: () => ({ file }) }
  const plain = readPlain(text)
  if (!plain) return parseWhole(text, file)
  return {
    file, text, problems: [], value: plain.value,
    place: path => ({ file, ...plain.find(path).value }),
    keyPlace: path => { const { key, value } = plain.find(path); return { file, ...(key ?? value) } },
  }
}
/** All of YAML, by the library. */
export function parseWhole(text: string, file: string): ConfigText {
  const lines = new LineCounter()
  const doc = parseYaml(text, lines)
  const at = (offset: number | undefined): Place => {
    if (offset === undefined) return { file }
    const { line, col } = lines.linePos(offset)
    return { file, line, column: col }
  }
  const problems = [
    ...doc.errors.map(error => ({ ...at(error.pos[0]), message: wording(error.code, error.message) })),
    ...(doc.errors.length === 0 ? faults(doc, at) : []),
  ]
  let value: unknown
  if (problems.length === 0) {
    try { value = doc.toJS({ maxAliasCount: MAX_ALIASES }) } catch (error) {
      problems.push({ file, line: 1, column: 1, message: error instanceof ReferenceError && /excessive/i.test(error.message) ? `aliases must not be expanded more than ${MAX_ALIASES} times` : `the text can not be read as data: ${(error as Error).message}` })
    }
  }
  if (problems.length === 0 && (value === null || value === undefined)) problems.push({ file, line: 1, column: 1, message: 'the file is empty; a config without plugins says "plugins: []"' })
  return {
    file, text, problems, value: problems.length > 0 ? undefined : value,
    place: path => at(find(doc, path).value?.range?.[0]),
    keyPlace: path => { const { key, value } = find(doc, path); return at((key ?? value)?.range?.[0]) },
  }
}

function wording(code: string, message: string): string {
  if (code === 'TAB_AS_INDENT') return 'tabs are not allowed as indentation; use spaces'
  if (code === 'MULTIPLE_DOCS') return 'the file must hold one YAML document, here begins a second one'
  return message.slice(0, 1).toLowerCase() + message.slice(1)
}

/** What the library lets pass or only warns of. */
function faults(doc: Doc, at: (offset: number | undefined) => Place): Problem[] {
  const found: Problem[] = []
  const say = (node: { range?: readonly number[] | null | undefined } | null | undefined, message: string) => { found.push({ ...at(node?.range?.[0]), message }) }
  for (const warning of doc.warnings) if (warning.code !== 'TAG_RESOLVE_FAILED') found.push({ ...at(warning.pos[0]), message: wording(warning.code, warning.message) })
  visit(doc, (_, node, path) => {
    if (!isNode(node)) return undefined
    if (node.tag !== undefined) say(node, `tags are not used here: remove "${node.tag.replace('tag:yaml.org,2002:', '!!')}"`)
    if (isMap(node)) checkKeys(node, say, at)
    if (isAlias(node)) {
      const target = node.resolve(doc)
      if (target === undefined) say(node, `there is no anchor "&${node.source}" before this alias`)
      else if (path.includes(target)) say(node, `the alias "*${node.source}" stands inside what it names`)
    }
    if (path.filter(above => isMap(above) || isSeq(above)).length <= MAX_DEPTH) return undefined
    say(node, `nesting must not be deeper than ${MAX_DEPTH}`)
    return visit.BREAK
  })
  return found
}

function checkKeys(map: YAMLMap, say: (node: Node | null, message: string) => void, at: (offset: number | undefined) => Place): void {
  const lines = new Map<string, number | undefined>()
  for (const { key } of map.items) {
    if (!isScalar(key) || key.value === null || typeof key.value === 'object') { say(key as Node | null, 'a key must be a plain word'); continue }
    const name = String(key.value)
    if (name === '<<') say(key, 'merge keys ("<<") are not part of YAML 1.2; write the keys out, or use an alias for a whole value')
    if (name === '__proto__') say(key, '"__proto__" can not be a key')
    if (lines.has(name)) say(key, `the key "${name}" stands here and in line ${lines.get(name)}; drop one of them`)
    lines.set(name, at(key.range?.[0]).line)
  }
}

/** The node at `path`, or the last one on the way to it. */
function find(doc: Doc, path: readonly PropertyKey[]): { key?: Node | undefined; value: Node | undefined } {
  let value = doc.contents as Node | null, key: Node | undefined
  for (const part of path) {
    const node: Node | null | undefined = isAlias(value) ? value.resolve(doc) : value
    let next: Node | null | undefined
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part)) as Pair<Node, Node | null> | undefined
      if (!pair) break
      key = pair.key
      next = pair.value ?? pair.key                        // `key:` with nothing behind it
    } else if (isSeq(node)) {
      next = node.items[Number(part)] as Node | undefined
      if (next) key = undefined
    }
    if (!next) break
    value = next
  }
  return { key, value: value ?? undefined }
}

function lineAndColumn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  return { line: before.split('\n').length, column: offset - before.lastIndexOf('\n') }
}

/**
 * The plain part of YAML, read line by line: block maps and lists of words, numbers and quoted texts, of which nearly every config is made. A start need not load the YAML library for it.
 * Undefined where a text has anything else, or anything wrong: then the library reads it, and says what. Pure.
 * Invariant, held by a property test: what is read here, the library reads as the same values at the same places.
 */

export interface Spot { readonly line: number; readonly column: number }
export interface PlainText {
  readonly value: unknown
  /** Of the value at `path`, or of the nearest thing above it that there is; and of the key that ends `path`. */
  find(path: readonly PropertyKey[]): { readonly key: Spot | undefined; readonly value: Spot }
}
interface Node { readonly spot: Spot; readonly value: unknown; readonly pairs?: ReadonlyMap<string, { readonly key: Spot; readonly node: Node }>; readonly items?: readonly Node[] }
/** What stands in a line from `indent` on: with `- name: x` read to its dash, the rest is a line of its own. */
interface Line { readonly number: number; readonly indent: number; readonly text: string }

const MAX_DEPTH = 16
const FIRST = String.raw`(?:[A-Za-z0-9/$]|\.{1,2}/|~/)`, MORE = String.raw`[\w./@$+=~-]`, COMMENT = String.raw`(?: +#.*| *)$`
const BLANK = /^ *(?:#.*)?$/
const PAIR = /^([A-Za-z][\w-]*):(?: +(?=[^ #])| *$| +#.*$)/
const ITEM = /^- +(?=[^ #])/
/** Braces are a reference's; a colon inside is none that ends a key. */
const SCALAR = new RegExp(String.raw`^(?:"([^"\\]*)"|'([^']*)'|(${FIRST}(?:${MORE}|[{}])*(?:[ :](?:${MORE}|[{}])+)*))${COMMENT}`)
const FLOW_ITEM = new RegExp(String.raw` *(?:"([^"\\]*)"|'([^']*)'|(${FIRST}${MORE}*(?: ${MORE}+)*)) *(,|\])`, 'y')
const EMPTY = new RegExp(String.raw`^(?:(\[ *\])|\{ *\})${COMMENT}`)

/** Thrown inside, and nowhere else: it is for the library. */
const OTHER = Symbol('not plain')

export function readPlain(text: string): PlainText | undefined {
  if (/[\t\r\x00-\x08\x0b-\x1f\x7f\ufeff]/.test(text)) return undefined
  const lines = text.split('\n').flatMap((line, index): Line[] => {
    if (BLANK.test(line)) return []
    const indent = line.search(/[^ ]/)
    return [{ number: index + 1, indent, text: line.slice(indent) }]
  })
  try {
    const root = new Reader(lines).root()
    return { value: root.value, find: path => find(root, path) }
  } catch (error) {
    if (error === OTHER) return undefined
    throw error
  }
}

class Reader {
  readonly #lines: Line[]
  #next = 0
  constructor(lines: Line[]) { this.#lines = lines }

  root(): Node {
    const first = this.#lines[0]
    if (first?.indent !== 0 || !PAIR.test(first.text)) throw OTHER
    const root = this.#block(0, 0)
    if (this.#next < this.#lines.length) throw OTHER
    return root
  }

  #block(indent: number, depth: number): Node {
    if (depth > MAX_DEPTH) throw OTHER
    return ITEM.test(this.#lines[this.#next]!.text) ? this.#list(indent, depth) : this.#map(indent, depth)
  }
  #map(indent: number, depth: number): Node {
    const pairs = new Map<string, { key: Spot; node: Node }>(), value: Record<string, unknown> = {}, spot = spotOf(this.#lines[this.#next]!)
    for (let line = this.#lines[this.#next]; line?.indent === indent; line = this.#lines[this.#next]) {
      const [head, name] = PAIR.exec(line.text) ?? []
      if (head === undefined || name === undefined || name in value || odd(name)) throw OTHER       // stands there already, or is one that every object has
      const node = head.length === line.text.length ? this.#below(indent, depth) : this.#inline(line, head.length)
      pairs.set(name, { key: spotOf(line), node })
      value[name] = node.value
    }
    return { spot, value, pairs }
  }
  #list(indent: number, depth: number): Node {
    const items: Node[] = [], spot = spotOf(this.#lines[this.#next]!)
    for (let line = this.#lines[this.#next]; line?.indent === indent; line = this.#lines[this.#next]) {
      const head = ITEM.exec(line.text)?.[0].length
      if (head === undefined) throw OTHER
      const rest = { number: line.number, indent: indent + head, text: line.text.slice(head) }
      if (PAIR.test(rest.text) || ITEM.test(rest.text)) {
        this.#lines[this.#next] = rest
        items.push(this.#block(rest.indent, depth + 1))
      } else items.push(this.#inline(line, head))
    }
    return { spot, value: items.map(item => item.value), items }
  }
  /** What a key with nothing behind it has in the lines below. */
  #below(indent: number, depth: number): Node {
    const below = this.#lines[++this.#next]
    if (below === undefined || below.indent <= indent) throw OTHER
    return this.#block(below.indent, depth + 1)
  }
  /** What stands in the line, whole. */
  #inline(line: Line, from: number): Node {
    this.#next++
    const text = line.text.slice(from), spot = spotOf(line, from)
    const empty = EMPTY.exec(text)
    if (empty) return empty[1] === undefined ? { spot, value: {}, pairs: new Map() } : { spot, value: [], items: [] }
    if (text.startsWith('[')) return flow(text, line, from)
    const scalar = SCALAR.exec(text)
    if (!scalar) throw OTHER
    return { spot, value: scalarOf(scalar) }
  }
}

function flow(text: string, line: Line, from: number): Node {
  const items: Node[] = []
  for (let at = 1; ;) {
    FLOW_ITEM.lastIndex = at
    const item = FLOW_ITEM.exec(text)
    if (!item) throw OTHER
    items.push({ spot: spotOf(line, from + at + item[0].search(/[^ ]/)), value: scalarOf(item) })
    at = FLOW_ITEM.lastIndex
    if (item[4] === ',') continue
    if (!BLANK.test(text.slice(at)) || text[at] === '#') throw OTHER
    return { spot: spotOf(line, from), value: items.map(({ value }) => value), items }
  }
}

/** Words that mean something else, or will in another schema. */
const odd = (word: string): boolean => /^(?:null|true|false|yes|no|on|off|y|n)$/i.test(word)
function scalarOf([, double, single, word]: RegExpExecArray): unknown {
  const quoted = double ?? single
  if (quoted !== undefined) return quoted
  if (word === 'true' || word === 'false') return word === 'true'
  if (/^(?:0|[1-9]\d{0,14})$/.test(word!)) return Number(word)
  if (odd(word!) || (/^\d/.test(word!) && !/^\d+(?:ms|s|m|h|d)$/.test(word!))) throw OTHER
  return word
}

const spotOf = ({ number, indent }: Line, from = 0): Spot => ({ line: number, column: indent + from + 1 })

function find(root: Node, path: readonly PropertyKey[]): { key: Spot | undefined; value: Spot } {
  let value = root, key: Spot | undefined
  for (const part of path) {
    const pair = value.pairs?.get(String(part)), next = pair?.node ?? value.items?.[Number(part)]
    if (!next) break
    key = pair?.key
    value = next
  }
  return { key, value: value.spot }
}

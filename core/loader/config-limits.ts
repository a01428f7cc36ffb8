/**
 * What a config text may not exceed, checked in one linear pass before the YAML parser sees it: deeply nested text can abort the whole process inside the parser, past any try.
 * The depth is an estimate that never lets more through than `SKIPPED` brackets: the parsed tree is measured exactly afterwards (config-text.ts).
 */
export const MAX_BYTES = 256 * 1024
export const MAX_DEPTH = 64
/** Brackets in quotes and comments aren't nesting; but what is a quote here may not be one for the parser, so they are bounded all the same. The parser is safe at ten times this depth. */
const MAX_SKIPPED = 1000

/** Undefined when the text may be parsed; else one sentence and the offset it is about. */
export function tooMuch(text: string): { message: string; offset: number } | undefined {
  const bytes = Buffer.byteLength(text)
  if (bytes > MAX_BYTES) return { message: `the file must not be larger than ${MAX_BYTES / 1024} KB, it has ${Math.ceil(bytes / 1024)} KB`, offset: 0 }
  const blocks: number[] = []                              // columns of the block collections that are open
  let flow = 0, skipped = 0
  for (let start = 0; start < text.length;) {
    let end = text.indexOf('\n', start)
    if (end < 0) end = text.length
    let at = openBlocks(text, start, end, blocks, flow)
    let keys = 0                                           // `a: b: c:` on one line nests inside the parser, although it is an error
    let before = ''                                        // the last character that isn't a blank: a quote opens a scalar only after an indicator
    for (; at < end; at++) {
      const char = text[at]!
      if (char === '[' || char === '{') flow++
      else if (char === ']' || char === '}') flow = Math.max(0, flow - 1)
      else if (char === '#' && (at === start || /\s/.test(text[at - 1]!))) { skipped += opens(text, at, end); at = end }
      else if ((char === '"' || char === "'") && '[{,:'.includes(before)) {
        const close = closing(text, at, end)
        if (close > 0) { skipped += opens(text, at, close); at = close }
      }
      else if (char === ':' && flow === 0 && (at + 1 === end || text[at + 1] === ' ')) keys++
      if (char !== ' ' && char !== '\t') before = char
      if (flow + blocks.length > MAX_DEPTH || keys > MAX_DEPTH || skipped > MAX_SKIPPED) return { message: `nesting must not be deeper than ${MAX_DEPTH}`, offset: Math.min(at, text.length) }
    }
    if (blocks.length > MAX_DEPTH) return { message: `nesting must not be deeper than ${MAX_DEPTH}`, offset: start }
    start = end + 1
  }
  return undefined
}

/** Closes and opens block collections by the indentation of a line; returns where its content begins. */
function openBlocks(text: string, start: number, end: number, blocks: number[], flow: number): number {
  let at = start
  const skipBlanks = () => { while (at < end && (text[at] === ' ' || text[at] === '\t')) at++ }
  skipBlanks()
  if (at === end || flow > 0) return at
  while (blocks.length > 0 && blocks[blocks.length - 1]! > at - start) blocks.pop()
  if (blocks[blocks.length - 1] !== at - start) blocks.push(at - start)
  while (at < end && '-?:'.includes(text[at]!) && (at + 1 === end || text[at + 1] === ' ' || text[at + 1] === '\t')) {
    at++
    skipBlanks()
    if (at < end) blocks.push(at - start)
  }
  return at
}
function closing(text: string, open: number, end: number): number {
  for (let at = open + 1; at < end; at++) {
    if (text[open] === '"' && text[at] === '\\') at++
    else if (text[at] === text[open]) return at
  }
  return -1
}
function opens(text: string, from: number, to: number): number {
  let count = 0
  for (let at = from; at < to; at++) if (text[at] === '[' || text[at] === '{') count++
  return count
}

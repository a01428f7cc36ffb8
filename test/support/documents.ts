/**
 * The documents, their blocks of code, and how what a block shows is held against what really comes. Knows no test runner's state.
 * A line that is shown stands for a line that came, in this order: `…` for anything, a time, an id, a date or a count of tokens for another of its kind; all else to the letter.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))
export const DOCS = ['README.md', 'core/README.md', 'plugins/README.md', 'test/bench/README.md'] as const

export interface Block { readonly doc: string; readonly line: number; readonly language: string; readonly text: string }

export const readDocument = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
export const blocks: readonly Block[] = DOCS.flatMap(doc => {
  const whole = readDocument(doc)
  return [...whole.matchAll(/^```(\w*)\n([^]*?)^```$/gm)].map(({ index, 1: language, 2: text }) => ({ doc, line: whole.slice(0, index).split('\n').length, language: language!, text: text! }))
})

/** Languages of blocks that show what is typed or printed; the others are compiled, mounted or parsed. */
export const SHOWN: readonly string[] = ['', 'sh', 'console', 'json']
/** What tells a block from the others of its document. */
export const firstLine = ({ text }: Block): string => text.slice(0, text.indexOf('\n'))

/** A `console` block: each line behind `$ `, with the lines that it prints. */
export function typed({ text }: Block): readonly { readonly command: string; readonly prints: string }[] {
  return text.split(/^\$ /m).slice(1).map(part => ({ command: part.slice(0, part.indexOf('\n')), prints: part.slice(part.indexOf('\n') + 1) }))
}

const KINDS: readonly (readonly [RegExp, string])[] = [
  [/…/, '.*'], [/\d{4}-\d\d-\d\dT[\d:.]+Z/, String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`], [/\b\d{8}-[\w-]+/, String.raw`\d{8}-[\w-]+`],
  [/\b\d+(?:\.\d+)? ?m?s\b/, String.raw`\d+(?:\.\d+)? ?m?s`], [/elapsedMs":\d+(?:\.\d+)?/, String.raw`elapsedMs":\d+(?:\.\d+)?`],
  [/tokens=\d+/, String.raw`tokens=\d+`], [/\d+ tokens/, String.raw`\d+ tokens`], [/\d+ → \d+ tokens/, String.raw`\d+ → \d+ tokens`],
]
const volatile = new RegExp([...KINDS].reverse().map(([kind]) => `(${kind.source})`).join('|'), 'g')
const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, String.raw`\$&`)

/** A line that is shown, as the lines that it stands for. */
export function lineOf(shown: string): RegExp {
  let pattern = '', end = 0
  for (const match of shown.matchAll(volatile)) {
    pattern += escaped(shown.slice(end, match.index)) + [...KINDS].reverse()[match.slice(1).findIndex(Boolean)]![1]
    end = match.index + match[0].length
  }
  return new RegExp(`^${pattern}${escaped(shown.slice(end))}$`)
}

/** Lines that are shown and did not come, in their order; `names` says what stands for names that the document has made up. */
export function notPrinted(shown: string, came: string, names: Readonly<Record<string, string>> = {}): readonly string[] {
  const renamed = Object.entries(names).reduce((text, [name, real]) => text.replaceAll(name, real), shown)
  const lines = came.split('\n').map(line => line.trimEnd())
  let from = 0
  return renamed.split('\n').map(line => line.trimEnd()).filter(line => {
    if (line === '') return false
    const pattern = lineOf(line), found = lines.findIndex((one, place) => place >= from && pattern.test(one))
    if (found >= 0) from = found + 1
    return found < 0
  })
}

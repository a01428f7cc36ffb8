/**
 * What a terminal is given: colours where they are wanted, tables, and text of models and tools with its control sequences taken out.
 * Pure functions; knows no stream.
 */
import { stripVTControlCharacters, styleText } from 'node:util'

export type Style = Parameters<typeof styleText>[0]
/** Colours a text, or leaves it. */
export type Paint = (style: Style, text: string) => string
export const plain: Paint = (_style, text) => text
export const colours: Paint = (style, text) => styleText(style, text)

/** https://no-color.org: set and not empty means no colours. */
export const wantsColour = (stream: { readonly isTTY?: boolean }, env: NodeJS.ProcessEnv): boolean =>
  stream.isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb'

/** Text that others wrote, safe to print: no escape sequences (a title, the clipboard, the cursor), no control characters but tab and newline. */
export const printable = (text: string): string =>
  stripVTControlCharacters(text).replace(/\r\n?/g, '\n').replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g, '')

/** One line of at most `width` characters. */
export const oneLine = (text: string, width = 120): string => {
  const line = printable(text).replace(/\s+/g, ' ').trim()
  return line.length > width ? `${line.slice(0, width - 1)}…` : line
}

/** Columns as wide as their widest cell, two spaces between; the last is not padded. */
export function table(rows: readonly (readonly string[])[], paint: Paint = plain): string {
  const width = (cell: string) => stripVTControlCharacters(cell).length
  const widths = rows.reduce<number[]>((all, row) => { row.forEach((cell, i) => { all[i] = Math.max(all[i] ?? 0, width(cell)) }); return all }, [])
  return rows.map((row, y) => {
    const line = row.map((cell, i) => i === row.length - 1 ? cell : cell + ' '.repeat(widths[i]! - width(cell))).join('  ').trimEnd()
    return y === 0 ? paint('dim', line) : line
  }).join('\n')
}

/** `1 call`, `2 calls`. */
export const counted = (count: number, thing: string): string => `${count} ${thing}${count === 1 ? '' : 's'}`

/** `1.2 s`, `45 ms`, `3 min 4 s`, `2 d 3 h`. */
export function elapsed(ms: number): string {
  if (ms < 1000) return `${ms < 10 ? Math.round(ms * 100) / 100 : Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1000).toFixed(1)} s`
  const minutes = Math.floor(ms / 60_000)
  if (minutes < 60) return `${minutes} min ${Math.floor(ms / 1000) % 60} s`
  const hours = Math.floor(minutes / 60)
  return hours < 24 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

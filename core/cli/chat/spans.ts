/**
 * Text with styles, and its place on a grid of cells: widths, wrapping, cutting. Pure; knows no terminal and no Markdown.
 * Invariant: a line that comes out is never wider than it was asked to be (but for one character that is wider than all there is).
 */
import { stripVTControlCharacters } from 'node:util'
import stringWidth from 'string-width'
import type { Paint, Style } from '../terminal.js'

export interface Span { readonly text: string; readonly style?: readonly StyleName[] | undefined }
export type StyleName = Exclude<Style, readonly unknown[]>
export type Line = readonly Span[]

const graphemes = new Intl.Segmenter(undefined, { granularity: 'grapheme' })
export const charactersOf = (text: string): string[] => isPlain(text) ? [...text] : [...graphemes.segment(text)].map(({ segment }) => segment)
const isPlain = (text: string): boolean => /^[\x20-\x7e]*$/.test(text)

/** In cells. */
export const widthOf = (text: string): number => isPlain(text) ? text.length : stringWidth(text)
export const lineWidth = (line: Line): number => line.reduce((sum, { text }) => sum + widthOf(text), 0)
export const painted = (line: Line, paint: Paint): string => line.map(({ text, style }) => style && style.length > 0 && text !== '' ? paint([...style] as Style, text) : text).join('')
export const span = (text: string, ...style: StyleName[]): Span => ({ text, style })

/** At most `width` cells, with `…` where something is missing. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let kept = '', used = 1
  for (const character of charactersOf(text)) {
    used += widthOf(character)
    if (used > width) break
    kept += character
  }
  return `${kept}…`
}

/** Characters between which a line may break without a space. */
const IDEOGRAPHIC = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]/u
const PIECES = /\n|[ \t]+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}\u3000-\u303f\uff00-\uffef]+|\s/gu

/** Breaks at spaces and newlines, inside a word only where it fits no line. */
export function wrap(line: Line, width: number): Line[] {
  const lines: Line[] = []
  let current: Span[] = [], used = 0, gap: Span | undefined, word: Span[] = [], wordWidth = 0
  const flush = () => { lines.push(current); current = []; used = 0; gap = undefined }
  const place = () => {
    if (word.length === 0) return
    const space = gap ? widthOf(gap.text) : 0
    if (used > 0 && used + space + wordWidth > width) flush()
    if (gap && used > 0) { current.push(gap); used += space }
    gap = undefined
    for (const part of word) for (const [text, cells] of fitting(part.text, width)) {
      if (used > 0 && used + cells > width) flush()
      current.push({ ...part, text })
      used += cells
    }
    word = []
    wordWidth = 0
  }
  for (const { text, style } of line) for (const [piece] of text.matchAll(PIECES)) {
    if (piece === '\n') { place(); flush() } else if (/^\s/.test(piece)) {
      place()
      gap = gap ? { ...gap, text: gap.text + piece.replace(/\s/g, ' ') } : { text: piece.replace(/\s/g, ' '), style }
    } else {
      if (IDEOGRAPHIC.test(piece)) place()
      word.push({ text: piece, style })
      wordWidth += widthOf(piece)
      if (IDEOGRAPHIC.test(piece)) place()
    }
  }
  place()
  if (current.length > 0 || lines.length === 0) flush()
  return lines
}
/** Breaks at the last cell, spaces and all: code, and what somebody types. */
export function chop(text: string, width: number): string[] {
  return text.split('\n').flatMap(line => {
    const rows = [...fitting(line, width)].map(([part]) => part)
    return rows.length > 0 ? rows : ['']
  })
}
function* fitting(text: string, width: number): Generator<readonly [string, number]> {
  const whole = widthOf(text)
  if (whole <= width) { if (text !== '') yield [text, whole]; return }
  let part = '', used = 0
  for (const character of charactersOf(text)) {
    const cells = widthOf(character)
    if (used + cells > width && part !== '') { yield [part, used]; part = ''; used = 0 }
    part += character
    used += cells
  }
  if (part !== '') yield [part, used]
}

/** A line of a table goes on below its last column. */
export function hanging(line: string, width: number): Line[] {
  if (widthOf(line) <= width) return [[span(line)]]
  const text = stripVTControlCharacters(line), columns = [...text.slice(0, width * 0.7).matchAll(/ {2,}(?=\S)/g)].at(-1)
  const indent = columns ? columns.index + columns[0].length : 0
  return wrap([span(text.slice(indent))], width - indent).map((rest, row): Line => [span(row === 0 ? text.slice(0, indent) : ' '.repeat(indent)), ...rest])
}

/** A line that is cut where the terminal ends. */
export function fit(line: Line, width: number): Line {
  if (lineWidth(line) <= width) return line
  let left = width
  return line.flatMap(part => {
    if (left <= 0) return []
    const text = cut(part.text, left)
    left -= widthOf(text)
    return [{ ...part, text }]
  })
}

/**
 * The text part of `edit_file`: finds a passage and replaces it, changing nothing else. Pure.
 * Line ends: CRLF and LF match each other, lines that stay the same keep the end they have, and new lines get the one of their surroundings.
 */
export type Replacement =
  | { readonly kind: 'replaced'; readonly text: string; /** Line of each replaced passage, from 1. */ readonly lines: readonly number[] }
  | { readonly kind: 'missing'; readonly similar: Similar | undefined }
  | { readonly kind: 'ambiguous'; readonly lines: readonly number[] }
/** The passage that comes nearest: equal but for blanks in `equal` of its lines. */
export interface Similar { readonly line: number; readonly text: string; readonly equal: number; readonly of: number }

export function replaceText(text: string, oldText: string, newText: string, all: boolean): Replacement {
  const plain = toLf(text), wanted = toLf(oldText), wish = toLf(newText)
  const starts = occurrences(plain, wanted)
  const lines = linesAt(plain, starts)
  if (starts.length === 0) return { kind: 'missing', similar: mostSimilar(plain, wanted) }
  if (starts.length > 1 && !all) return { kind: 'ambiguous', lines }

  const same = commonEnds(wanted, wish)
  const rawIndex = crlfIndex(text)
  const changed = wish.slice(same.before, wish.length - same.after)
  let result = '', done = 0
  for (const start of starts) {
    const from = rawIndex(start + same.before), to = rawIndex(start + wanted.length - same.after)
    result += text.slice(done, from) + (changed.includes('\n') && usesCrlf(text, from) ? changed.replaceAll('\n', '\r\n') : changed)
    done = to
  }
  return { kind: 'replaced', text: result + text.slice(done), lines }
}

const toLf = (text: string): string => text.replaceAll('\r\n', '\n')

function occurrences(text: string, wanted: string): number[] {
  const found: number[] = []
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) found.push(at)
  return found
}

/** How much of both ends is the same, so that lines that don't change are not touched. */
function commonEnds(a: string, b: string): { before: number; after: number } {
  const most = Math.min(a.length, b.length)
  let before = 0, after = 0
  while (before < most && a[before] === b[before]) before++
  while (after < most - before && a[a.length - 1 - after] === b[b.length - 1 - after]) after++
  return { before, after }
}

/** Where a place in the text with LF stands in the text as it is. To be asked in rising order. */
function crlfIndex(text: string): (index: number) => number {
  let dropped = 0, next = text.indexOf('\r\n')                          // CRs before the place, and the first one that may be behind it
  return index => {
    while (next >= 0 && next - dropped < index) {
      dropped++
      next = text.indexOf('\r\n', next + 2)
    }
    return index + dropped
  }
}

/** The end of the line in which `at` stands; of the line before when it is the last one. */
function usesCrlf(text: string, at: number): boolean {
  const next = text.indexOf('\n', at)
  const end = next >= 0 ? next : text.lastIndexOf('\n', at)
  return end > 0 && text[end - 1] === '\r'
}

function linesAt(text: string, starts: readonly number[]): number[] {
  let line = 1, end = text.indexOf('\n')
  return starts.map(start => {
    for (; end >= 0 && end < start; end = text.indexOf('\n', end + 1)) line++
    return line
  })
}

const MOST_VOTES = 200_000

/** Each wanted line votes for the place where the passage would begin; the place with most votes comes nearest. Bounded, whatever the text. */
function mostSimilar(text: string, wanted: string): Similar | undefined {
  const lines = text.split('\n'), asked = wanted.replace(/^\n+|\n+$/g, '').split('\n')
  const places = new Map<string, number[]>()
  lines.forEach((line, index) => {
    const key = squeeze(line)
    if (key !== '') places.get(key)?.push(index) ?? places.set(key, [index])
  })
  const votes = new Map<number, number>()
  let best = 0, most = 0, cast = 0
  for (const [offset, line] of asked.entries()) {
    for (const place of places.get(squeeze(line)) ?? []) {
      if (++cast > MOST_VOTES) break
      const start = place - offset, now = (votes.get(start) ?? 0) + 1
      votes.set(start, now)
      if (now > most) { most = now; best = start }
    }
  }
  if (most === 0) return undefined
  const from = Math.max(0, best)
  return { line: from + 1, text: lines.slice(from, best + asked.length).join('\n'), equal: most, of: asked.length }
}
const squeeze = (line: string): string => line.replace(/\s+/g, '')

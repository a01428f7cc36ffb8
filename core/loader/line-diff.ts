/** Two texts line by line: how many came and went, and a diff to read. Pure; the longest common run is found between equal ends, and a change too large for that is shown as a whole. */
export interface LineDiff { readonly added: number; readonly removed: number; readonly diff: string }

/** Lines on both sides of a change; cells of the table that may be filled; lines that are shown. */
const AROUND = 3, MOST_CELLS = 4_000_000, MOST_LINES = 400

type Mark = ' ' | '-' | '+'

export function lineDiff(before: string, after: string): LineDiff {
  const a = linesOf(before), b = linesOf(after)
  let head = 0, tail = 0
  while (head < a.length && head < b.length && a[head] === b[head]) head++
  while (tail < a.length - head && tail < b.length - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++
  const middle = between(a.slice(head, a.length - tail), b.slice(head, b.length - tail))
  const marked: [Mark, string][] = [...a.slice(0, head).map((line): [Mark, string] => [' ', line]), ...middle, ...a.slice(a.length - tail).map((line): [Mark, string] => [' ', line])]
  const near = marked.map((_, at) => marked.slice(Math.max(0, at - AROUND), at + AROUND + 1).some(([mark]) => mark !== ' '))
  const shown = marked.flatMap(([mark, line], at) => near[at] ? [`${mark} ${line}`] : near[at - 1] ? ['  …'] : [])
  return {
    added: middle.filter(([mark]) => mark === '+').length, removed: middle.filter(([mark]) => mark === '-').length,
    diff: [...shown.slice(0, MOST_LINES), ...shown.length > MOST_LINES ? [`  … and ${shown.length - MOST_LINES} lines more`] : []].join('\n'),
  }
}

const linesOf = (text: string): string[] => text === '' ? [] : text.replace(/\n$/, '').split('\n')

function between(a: readonly string[], b: readonly string[]): [Mark, string][] {
  const all = (): [Mark, string][] => [...a.map((line): [Mark, string] => ['-', line]), ...b.map((line): [Mark, string] => ['+', line])]
  if (a.length === 0 || b.length === 0 || a.length * b.length > MOST_CELLS) return all()
  const width = b.length + 1, longest = new Uint32Array((a.length + 1) * width)
  for (let i = a.length - 1; i >= 0; i--) for (let j = b.length - 1; j >= 0; j--) {
    longest[i * width + j] = a[i] === b[j] ? longest[(i + 1) * width + j + 1]! + 1 : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!)
  }
  const marked: [Mark, string][] = []
  for (let i = 0, j = 0; i < a.length || j < b.length;) {
    if (i < a.length && j < b.length && a[i] === b[j]) { marked.push([' ', a[i]!]); i++; j++ }
    else if (j === b.length || (i < a.length && longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!)) marked.push(['-', a[i++]!])
    else marked.push(['+', b[j++]!])
  }
  return marked
}

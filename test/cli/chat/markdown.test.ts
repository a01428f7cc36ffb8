import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MarkdownStream } from '../../../core/cli/chat/markdown-stream.js'
import { Screen } from '../../../core/cli/chat/screen.js'
import { lineWidth, painted, widthOf, wrap, chop, cut, span, type Line } from '../../../core/cli/chat/spans.js'
import { colours, plain } from '../../../core/cli/terminal.js'
import { TestTerminal } from '../../support/screen.js'

const text = (lines: readonly Line[]) => lines.map(line => painted(line, plain))
function rendered(source: string, width = 40, pieces: readonly string[] = [source]): string[] {
  const stream = new MarkdownStream(() => width)
  const lines = pieces.flatMap(piece => { const done = stream.push(piece); stream.tail(); return done })
  return text([...lines, ...stream.end()])
}
/** The pieces between these places. */
const cutAt = (source: string, places: readonly number[]) => {
  const at = [...new Set(places.map(place => place % (source.length + 1)))].sort((a, b) => a - b)
  return [...at, source.length].map((end, index) => source.slice(at[index - 1] ?? 0, end))
}
/** Texts as models write them, and as they should not. */
const markdown = fc.array(fc.oneof(
  fc.constantFrom('# Title\n', 'words **bold** and *more* `code`\n', '\n', '- item\n', '  - inside\n', '1. one\n', '2. two\n', '> quote\n', '```ts\n', '```\n', '~~~\n', '| a | b |\n', '|---|--:|\n', '| 1 | 日本語 |\n', '---\n', '===\n', '    indented\n',
    '[text](https://example.com/x)', '[text][ref]\n', '[ref]: http://x.y\n', '<div>\n', '</div>\n', '\t', '  ', '\\', '*', '_', '~~gone~~', '你好世界', '👩‍👩‍👧', 'é', '&lt;b&gt; &#27;[31m', '\r\n', '\r', '\u001b[31m', '\u001b]0;t\u0007', '\u001b', '\u009b', '\u0007', '\u202e', '- [x] done\n', '- a\n\n- b\n', '   ```\n'),
  fc.string({ maxLength: 12 }), fc.string({ unit: 'grapheme', maxLength: 8 }),
), { maxLength: 25 }).map(parts => parts.join(''))

describe('Markdown on a terminal', () => {
  it('is laid out: headings, lists, quotes, code, rules and links that show where they lead', () => {
    expect(rendered('# Title\n\nSome *words* with `code` and a [link](https://x.y/z).\n\n- one\n- two\n  - inside\n\n1. first\n2. second\n\n> quoted\n\n```js\nlet x = 1\n\nlet y\n```\n\n---\nend', 60)).toEqual([
      'Title', '', 'Some words with code and a link (https://x.y/z).', '', '• one', '• two', '  • inside', '', '1. first', '2. second', '', '│ quoted', '', '  let x = 1', '  ', '  let y', '', '─'.repeat(40), '', 'end',
    ])
  })
  it('puts wide characters into columns of tables, and wraps cells where the terminal is narrow', () => {
    const source = '| name | does |\n|---|--:|\n| read | reads a file |\n| 日本 | 幅 |\n'
    expect(rendered(source, 40)).toEqual(['name          does', '────  ────────────', 'read  reads a file', '日本            幅'])
    expect(rendered(source, 16)).toEqual(['name        does', '────  ──────────', 'read     reads a', '            file', '日本          幅'])
  })
  it('shows long code whole, broken at the edge', () => {
    expect(rendered('```\n0123456789abcdef\n```', 12)).toEqual(['  0123456789', '  abcdef'])
  })
  it('takes as code whatever a fence holds, however long it stays open', () => {
    expect(rendered('```\n# no title\n- no list', 30)).toEqual(['  # no title', '  - no list'])
  })
  it('gives the same lines wherever the stream is cut', () => {
    fc.assert(fc.property(markdown, fc.array(fc.nat(400), { maxLength: 12 }), fc.integer({ min: 12, max: 80 }), (source, places, width) => {
      expect(rendered(source, width, cutAt(source, places))).toEqual(rendered(source, width))
    }), { numRuns: 150 })
  })
  it('gives the same screen wherever the stream is cut, whatever stood there in between', () => {
    const shown = (pieces: readonly string[]) => {
      const terminal = new TestTerminal(40, 12), screen = new Screen(terminal), stream = new MarkdownStream(() => screen.width)
      const frame = (done: Line[], live: Line[]) => { screen.frame(text(done), text([...live, [], [span('› ')]]), { row: live.length + 1, column: 2 }) }
      for (const piece of pieces) frame(stream.push(piece), stream.tail())
      frame(stream.end(), [])
      return terminal.text
    }
    fc.assert(fc.property(markdown, fc.array(fc.nat(400), { maxLength: 12 }), (source, places) => {
      expect(shown(cutAt(source, places))).toBe(shown([source]))
    }), { numRuns: 100 })
  })
  it('is never wiped from the first cell of the screen, which some terminals take for a screen to keep in what scrolled by', () => {
    let wiped = ''
    const screen = new Screen({ columns: 40, rows: 12, write: piece => wiped += piece })
    screen.frame([], ['› typed'], { row: 0, column: 7 })
    screen.frame(['› typed', 'said'], ['› '], { row: 0, column: 2 })
    screen.erase()
    screen.frame([], ['› '], { row: 0, column: 2 })
    screen.frame(['more'], ['› '], { row: 0, column: 2 })
    screen.clear()
    expect(wiped).toContain(' \u001b[J')
    expect(wiped).not.toMatch(/(?:\r|H|l|^)\u001b\[J/)
  })
  it('lets no control character of the text through, and is never wider than the terminal', () => {
    fc.assert(fc.property(markdown, fc.array(fc.nat(400), { maxLength: 6 }), fc.integer({ min: 12, max: 80 }), (source, places, width) => {
      const stream = new MarkdownStream(() => width)
      for (const piece of cutAt(source, places)) {
        for (const line of [...stream.push(piece), ...stream.tail()]) {
          expect(painted(line, plain)).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
          expect(lineWidth(line)).toBeLessThanOrEqual(width)
        }
      }
      for (const line of stream.end()) expect(painted(line, colours)).not.toMatch(/\u001b(?!\[\d+m)|[\u0000-\u0008\u000b-\u001a\u009b]/)
    }), { numRuns: 200 })
  })
  it('is not held up by one long line, a list of thousands, nor quotes without end', () => {
    const lines = (source: string) => rendered(source, 80, source.match(/[^]{1,4000}/g)!)
    expect(lines(`${'*'.repeat(3000)}${'_a'.repeat(30_000)}`).join('').length).toBeGreaterThan(30_000)
    expect(lines(Array.from({ length: 5000 }, (_, i) => `- item ${i}\n`).join('')).length).toBeGreaterThanOrEqual(5000)
    expect(lines('> '.repeat(20_000)).length).toBeGreaterThan(0)
  })
})

describe('lines', () => {
  it('are wrapped at spaces, between wide characters, and inside a word only where it fits nowhere', () => {
    expect(text(wrap([span('one two three')], 8))).toEqual(['one two', 'three'])
    expect(text(wrap([span('你好世界再见')], 7))).toEqual(['你好世', '界再见'])
    expect(text(wrap([span('abcdefghij')], 4))).toEqual(['abcd', 'efgh', 'ij'])
    expect(text(wrap([span('bold', 'bold'), span('er words')], 6))).toEqual(['bolder', 'words'])
  })
  it('lose nothing when they are chopped, and are no wider than asked', () => {
    fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }).map(value => value.replace(/[\u0000-\u001f\u007f-\u009f]/g, '')), fc.integer({ min: 2, max: 30 }), (value, width) => {
      const parts = chop(value, width)
      expect(parts.join('')).toBe(value)
      for (const part of parts) expect(widthOf(part)).toBeLessThanOrEqual(width)
      expect(widthOf(cut(value, width))).toBeLessThanOrEqual(width)
    }))
  })
})

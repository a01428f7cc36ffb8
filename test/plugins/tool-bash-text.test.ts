/** What tool-bash does to text: pure, so open input. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { cleanText } from '../../plugins/tool-bash/clean-text.js'
import { HeadTail } from '../../plugins/tool-bash/head-tail.js'

describe('cleanText', () => {
  it.each([
    ['\u001b[1;31mred\u001b[0m', 'red'], ['\u001b]8;;http://x\u001b\\link\u001b]8;;\u001b\\', 'link'], ['\u001b]52;c;c2VjcmV0\u0007x', 'x'], ['a\u001b(Bb', 'ab'], ['\u001bPq#0\u001b\\x', 'x'],
    ['10%\r20%\r\n', '20%\n'], ['a\r\nb\r\n', 'a\nb\n'], ['tab\tstays', 'tab\tstays'], ['nul\0bell\u0007back\b', 'nulbellback'], ['\u009b31mc1', '31mc1'], ['\u001b', ''], ['\u001b[', ''], ['\u001b[12', ''],
  ])('makes %j to %j', (given, clean) => { expect(cleanText(given)).toBe(clean) })
  it('leaves no control character but tab and line feed, whatever comes', () => {
    const piece = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom('\u001b[', '\u001b]', '\u001b', '\r', '\n', '\t', '\u0007', '31m', ';'))
    fc.assert(fc.property(fc.array(piece), pieces => { expect(cleanText(pieces.join(''))).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/) }))
  })
  it('leaves text without control characters as it is', () => {
    fc.assert(fc.property(fc.string({ unit: 'grapheme' }), text => { expect(cleanText(text)).toBe(text) }))
  })
  it.each(['\u001b[', '\u001b]', '\u001b]x', '\u001b[0;', '\r', 'x\r', '0', '\u001b'])('takes time in proportion to its length for a run of %j', piece => {
    const began = performance.now()
    cleanText(piece.repeat(200_000))
    expect(performance.now() - began).toBeLessThan(2000)
  })
})

describe('HeadTail', () => {
  const given = fc.array(fc.string({ unit: 'grapheme', maxLength: 30 }))
  it('keeps all of a text that fits', () => {
    fc.assert(fc.property(given, pieces => {
      const kept = new HeadTail(100_000)
      pieces.forEach(piece => { kept.add(piece) })
      const { head, tail, missing } = kept.ends()
      expect([head + tail, missing]).toEqual([pieces.join(''), 0])
    }))
  })
  it('keeps both ends of one that does not, within the limit, and counts what is missing', () => {
    fc.assert(fc.property(given, fc.integer({ min: 2, max: 60 }), (pieces, limit) => {
      const kept = new HeadTail(limit), text = pieces.join('')
      pieces.forEach(piece => { kept.add(piece) })
      const { head, tail, missing } = kept.ends()
      expect(text.startsWith(head)).toBe(true)
      expect(text.endsWith(tail)).toBe(true)
      expect(head.length + tail.length).toBeLessThanOrEqual(limit)
      expect(head.length + tail.length + missing).toBe(text.length)
      for (const end of missing > 0 ? [head, tail] : [head + tail]) expect(end).not.toMatch(/[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/)
    }))
  })
})

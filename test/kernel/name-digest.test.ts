import { createHash } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nameDigest } from '../../core/kernel/name-digest.js'

describe('the digest that names are made of', () => {
  it('is SHA-256, of any text and of every length around the end of a block', () => {
    const agrees = (text: string) => { expect(nameDigest(text)).toBe(createHash('sha256').update(text).digest('hex')) }
    for (let length = 0; length < 200; length++) agrees('x'.repeat(length))
    fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 300 }), agrees))
  })
})

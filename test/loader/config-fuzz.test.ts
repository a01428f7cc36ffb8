import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { parseConfig } from '../../core/loader/config.js'

/** Texts that once went wrong, or nearly, each a file: they are tried first, and stay. */
const CORPUS = fileURLToPath(new URL('../fixtures/config/', import.meta.url))
const WHOLE = `version: 1
agent: { model: deepseek/chat, maxSteps: 50, askTimeout: 5m }
reload: { watch: true, drainMs: 5000 }
plugins:
  - audit
  - name: permission
    required: true
    config: { ask: ["git push *"], deep: { a: [1, 2, { b: null }] } }
  - { name: guard, id: guard-2, from: ./my.ts, enabled: false, config: { token: "\${env:TOKEN:-x}" } } # a comment
`
/** One outcome, told well: a config that is frozen, or problems that stand in the text. */
function judged(text: string): void {
  const { config, problems } = parseConfig(text, '/x/harness.config.yaml')
  if (problems.length === 0) {
    expect(Object.isFrozen(config)).toBe(true)
    expect(new Set(config!.plugins.map(({ id }) => id)).size).toBe(config!.plugins.length)
  }
  const lines = text.split(/\r\n|\n|\r/).length
  for (const { message, file, line } of problems) {
    expect(message.length).toBeGreaterThan(3)
    expect(message).not.toMatch(/undefined|\[object|Cannot read|is not a function/)
    expect(file).toBe('/x/harness.config.yaml')
    if (line !== undefined) expect(line).toSatisfy((one: number) => one >= 1 && one <= lines + 1)
  }
}

describe('whatever stands in a config file', () => {
  it('is a config or problems with their lines: the texts that are kept', () => {
    const names = readdirSync(CORPUS)
    expect(names.length).toBeGreaterThan(5)
    for (const name of names) judged(readFileSync(join(CORPUS, name), 'utf8'))
  })
  it('is a config or problems with their lines: a good one with parts lost, doubled, swapped and strewn', () => {
    const strewn = fc.constantFrom('', ':', '- ', '\n', '  ', '\t', '{', '}', '[', ']', '"', "'", '&a ', '*a', '<<: *a', '!!js/function', '? ', '|\n', '>\n', '#', '\u0000', '\ufeff', '\r\n', '---\n', '...\n', '%YAML 1.1\n', '__proto__: ', 'constructor: ', 'null', '~', '0x10', '.nan', '1e999', '${env:', '}', '\ud800', '\u2028')
    const cut = fc.record({ at: fc.nat(WHOLE.length), length: fc.nat(60), put: fc.oneof(strewn, fc.string({ maxLength: 6 })), twice: fc.boolean() })
    fc.assert(fc.property(fc.array(cut, { minLength: 1, maxLength: 6 }), cuts => {
      let text = WHOLE
      for (const { at, length, put, twice } of cuts) text = text.slice(0, at) + put + (twice ? text.slice(at, at + length) : '') + text.slice(at + (twice ? 0 : length))
      judged(text)
    }), { numRuns: 150 })
  })
  it('is a config or problems with their lines: any text', () => {
    fc.assert(fc.property(fc.oneof(fc.string({ unit: 'binary', maxLength: 80 }), fc.json().map(json => `plugins: ${json}`), fc.array(fc.constantFrom('a', ':', ' ', '\n', '-', '[', ']', '{', '}', ',', '"', '&', '*', '!', '|', '>', '#', '%', '@', '`'), { maxLength: 60 }).map(parts => parts.join(''))), judged), { numRuns: 200 })
  })
})

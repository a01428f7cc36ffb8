/** What is read without the YAML library must be what the library reads: any text, any style. */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readPlain } from '../../core/loader/config-plain.js'
import { parseWhole } from '../../core/loader/config-text.js'

const FILE = '/c.yaml'
type Path = (string | number)[]
const paths = (value: unknown, path: Path = []): Path[] => [path, [...path, 'nothing'], [...path, 99], ...(typeof value === 'object' && value !== null
  ? Object.entries(value).flatMap(([key, inner]) => paths(inner, [...path, Array.isArray(value) ? Number(key) : key])) : [])]

/** True when it was read plainly, and as the library does. */
function agrees(text: string): boolean {
  const plain = readPlain(text)
  if (!plain) return false
  const whole = parseWhole(text, FILE)
  expect(whole.problems).toEqual([])
  expect(plain.value).toStrictEqual(whole.value)
  for (const path of paths(plain.value)) {
    const { key, value } = plain.find(path)
    expect({ path, file: FILE, ...value }).toEqual({ path, ...whole.place(path) })
    expect({ path, file: FILE, ...(key ?? value) }).toEqual({ path, ...whole.keyPlace(path) })
  }
  return true
}

const word = fc.constantFrom('a', 'tool-fs', './own.ts', '../x/y.ts', '~/p', '/etc/x', '${env:KEY}', '${env:KEY:-x y}', 'gpt-4o:latest', 'http://h:1/v1', 'two words', '10m', '250ms', '0', '7', '120', 'true', 'false', "'it is'", '"a # b: c"', '""', '[]', '{}', '[a, "b", 3]', '[ rm -rf, x ]')
const rare = fc.constantFrom('null', '~', 'yes', 'True', '1.5', '0x1f', '1e3', '007', '.inf', '"a\\n"', "'it''s'", '*a', '&a b', '!!str x', '| \n  x', '{ a: b }', '[a, [b]]', '- x', 'a: b', 'x #y', 'x# y', '#', '@at', '`', '%', 'é', '', '? k', 'a,', '{', ']', '"', '<<')
const key = fc.constantFrom('version', 'plugins', 'name', 'config', 'agent', 'x_1', 'max-steps', 'true', 'no', '__proto__', 'constructor')
const gap = fc.constantFrom('', '', '', '', '\n', '# é — a remark\n', '   # in\n', '\t\n', '---\n')
const tail = fc.constantFrom('', '', '', ' # why', '  ', ' #')

/** Lines of a block at an indentation, most of them as people write them. */
const block = (depth: number): fc.Arbitrary<string[]> => fc.oneof({ maxDepth: 3 }, list(depth), map(depth))
const value = (depth: number): fc.Arbitrary<string[]> => depth > 3 ? scalar : fc.oneof({ arbitrary: scalar, weight: 3 }, { arbitrary: nested(depth), weight: 2 })
const scalar = fc.tuple(fc.oneof({ arbitrary: word, weight: 12 }, { arbitrary: rare, weight: 1 }), tail).map(([text, after]) => [` ${text}${after}`])
const nested = (depth: number): fc.Arbitrary<string[]> => fc.tuple(block(depth + 1), fc.constantFrom(0, 1, 2, 2, 2, 4)).map(([lines, by]) => ['', ...lines.map(line => ' '.repeat(by) + line)])
const map = (depth: number): fc.Arbitrary<string[]> => fc.array(fc.tuple(gap, key, value(depth)), { minLength: 1, maxLength: 3 }).map(pairs => pairs.flatMap(([before, name, [head, ...rest]]) => [...lines(before), `${name}:${head}`, ...rest]))
const list = (depth: number): fc.Arbitrary<string[]> => fc.array(fc.tuple(gap, fc.oneof(scalar, map(depth + 1)), fc.constantFrom('- ', '- ', '-   ', '-')), { minLength: 1, maxLength: 3 })
  .map(items => items.flatMap(([before, [head = '', ...rest], dash]) => [...lines(before), `${dash}${head.trimStart()}`, ...rest.map(line => ' '.repeat(dash.length) + line)]))
const lines = (text: string): string[] => text === '' ? [] : [text.replace(/\n$/, '')]

describe('a config that is read without the YAML library', () => {
  it('has the values and places that the library finds, in whatever style it is written', () => {
    let plain = 0
    fc.assert(fc.property(map(0), all => { if (agrees(`${all.join('\n')}\n`)) plain++ }), { numRuns: 1500 })
    expect(plain).toBeGreaterThan(60)                       // else this says little
  })
  it('is no other one when single characters are changed, taken out or put in', () => {
    const text = 'version: 1\nagent:\n  model: openai/gpt\nplugins:\n  - a\n  - name: b # why\n    config: { }\n  - name: "c d"\n    config:\n      allow: [x, "y z"]\n'
    expect(agrees(text)).toBe(true)
    fc.assert(fc.property(fc.nat(text.length), fc.nat(2), fc.oneof(fc.constantFrom(...' :-#\'"[]{}&*!|>%@`?,~\n\t.0'), fc.string({ unit: 'grapheme', minLength: 1, maxLength: 2 })), (at, out, put) => { agrees(text.slice(0, at) + put + text.slice(at + out)) }), { numRuns: 1500 })
  })
  it('is the shipped one, and one that hx init writes', () => {
    expect(agrees(readFileSync(new URL('../../harness.config.yaml', import.meta.url), 'utf8'))).toBe(true)
    expect(agrees('version: 1\n# your own\nplugins:\n  - name: permission\n    required: true\n    config:\n      deny: ["sudo *", rm -rf]\n      mode: ask\n')).toBe(true)
  })
  it('is left to the library in time that grows with the text, also where it is meant to take long', () => {
    for (const text of [`a: ${'x '.repeat(50_000)}"`, `a: ${'x:'.repeat(50_000)}`, `a: [${'x, '.repeat(50_000)}`, `a: "${'x'.repeat(100_000)}`, `a: ${'${'.repeat(50_000)}\u0001`, `${'- '.repeat(50_000)}x`]) expect(readPlain(text)).toBeUndefined()
  })
})

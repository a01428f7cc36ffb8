/** What a module may rely on, whether Node loads it or we do: the gate for a new version of the compiler. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import * as zod from 'zod'
import { describe, expect, it } from 'vitest'
import { Log } from '../../core/kernel/log.js'
import { ModuleImporter } from '../../core/loader/importer.js'
import { trustAll } from '../../core/loader/trust.js'
import { folder } from '../support/folder.js'

type Names = Readonly<Record<string, any>>
const modules = fileURLToPath(new URL('../../node_modules', import.meta.url))

function place(files: Record<string, string>) {
  const made = folder(files)
  const importer = new ModuleImporter({ builtins: { harnessx: Object.freeze({ block: () => 'blocked' }) }, trust: trustAll, base: made.path, log: new Log() })
  const load = async (name = 'main.ts'): Promise<Names> => {
    const loaded = await importer.load([made.at(name)])
    loaded.commit()
    return loaded.modules.get(made.at(name))!
  }
  return { ...made, importer, load }
}
const main = (files: Record<string, string>) => place(files).load()

describe('a module', () => {
  it('sees a changed export of another module (live bindings)', async () => {
    const { read } = await main({ 'main.ts': `import { n, more } from './n.ts'; more(); export const read = () => n`, 'n.ts': `export let n = 1; export const more = () => { n++ }` })
    expect(read()).toBe(2)
  })
  it('may import one that imports it (circle, hoisted functions)', async () => {
    const { even } = await main({
      'main.ts': `import { odd } from './odd.ts'; export function even(n: number): boolean { return n === 0 || odd(n - 1) }`,
      'odd.ts': `import { even } from './main.ts'; export function odd(n: number): boolean { return n !== 0 && even(n - 1) }`,
    })
    expect(even(10)).toBe(true)
  })
  it('may stand in a circle with an export-all', async () => {
    const { late } = await main({ 'main.ts': `export { late } from './all.ts'`, 'all.ts': `export * from './leaf.ts'`, 'leaf.ts': `import { x } from './all.ts'; export const x = 1; export const late = () => x` })
    expect(late()).toBe(1)
  })
  it('may await at the top level', async () => {
    expect((await main({ 'main.ts': `export const v = await Promise.resolve(3)` }))['v']).toBe(3)
  })
  it('waits for a top-level await of what it imports', async () => {
    expect((await main({ 'main.ts': `import { v } from './slow.ts'; export const seen = v`, 'slow.ts': `export const v = await new Promise(done => setTimeout(done, 5, 'ready'))` }))['seen']).toBe('ready')
  })
  it('knows import.meta.url', async () => {
    const at = place({ 'main.ts': `export const url = import.meta.url` })
    expect((await at.load())['url']).toBe(pathToFileURL(at.at('main.ts')).href)
  })
  it('knows import.meta.dirname and filename', async () => {
    const at = place({ 'main.ts': `export const { dirname, filename } = import.meta` })
    expect(await at.load()).toMatchObject({ dirname: at.path, filename: at.at('main.ts') })
  })
  it('resolves with import.meta.resolve', async () => {
    const at = place({ 'main.ts': `export const other = import.meta.resolve('./other.ts'), fs = import.meta.resolve('node:fs'), bare = import.meta.resolve('fs')`, 'other.ts': '' })
    expect(await at.load()).toMatchObject({ other: pathToFileURL(at.at('other.ts')).href, fs: 'node:fs', bare: 'node:fs' })
  })
  it('may import at once by import()', async () => {
    expect((await main({ 'main.ts': `export const v = (await import('./other.ts')).v`, 'other.ts': `export const v = 7` }))['v']).toBe(7)
  })
  it('may import later by import(), each time the same instance', async () => {
    const { get } = await main({ 'main.ts': `export const get = () => import('./other.ts')`, 'other.ts': `export const it = {}` })
    expect((await get()).it).toBe((await get()).it)
  })
  it('imports JSON with attributes', async () => {
    expect((await main({ 'main.ts': `import data from './data.json' with { type: 'json' }; export const v = data.a`, 'data.json': `{"a":5}` }))['v']).toBe(5)
  })
  it('shares packages with the host (singleton)', async () => {
    const at = place({ 'main.ts': `import { z } from 'zod'; import { readFileSync } from 'node:fs'; export const it = z; export { readFileSync }` })
    symlinkSync(modules, at.at('node_modules'))
    expect((await at.load())['it']).toBe(zod.z)
  })
  it('imports named exports of a CommonJS package', async () => {
    const at = place({ 'main.ts': `import whole, { one } from 'old'; export const v = [one, whole.two]`, 'node_modules/old/package.json': `{"name":"old","main":"./index.js"}`, 'node_modules/old/index.js': `exports.one = 1; exports.two = 2` })
    expect((await at.load())['v']).toEqual([1, 2])
  })
  it('may use enums', async () => {
    expect((await main({ 'main.ts': `enum Level { low, high } export const v = Level.high` }))['v']).toBe(1)
  })
  it('may use namespaces', async () => {
    expect((await main({ 'main.ts': `namespace Inner { export const x = 4 } export const v = Inner.x` }))['v']).toBe(4)
  })
  it('may use parameter properties', async () => {
    expect((await main({ 'main.ts': `class Point { constructor(readonly x: number) {} } export const v = new Point(9).x` }))['v']).toBe(9)
  })
  it('re-exports with export *, its own names first and without default', async () => {
    const names = await main({ 'main.ts': `export * from './a.ts'; export * as ns from './a.ts'; export const own = 'main'`, 'a.ts': `export const own = 'a', other = 2; export default 3` })
    expect({ ...names, ns: undefined }).toEqual({ own: 'main', other: 2, ns: undefined })
    expect(names['ns']).toMatchObject({ own: 'a', other: 2, default: 3 })
  })
  it('is strict, and has no this', async () => {
    const { that, loose } = await main({ 'main.ts': `export const that = (() => this)(); export const loose = () => { undeclared = 1 }` })
    expect(that).toBeUndefined()
    expect(loose).toThrow(ReferenceError)
  })
  it('does not load what is imported for its types alone', async () => {
    expect((await main({ 'main.ts': `import { Shape } from './gone.ts'; import type { Other } from './gone.ts'; export const v: Shape & Other = 1` }))['v']).toBe(1)
  })
  it('imports ./x.js that is written as x.ts', async () => {
    expect((await main({ 'main.ts': `import { v } from './x.js'; export { v }`, 'x.ts': `export const v = 1` }))['v']).toBe(1)
  })
  it('throws with the line and column of the TypeScript source', async () => {
    const at = place({ 'main.ts': `interface Gone { a: 1 }\n\nexport function fail(x: Gone): never {\n  throw new Error('here')\n}\n` })
    const { fail } = await at.load()
    expect(stackOf(fail)).toContain(`${at.at('main.ts')}:4:9`)
  })
  it('fails before it runs when it imports a name that is not there', async () => {
    const at = place({ 'main.ts': `import { gone } from './a.ts'\nglobalThis.hxRan = true\nexport { gone }`, 'a.ts': `export const going = 1` })
    await expect(at.load()).rejects.toMatchObject({ code: 'module_syntax', message: `main.ts:1:22 "./a.ts" does not export "gone"; did you mean "going"?` })
    expect(globalThis).not.toHaveProperty('hxRan')
  })
  it('fails with the line of a syntax error', async () => {
    const at = place({ 'main.ts': `export const a = 1\n// äöü 😀\nexport const b = }\n` })
    await expect(at.load()).rejects.toMatchObject({ code: 'module_syntax', message: 'main.ts:3:18 Unexpected "}"', place: { file: at.at('main.ts'), line: 3, column: 18 } })
  })
  it('fails with the line where its top level throws', async () => {
    const at = place({ 'main.ts': `type A = 1\n\nthrow new Error('top')\n` })
    expect(await at.load().then(String, (error: Error) => error.stack)).toContain(`${at.at('main.ts')}:3:7`)
  })
  it('gives a namespace that nobody can change', async () => {
    const names = await main({ 'main.ts': `export const a = 1` }) as any
    expect(() => { names.a = 2 }).toThrow(TypeError)
    expect(() => { names.b = 2 }).toThrow(TypeError)
    expect(() => { delete names.a }).toThrow(TypeError)
    expect(Object.prototype.toString.call(names)).toBe('[object Module]')
  })
  it('exports functions and classes under their names, and anything under a text', async () => {
    const names = await main({ 'main.ts': `export function apply() {} export class Thing {} const x = 1; export { x as 'a text' }` })
    expect([names['apply'].name, names['Thing'].name, names['a text']]).toEqual(['apply', 'Thing', 1])
  })
  it('throws a ReferenceError when an import is read before it has a value', async () => {
    const at = place({ 'main.ts': `import './b.ts'; export const early = 1`, 'b.ts': `import { early } from './main.ts'; export const seen = early` })
    await expect(at.load()).rejects.toThrow(ReferenceError)
  })
  it('imports by the private names of its package (#x), files and packages', async () => {
    const at = place({
      'package.json': `{"name":"mine","type":"module","imports":{"#one":"./lib/one.ts","#lib/*":"./lib/*.ts","#fs":"node:fs","#cond":{"browser":"./no.ts","node":"./lib/two.ts"}}}`,
      'main.ts': `import { one } from '#one'; import { two } from '#lib/two'; import { existsSync } from '#fs'; import { two as again } from '#cond'; export const v = [one, two, existsSync('/'), again]`,
      'lib/one.ts': `export const one = 1`, 'lib/two.ts': `export const two = 2`,
    })
    expect((await at.load())['v']).toEqual([1, 2, true, 2])
  })
  it('is plugin source when its package is linked from a workspace', async () => {
    const at = place({ 'app/main.ts': `import { v } from 'lib'; export { v }`, 'lib/package.json': `{"name":"lib","exports":{".":"./index.ts"}}`, 'lib/index.ts': `export const v: number = 1` })
    mkdirSync(at.at('app/node_modules'))
    symlinkSync(at.at('lib'), at.at('app/node_modules/lib'))
    expect((await at.load('app/main.ts'))['v']).toBe(1)
    expect(at.importer.affected([at.at('lib/index.ts')])).toContain(at.at('app/main.ts'))
  })
  it('gets "harnessx" from the host, in node_modules too', async () => {
    const source = `import { block } from 'harnessx'; export const v = block()`
    const at = place({ 'main.ts': source, 'node_modules/harnessx-plugin-x/index.js': source, 'node_modules/harnessx/index.js': `export const block = () => 'a copy'` })
    expect((await at.load())['v']).toBe('blocked')
    expect((await at.load('node_modules/harnessx-plugin-x/index.js'))['v']).toBe('blocked')
  })
  it('keeps its hash-bang and byte-order mark to itself', async () => {
    expect((await main({ 'main.ts': `#!/usr/bin/env node\nimport { v } from './bom.ts'\nexport { v }`, 'bom.ts': '\uFEFFexport const v = 1' }))['v']).toBe(1)
  })
  it('may be evaluated by a host whose folder has blanks and percent signs', async () => {
    const at = place({ 'a b%20c/main.ts': `import { v } from './o ther.ts'; export { v }; export const url = import.meta.url`, 'a b%20c/o ther.ts': `export const v = 1` })
    const names = await at.load('a b%20c/main.ts')
    expect(names['v']).toBe(1)
    expect(dirname(fileURLToPath(names['url']))).toBe(at.at('a b%20c'))
  })
})

function stackOf(work: () => unknown): string {
  try { work() } catch (error) { return (error as Error).stack ?? '' }
  return ''
}

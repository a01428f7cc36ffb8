import { symlinkSync, unlinkSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Log, type LogRecord } from '../../core/kernel/log.js'
import { ModuleImporter } from '../../core/loader/importer.js'
import { alive } from '../../core/loader/stack-traces.js'
import { trustAll, trustFolders, type Trust } from '../../core/loader/trust.js'
import { folder } from '../support/folder.js'

type Names = Readonly<Record<string, any>>

function place(files: Record<string, string>, options: { trust?: Trust; native?: readonly string[]; evaluateMs?: number } = {}) {
  const made = folder(files)
  const log = new Log(), lines: LogRecord[] = []
  log.sink(record => { lines.push(record) })
  const importer = new ModuleImporter({ builtins: { harnessx: {} }, trust: trustAll, base: made.path, log, ...options })
  const load = (names: string | readonly string[], changed: readonly string[] = []) => importer.load([names].flat().map(made.at), changed.map(made.at))
  /** Loads and commits; the namespaces in the order of the names. */
  const use = async (names: string | readonly string[], changed: readonly string[] = []): Promise<Names[]> => {
    const loaded = await load(names, changed)
    loaded.commit()
    return [names].flat().map(name => loaded.modules.get(made.at(name))!)
  }
  const relative = (paths: Iterable<string>) => [...paths].map(path => path.replace(`${made.path}/`, '')).sort()
  return { ...made, importer, load, use, relative, lines }
}

describe('loading again', () => {
  it('gives new instances to what changed and to what imports it, and to nothing else', async () => {
    const at = place({
      'p.ts': `import { shared } from './shared.ts'; import { own } from './own.ts'; export const it = {}; export { shared, own }`,
      'q.ts': `import { shared } from './shared.ts'; export const it = {}; export { shared }`,
      'r.ts': `export const it = {}`, 'shared.ts': `export const shared = { v: 1 }`, 'own.ts': `export const own = {}`,
    })
    const [p, q, r] = await at.use(['p.ts', 'q.ts', 'r.ts'])
    expect(p!['shared']).toBe(q!['shared'])
    at.write('shared.ts', `export const shared = { v: 2 }`)
    expect(at.relative(at.importer.affected([at.at('shared.ts')]))).toEqual(['p.ts', 'q.ts', 'shared.ts'])
    const [p2, q2] = await at.use(['p.ts', 'q.ts'], ['shared.ts'])
    const [r2] = await at.use(['r.ts'])
    expect(p2!['shared']).toMatchObject({ v: 2 })
    expect(p2!['shared']).toBe(q2!['shared'])
    expect(p2!['it']).not.toBe(p!['it'])
    expect(p2!['own']).toBe(p!['own'])
    expect(r2!['it']).toBe(r!['it'])
    expect(p!['shared']).toMatchObject({ v: 1 })
  })
  it('takes the text that was judged, whatever stands on the disk by now', async () => {
    const at = place({ 'a.ts': `export const v = 1` })
    await at.use('a.ts')
    const file = at.write('a.ts', `export const v = `)                    // the next save has begun
    const loaded = await at.importer.load([file], [file], new Map([[file, `export const v = 2`]]))
    loaded.commit()
    expect(loaded.modules.get(file)).toMatchObject({ v: 2 })
    expect(at.importer.text(file)).toBe(`export const v = 2`)             // so the watcher sees that the disk says something else
  })
  it('changes nothing until it is committed', async () => {
    const at = place({ 'a.ts': `export const v = 1` })
    await at.use('a.ts')
    at.write('a.ts', `export const v = 2`)
    await at.load('a.ts', ['a.ts'])
    expect((await at.use('a.ts'))[0]).toMatchObject({ v: 2 })             // a change that nobody took in is not forgotten
    expect(at.importer.text(at.at('a.ts'))).toContain('v = 2')
  })
  it('leaves what runs alone when the new text does not parse, does not link or throws, and mends with the fix', async () => {
    const at = place({ 'a.ts': `import { h } from './h.ts'; export const v = h`, 'h.ts': `export const h = 1` })
    await at.use('a.ts')
    for (const [bad, code] of [['export const h = ', 'module_syntax'], ['export const other = 1', 'module_syntax'], [`import './gone.ts'; export const h = 1`, 'module_not_found'], [`throw new Error('no'); export const h = 1`, undefined]] as const) {
      at.write('h.ts', bad)
      await expect(at.load('a.ts', ['h.ts'])).rejects.toMatchObject(code ? { code } : { message: 'no' })
      expect((at.importer.text(at.at('h.ts')))).toBe('export const h = 1')
    }
    at.write('h.ts', `export const h = 5`)
    expect((await at.use('a.ts', ['h.ts']))[0]).toMatchObject({ v: 5 })
  })
  it('remembers what a failed load looked for, so that a file that appears mends it', async () => {
    const at = place({ 'a.ts': `export const v = 1` })
    await at.use('a.ts')
    at.write('a.ts', `import { v } from './new.js'; export { v }`)
    await expect(at.load('a.ts', ['a.ts'])).rejects.toMatchObject({ code: 'module_not_found', message: 'a.ts:1:19 "./new.js" leads nowhere; looked for ' + at.at('new.js'), place: { line: 1, column: 19 } })
    expect(at.relative(at.importer.tried)).toEqual(expect.arrayContaining(['a.ts', 'new.js', 'new.ts']))
    at.write('new.ts', `export const v = 2`)
    expect((await at.use('a.ts', ['new.ts']))[0]).toMatchObject({ v: 2 })
  })
  it('gives an old version the modules of its own time when it imports late', async () => {
    const at = place({ 'a.ts': `import { h } from './h.ts'; export const v = 1; export const late = () => import('./late.ts'); export { h }`, 'h.ts': `export const h = 'old'`, 'late.ts': `import { h } from './h.ts'; import { v } from './a.ts'; export const seen = [h, v]` })
    const [old] = await at.use('a.ts')
    at.write('h.ts', `export const h = 'new'`)
    at.write('a.ts', `import { h } from './h.ts'; export const v = 2; export const late = () => import('./late.ts'); export { h }`)
    const [fresh] = await at.use('a.ts', ['a.ts', 'h.ts'])
    expect((await fresh!['late']()).seen).toEqual(['new', 2])
    expect((await old!['late']()).seen).toEqual(['old', 1])
    expect((await old!['late']())).toBe(await old!['late']())
  })
  it('counts a module that was imported late among those whose change reaches its importer', async () => {
    const at = place({ 'a.ts': `export const late = () => import('./late.ts')`, 'late.ts': `export const v = 1` })
    const [old] = await at.use('a.ts')
    await old!['late']()
    expect(at.relative(at.importer.affected([at.at('late.ts')]))).toEqual(['a.ts', 'late.ts'])
    at.write('late.ts', `export const v = 2`)
    const [fresh] = await at.use('a.ts', ['late.ts'])
    expect((await fresh!['late']()).v).toBe(2)
    expect((await old!['late']()).v).toBe(1)
  })
  it('takes a change of a circle in as a whole', async () => {
    const at = place({ 'a.ts': `import { b } from './b.ts'; export const a = () => 'a1' + b; export const both = () => b()`, 'b.ts': `import { a } from './a.ts'; export const b = () => 'b1' + a.name` })
    await at.use('a.ts')
    at.write('b.ts', `import { a } from './a.ts'; export const b = () => 'b2' + a.name`)
    expect((await at.use('a.ts', ['b.ts']))[0]!['both']()).toBe('b2a')
  })
  it('loads an entry anew that has not changed, when it is asked to', async () => {
    const at = place({ 'a.ts': `export const it = {}` })
    const [first] = await at.use('a.ts')
    const [second] = await at.use('a.ts', ['a.ts'])
    expect(second!['it']).not.toBe(first!['it'])
  })
  it('follows a link that leads elsewhere', async () => {
    const at = place({ 'one.ts': `export const v = 1`, 'two.ts': `export const v = 2` })
    symlinkSync(at.at('one.ts'), at.at('a.ts'))
    expect((await at.use('a.ts'))[0]).toMatchObject({ v: 1 })
    expect(at.importer.affected([at.at('one.ts')])).toContain(at.at('a.ts'))
    unlinkSync(at.at('a.ts'))
    symlinkSync(at.at('two.ts'), at.at('a.ts'))
    expect((await at.use('a.ts', ['a.ts']))[0]).toMatchObject({ v: 2 })
  })
  it('forgets what no entry needs', async () => {
    const at = place({ 'a.ts': `import './h.ts'`, 'b.ts': `import './k.ts'`, 'h.ts': '', 'k.ts': '' })
    await at.use(['a.ts', 'b.ts'])
    at.importer.forget([at.at('b.ts')])
    expect(at.relative(at.importer.files())).toEqual(['b.ts', 'k.ts'])
    expect(at.importer.text(at.at('a.ts'))).toBeUndefined()
  })
})

describe('an importer', () => {
  it('says which files are behind an entry', async () => {
    const at = place({ 'a.ts': `import './b.ts'; import data from './d.json'; import 'node:fs'; export { data }`, 'b.ts': `import './c.js'`, 'c.ts': '', 'd.json': '{}' })
    const loaded = await at.load('a.ts')
    expect(at.relative(loaded.files(at.at('a.ts')))).toEqual(['a.ts', 'b.ts', 'c.ts', 'd.json'])
  })
  it('opens nothing that is not trusted', async () => {
    const outside = folder({ 'x.ts': `globalThis.hxMarker = true` })
    const at = place({ 'a.ts': `export const v = 1` }, { trust: { allows: ({ file }) => !file.startsWith(outside.path) } })
    await expect(at.importer.load([outside.at('x.ts')])).rejects.toMatchObject({ code: 'untrusted' })
    at.write('a.ts', `import ${JSON.stringify(outside.at('x.ts'))}`)
    await expect(at.load('a.ts')).rejects.toMatchObject({ code: 'untrusted' })
    symlinkSync(outside.at('x.ts'), at.at('link.ts'))
    await expect(at.load('link.ts')).rejects.toMatchObject({ code: 'untrusted' })
    expect(globalThis).not.toHaveProperty('hxMarker')
    expect(trustFolders([at.path]).allows({ kind: 'plugin', file: `${at.path}-evil/x.ts` })).toBe(false)
  })
  it('leaves what the installation ships built to Node, and never loads it twice', async () => {
    const at = place({})
    const native = at.at('dist/plugins')
    at.write('dist/plugins/shipped.cjs', `exports.it = {}`)
    at.write('package.json', '{"type":"module"}')
    const importer = new ModuleImporter({ builtins: {}, trust: trustAll, base: at.path, native: [native], log: new Log() })
    const first = await importer.load([at.at('dist/plugins/shipped.cjs')]), second = await importer.load([at.at('dist/plugins/shipped.cjs')], [at.at('dist/plugins/shipped.cjs')])
    expect(first.modules.get(at.at('dist/plugins/shipped.cjs'))).toBe(second.modules.get(at.at('dist/plugins/shipped.cjs')))
    expect(first.files(at.at('dist/plugins/shipped.cjs'))).toEqual([at.at('dist/plugins/shipped.cjs')])
    expect(importer.files()).toEqual([])
  })
  it('refuses a CommonJS entry with a sentence', async () => {
    const at = place({ 'a.js': `module.exports = { apply() {} }`, 'b.cjs': `exports.apply = () => {}` })
    await expect(at.load('a.js')).rejects.toMatchObject({ code: 'plugin_invalid', message: 'a.js is CommonJS, and a plugin is an ES module; write "export function apply(ctx) { … }" instead of "module.exports"' })
    await expect(at.load('b.cjs')).rejects.toMatchObject({ code: 'plugin_invalid' })
  })
  it('lets a module import CommonJS helpers', async () => {
    const at = place({ 'a.ts': `import one from './one.cjs'; import { two } from './two.js'; export const v = [one.v, two]`, 'one.cjs': `module.exports = { v: 1 }`, 'two.js': `exports.two = 2`, 'package.json': '{}' })
    expect((await at.use('a.ts'))[0]).toMatchObject({ v: [1, 2] })
  })
  it('does not wait for a top level that never ends, and names the module', async () => {
    const at = place({ 'a.ts': `import './b.ts'`, 'b.ts': `await new Promise(() => {})` }, { evaluateMs: 50 })
    await expect(at.load('a.ts')).rejects.toMatchObject({ code: 'plugin_timeout', message: 'b.ts did not finish its top level within 50 ms; move what waits into apply' })
  })
  it('names the place in JSON that does not parse', async () => {
    const at = place({ 'a.ts': `import d from './d.json' with { type: 'json' }; export { d }`, 'd.json': '{\n  "a": 1,\n}' })
    await expect(at.load('a.ts')).rejects.toMatchObject({ code: 'module_syntax', message: expect.stringMatching(/^d\.json:3:1 /) })
  })
  it('names a package that is missing, and one that does not offer the path', async () => {
    const at = place({ 'a.ts': `import 'gone-package'`, 'b.ts': `import 'has/secret'`, 'node_modules/has/package.json': '{"name":"has","exports":{"./public":"./p.js"}}' })
    await expect(at.load('a.ts')).rejects.toMatchObject({ code: 'module_not_found', message: `a.ts:1:8 package "gone-package" is not installed for ${at.path}; install it there, or correct the name` })
    await expect(at.load('b.ts')).rejects.toMatchObject({ code: 'module_not_found', message: `b.ts:1:8 package "has" does not export "./secret" to an import (${at.at('node_modules/has/package.json')})` })
  })
  it('says that an entry is not there', async () => {
    const at = place({})
    await expect(at.load('plugins/gone.ts')).rejects.toMatchObject({ code: 'module_not_found', message: 'plugins/gone.ts does not exist' })
    expect(at.importer.tried).toContain(at.at('plugins/gone.ts'))
  })
  it('tells a text that is still being written from one that can be meant', async () => {
    const at = place({ 'a.ts': `export const v = 1` })
    await at.use('a.ts')
    expect(at.importer.whole(at.at('a.ts'), 'export const v = {')).toBe(false)
    expect(at.importer.whole(at.at('a.ts'), `import { x } from './soon.ts'; export { x }`)).toBe(false)
    expect(at.importer.whole(at.at('a.ts'), `import { z } from 'not-installed'; export const v = z`)).toBe(true)
    expect(at.importer.whole(at.at('harness.config.yaml'), 'plugins: [')).toBe(true)
  })
  it('resolves packages by conditions, patterns, main files and their own name as Node does', async () => {
    const source = (name: string) => `export const here = '${name}'`
    const at = place({
      'a.ts': `import { here as cond } from 'cond'; import { here as pattern } from 'cond/sub/deep/x'; import { here as main } from 'mainly'; import { here as scoped } from '@s/p/file.js'; export const v = [cond, pattern, main, scoped]`,
      'node_modules/cond/package.json': JSON.stringify({ type: 'module', exports: { '.': { require: './no.cjs', browser: './no.js', node: { import: './yes.js' }, default: './no.js' }, './sub/*': './lib/*.js', './sub/private/*': null } }),
      'node_modules/cond/yes.js': source('conditions'), 'node_modules/cond/lib/deep/x.js': source('pattern'),
      'node_modules/mainly/package.json': JSON.stringify({ type: 'module', main: 'lib' }), 'node_modules/mainly/lib.js': source('main'),
      'node_modules/@s/p/package.json': JSON.stringify({ type: 'module' }), 'node_modules/@s/p/file.js': source('scoped'),
      'b.ts': `import 'cond/sub/private/x'`,
      'node_modules/self/package.json': JSON.stringify({ name: 'self', type: 'module', exports: { '.': './index.js', './other': './other.js' } }), 'node_modules/self/index.js': `import { here } from 'self/other'; export { here }`, 'node_modules/self/other.js': source('own name'),
    })
    expect((await at.use('a.ts'))[0]).toMatchObject({ v: ['conditions', 'pattern', 'main', 'scoped'] })
    await expect(at.load('b.ts')).rejects.toMatchObject({ code: 'module_not_found' })
    expect((await at.use('node_modules/self/index.js'))[0]).toMatchObject({ here: 'own name' })
    expect(at.relative(at.importer.files())).toContain('node_modules/self/other.js')
  })
})

describe('an old version', () => {
  it('is let go when nothing uses it any more', async () => {
    const at = place({})
    const source = (n: number) => `import { h } from './h.ts'\nexport const n = ${n}\nexport const apply = () => [n, h]\nexport const late = () => import('./late.ts')`
    at.write('h.ts', `export const h = () => 'h'`)
    at.write('late.ts', `export const v = () => 1`)
    at.write('a.ts', source(0))
    await at.use('a.ts')
    for (let n = 1; n <= 30; n++) {
      at.write('a.ts', source(n))
      const [names] = await at.use('a.ts', ['a.ts'])
      await names!['late']()
      at.importer.forget([at.at('a.ts')])
    }
    await collected(() => alive(at.at('a.ts')) <= 1)
    expect(at.importer.alive(at.at('a.ts'))).toBe(1)
    expect(at.importer.alive(at.at('h.ts'))).toBe(1)
  })
  it('is counted as long as something holds one of its functions', async () => {
    const at = place({ 'a.ts': `export const apply = () => 1` })
    const [held] = await at.use('a.ts')
    const { apply } = held!
    at.write('a.ts', `export const apply = () => 2`)
    await at.use('a.ts', ['a.ts'])
    await collected(() => false, 5)
    expect(at.importer.alive(at.at('a.ts'))).toBe(2)
    expect(apply()).toBe(1)
  })
  it('leaves no memory behind: 120 loads of 50 KB stay under a megabyte', async () => {
    const at = place({})
    const source = (n: number) => `export const n = ${n}\n${Array.from({ length: 600 }, (_, i) => `export function f${i}(a: number): number { return a + ${i} * ${n} }  // ${'x'.repeat(20)}`).join('\n')}`
    const round = async (n: number) => { at.write('big.ts', source(n)); await at.use('big.ts', ['big.ts']) }
    for (let n = 0; n < 40; n++) await round(n)
    await collected(() => false, 4)
    const before = process.memoryUsage().heapUsed
    for (let n = 40; n < 160; n++) await round(n)
    await collected(() => false, 4)
    expect((process.memoryUsage().heapUsed - before) / 1024).toBeLessThan(1024)
  }, 90_000)
})

/** Collects garbage until a condition holds, some rounds at most. */
async function collected(until: () => boolean, rounds = 20): Promise<void> {
  for (let round = 0; round < rounds && !until(); round++) {
    await new Promise(resolve => setTimeout(resolve, 5))
    globalThis.gc!()
  }
}

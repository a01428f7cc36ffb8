import inspector from 'node:inspector'
import { pathToFileURL } from 'node:url'
import { generatedPositionFor, originalPositionFor, TraceMap, type SourceMapInput } from '@jridgewell/trace-mapping'
import { describe, expect, it } from 'vitest'
import { Log } from '../../core/kernel/log.js'
import { ModuleImporter } from '../../core/loader/importer.js'
import { originalPlace } from '../../core/loader/stack-traces.js'
import { trustAll } from '../../core/loader/trust.js'
import { folder } from '../support/folder.js'

type Names = Readonly<Record<string, any>>

function place(files: Record<string, string>) {
  const made = folder(files)
  const importer = new ModuleImporter({ builtins: {}, trust: trustAll, base: made.path, log: new Log() })
  const use = async (name: string, changed: readonly string[] = []): Promise<Names> => {
    const loaded = await importer.load([made.at(name)], changed.map(made.at))
    loaded.commit()
    return loaded.modules.get(made.at(name))!
  }
  return { ...made, use }
}
function stackOf(work: () => unknown): string {
  try { work() } catch (error) { return (error as Error).stack ?? '' }
  return ''
}

describe('a stack trace', () => {
  it('points at the source through every module on the way', async () => {
    const at = place({
      'a.ts': `interface Unused {\n  a: number\n}\nimport { deeper } from './b.ts'\n\nexport class Outer {\n  constructor(private readonly n: number) {}\n  run(): number { return deeper(this.n) }\n}\n`,
      'b.ts': `type T = 1\n\n/* a comment */ export const deeper = (n: number): number => {\n  if (n > 0) throw new TypeError('deep')\n  return n\n}\n`,
    })
    const { Outer } = await at.use('a.ts')
    const lines = stackOf(() => new Outer(1).run()).split('\n')
    expect(lines[0]).toBe('TypeError: deep')
    expect(lines[1]).toBe(`    at deeper (${at.at('b.ts')}:4:20)`)
    expect(lines[2]).toBe(`    at Outer.run (${at.at('a.ts')}:8:26)`)
    expect(lines.join('\n')).not.toContain('?v=')
  })
  it('points at the text of its own version, also when a newer one is in use', async () => {
    const at = place({ 'a.ts': `export const fail = (): never => { throw new Error('v1') }` })
    const old = await at.use('a.ts')
    at.write('a.ts', `type Longer = 1\n\n\nexport const fail = (): never => { throw new Error('v2') }`)
    const fresh = await at.use('a.ts', ['a.ts'])
    expect(stackOf(old['fail'])).toContain(`${at.at('a.ts')}:1:42`)
    expect(stackOf(fresh['fail'])).toContain(`${at.at('a.ts')}:4:42`)
  })
  it('points at the source in JavaScript and after a wait', async () => {
    const at = place({ 'a.js': `export async function later() {\n  await null\n  throw new Error('late')\n}\n` })
    const { later } = await at.use('a.js')
    expect(await later().then(String, (error: Error) => error.stack)).toContain(`${at.at('a.js')}:3:9`)
  })
  it('is as before for code of others', () => {
    const stack = stackOf(() => { JSON.parse('{') })
    expect(stack).toMatch(/^SyntaxError: .*\n +at /)
    expect(stack).toContain('stack-traces.test.ts')
  })
  it('stands an error whose message throws', async () => {
    const at = place({ 'a.ts': `export const fail = () => { const e = new Error('x'); Object.defineProperty(e, 'message', { get() { throw new Error('no') } }); throw e }` })
    const { fail } = await at.use('a.ts')
    expect(() => stackOf(fail)).not.toThrow()
  })
  it('can be asked for one place', async () => {
    const at = place({ 'a.ts': `export const where = () => {\n  const before = Error.prepareStackTrace\n  Error.prepareStackTrace = (_, frames) => frames.map(f => [f.getScriptNameOrSourceURL(), f.getLineNumber(), f.getColumnNumber()])\n  const found = (new Error() as any).stack[0]\n  Error.prepareStackTrace = before\n  return found\n}` })
    const { where } = await at.use('a.ts')
    const [url, line, column] = where()
    expect(originalPlace(url, line, column)).toEqual({ file: at.at('a.ts'), line: 4, column: 18 })
    expect(originalPlace('file:///gone.ts?v=1', 1, 1)).toBeUndefined()
  })
})

describe('a module that is loaded while a debugger can be attached', () => {
  it('carries its map, from which a breakpoint in the source is placed', async () => {
    const at = place({ 'a.ts': `interface Gone { a: 1 }\n\nexport function answer(n: number): number {\n  return n + 1\n}\n`, 'b.ts': `export const b: number = 1` })
    const session = new inspector.Session()
    const maps = new Map<string, string | undefined>()
    session.connect()
    session.on('Debugger.scriptParsed', ({ params: { url, sourceMapURL } }) => { if (url.includes('?v=')) maps.set(url.replace(/\?.*/, ''), sourceMapURL) })
    session.post('Debugger.enable')
    inspector.open(0, '127.0.0.1')
    try { await at.use('a.ts') } finally { inspector.close() }
    await at.use('b.ts')
    session.disconnect()
    const map = JSON.parse(Buffer.from(maps.get(pathToFileURL(at.at('a.ts')).href)!.split('base64,')[1]!, 'base64').toString()) as SourceMapInput & { sources: string[] }
    expect(map.sources).toEqual([pathToFileURL(at.at('a.ts')).href])
    const traced = new TraceMap(map)
    const generated = generatedPositionFor(traced, { source: map.sources[0]!, line: 4, column: 2 })
    expect(originalPositionFor(traced, { line: generated.line!, column: generated.column! })).toMatchObject({ line: 4, column: 2 })
    expect(maps.get(pathToFileURL(at.at('b.ts')).href)).toBeFalsy()                  // nobody can attach any more, so nothing is paid for it
  })
})

/** What an editor offers while a plugin is written, asked of a language service (the one that the package checks bring along). */
import { createRequire } from 'node:module'
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { RULES } from '../../core/agent/hook-rules.js'
import { folder } from '../support/folder.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The part of the compiler's interface that is used here. */
interface Service { getCompletionsAtPosition(file: string, at: number, options: object): { entries: readonly { name: string }[] } | undefined }
const ts = createRequire(createRequire(import.meta.url).resolve('@arethetypeswrong/core'))('typescript') as {
  sys: { fileExists(path: string): boolean; readFile(path: string): string | undefined; directoryExists(path: string): boolean; realpath(path: string): string }
  ScriptSnapshot: { fromString(text: string): unknown }
  getDefaultLibFilePath(options: object): string
  createLanguageService(host: object): Service
}

const PLUGIN = `import { block, type Context } from 'harnessx'
declare module 'harnessx' { interface Services { store: { get(key: string): string } } }
export function apply(ctx: Context) {
  ctx.on('/*hook*/', () => {})
  ctx.on('agent/pre-tool-use', ({ /*payload*/ }) => undefined)
  ctx.on('agent/pre-tool-use', () => ({ kind: '/*kind*/', reason: 'x' }))
  ctx.on('agent/pre-tool-use', () => block('no'), { /*option*/ })
  ctx./*service*/
}
`
/** What is offered at each mark. */
function offered(): (mark: string) => readonly string[] {
  const place = folder({ 'package.json': '{"type":"module"}', 'plugin.ts': PLUGIN }), file = place.at('plugin.ts')
  mkdirSync(place.at('node_modules'))
  symlinkSync(root, place.at('node_modules/harnessx'))
  const options = { strict: true, target: 10, module: 99, moduleResolution: 100, types: [], skipLibCheck: true }
  const service = ts.createLanguageService({
    getCompilationSettings: () => options, getScriptFileNames: () => [file], getScriptVersion: () => '1', getCurrentDirectory: () => place.path,
    getScriptSnapshot: (path: string) => ts.sys.fileExists(path) ? ts.ScriptSnapshot.fromString(readFileSync(path, 'utf8')) : undefined,
    getDefaultLibFileName: ts.getDefaultLibFilePath, fileExists: ts.sys.fileExists, readFile: ts.sys.readFile, directoryExists: ts.sys.directoryExists, realpath: ts.sys.realpath,
  })
  return mark => service.getCompletionsAtPosition(file, PLUGIN.indexOf(`/*${mark}*/`), {})?.entries.map(({ name }) => name) ?? []
}

describe('an editor', () => {
  it('offers hooks, parts of payloads, kinds of decisions, options and services, and nothing else in their place', () => {
    const at = offered()
    expect([...at('hook')].sort()).toEqual(Object.keys(RULES).sort())
    expect([...at('payload')].sort()).toEqual(['call', 'session', 'signal', 'step', 'turn'])
    expect([...at('kind')].sort()).toEqual(['allow', 'answer', 'ask', 'block'])
    expect([...at('option')].sort()).toEqual(['onError', 'prepend', 'timeout', 'tools'])
    expect(at('service')).toEqual(expect.arrayContaining(['store', 'tools', 'models', 'agents', 'on', 'state']))
  })
})

/**
 * Source text to a function that Node can throw away again: TypeScript → JavaScript → the body of an async function with its imports and exports as parameters.
 * The only file that knows oxc, loaded when the first module needs it. The transform's output contract is private to Vite: the version is pinned, test/loader/fidelity.test.ts is the gate for the next.
 */
import { setFlagsFromString } from 'node:v8'
import vm from 'node:vm'
import type { SourceMap } from 'oxc-transform'
import { at, HarnessError, type Place } from '../errors.js'

export interface Compiled {
  readonly code: string
  /** Static specifiers: the edges of the graph. */
  readonly specifiers: readonly string[]
  /** Has `export * from`, so its export names are complete only after it has run. */
  readonly stars: boolean
  /** Looks like CommonJS: no import or export, but `module.exports` or `require`. */
  readonly commonjs: boolean
  /** From the generated code back, step by step; only when asked for. */
  readonly maps: readonly SourceMap[]
}
export type ModuleBody = (imported: ImportFunction, importedLater: DynamicImport, meta: object, exports: object, exportAll: (from: object) => void, sentinel: object) => Promise<void>
export type ImportFunction = (specifier: string, names?: { importedNames?: readonly string[] }) => Promise<object>
export type DynamicImport = (specifier: unknown, options?: ImportCallOptions) => Promise<object>

const PARAMETERS = ['__vite_ssr_import__', '__vite_ssr_dynamic_import__', '__vite_ssr_import_meta__', '__vite_ssr_exports__', '__vite_ssr_exportAll__', '__hx__']
/** Async for top-level await. `__hx__` is captured by every closure of the module: as long as one of them lives, so does the sentinel. It is one line, so maps begin one line down. */
const OPEN = '"use strict";return(async()=>{void __hx__;\n'
const CLOSE = '\n})()'
export const LINES_BEFORE = 1

type Oxc = Pick<typeof import('oxc-transform'), 'transformSync' | 'moduleRunnerTransformSync'>
let oxc: Oxc | undefined
/** To be awaited before the first `compile`. */
export async function loadCompiler(): Promise<void> { oxc ??= await import('oxc-transform') }

export const isTypeScript = (file: string): boolean => /\.[mc]?tsx?$/.test(file)

/** Throws `module_syntax` in one sentence that begins with the place; `shown` is the file as a person knows it. */
export function compile(file: string, source: string, shown: string, sourcemap = false): Compiled {
  if (!oxc) throw new HarnessError('internal', 'compile was called before loadCompiler')
  const text = source.replace(/^\uFEFF/, ' ').replace(/^#!/, '//')                 // same length, so that places stay
  const maps: SourceMap[] = []
  let code = text
  if (isTypeScript(file)) {
    const typed = oxc.transformSync(file, text, { sourcemap, sourceType: 'module' })
    refuse(file, text, shown, typed.errors)                                        // oxc returns errors beside code that even runs
    code = typed.code
    if (typed.map) maps.unshift(typed.map)
  }
  const body = oxc.moduleRunnerTransformSync(file, code, { sourcemap })
  refuse(file, isTypeScript(file) ? undefined : text, shown, body.errors)
  if (body.map) maps.unshift(body.map)
  const isModule = body.code.includes('__vite_ssr_')
  return {
    code: body.code, specifiers: body.deps, maps,
    stars: body.code.includes('__vite_ssr_exportAll__('),
    commonjs: !isModule && /\bmodule\.exports\b|\bexports\.[\w$]+\s*=|\brequire\s*\(/.test(code),
  }
}

/** Since V8 12 (Node 22) `vm.compileFunction` keeps each text it has compiled for the life of the process; before, it kept none. */
const KEEPS_TEXTS = Number.parseInt(process.versions.v8, 10) >= 12

/** The module as a function. Where V8 would keep its text, the cache is off for exactly this synchronous call: switching it off and on costs a tenth of a millisecond. */
export function bodyOf(code: string, url: string, inlineMap = ''): ModuleBody {
  return uncached(() => vm.compileFunction(OPEN + code + CLOSE + inlineMap, PARAMETERS, { filename: url }) as ModuleBody)
}

function uncached<T>(work: () => T): T {
  if (!KEEPS_TEXTS) return work()
  setFlagsFromString('--no-compilation-cache')
  try { return work() } finally { setFlagsFromString('--compilation-cache') }
}

/** Does switching the cache off still work? A few milliseconds, for the first reload. Once a text is kept, it is kept each time: one attempt that looks otherwise settles it, and a busy machine does not make it look worse. */
export const cacheCanBeOff = (): boolean => Array.from({ length: 3 }).some(isCompiledAnew)

/** A text that was compiled a moment ago is there at once where it is kept: some hundred times faster, where nothing else makes a factor of ten. */
function isCompiledAnew(): boolean {
  const text = `const probe = ${Math.random()}\n${Array.from({ length: 1000 }, (_, i) => `function f${i}(a, b) { return a + b * ${i} }`).join('\n')}`
  const time = () => {
    const start = performance.now()
    uncached(() => vm.compileFunction(text, [], { filename: 'hx:cache-probe' }))
    return performance.now() - start
  }
  return time() < 40 * Math.min(time(), time(), time())
}

interface OxcError { severity: string; message: string; labels: { start: number; end: number }[] }

function refuse(file: string, text: string | undefined, shown: string, errors: readonly OxcError[]): void {
  const error = errors.find(({ severity }) => severity === 'Error')
  if (!error) return
  const label = error.labels[0]
  const place: Place = label && text !== undefined ? { file, ...position(text, label.start) } : { file }
  const token = label && text !== undefined ? Buffer.from(text).subarray(label.start, label.end).toString() : ''
  const what = error.message === 'Unexpected token' && token !== '' ? `Unexpected "${token.slice(0, 40)}"` : error.message
  throw new HarnessError('module_syntax', `${at({ ...place, file: shown })} ${what}`, { place })
}
/** oxc counts bytes of UTF-8, people count characters. */
function position(text: string, offset: number): { line: number; column: number } {
  const before = Buffer.from(text).subarray(0, offset).toString()
  return { line: before.split('\n').length, column: before.length - before.lastIndexOf('\n') }
}

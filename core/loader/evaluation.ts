/** What running modules needs beside the graph: a body with its places, packages of Node's own loader, the limit of a top level. Knows no graph; the errors name files as a person knows them. */
import { at, didYouMean, HarnessError, messageOf } from '../errors.js'
import { bodyOf, type Compiled } from './compile.js'
import { whereNamed, type ModuleRecord } from './module-record.js'
import { inlineMap, originalPlace, remember } from './stack-traces.js'

type Shown = (file: string) => string

/** The function of a module. What oxc lets pass and V8 doesn't is an error with its place in the source. */
export function bodyFor(record: ModuleRecord, compiled: Compiled, shown: Shown): ReturnType<typeof bodyOf> {
  try { return bodyOf(compiled.code, record.url, inlineMap(record)) } catch (cause) {
    const line = Number(/^.*\?v=\d+:(\d+)/.exec((cause as Error).stack ?? '')?.[1])      // the first line of the stack is the place in the generated code
    remember(record)
    const place = (line ? originalPlace(record.url, line, 1) : undefined) ?? { file: record.file }
    throw new HarnessError('module_syntax', `${at({ file: shown(record.file), line: place.line })} ${messageOf(cause)}`, { place, cause })
  }
}
export function missingName(name: string, specifier: string, record: ModuleRecord, namespace: object, shown: Shown): HarnessError {
  const place = whereNamed(record, specifier)
  return new HarnessError('module_syntax', `${at({ ...place, file: shown(record.file) })} "${specifier}" does not export "${name}"${didYouMean(name, Object.keys(namespace))}`, { place })
}

/** Packages by their URL: Node's loader has each once, so looking twice is waste. */
export class NativeModules {
  readonly #known = new Map<string, Promise<object>>()
  import(url: string): Promise<object> {
    const known = this.#known.get(url)
    if (known) return known
    const importing: Promise<object> = import(/* @vite-ignore */ url, url.endsWith('.json') ? { with: { type: 'json' } } : undefined)
    this.#known.set(url, importing)
    importing.catch(() => { this.#known.delete(url) })      // told to whoever imports; the next one may try again
    return importing
  }
}

/**
 * A top level that never ends must not hold the queue; the late end of one is of no interest any more.
 * Most end without waiting for anything: the clock is set only when the microtasks are through and one has not, which is when `nextTick` comes.
 */
export async function withinTopLevel(staged: ReadonlyMap<string, ModuleRecord>, { evaluateMs = 10_000, shown }: { readonly evaluateMs?: number; readonly shown: Shown }, work: () => Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined, over = false
  const working = work()
  try {
    await Promise.race([working, new Promise<never>((_, reject) => {
      process.nextTick(() => { if (!over) timer = setTimeout(() => { reject(unfinished(staged, evaluateMs, shown)) }, evaluateMs) })
    })])
  } finally {
    over = true
    clearTimeout(timer)
    working.catch(() => {})                                 // already told, or dropped as late
  }
}
function unfinished(staged: ReadonlyMap<string, ModuleRecord>, limit: number, shown: Shown): HarnessError {
  const running = [...staged.values()].filter(record => record.running && !record.done)
  const stuck = running.find(({ imports }) => !running.some(other => imports.has(other.file))) ?? running[0]
  return new HarnessError('plugin_timeout', `${stuck ? shown(stuck.file) : 'a module'} did not finish its top level within ${limit} ms; move what waits into apply`, stuck && { place: { file: stuck.file } })
}

/**
 * Stack traces that point at the source a person wrote, also in an old version that still runs. Knows versions of modules, weakly; never keeps one alive.
 * A map is made when the first frame of a version is shown, from the text of that very version: a reload that throws nothing pays nothing.
 */
import inspector from 'node:inspector'
import remapping, { type SourceMapInput } from '@jridgewell/remapping'
import { originalPositionFor, TraceMap } from '@jridgewell/trace-mapping'
import type { Place } from '../errors.js'
import { compile, LINES_BEFORE } from './compile.js'

/** One version of one file, as evaluated. It is also the sentinel that every closure of the version holds. */
export interface Version { readonly file: string; readonly source: string; readonly url: string }

const versions = new Map<string, WeakRef<Version>>()
const maps = new WeakMap<Version, TraceMap>()
const gone = new FinalizationRegistry<string>(url => { versions.delete(url) })

export function remember(version: Version): void {
  install()
  versions.set(version.url, new WeakRef(version))
  gone.register(version, version.url)
}
/** How many versions of a file something still holds: 1 is the one in use. Meaningful after a collection. */
export function alive(file: string): number {
  let count = 0
  for (const version of versions.values()) if (version.deref()?.file === file) count++
  return count
}

/** Where a position in a module's script (its URL ends with `?v=`) stands in the source. Line and column count from 1. */
export function originalPlace(url: string, line: number, column: number): Place | undefined {
  const version = versions.get(url)?.deref()
  if (!version) return undefined
  const found = line > LINES_BEFORE ? originalPositionFor(mapOf(version), { line: line - LINES_BEFORE, column: column - 1 }) : undefined
  return found?.line == null ? { file: version.file } : { file: version.file, line: found.line, column: found.column + 1 }
}

/** The map as a comment for the debugger, so that breakpoints in the source hit; empty while none listens, because it costs more than all the rest of a reload. */
export function inlineMap(version: Version): string {
  if (inspector.url() === undefined) return ''
  const { mappings } = composed(version)
  const map = { version: 3, sources: [version.url.replace(/\?v=\d+$/, '')], sourcesContent: [version.source], names: [], mappings: ';'.repeat(LINES_BEFORE) + mappings }
  return `\n//# sourceMappingURL=data:application/json;base64,${Buffer.from(JSON.stringify(map)).toString('base64')}`
}

function mapOf(version: Version): TraceMap {
  let map = maps.get(version)
  if (!map) maps.set(version, map = new TraceMap({ version: 3, sources: [version.file], names: [], mappings: composed(version).mappings }))
  return map
}
function composed(version: Version): { mappings: string } {
  const steps = compile(version.file, version.source, version.file, true).maps.map(({ mappings, sources }): SourceMapInput => ({ version: 3, mappings, sources, names: [] }))
  const map = steps.length > 1 ? remapping(steps, () => null) : steps[0] as { mappings: string }
  return { mappings: String(map.mappings) }
}

let installed = false
/** Once per process. What was there before keeps the traces that hold no frame of ours. */
function install(): void {
  if (installed) return
  installed = true
  const before = Error.prepareStackTrace
  Error.prepareStackTrace = (error, frames) => {
    if (before && !frames.some(frame => versions.has(frame.getScriptNameOrSourceURL() ?? ''))) return before(error, frames)
    return [heading(error), ...frames.map(frame => `    at ${shown(frame)}`)].join('\n')
  }
}
function heading(error: unknown): string {
  try { return Error.prototype.toString.call(error) } catch { return '[an error whose name or message throws]' }
}
function shown(frame: NodeJS.CallSite): string {
  const text = String(frame)
  const url = frame.getScriptNameOrSourceURL(), line = frame.getLineNumber(), column = frame.getColumnNumber()
  const place = url && line && column ? originalPlace(url, line, column) : undefined
  return place ? text.replace(`${url}:${line}:${column}`, [place.file, place.line, place.column].filter(part => part !== undefined).join(':')) : text
}

/**
 * What the dispatcher tells the log about a handler: a sentence, and fields for who counts (`what`, `hook`, `error`). Errors of plugins are flattened: an error object, by its stack and its fields, keeps the code alive that threw it.
 */
import { dirname, sep } from 'node:path'
import { at, HarnessError, messageOf, type Place, readable, UNREADABLE } from '../errors.js'

export interface FlatError { readonly name: string; readonly message: string; readonly stack?: string | undefined }
export interface Report {
  readonly level: 'info' | 'warn' | 'error'
  readonly plugin: string
  readonly hook: string
  readonly what: 'failed' | 'timed out' | 'slow' | 'unmatched' | 'misfit' | 'global'
  /** One sentence that names plugin and hook. */
  readonly message: string
  readonly error?: FlatError | undefined
}

export function flatten(error: unknown): FlatError {
  try {
    if (error instanceof Error) return { name: String(error.name), message: String(error.message), stack: error.stack === undefined ? undefined : String(error.stack) }
    return { name: typeof error, message: messageOf(error) }
  } catch {                                               // a getter of the thrown thing throws itself
    return { name: 'Error', message: UNREADABLE }
  }
}

/** Where in the code beside `file` a stack was, innermost first; without a file, in any code but that of packages. Undefined when it was nowhere there. */
export function placeIn(stack: string | undefined, file?: string): Place | undefined {
  const folder = file === undefined ? undefined : dirname(file) + sep
  for (const [, path, line, column] of (stack ?? '').matchAll(/^ +at (?:.*\()?(?:file:\/\/)?(\/[^\n]*?):(\d+):(\d+)\)?$/gm)) {
    const inside = folder === undefined ? path! : path!.startsWith(folder) ? path!.slice(folder.length) : undefined
    if (inside !== undefined && !inside.includes(`node_modules${sep}`)) return { file: path!, line: Number(line), column: Number(column) }
  }
  return undefined
}

/** A plugin's own error of its loading becomes `plugin_failed`, with its message and the place in the plugin's file; what core refused stays what it is, and is told the place too. */
export function loadFailure({ id, file }: { readonly id: string; readonly file?: string | undefined }, thrown: unknown): HarnessError {
  const error = readable(thrown)
  const stack = error instanceof Error ? error.stack ?? '' : ''          // read now: an unread stack keeps the code of its frames alive
  if (error instanceof HarnessError) {
    const place = error.place ?? (file === undefined ? undefined : placeIn(stack, file))
    return place === error.place ? error : new HarnessError(error.code, `${error.message} (${at(place!)})`, { place, cause: error.cause })
  }
  const place = file === undefined ? undefined : placeIn(stack, file) ?? { file }
  return new HarnessError('plugin_failed', `plugin "${id}" threw while it was loaded: ${messageOf(error)}${place ? ` (${at(place)})` : ''}`, { place, cause: error })
}

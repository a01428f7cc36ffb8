/**
 * Where in a plugin's file a registration stands. Taken at once as raw script position, which costs microseconds; turned into a place in the source only when somebody looks.
 */
import { fileURLToPath } from 'node:url'
import type { Place } from '../errors.js'

/** `file` of a raw place is what the engine calls the script: a path, or a URL. */
export type Locate = (raw: Place) => Place

/** The line that called `below`, a function on the stack. */
export function callSite(below: (...args: never[]) => unknown, locate: Locate): () => Place | undefined {
  const site = frameBelow(below)
  const file = site?.getFileName()
  if (!site || !file) return () => undefined
  const raw: Place = { file, line: site.getLineNumber() ?? undefined, column: site.getColumnNumber() ?? undefined }
  return () => asPath(locate(raw))
}

const asPath = (place: Place): Place => place.file.startsWith('file:') ? { ...place, file: fileURLToPath(place.file) } : place

function frameBelow(below: (...args: never[]) => unknown): NodeJS.CallSite | undefined {
  const { prepareStackTrace, stackTraceLimit } = Error
  const holder: { stack?: unknown } = {}
  try {
    Error.stackTraceLimit = 1
    Error.prepareStackTrace = (_error, sites) => sites
    Error.captureStackTrace(holder, below)
    return (holder.stack as NodeJS.CallSite[])[0]
  } finally {
    Error.prepareStackTrace = prepareStackTrace
    Error.stackTraceLimit = stackTraceLimit
  }
}

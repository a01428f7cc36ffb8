/**
 * Where in a plugin's file a registration stands. The frame is kept at once, and read only when somebody looks: V8 compiles without lines, so the first one of a module parses it again.
 * A frame holds the function that registers, as the handler beside it does: it must not outlive that handler.
 */
import { fileURLToPath } from 'node:url'
import type { Place } from '../errors.js'

/** `file` of a raw place is what the engine calls the script: a path, or a URL. */
export type Locate = (raw: Place) => Place

/** The line that called `below`, a function on the stack. */
export function callSite(below: (...args: never[]) => unknown, locate: Locate): () => Place | undefined {
  let kept: object | undefined = stackBelow(below), place: Place | undefined
  return () => {
    const site = kept && frameOf(kept), file = site?.getFileName()
    if (site && file) place = asPath(locate({ file, line: site.getLineNumber() ?? undefined, column: site.getColumnNumber() ?? undefined }))
    kept = undefined
    return place
  }
}

const asPath = (place: Place): Place => place.file.startsWith('file:') ? { ...place, file: fileURLToPath(place.file) } : place

/** One frame, as the engine keeps it until its stack is read. */
function stackBelow(below: (...args: never[]) => unknown): object {
  const { stackTraceLimit } = Error
  const holder = {}
  try {
    Error.stackTraceLimit = 1
    Error.captureStackTrace(holder, below)
    return holder
  } finally { Error.stackTraceLimit = stackTraceLimit }
}
function frameOf(holder: { readonly stack?: unknown }): NodeJS.CallSite | undefined {
  const { prepareStackTrace } = Error
  try {
    Error.prepareStackTrace = (_error, sites) => sites
    return (holder.stack as NodeJS.CallSite[])[0]
  } finally { Error.prepareStackTrace = prepareStackTrace }
}

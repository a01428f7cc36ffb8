/**
 * A file that a person wrote, as text: bounded, and UTF-8 or refused. Bytes that are no UTF-8 would read as something else, and an edit would write that back over them.
 */
import { isUtf8 } from 'node:buffer'
import { readFileSync, statSync } from 'node:fs'
import { messageOf } from '../errors.js'
import { invalid } from './config.js'
import { MAX_BYTES } from './config-limits.js'

/** Throws `config_invalid` in one sentence. */
export function readText(file: string): string {
  const refuse = (message: string) => invalid([{ file, message }])
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found) throw refuse('does not exist')
  if (!found.isFile()) throw refuse('is not a file')
  if (found.size > MAX_BYTES) throw refuse(`must not be larger than ${MAX_BYTES / 1024} KB, it has ${Math.ceil(found.size / 1024)} KB`)
  let bytes: Buffer
  try { bytes = readFileSync(file) } catch (error) { throw refuse(`can not be read: ${messageOf(error)}`) }
  if (!isUtf8(bytes)) throw refuse('is not UTF-8; save it as UTF-8 in your editor')
  const nul = bytes.indexOf(0)
  if (nul >= 0) throw refuse(`has a byte at ${nul} that no text has (NUL); save it as UTF-8 in your editor`)
  return bytes.toString('utf8')
}

/** What stands on the disk now, asked again and again while it changes: what is not there is undefined, and only `textOf` throws. */
import { closeSync, constants, fstatSync, openSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The text of a plain file. Throws for anything else: a pipe that nobody writes would hold the whole process, and a device never ends. */
export function textOf(file: string): string {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try {
    if (!fstatSync(fd).isFile()) throw new Error(`"${file}" is not a file`)
    return readFileSync(fd, 'utf8')
  } finally { closeSync(fd) }
}
export function read(file: string): string | undefined {
  try { return textOf(file) } catch { return undefined }                 // not there, no file, not readable: whoever loads it says which
}
export function realPath(path: string): string | undefined {
  try { return realpathSync.native(path) } catch { return undefined }    // not there (yet)
}
export function stat(path: string) {
  try { return statSync(path) } catch { return undefined }               // not there, or behind a file that was a folder
}
/** The real path of a folder, or of the nearest one above that is there. */
export function existing(folder: string): string {
  return realPath(folder) ?? (folder === dirname(folder) ? folder : existing(dirname(folder)))
}
/** Changes with every save, also one that keeps size and modification time. */
export function signature(file: string): string {
  const found = stat(file)
  return found ? `${found.ctimeMs} ${found.size} ${found.ino}` : ''
}

/** What stands on the disk now, asked again and again while it changes: nothing here throws or waits (a pipe that nobody writes would hold us), what is not there is undefined. */
import { readFileSync, realpathSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

export function read(file: string): string | undefined {
  try { return stat(file)?.isFile() ? readFileSync(file, 'utf8') : undefined } catch { return undefined }   // not there, no file, not readable: whoever loads it says which
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

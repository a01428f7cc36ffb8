/** What the sandbox asks the file system, and nothing else does: what stands at a path, what a small file says. Never throws. */
import { accessSync, closeSync, constants, fstatSync, lstatSync, openSync, readdirSync, readFileSync, readlinkSync, realpathSync } from 'node:fs'
import { isAbsolute, join } from 'node:path'

export type Kind = 'folder' | 'file' | 'link'
/** Undefined when nothing is there. */
export type Look = (path: string) => Kind | undefined

export function look(path: string): Kind | undefined {
  try {
    const stat = lstatSync(path, { throwIfNoEntry: false })    // a missing one is common, and an error costs ten times the question
    return stat === undefined ? undefined : stat.isSymbolicLink() ? 'link' : stat.isDirectory() ? 'folder' : 'file'
  } catch { return undefined }                                // missing, or not ours to see: for a sandbox the same
}
/** There, and for this user to read or, as a folder, to pass through. */
export const isOurs = (path: string): boolean => [constants.R_OK, constants.X_OK].some(right => attempt(() => { accessSync(path, right); return true }))
/** Of a plain file: a pipe in the workspace, put where git has a file, would hold the whole process. */
export const textOf = (file: string): string | undefined => attempt(() => {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
  try { return fstatSync(fd).isFile() ? readFileSync(fd, 'utf8') : undefined } finally { closeSync(fd) }
})
export const linkOf = (path: string): string | undefined => attempt(() => readlinkSync(path))
export const realOf = (path: string): string | undefined => attempt(() => realpathSync(path))
export const namesIn = (folder: string): readonly string[] => attempt(() => readdirSync(folder)) ?? []

/** By its path, or by its name in an absolute folder of PATH. */
export function findProgram(program: string, path: string): string | undefined {
  const places = isAbsolute(program) ? [program] : path.split(':').filter(isAbsolute).map(folder => join(folder, program))
  return places.find(file => attempt(() => { accessSync(file, constants.X_OK); return true }))
}

function attempt<T>(ask: () => T): T | undefined {
  try { return ask() } catch { return undefined }             // as above
}

/**
 * Makes folders: of ours, for the owner alone (0700); in a project, as its other folders are. Knows no place.
 * Node's own recursive mkdir never ends where a file system answers "not there" for a folder that it will not make (/proc), so each level is made by itself.
 */
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** The mode of a folder in a project: what the umask leaves. */
export const SHARED = 0o777

/** Makes a folder, and those above it that are missing. Gives the topmost that was made; undefined when it was there. */
export function makeFolder(folder: string, mode = 0o700): string | undefined {
  const above = dirname(folder)
  const top = existsSync(above) || above === folder ? undefined : makeFolder(above, mode)
  try {
    mkdirSync(folder, { mode })
    return top ?? folder
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' && statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return top      // there, or made by another process meanwhile
    throw error
  }
}

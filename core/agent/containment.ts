/**
 * Where a path really leads, and whether that is inside a folder: the two questions of containment. Asks the file system, changes nothing, knows no session.
 * A path is compared only after its links are resolved, and never by a bare prefix (`/ws-evil` is not inside `/ws`).
 */
import { lstat, realpath } from 'node:fs/promises'
import { basename, dirname, join, sep } from 'node:path'

/** Is `path` the folder itself or below it? Both absolute and real. */
export const isInside = (folder: string, path: string): boolean => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

/** A link whose target is not there: what would be made through it is anybody's guess. */
export class DanglingLink extends Error {
  readonly link: string
  constructor(link: string) {
    super(`"${link}" is a link that leads nowhere`)
    this.link = link
  }
}

/** The real path behind an absolute, normalised path: links of the deepest ancestor that exists are resolved, what is missing is added as it stands. */
export async function realPath(path: string): Promise<string> {
  const missing: string[] = []
  for (let existing = path; ;) {
    try {
      return join(await realpath(existing), ...missing)
    } catch (error) {
      if (!isMissing(error)) throw error
      if (await isLink(existing)) throw new DanglingLink(existing)
      const parent = dirname(existing)
      if (parent === existing) throw error
      missing.unshift(basename(existing))
      existing = parent
    }
  }
}

async function isLink(path: string): Promise<boolean> {
  try {
    return (await lstat(path)).isSymbolicLink()
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}
/** Nothing there, or a file where a folder would have to be. */
const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes(String((error as NodeJS.ErrnoException).code))

/** Which paths lie in which. All absolute and normalised. Pure. */
import { sep } from 'node:path'

/** The folder itself, or below it. */
export const isInside = (folder: string, path: string): boolean => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
/** Without those that lie in another of them. */
export const outermost = (paths: readonly string[]): readonly string[] => [...new Set(paths)].filter(path => !paths.some(other => other !== path && isInside(other, path)))

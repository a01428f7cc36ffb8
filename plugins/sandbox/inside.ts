/** Is `path` the folder itself or below it? Both absolute and normalised. */
import { sep } from 'node:path'

export const isInside = (folder: string, path: string): boolean => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)

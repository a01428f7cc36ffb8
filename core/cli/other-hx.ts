/** Is it this `hx` that the shell would run? Looks along the PATH; runs nothing. */
import { accessSync, constants, existsSync, realpathSync, statSync } from 'node:fs'
import { delimiter, isAbsolute, join } from 'node:path'

/** The file of another `hx` that comes first on the PATH; undefined when it is this one, or none is there. */
export function otherHx(path: string | undefined, root: string): string | undefined {
  const first = onPath('hx', path)
  return first === undefined || realpathSync(first).startsWith(`${realpathSync(root)}/`) ? undefined : first
}
/** The first of that name that can be run. */
export function onPath(name: string, path: string | undefined): string | undefined {
  return (path ?? '').split(delimiter).filter(isAbsolute).map(folder => join(folder, name)).find(file => existsSync(file) && statSync(file).isFile() && canRun(file))
}
function canRun(file: string): boolean {
  try { accessSync(file, constants.X_OK); return true } catch { return false }      // not executable for us
}

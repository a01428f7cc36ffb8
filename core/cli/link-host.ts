/** Makes `harnessx` known to editors and to tests of a project: types and the kit come from this installation when the project has none of its own. Installs nothing. */
import { existsSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeFolder, SHARED } from '../kernel/folder.js'

/** `there`: the project, or a folder above it, has one, or is harnessx itself. */
export function linkHost(folder: string, installation: string): 'there' | 'linked' {
  for (let at = folder; ; at = dirname(at)) {
    if (existsSync(join(at, 'node_modules', 'harnessx', 'package.json')) || nameIn(at) === 'harnessx') return 'there'
    if (at === dirname(at)) break
  }
  makeFolder(join(folder, 'node_modules'), SHARED)
  symlinkSync(installation, join(folder, 'node_modules', 'harnessx'), 'dir')
  return 'linked'
}
/** The name that a package.json gives, if there is one that can be read. */
function nameIn(folder: string): unknown {
  const file = join(folder, 'package.json')
  if (!existsSync(file)) return undefined
  try { return (JSON.parse(readFileSync(file, 'utf8')) as { name?: unknown }).name } catch { return undefined }      // not JSON: no package of ours
}

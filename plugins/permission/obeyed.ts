/**
 * Variables that make a program obey a file before it does what its words say, so that the words no longer tell what runs: a library that every program loads, a file that a shell reads first,
 * another folder in which programs are looked for, another repository with settings of its own. Pure. `NODE_OPTIONS`, `PYTHONPATH` and the like are left out: what they name is code of the project, as what the words name is.
 */
import { bringsSettings, isOwnGit, OTHER_GIT, SETS } from './git.js'
import { HOLE, isOpen } from './word.js'

/** Folders of programs that a project's tools are installed into. */
const TOOLS = /(?:^|\/)(?:node_modules\/\.bin|\.?v?env\/bin|vendor\/bin)\/?$/
const SYSTEM = /^\/(?:usr|lib\w*|bin|sbin|opt|nix|gnu)\//

/** Why it has to be asked about. */
export function obeys(name: string, value: string): string | undefined {
  if (bringsSettings(name, value)) return SETS
  if (/^(?:LD_(?:PRELOAD|AUDIT)|DYLD_INSERT_LIBRARIES)$/.test(name)) return value.split(/[\s:]+/).some(file => file.includes('/') && !SYSTEM.test(file)) || isOpen(value) ? 'a library is loaded into the program before it runs' : undefined
  if (/^(?:BASH_)?ENV$/.test(name)) return value !== '/dev/null' && (isOpen(value) || value.includes('/') || (name === 'BASH_ENV' && value !== '')) ? 'a shell begins with a file that nobody has read' : undefined
  if (name === 'PATH') return pathBefore(value).some(folder => !folder.startsWith('/') && !TOOLS.test(folder)) ? 'programs are looked for in the workspace first' : undefined
  if (/^GIT_(?:COMMON_)?DIR$/.test(name)) return isOwnGit(value) ? undefined : OTHER_GIT
  return undefined
}

/** Folders that stand before what was there: only those can take a name from the system. An empty one is the current folder. */
function pathBefore(value: string): readonly string[] {
  const folders = value.split(':'), kept = folders.findIndex(folder => folder.startsWith(HOLE) && !folder.includes('/'))
  return (kept < 0 ? folders : folders.slice(0, kept)).filter(folder => !folder.startsWith(HOLE) && !folder.startsWith('~'))
}

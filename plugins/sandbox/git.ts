/**
 * Git's own folders around a workspace, which hold what git runs (hooks, config) beside what every commit writes.
 * The repository above a workspace is shown, not opened. A `.git` file leads to a folder elsewhere, which counts only when that folder names this very worktree in return.
 */
import { dirname, join, resolve } from 'node:path'
import { isInside } from './inside.js'
import { look, namesIn, realOf, textOf } from './files.js'

export interface GitFolders {
  readonly writable: readonly string[]
  readonly readable: readonly string[]
  readonly protected: readonly string[]
}
const NONE: GitFolders = { writable: [], readable: [], protected: [] }

export function gitFolders(roots: readonly string[], home: string): GitFolders {
  return roots.map(root => foldersOf(root, home)).reduce((all, one) => ({
    writable: [...all.writable, ...one.writable], readable: [...all.readable, ...one.readable], protected: [...all.protected, ...one.protected],
  }), NONE)
}

function foldersOf(root: string, home: string): GitFolders {
  const top = topOf(root)
  if (top === undefined) return NONE
  const dot = join(top, '.git'), common = look(dot) === 'folder' ? dot : commonOf(dot)
  const readable = top === root || isInside(top, home) ? [] : [top]
  if (common === undefined) return { ...NONE, readable, protected: top === root ? [dot] : [] }
  if (top !== root) return { ...NONE, readable: [...readable, ...common === dot || readable.length === 0 ? [] : [common]] }
  return { writable: common === dot ? [] : [common], readable, protected: [...steering(common), ...common === dot ? [] : [dot]] }
}

function topOf(root: string): string | undefined {
  for (let folder = root; ; folder = dirname(folder)) {
    if (look(join(folder, '.git')) !== undefined) return folder
    if (folder === dirname(folder)) return undefined
  }
}

/** Of a worktree: the repository's folder, if it knows this worktree. */
function commonOf(dot: string): string | undefined {
  const named = /^gitdir: (.+)$/m.exec(textOf(dot) ?? '')?.[1]
  const own = named === undefined ? undefined : realOf(resolve(dirname(dot), named.trim()))
  if (own === undefined || realOf((textOf(join(own, 'gitdir')) ?? '').trim()) !== realOf(dot)) return undefined
  const common = realOf(resolve(own, (textOf(join(own, 'commondir')) ?? '').trim() || '.'))
  return common !== undefined && dirname(dirname(own)) === common ? common : undefined
}

/** What git runs or obeys. */
const steering = (common: string): readonly string[] => [common, ...namesIn(join(common, 'modules')).map(name => join(common, 'modules', name))].flatMap(folder => [join(folder, 'hooks'), join(folder, 'config')])

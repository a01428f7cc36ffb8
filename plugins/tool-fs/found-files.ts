/**
 * Which files a pattern finds under a folder, sorted, for `glob` and `grep`. The fixed part of a pattern goes through the workspace; from there
 * links are neither followed nor listed, so nothing outside can be found. Owns the list of folders that nobody means.
 */
import { stat } from 'node:fs/promises'
import { join, relative } from 'node:path'
import type { ToolRun, WorkspaceService } from 'harnessx'
import { listed } from './wording.js'

export interface FoundFiles {
  /** Absolute, sorted by path. */
  readonly files: readonly string[]
  /** A path as the model should see and may send it, in one line: relative to the session's folder where it lies inside. */
  readonly shown: (file: string) => string
}

/** `pattern` is relative to `path`; a `path` that is a file is found itself. */
export async function findFiles(workspace: WorkspaceService, run: ToolRun, path: string, pattern: string, options: { readonly ignore: readonly string[]; readonly signal: AbortSignal }): Promise<FoundFiles> {
  const home = await workspace.resolve(run.session, '.', 'read')
  const shown = (file: string): string => {
    const inside = relative(home, file)
    return listed(leadsOut(inside) ? file : inside)
  }
  const start = await workspace.resolve(run.session, path, 'read')
  if ((await stat(start)).isFile()) return { files: [start], shown }

  const { glob, isDynamicPattern } = await import('tinyglobby')        // here, because no start should wait for it
  const { fixed, rest } = splitPattern(pattern, isDynamicPattern)
  const folder = await workspace.resolve(run.session, fixed.startsWith('/') ? fixed : join(start, fixed), 'read')
  const named = pattern.split(/[/{},]/)
  const ignore = options.ignore.filter(name => !named.includes(name)).map(name => `**/${name}/**`)
  const found = await glob(rest, { cwd: folder, ignore, dot: true, followSymbolicLinks: false, expandDirectories: false, signal: options.signal })
  options.signal.throwIfAborted()
  return { files: found.filter(file => !leadsOut(file)).sort().map(file => join(folder, file)), shown }
}

/** `src/a/b*.ts` is the folder `src/a` and the pattern `b*.ts`. The last part always belongs to the pattern. */
function splitPattern(pattern: string, isDynamicPattern: (part: string) => boolean): { fixed: string; rest: string } {
  const parts = pattern.split('/')
  const dynamic = parts.findIndex(part => isDynamicPattern(part))
  const at = dynamic < 0 ? parts.length - 1 : dynamic
  const rest = parts.slice(at)
  if (rest.includes('..')) throw new Error(`".." can not follow a wildcard in the pattern "${pattern}"`)
  return { fixed: at === 1 && parts[0] === '' ? '/' : parts.slice(0, at).join('/') || '.', rest: rest.join('/') }
}

const leadsOut = (path: string): boolean => path === '..' || path.startsWith('../')

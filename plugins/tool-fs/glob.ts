/**
 * `glob`: the files whose path matches a pattern. Lists only what lies under the folder, sorted and capped; says how many there are.
 */
import { z, type Tool, type ToolRun, type WorkspaceService } from 'harnessx'
import { findFiles } from './found-files.js'
import { withLimit } from './search-limit.js'
import { count, inWords } from './wording.js'

export interface SearchLimits {
  readonly ignore: readonly string[]
  readonly maxFiles: number
  readonly searchTimeout: number
}

export function globTool(workspace: WorkspaceService, limits: SearchLimits): Tool {
  const parameters = z.object({
    pattern: z.string().min(1).max(1000).describe('Glob, such as "**/*.ts" or "src/{a,b}/*.json".'),
    path: z.string().min(1).optional().describe('Folder that the pattern is relative to. Default: the workspace.'),
  })
  return {
    name: 'glob',
    description: `Find files by their path. Gives files only, sorted, at most ${limits.maxFiles}. Links are not followed; ${limits.ignore.join(', ')} are left out unless the pattern names them.`,
    parameters,
    readOnly: true,
    async execute({ pattern, path = '.' }: z.infer<typeof parameters>, run: ToolRun) {
      try {
        const { files, shown } = await withLimit(run.signal, limits.searchTimeout, signal => findFiles(workspace, run, path, pattern, { ignore: limits.ignore, signal }))
        if (files.length === 0) return `no file matches "${pattern}"${path === '.' ? '' : ` in "${path}"`}`
        const list = files.slice(0, limits.maxFiles).map(shown)
        return files.length > list.length ? [...list, `[the first ${list.length} of ${count(files.length, 'file')}; narrow the pattern to see the others]`].join('\n') : list.join('\n')
      } catch (error) {
        throw inWords(error, path)
      }
    },
  }
}

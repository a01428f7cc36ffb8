/**
 * `write_file`: makes or replaces a file as a whole. Writes through the workspace only, which makes missing folders and never follows a link out.
 */
import { stat } from 'node:fs/promises'
import { z, type Tool, type ToolRun, type WorkspaceService } from 'harnessx'
import type { InLine } from './in-line.js'
import { codeOf, count, inWords, size } from './wording.js'

export function writeFileTool(workspace: WorkspaceService, inLine: InLine): Tool {
  const parameters = z.object({
    path: z.string().min(1).describe('File to write, relative to the workspace or absolute inside it.'),
    content: z.string().describe('The whole new content.'),
  })
  return {
    name: 'write_file',
    description: 'Write a file as a whole: it is made, with its folders, or replaced completely. To change a part of a file, use edit_file.',
    parameters,
    async execute({ path, content }: z.infer<typeof parameters>, run: ToolRun) {
      if (path.endsWith('/')) throw new Error(`"${path}" names a folder; write_file makes the folders of a file by itself`)
      try {
        const file = await workspace.resolve(run.session, path, 'write')
        return await inLine(file, async () => {
          run.signal.throwIfAborted()
          const before = await sizeOf(file)
          await workspace.writeFile(run.session, path, content)
          const written = `${count(lineCount(content), 'line')}, ${size(Buffer.byteLength(content))}`
          return before === undefined ? `created "${path}" (${written})` : `overwrote "${path}" (${written}; before: ${size(before)})`
        })
      } catch (error) {
        throw inWords(error, path)
      }
    },
  }
}

/** A last line without a line end counts too. */
const lineCount = (text: string): number => text === '' ? 0 : text.split('\n').length - (text.endsWith('\n') ? 1 : 0)

async function sizeOf(file: string): Promise<number | undefined> {
  try {
    const found = await stat(file)
    if (found.isDirectory()) throw Object.assign(new Error(`${file} is a folder`), { code: 'EISDIR' })
    return found.size
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw error
  }
}

/**
 * `edit_file`: replaces a passage of a text file, always on the bytes that are there now, and never touches the rest of it.
 * Writes of one file stand in line, whatever session they come from, so that none is lost between reading and writing.
 */
import { z, type Tool, type ToolRun, type WorkspaceService } from 'harnessx'
import type { InLine } from './in-line.js'
import { replaceText, type Replacement } from './replacement.js'
import { codeOf, count, head, inWords, size } from './wording.js'

const SHOWN_LINES = 20
const SHOWN_SIMILAR = 2000

export function editFileTool(workspace: WorkspaceService, limits: { readonly maxEditBytes: number }, inLine: InLine): Tool {
  const parameters = z.object({
    path: z.string().min(1).describe('File to change, relative to the workspace or absolute inside it.'),
    old_text: z.string().min(1).describe('The passage to replace, exactly as in the file, indentation included. It has to be there exactly once, unless replace_all is set.'),
    new_text: z.string().describe('What stands there afterwards.'),
    replace_all: z.boolean().optional().describe('Replace every occurrence. Default false.'),
  })
  return {
    name: 'edit_file',
    description: 'Change a part of a text file: old_text is replaced by new_text. Only that passage changes; line ends (LF or CRLF) are kept and need not be given. To write a whole file, use write_file.',
    parameters,
    async execute({ path, old_text, new_text, replace_all = false }: z.infer<typeof parameters>, run: ToolRun) {
      if (old_text === new_text) throw new Error('old_text and new_text are the same: nothing would change')
      try {
        return await inLine(await workspace.resolve(run.session, path, 'write'), async () => {
          run.signal.throwIfAborted()
          const bytes = Buffer.from(await workspace.readFile(run.session, path, { maxBytes: limits.maxEditBytes + 1 }))
          if (bytes.length > limits.maxEditBytes) throw new Error(`"${path}" is larger than ${size(limits.maxEditBytes)}, too large to edit; change it with a command`)
          const replacement = replaceText(decode(bytes, path), old_text, new_text, replace_all)
          if (replacement.kind !== 'replaced') throw new Error(refusal(replacement, path))
          await workspace.writeFile(run.session, path, replacement.text)
          return `edited "${path}": ${count(replacement.lines.length, 'replacement')}, at ${lineList(replacement.lines)}`
        })
      } catch (error) {
        throw codeOf(error) === 'ENOENT' ? new Error(`"${path}" does not exist; make it with write_file`, { cause: error }) : inWords(error, path)
      }
    },
  }
}

/** Strict, because writing back a text with replaced bytes would damage them. The BOM stays in the text and so in the file. */
function decode(bytes: Buffer, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    throw new Error(`"${path}" is not UTF-8 text and can not be edited; change it with a command`, { cause: error })
  }
}

function refusal(replacement: Exclude<Replacement, { kind: 'replaced' }>, path: string): string {
  if (replacement.kind === 'ambiguous') return `old_text is in "${path}" ${replacement.lines.length} times, at ${lineList(replacement.lines)}; nothing was changed. Give more of the surrounding text, so that it is there once, or set replace_all`
  if (!replacement.similar) return `old_text is not in "${path}", nor anything like it; nothing was changed. Read the file again and copy the passage exactly`
  const { line, text, equal, of } = replacement.similar
  return `old_text is not in "${path}"; nothing was changed. Nearest is line ${line}, where ${equal} of ${count(of, 'line')} ${equal === 1 ? 'is' : 'are'} equal but for blanks. It reads now:\n${head(text, SHOWN_SIMILAR)}`
}

const lineList = (lines: readonly number[]): string =>
  `${lines.length === 1 ? 'line' : 'lines'} ${lines.slice(0, SHOWN_LINES).join(', ')}${lines.length > SHOWN_LINES ? `, and ${lines.length - SHOWN_LINES} more` : ''}`

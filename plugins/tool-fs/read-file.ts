/**
 * `read_file`: a page of a text file, or the entries of a folder. Reads through the workspace only.
 * A page ends at a line end and says where the next one begins, so that nothing is lost unseen.
 */
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname } from 'node:path'
import { nearest, z, type Tool, type ToolRun, type WorkspaceService } from 'harnessx'
import { BinaryFile, readLines, type Line, type ReadAt } from './line-reader.js'
import { codeOf, count, head, inWords, listed, size } from './wording.js'

export interface PageLimits {
  readonly maxLines: number
  readonly maxCharacters: number
  readonly maxLineLength: number
}

const MAX_ENTRIES = 1000

export function readFileTool(workspace: WorkspaceService, limits: PageLimits): Tool {
  const parameters = z.object({
    path: z.string().min(1).describe('File or folder, relative to the workspace or absolute inside it.'),
    offset: z.int().min(1).optional().describe('First line to read, counted from 1. Default 1.'),
    limit: z.int().min(1).optional().describe(`How many lines to read. Default and maximum ${limits.maxLines}.`),
  })
  return {
    name: 'read_file',
    description: 'Read a text file. The text comes as it is, without line numbers. A long file comes in pages: the last line then says with which offset to read on. For a folder, its entries are listed.',
    parameters,
    readOnly: true,
    async execute({ path, offset = 1, limit = limits.maxLines }: z.infer<typeof parameters>, run: ToolRun) {
      const readAt: ReadAt = (from, maxBytes) => workspace.readFile(run.session, path, { offset: from, maxBytes })
      try {
        return show(await readPage(readAt, offset, { ...limits, maxLines: Math.min(limit, limits.maxLines) }, run.signal))
      } catch (error) {
        if (error instanceof BinaryFile) return `"${path}" is a binary file of ${size((await stat(await workspace.resolve(run.session, path, 'read'))).size)}; it can not be read as text`
        if (codeOf(error) === 'EISDIR') return await listFolder(await workspace.resolve(run.session, path, 'read'), path)
        if (codeOf(error) === 'ENOENT') throw new Error(`"${path}" does not exist${await nearby(workspace, run, path)}`, { cause: error })
        throw inWords(error, path)
      }
    },
  }
}

interface Page {
  readonly first: number
  readonly lines: readonly string[]
  /** Where the next page begins; undefined when this one reaches the end. */
  readonly next: number | undefined
  /** Lines of the file; known only when its end was reached. */
  readonly total: number | undefined
  readonly crlf: boolean
}

async function readPage(readAt: ReadAt, first: number, limits: PageLimits, signal: AbortSignal): Promise<Page> {
  const lines: string[] = []
  let number = 0, characters = 0, crlf = false
  for await (const batch of readLines(readAt, signal)) {
    for (const line of batch) {
      number++
      if (number < first) continue
      const text = shorten(line, limits.maxLineLength)
      characters += text.length + 1
      if (lines.length > 0 && (characters > limits.maxCharacters || lines.length === limits.maxLines)) return { first, lines, next: number, total: undefined, crlf }
      crlf ||= line.crlf
      lines.push(text)
    }
  }
  return { first, lines, next: undefined, total: number, crlf }
}

function shorten(line: Line, limit: number): string {
  const shown = head(line.text, limit)
  const missing = line.text.length - shown.length + line.cut
  return missing > 0 ? `${shown}… [${count(missing, 'more character')} in this line]` : shown
}

function show({ first, lines, next, total, crlf }: Page): string {
  if (total === 0) return '(empty file)'
  if (lines.length === 0) return `offset ${first} is past the end: the file has ${count(total!, 'line')}`
  const notes = []
  if (next !== undefined) notes.push(`lines ${first}-${next - 1} shown, the file goes on: read on with offset ${next}`)
  else if (first > 1) notes.push(`lines ${first}-${total} shown, the last one of the file included`)
  if (crlf) notes.push('lines end in CRLF; edit_file keeps that')
  if (lines.some(line => line.includes('\ufffd'))) notes.push('U+FFFD (\ufffd) stands for bytes that are not UTF-8')
  return notes.length > 0 ? `${lines.join('\n')}\n[${notes.join('; ')}]` : lines.join('\n')
}

async function listFolder(folder: string, path: string): Promise<string> {
  const entries = (await readdir(folder, { withFileTypes: true })).map(entry => `${listed(entry.name)}${entry.isDirectory() ? '/' : entry.isSymbolicLink() ? ' (link)' : ''}`).sort()
  const more = entries.length - MAX_ENTRIES
  return [`"${path}" is a folder with ${entries.length === 1 ? '1 entry' : `${entries.length.toLocaleString('en-US')} entries`}`, ...entries.slice(0, MAX_ENTRIES), ...more > 0 ? [`[${more} more; use glob to see some of them]`] : []].join('\n')
}

/** What the folder has under a similar name, or which folder is missing. Only a hint: when it can not be told, nothing is said. */
async function nearby(workspace: WorkspaceService, run: ToolRun, path: string): Promise<string> {
  const parent = dirname(path)
  try {
    const names = await readdir(await workspace.resolve(run.session, parent, 'read'))
    if (names.includes(basename(path))) return '; an entry that looks so has a name that is not UTF-8, which only a command can reach'
    const name = nearest(basename(path), names) ?? names.find(other => stem(other) === stem(path))
    return name === undefined ? `; the folder "${parent}" is there, but has nothing of a similar name` : `; did you mean "${parent === '.' ? name : `${parent}/${name}`}"?`
  } catch (error) {
    return codeOf(error) === 'ENOENT' ? `; the folder "${parent}" does not exist either` : ''
  }
}
const stem = (path: string): string => basename(path).toLowerCase().replace(/(?<=.)\..*$/, '')

/**
 * `grep`: lines of files that match a regular expression. RE2 syntax through re2js, whose time grows with the length of the text only, whatever the pattern.
 * Everything is bounded: matches, characters, files read at once, the part of a line that is searched, the time between two rests.
 */
import type { RE2JS } from 're2js'
import { messageOf, z, type Tool, type ToolRun, type WorkspaceService } from 'harnessx'
import { findFiles, type FoundFiles } from './found-files.js'
import type { SearchLimits } from './glob.js'
import { BinaryFile, LINE_LIMIT, readLines, type Line, type ReadAt } from './line-reader.js'
import { Slices, withLimit } from './search-limit.js'
import { count, head, inWords } from './wording.js'

export interface GrepLimits extends SearchLimits { readonly maxMatches: number; readonly maxCharacters: number }
interface ReportLimits { readonly context: number; readonly maxMatches: number; readonly maxCharacters: number }

const MAX_CONTEXT = 20
const SHOWN_LINE = 500
const FILES_AHEAD = 16
/** Steps of the matcher for one line: about 15 ms at worst. */
const STEPS_PER_LINE = 1_000_000

export function grepTool(workspace: WorkspaceService, limits: GrepLimits): Tool {
  const parameters = z.object({
    pattern: z.string().min(1).max(1000).describe('Regular expression in RE2 syntax (no look-around, no back-references), matched line by line.'),
    path: z.string().min(1).optional().describe('Folder or file to search. Default: the workspace.'),
    glob: z.string().min(1).max(1000).optional().describe('Only files whose path matches, such as "*.ts" (in any folder) or "src/**/*.ts".'),
    ignore_case: z.boolean().optional().describe('Default false.'),
    context: z.int().min(0).max(MAX_CONTEXT).optional().describe('Lines to show before and after each match. Default 0.'),
    max_results: z.int().min(1).max(limits.maxMatches).optional().describe(`Stop after so many matching lines. Default and maximum ${limits.maxMatches}.`),
  })
  return {
    name: 'grep',
    description: `Search the lines of files with a regular expression. Gives "file:line:text", context lines as "file-line-text". Binary files and links are passed over; ${limits.ignore.join(', ')} are left out unless glob names them.`,
    parameters,
    readOnly: true,
    async execute({ pattern, path = '.', glob = '*', ignore_case = false, context = 0, max_results = limits.maxMatches }: z.infer<typeof parameters>, run: ToolRun) {
      const matcher = await LineMatcher.of(pattern, ignore_case)
      const report = new Report({ context, maxMatches: max_results, maxCharacters: limits.maxCharacters })
      try {
        return await withLimit(run.signal, limits.searchTimeout, async signal => {
          const found = await findFiles(workspace, run, path, glob.includes('/') ? glob : `**/${glob}`, { ignore: limits.ignore, signal })
          await searchAll(workspace, run, found, matcher, report, signal)
          return report.text(found.files.length)
        })
      } catch (error) {
        throw inWords(error, path)
      }
    },
  }
}

/** One file after the other, in order. */
async function searchAll(workspace: WorkspaceService, run: ToolRun, { files, shown }: FoundFiles, matcher: LineMatcher, report: Report, signal: AbortSignal): Promise<void> {
  const slices = new Slices(signal)
  const reader = readAhead(files, (file, offset, maxBytes) => workspace.readFile(run.session, file, { offset, maxBytes }))
  for (const [index, file] of files.entries()) {
    report.begin(shown(file))
    try {
      for await (const lines of readLines(reader(index), signal)) {
        for (const line of lines) {
          report.line(line, matcher)
          if (report.full) return
          if (slices.over) await slices.rest()
        }
      }
    } catch (error) {
      signal.throwIfAborted()
      report.passOver(error)
    }
  }
}

/** Opens the next files while one is searched: with many small files that is what takes the time. */
function readAhead(files: readonly string[], read: (file: string, offset: number, maxBytes: number) => Promise<Uint8Array>): (index: number) => ReadAt {
  const opened: Promise<Uint8Array>[] = []
  return index => (offset, maxBytes) => {
    if (offset > 0) return read(files[index]!, offset, maxBytes)
    while (opened.length < files.length && opened.length <= index + FILES_AHEAD) {
      const first = read(files[opened.length]!, 0, maxBytes)
      first.catch(() => {})                                             // told when it is that file's turn
      opened.push(first)
    }
    const first = opened[index]!
    delete opened[index]
    return first
  }
}

class LineMatcher {
  readonly #re: RE2JS
  readonly #searched: number
  /** Loads the engine when the first search needs it, which no start should wait for. */
  static async of(pattern: string, ignoreCase: boolean): Promise<LineMatcher> {
    const { RE2JS } = await import('re2js')
    try {
      return new LineMatcher(RE2JS.compile(pattern, ignoreCase ? RE2JS.CASE_INSENSITIVE : 0))
    } catch (error) {
      throw new Error(`the pattern is not valid: ${messageOf(error).replace(/^error parsing regexp: /, '')}. The syntax is RE2: no look-around and no back-references; a literal ( [ { . * + ? | \\ needs a \\ before it`, { cause: error })
    }
  }
  private constructor(re: RE2JS) {
    this.#re = re
    this.#searched = Math.max(1000, Math.min(LINE_LIMIT, Math.floor(STEPS_PER_LINE / this.#re.matcher('').programSize())))
  }
  matches(text: string): boolean { return this.#re.test(text.length > this.#searched ? text.slice(0, this.#searched) : text) }
  /** The part of the line that a person wants to see: all of it, or some of it around the match. */
  excerpt({ text, cut }: Line): string {
    if (text.length + cut <= SHOWN_LINE) return text
    const match = this.#re.matcher(text.slice(0, this.#searched))
    const from = match.find() ? Math.max(0, match.start() - SHOWN_LINE / 4) : 0
    return `${from > 0 ? '…' : ''}${head(text.slice(from), SHOWN_LINE)}… [${count(text.length + cut, 'character')} in this line]`
  }
}

/** The lines to show, as the files go by. */
class Report {
  readonly #limits: ReportLimits
  readonly #shown: string[] = []
  #characters = 0
  #matches = 0
  #binary = 0
  #unread = 0
  #file = ''
  #number = 0
  /** Last line shown of this file, lines of it that still follow a match, and the latest lines that were not shown. */
  #last = 0
  #after = 0
  #before: Line[] = []
  constructor(limits: ReportLimits) { this.#limits = limits }

  get full(): boolean { return this.#characters >= this.#limits.maxCharacters || (this.#matches >= this.#limits.maxMatches && this.#after === 0) }
  begin(file: string): void {
    this.#file = file
    this.#number = this.#last = this.#after = 0
    this.#before = []
  }
  line(line: Line, matcher: LineMatcher): void {
    this.#number++
    if (this.#matches < this.#limits.maxMatches && matcher.matches(line.text)) {
      this.#matches++
      this.#flush(matcher)
      this.#show(':', this.#number, matcher.excerpt(line))
      this.#after = this.#limits.context
    } else if (this.#after > 0) {
      this.#after--
      this.#show('-', this.#number, matcher.excerpt(line))
    } else if (this.#limits.context > 0) {
      this.#before.push(line)
      if (this.#before.length > this.#limits.context) this.#before.shift()
    }
  }
  passOver(error: unknown): void {
    if (error instanceof BinaryFile) this.#binary++
    else this.#unread++
  }
  text(files: number): string {
    const notes = []
    if (this.#matches === 0) notes.push(`no match in ${count(files, 'file')}${this.#binary > 0 ? `, ${this.#binary} of them binary` : ''}`)
    if (this.full) notes.push(`stopped after ${count(this.#matches, 'match').replace('matchs', 'matches')}; there may be more: narrow the pattern, path or glob`)
    if (this.#unread > 0) notes.push(`${count(this.#unread, 'file')} could not be read`)
    return [...this.#shown, ...notes.length > 0 ? [`[${notes.join('; ')}]`] : []].join('\n')
  }

  #flush(matcher: LineMatcher): void {
    const first = this.#number - this.#before.length
    if (this.#limits.context > 0 && this.#shown.length > 0 && first !== this.#last + 1) this.#shown.push('--')
    this.#before.forEach((line, index) => { this.#show('-', first + index, matcher.excerpt(line)) })
    this.#before = []
  }
  #show(mark: ':' | '-', number: number, text: string): void {
    const line = `${this.#file}${mark}${number}${mark}${text}`
    this.#shown.push(line)
    this.#characters += line.length + 1
    this.#last = number
  }
}

/**
 * tool-fs: `read_file`, `write_file`, `edit_file`, `glob`, `grep`. Shows tools as a plugin: a schema, bounds, and errors in words that a model can act on.
 * Every path goes through `ctx.workspace`, the one containment; nothing here decides what may be read or written.
 */
import { duration, z, type Context } from 'harnessx'
import { editFileTool } from './edit-file.js'
import { globTool } from './glob.js'
import { grepTool } from './grep.js'
import { inLine } from './in-line.js'
import { readFileTool } from './read-file.js'
import { writeFileTool } from './write-file.js'

export const name = 'tool-fs'
export const Config = z.strictObject({
  /** A page of `read_file`, and the most that `grep` gives. Below the 50,000 at which `truncate` cuts, so that a page ends where it says. */
  maxCharacters: z.int().min(1000).max(2_000_000).default(45_000),
  maxLines: z.int().min(1).max(100_000).default(2000),
  /** Longer lines are cut by `read_file`. */
  maxLineLength: z.int().min(100).max(60_000).default(2000),
  maxEditBytes: z.int().min(1).max(100_000_000).default(10_000_000),
  maxFiles: z.int().min(1).max(100_000).default(1000),
  maxMatches: z.int().min(1).max(10_000).default(200),
  searchTimeout: duration.prefault('60s'),
  /** Folders that `glob` and `grep` leave out. */
  ignore: z.array(z.string().min(1)).default(['.git', 'node_modules']),
})

export function apply(ctx: Context, config: z.infer<typeof Config>): void {
  const writes = inLine()
  ctx.tools.register(readFileTool(ctx.workspace, config))
  ctx.tools.register(writeFileTool(ctx.workspace, writes))
  ctx.tools.register(editFileTool(ctx.workspace, config, writes))
  ctx.tools.register(globTool(ctx.workspace, config))
  ctx.tools.register(grepTool(ctx.workspace, config))
}

/** Names of tools and of their arguments, here and in hook scripts. Pure. */
import { resolve } from 'node:path'
import type { Json, ToolResult } from 'harnessx'

type Args = Readonly<Record<string, unknown>>
/** `fields`: our name of an argument to theirs. */
interface Named { readonly name: string; readonly fields: Readonly<Record<string, string>> }

const TOOLS: Readonly<Record<string, Named>> = {
  bash: { name: 'Bash', fields: { background: 'run_in_background' } },
  read_file: { name: 'Read', fields: { path: 'file_path' } },
  write_file: { name: 'Write', fields: { path: 'file_path' } },
  edit_file: { name: 'Edit', fields: { path: 'file_path', old_text: 'old_string', new_text: 'new_string' } },
  glob: { name: 'Glob', fields: {} },
  grep: { name: 'Grep', fields: { ignore_case: '-i', context: '-C', max_results: 'head_limit' } },
  task: { name: 'Task', fields: { title: 'description' } },
  todo: { name: 'TodoWrite', fields: { items: 'todos' } },
}
const of = (tool: string): Named => Object.hasOwn(TOOLS, tool) ? TOOLS[tool]! : { name: tool, fields: {} }

export const theirName = (tool: string): string => of(tool).name

/** Arguments as scripts expect them: paths of the file tools are absolute. */
export function theirInput(tool: string, args: Args, cwd: string): Record<string, unknown> {
  const { fields, name } = of(tool)
  return Object.fromEntries(Object.entries(args).map(([key, value]) => [
    Object.hasOwn(fields, key) ? fields[key]! : key,
    key === 'path' && name !== tool && typeof value === 'string' ? resolve(cwd, value) : value,
  ]))
}
/** Arguments that a script wants in place of `args`, in our words; a path that it left alone stays as it was. */
export function ourInput(tool: string, input: Args, args: Args, cwd: string): Record<string, unknown> {
  const back = Object.fromEntries(Object.entries(of(tool).fields).map(([ours, theirs]) => [theirs, ours]))
  const before = theirInput(tool, args, cwd)
  return Object.fromEntries(Object.entries(input).map(([key, value]) => {
    const ours = Object.hasOwn(back, key) ? back[key]! : key
    return [ours, value === before[key] ? args[ours] : value]
  }))
}
/** A result as scripts expect it: an object with the usual fields. */
export function theirResponse(tool: string, input: Args, { content, isError }: ToolResult): Record<string, Json> {
  const file = input['file_path']
  return {
    success: !isError, content,
    ...(tool === 'bash' && { stdout: isError ? '' : content, stderr: isError ? content : '', interrupted: false }),
    ...(typeof file === 'string' && { filePath: file }),
  }
}

/**
 * The tools of a request by what they can do. Names and parameters are read from the request, so that another plugin's tools serve as well;
 * a tool that requires something unknown is left alone. Knows no task.
 */
import type { ToolSpec } from 'harnessx'

export interface Call { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> }
export type Ability = 'read' | 'list' | 'search' | 'write' | 'edit' | 'run'

const NAMES: Readonly<Record<Ability, readonly string[]>> = {
  read: ['read_file', 'read', 'view_file'],
  list: ['glob', 'find_files', 'list_files'],
  search: ['grep', 'search_files', 'search'],
  write: ['write_file', 'write', 'create_file'],
  edit: ['edit_file', 'edit', 'replace_in_file'],
  run: ['bash', 'shell', 'run_command'],
}
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  path: ['path', 'file_path', 'file', 'filename', 'folder', 'directory'],
  pattern: ['pattern', 'glob', 'query', 'regex'],
  glob: ['glob', 'include'],
  content: ['content', 'text', 'contents'],
  from: ['old_text', 'old_string', 'old', 'search'],
  to: ['new_text', 'new_string', 'new', 'replace'],
  all: ['replace_all', 'all'],
  command: ['command', 'cmd'],
}

export class Toolbox {
  readonly #tools: ReadonlyMap<string, ToolSpec>
  constructor(tools: readonly ToolSpec[]) { this.#tools = new Map(tools.map(tool => [tool.name, tool])) }

  get names(): readonly string[] { return [...this.#tools.keys()] }
  has(ability: Ability): boolean { return NAMES[ability].some(name => this.#tools.has(name)) }

  /** The call that does this, or undefined when no tool can. Values that the tool has no parameter for are left out, unless they are `needed`. */
  call(ability: Ability, values: Readonly<Record<string, unknown>>, needed: readonly string[] = Object.keys(values)): Call | undefined {
    for (const name of NAMES[ability]) {
      const tool = this.#tools.get(name)
      const given = tool && fit(tool, values, needed)
      if (given) return { name, arguments: given }
    }
    return undefined
  }
}

function fit(tool: ToolSpec, values: Readonly<Record<string, unknown>>, needed: readonly string[]): Record<string, unknown> | undefined {
  const known = Object.keys(tool.parameters['properties'] ?? {})
  const required = Array.isArray(tool.parameters['required']) ? tool.parameters['required'] as string[] : []
  const given: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(values)) {
    const parameter = PARAMETERS[key]?.find(name => known.includes(name) && !(name in given))
    if (parameter !== undefined) given[parameter] = value
    else if (needed.includes(key)) return undefined
  }
  return required.every(name => name in given) ? given : undefined
}

/**
 * A command written down in Markdown: a head, and a prompt with places for arguments. Pure: text in, a prompt out, and what of the text has no meaning here.
 */
export interface Written { readonly description: string; readonly body: string; /** What it asks for and does not get. */ readonly ignored: readonly string[] }

const UNSUPPORTED = ['allowed-tools', 'allowed_tools', 'model', 'hooks', 'context', 'agent', 'shell']
const LONGEST_DESCRIPTION = 200

export function parseCommand(text: string): Written | undefined {
  const [, head = '', body = ''] = /^\uFEFF?(?:---[ \t]*\r?\n([^]*?)\r?\n?---[ \t]*(?:\r?\n|$))?([^]*)$/.exec(text) ?? []
  const prompt = body.trim()
  if (prompt === '') return undefined
  const fields = new Map([...head.matchAll(/^([\w-]+):(.*(?:\r?\n(?:[ \t].*)?)*)/gm)].map(([, key, value]) => [key!, unquoted(onOneLine(value!))]))
  const hint = fields.get('argument-hint'), about = fields.get('description') || prompt.split(/\r?\n/, 1)[0]!.replace(/^#+\s*/, '')
  const ignored = UNSUPPORTED.filter(key => fields.has(key)).map(key => `"${key}"`)
  if (/!`[^`]+`/.test(prompt)) ignored.push('!`…` (no command runs before a prompt; the model reads the words)')
  const named = /(?<![\w`@])@((?:~|\.{0,2}\/)?[\w-]+(?:[./][\w-]+)+)/.exec(prompt)?.[1]
  if (named !== undefined) ignored.push(`"@${named}" (no file is put in its place; the model reads the name)`)
  const variable = /\$\{CLAUDE_\w+\}/.exec(prompt)?.[0]
  if (variable !== undefined) ignored.push(`"${variable}"`)
  return { description: `${about.slice(0, LONGEST_DESCRIPTION)}${hint ? ` ${hint}` : ''}`, body: prompt, ignored }
}

/** The prompt for these arguments: `$ARGUMENTS` is all of them, `$1` … `$9` and `$ARGUMENTS[0]` … one each; where no place is kept for them they stand at the end. */
export function promptOf(body: string, args: string): string {
  const words = [...args.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) => double ?? single ?? plain ?? '')
  let placed = false
  const prompt = body.replace(/\$(?:ARGUMENTS(?:\[(\d{1,3})\]|\b)|([1-9])(?!\d))/g, (_, index: string | undefined, place: string | undefined) => {
    placed = true
    return index === undefined && place === undefined ? args : words[index === undefined ? Number(place) - 1 : Number(index)] ?? ''
  })
  return placed || args === '' ? prompt : `${prompt}\n\nARGUMENTS: ${args}`
}

/** A value may go on in indented lines, with or without `|` or `>` before them. */
const onOneLine = (value: string): string => value.trim().replace(/^[|>][+-]?(?=\s|$)/, '').trim().replace(/\s+/g, ' ')
const unquoted = (value: string): string => /^(["'])(.*)\1$/.exec(value)?.[2] ?? value

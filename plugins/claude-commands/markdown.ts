/**
 * A command written down in Markdown: a head, and a prompt with places for arguments. Pure: text in, a prompt out, and what of the text has no meaning here.
 */
export interface Written { readonly description: string; readonly body: string; /** What it asks for and does not get. */ readonly ignored: readonly string[] }

const UNSUPPORTED = ['allowed-tools', 'model', 'hooks', 'context', 'agent', 'shell']
const LONGEST_DESCRIPTION = 200

export function parseCommand(text: string): Written | undefined {
  const [, head = '', body = ''] = /^\uFEFF?(?:---[ \t]*\r?\n([^]*?)\r?\n?---[ \t]*(?:\r?\n|$))?([^]*)$/.exec(text) ?? []
  const prompt = body.trim()
  if (prompt === '') return undefined
  const fields = new Map([...head.matchAll(/^([\w-]+):[ \t]*(.*?)[ \t]*\r?$/gm)].map(([, key, value]) => [key!, unquoted(value!)]))
  const hint = fields.get('argument-hint'), about = fields.get('description') || prompt.split(/\r?\n/, 1)[0]!.replace(/^#+\s*/, '')
  const ignored = UNSUPPORTED.filter(key => fields.has(key)).map(key => `"${key}"`)
  if (/!`[^`]+`/.test(prompt)) ignored.push('!`…` (no command runs before a prompt; the model reads the words)')
  return { description: `${about.slice(0, LONGEST_DESCRIPTION)}${hint ? ` ${hint}` : ''}`, body: prompt, ignored }
}

/** The prompt for these arguments: `$ARGUMENTS` is all of them, `$1` … `$9` one each; where no place is kept for them they stand at the end. */
export function promptOf(body: string, args: string): string {
  const words = [...args.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map(([, double, single, plain]) => double ?? single ?? plain ?? '')
  let placed = false
  const prompt = body.replace(/\$(?:ARGUMENTS\b|([1-9])(?!\d))/g, (_, place: string | undefined) => {
    placed = true
    return place === undefined ? args : words[Number(place) - 1] ?? ''
  })
  return placed || args === '' ? prompt : `${prompt}\n\nARGUMENTS: ${args}`
}

const unquoted = (value: string): string => /^(["'])(.*)\1$/.exec(value)?.[2] ?? value

/**
 * What a tool's answer means, and the facts worth telling of it. Pure. A model gets text only, so what a refusal or failure is is read from its words.
 */
import type { Call } from './toolbox.js'

export interface Result { readonly call: Call; readonly content: string; readonly outcome: Outcome }
export type Outcome = 'ok' | 'refused' | 'failed' | 'interrupted'

export function outcomeOf(content: string, call: Call): Outcome {
  const text = withoutNote(content)
  if (/^(?:blocked by plugin|blocked:|denied by the user|denied:|hook_failed:|guard_inactive:)/.test(text)) return 'refused'
  if (/^interrupted\b/.test(text)) return 'interrupted'
  if (/^(?:invalid arguments|there is no tool|error:|outside_workspace:|protected_path:)/i.test(text)) return 'failed'
  const last = text.slice(text.lastIndexOf('\n') + 1)
  if ('command' in call.arguments) return /^\[(?:exit code (?!0\])\d+|killed by|stopped|timed out|.*was stopped)/.test(last) ? 'failed' : 'ok'
  // Errors of file tools are one line that begins with what it is about.
  return !text.includes('\n') && /^(?:"[^"]*" (?!is a (?:folder|binary))|old_text\b|the pattern\b|path\b.*\boutside\b)/.test(text) || /^old_text is (?:not )?in /.test(text) ? 'failed' : 'ok'
}

/** The words of a refusal as a sentence can quote them. */
export function refusal(content: string): string {
  return withoutNote(content).replace(/\s*The same call will be refused again;[^]*$/, '').replace(/\s+/g, ' ').replace(/[\s.]+$/, '').slice(0, 300)
}

/** What can be said of a file after reading it: how long it is, what it is called, how it begins. */
export function fileFacts(path: string, content: string): string {
  const text = withoutNote(content)
  if (text === '(empty file)') return `${path} is empty.`
  const folder = /^"[^"]*" is a folder with ([\d,]+ entr(?:y|ies))\n?/.exec(text)
  if (folder) return `${path} is a folder with ${folder[1]}: ${some(text.slice(folder[0].length).split('\n'), 12)}.`
  if (/^"[^"]*" is a binary file/.test(text)) return `${text.split('\n')[0]!.replace(/^"([^"]*)"/, '$1')}.`
  const note = /\n\[([^\]\n]*)\]$/.exec(text)
  const body = note ? text.slice(0, note.index) : text
  const lines = body.split('\n')
  const length = lines.at(-1) === '' ? lines.length - 1 : lines.length
  const more = note?.[1]?.includes('the file goes on') ? ', and goes on' : ''
  return [`${path} has ${count(length, 'line')}${more}`, ...details(path, body)].join('; ') + '.'
}

function details(path: string, body: string): string[] {
  if (/\.json$/i.test(path)) {
    try {
      const value = JSON.parse(body) as unknown
      if (typeof value !== 'object' || value === null) return []
      const { name, version } = value as { name?: unknown; version?: unknown }
      return [...(typeof name === 'string' ? [`its name is "${name}"${typeof version === 'string' ? `, version ${version}` : ''}`] : []), `its keys are ${some(Object.keys(value), 8)}`]
    } catch { return ['it is not valid JSON, or only a part of it'] }                                // that is the fact to tell
  }
  const headings = /\.(?:md|markdown)$/i.test(path) || /^#\s/m.test(body) && !/\.\w+$/.test(path) ? [...body.replace(/^```[^]*?^```/gm, '').matchAll(/^#{1,3}\s+(.+?)\s*#*$/gm)].map(match => match[1]!) : []
  const prose = body.split('\n').map(line => line.trim()).find(line => line !== '' && !/^(?:#|```|[-*_]{3,}$|<|!?\[|\||#!)/.test(line))
  return [
    ...(headings.length > 0 ? [`its title is "${cut(headings[0]!, 80)}"`] : []),
    ...(prose === undefined ? [] : [`it begins: "${cut(prose, 140)}"`]),
    ...(headings.length > 1 ? [`sections: ${some(headings.slice(1), 6)}`] : []),
  ]
}

/** The files that a list or a search found; undefined when there are none. */
export function found(content: string): { readonly lines: readonly string[]; readonly more: string | undefined } | undefined {
  const text = withoutNote(content)
  if (text === '' || /^no (?:file|match|line)\b/i.test(text)) return undefined
  const lines = text.split('\n').filter(line => line.trim() !== '')
  const more = /^\[.*\]$/.test(lines.at(-1)!) ? lines.pop() : undefined
  return lines.length === 0 ? undefined : { lines, more: more?.slice(1, -1) }
}

/** What a command printed, in few lines, and how it ended. */
export function printed(content: string): { readonly text: string; readonly end: string } {
  const text = withoutNote(content)
  const [, body = text, end = ''] = /^([^]*?)\n?\[((?:exit code|killed by|stopped|timed out)[^\n]*)\]$/.exec(text) ?? []
  return { text: body === '(no output)' ? '' : body.trimEnd(), end }
}

/** The name that an error proposes in place of a wrong one. */
export const proposal = (content: string): string | undefined => /did you mean "([^"]+)"\?/.exec(content)?.[1]

const withoutNote = (content: string): string => content.replace(/^note: plugin "[^\n]*\n/, '')
export const count = (n: number, thing: string): string => `${n.toLocaleString('en-US')} ${thing}${n === 1 ? '' : 's'}`
export const cut = (text: string, length: number): string => [...text].length > length ? `${[...text].slice(0, length - 1).join('')}…` : text
/** The first of a list in a sentence, and how many are left. */
export const some = (items: readonly string[], most: number): string => `${items.slice(0, most).map(item => cut(item, 100)).join(', ')}${items.length > most ? ` and ${items.length - most} more` : ''}`

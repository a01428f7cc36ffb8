/** What could be meant where the cursor stands: a command, one of its words, a file. Pure but for the folder that files are looked up in. */
import type { Draft } from './editor.js'
import { replace } from './editor.js'
import { filesLike } from './mentions.js'

export interface Option { readonly value: string; readonly about?: string | undefined }
export interface Completion { readonly from: number; readonly to: number; readonly options: readonly Option[] }
export interface Sources {
  readonly cwd: string
  /** Commands, with the words that may follow. */
  readonly commands: readonly (Option & { readonly words?: readonly Option[] | undefined })[]
}

export function complete({ text, cursor }: Draft, { cwd, commands }: Sources): Completion | undefined {
  const before = text.slice(0, cursor)
  const command = /^\/(\S*)$/.exec(before)
  if (command) return offer(0, cursor, commands.filter(({ value }) => value.startsWith(command[1]!)).map(({ value, about }) => ({ value: `/${value}`, about })))
  const argument = /^\/(\S+) +(\S*)$/.exec(before)
  const words = argument && commands.find(({ value }) => value === argument[1])?.words
  if (words) return offer(cursor - argument![2]!.length, cursor, words.filter(({ value }) => value.startsWith(argument![2]!)))
  const mention = /(?:^|\s)@(?:"([^"\n]*)|([^\s"@]*))$/u.exec(before)
  if (!mention) return undefined
  const [, quoted, bare] = mention, files = filesLike(quoted ?? bare!, cwd), quotes = quoted !== undefined || files.some(name => /\s/.test(name))
  const options = files.map(name => ({ value: !quotes ? name : name.endsWith('/') ? `"${name}` : `"${name}"` }))
  return offer(cursor - (bare?.length ?? quoted!.length + 1), quotes && text[cursor] === '"' ? cursor + 1 : cursor, options)
}
const offer = (from: number, to: number, options: readonly Option[]): Completion | undefined => options.length > 0 ? { from, to, options } : undefined

/** As far as all options agree; a space behind the only one, unless more of a path may follow. */
export function accepted(draft: Draft, { from, to, options }: Completion): Draft {
  const [first] = options
  const common = options.reduce((start, { value }) => {
    let same = 0
    while (same < start.length && start[same] === value[same]) same++
    return start.slice(0, same)
  }, first!.value)
  return replace(draft, from, to, options.length === 1 && !common.endsWith('/') && draft.text[to] !== ' ' ? `${common} ` : common)
}

/** What a command starts, as the readers of commands give it: words, a script, or a sentence why it can't be known. Pure. */
import { isOpen } from './word.js'

export type Inner =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'script'; readonly source: string }
  | { readonly kind: 'unclear'; readonly reason: string }

export const unclear = (reason: string): Inner => ({ kind: 'unclear', reason })
export const script = (source: string): readonly Inner[] => isOpen(source) ? [{ kind: 'unclear', reason: 'part of a script is only known when it runs' }] : source.trim() === '' ? [] : [{ kind: 'script', source }]
export const written = (path: string): Inner => ({ kind: 'words', words: ['>', path] })
/** The value of an option in its three spellings: `-c V`, `-cV`, `--command=V`. */
export const valueOf = (option: string, next = '', short?: RegExp): string => option.startsWith('--') ? (option.includes('=') ? option.slice(option.lastIndexOf('=', option.startsWith('--checkpoint') ? undefined : option.indexOf('=')) + 1) : next) : (short && option.replace(short, '')) || next

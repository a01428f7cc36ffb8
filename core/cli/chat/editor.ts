/**
 * The text that somebody types: where the cursor is, and what a key does to it. Pure; knows no terminal. Positions are between whole characters, as a person sees them.
 */
import { printable } from '../terminal.js'
import { charactersOf } from './spans.js'

export interface Draft { readonly text: string; readonly cursor: number }
/** A key as it was pressed; `text` is what it writes, if it writes something. A pasted block is one key. */
export interface Key { readonly name: string; readonly ctrl: boolean; readonly meta: boolean; readonly text: string }

export const EMPTY: Draft = { text: '', cursor: 0 }
export const draftOf = (text: string): Draft => ({ text, cursor: text.length })

/** The draft after the key; undefined when the key is none for an editor, or there is nothing to go to. */
export function edit(draft: Draft, key: Key): Draft | undefined {
  const { text, cursor } = draft, before = text.slice(0, cursor), after = text.slice(cursor)
  switch (bound(key)) {
    case 'paste': case 'write': return insert(draft, printable(key.text))
    case 'newline': return insert(draft, '\n')
    case 'backspace': return before === '' ? draft : replace(draft, cursor - lastOf(before), cursor)
    case 'delete': return after === '' ? draft : replace(draft, cursor, cursor + firstOf(after))
    case 'left': return { text, cursor: cursor - (before === '' ? 0 : lastOf(before)) }
    case 'right': return { text, cursor: cursor + (after === '' ? 0 : firstOf(after)) }
    case 'word-left': return { text, cursor: before.replace(/\S*\s*$/u, '').length }
    case 'word-right': return { text, cursor: cursor + (/^\s*\S*/u.exec(after)?.[0].length ?? 0) }
    case 'line-start': return { text, cursor: lineStart(before) }
    case 'line-end': return { text, cursor: cursor + lineEnd(after) }
    case 'kill-start': return replace(draft, lineStart(before), cursor)
    case 'kill-end': return replace(draft, cursor, cursor + (lineEnd(after) || (after === '' ? 0 : 1)))
    case 'kill-word': return replace(draft, before.replace(/\S*\s*$/u, '').length, cursor)
    case 'up': return vertical(draft, -1)
    case 'down': return vertical(draft, 1)
    default: return undefined
  }
}
export function insert({ text, cursor }: Draft, more: string): Draft { return { text: text.slice(0, cursor) + more + text.slice(cursor), cursor: cursor + more.length } }
export function replace({ text }: Draft, from: number, to: number, by = ''): Draft { return { text: text.slice(0, from) + by + text.slice(to), cursor: from + by.length } }

const CTRL: Readonly<Record<string, string>> = { a: 'line-start', e: 'line-end', u: 'kill-start', k: 'kill-end', w: 'kill-word', h: 'backspace', b: 'left', f: 'right', d: 'delete', j: 'newline', p: 'up', n: 'down', left: 'word-left', right: 'word-right' }
const META: Readonly<Record<string, string>> = { b: 'word-left', f: 'word-right', left: 'word-left', right: 'word-right', backspace: 'kill-word', return: 'newline', enter: 'newline' }
const NAMED: Readonly<Record<string, string>> = { backspace: 'backspace', delete: 'delete', left: 'left', right: 'right', home: 'line-start', end: 'line-end', up: 'up', down: 'down', enter: 'newline', paste: 'paste' }
function bound({ name, ctrl, meta, text }: Key): string | undefined {
  if (ctrl) return CTRL[name]
  if (meta) return META[name]
  return NAMED[name] ?? (text !== '' && !/^[\u0000-\u001f\u007f]/.test(text) ? 'write' : undefined)
}

const lastOf = (text: string): number => charactersOf(text.slice(-64)).at(-1)!.length
const firstOf = (text: string): number => charactersOf(text.slice(0, 64))[0]!.length
const lineStart = (before: string): number => before.lastIndexOf('\n') + 1
const lineEnd = (after: string): number => { const at = after.indexOf('\n'); return at < 0 ? after.length : at }

/** The same column, one line up or down; undefined from the first or the last. */
function vertical({ text, cursor }: Draft, by: -1 | 1): Draft | undefined {
  const start = lineStart(text.slice(0, cursor)), column = charactersOf(text.slice(start, cursor)).length
  const target = by < 0 ? (start === 0 ? undefined : lineStart(text.slice(0, start - 1))) : text.indexOf('\n', cursor) < 0 ? undefined : text.indexOf('\n', cursor) + 1
  if (target === undefined) return undefined
  const line = text.slice(target, target + lineEnd(text.slice(target)))
  return { text, cursor: target + charactersOf(line).slice(0, column).join('').length }
}

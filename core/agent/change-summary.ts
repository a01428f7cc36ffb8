/**
 * What a handler changed, in one line for the session log and a trace. Pure.
 * Invariant: of a result only sizes, since what a handler took out of it may be a secret that the log must not keep; of arguments the values, which the log has anyway.
 */
import { isDeepStrictEqual } from 'node:util'
import { clip } from './arguments.js'
import type { Section } from './hooks.js'
import type { ToolResult } from './vocabulary.js'

const LONGEST = 200

/** `path "b.txt" → "a.txt", limit added 10` */
export function changedArguments(before: Readonly<Record<string, unknown>>, after: Readonly<Record<string, unknown>>): string {
  const show = (value: unknown) => clip(JSON.stringify(value) ?? String(value), LONGEST)
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(name => !isDeepStrictEqual(before[name], after[name]))
  return clip(names.map(name => !(name in before) ? `${name} added ${show(after[name])}` : !(name in after) ? `${name} dropped ${show(before[name])}` : `${name} ${show(before[name])} → ${show(after[name])}`).join(', '), 3 * LONGEST)
}

/** `491 characters at 1000 → 12, now an error` */
export function changedResult(before: ToolResult, after: ToolResult): string {
  const { content: old } = before, { content: now } = after, least = Math.min(old.length, now.length)
  let head = 0, tail = 0
  while (head < least && old.charCodeAt(head) === now.charCodeAt(head)) head++
  while (tail < least - head && old.charCodeAt(old.length - 1 - tail) === now.charCodeAt(now.length - 1 - tail)) tail++
  const text = old === now ? [] : [`${old.length - head - tail} characters at ${head} → ${now.length - head - tail}`]
  return [...text, ...before.isError === after.isError ? [] : [after.isError ? 'now an error' : 'no error any more']].join(', ')
}

/** `tone added, core changed` */
export function changedSections(before: readonly Section[], after: readonly Section[]): string {
  const textOf = (sections: readonly Section[], id: string) => sections.filter(section => section.id === id).map(({ text }) => text).join('\n')
  const ids = [...new Set([...before, ...after].map(({ id }) => id))], has = (sections: readonly Section[], id: string) => sections.some(section => section.id === id)
  const named = ids.flatMap(id => !has(before, id) ? [`${id} added`] : !has(after, id) ? [`${id} dropped`] : textOf(before, id) === textOf(after, id) ? [] : [`${id} changed`])
  return clip(named.join(', ') || 'another order', LONGEST)
}

/**
 * What tools of servers are called here, and which of them are offered. Pure.
 * Invariant: a name depends on its server and tool alone, so it stays when others come and go; no two tools share one.
 */
import { createHash } from 'node:crypto'

/** Single underscores only, so that `__` ends the server's part of a name. */
export const SERVER_NAME = /^[A-Za-z0-9]+([_-][A-Za-z0-9]+)*$/
export const SERVER_NAME_LENGTH = 24
/** What providers allow. */
const LENGTH = 64

/** `mcp__server__tool`. A name that providers would not take is cut or cleaned, and ends in a digest of what it was. */
export function toolName(server: string, tool: string): string {
  const clean = tool.replace(/[^A-Za-z0-9_-]/g, '_'), whole = `mcp__${server}__${clean}`
  if (clean === tool && whole.length <= LENGTH) return whole
  const mark = `_${createHash('sha256').update(tool).digest('hex').slice(0, 8)}`
  return whole.slice(0, LENGTH - mark.length) + mark
}

/** Is the tool, by its own name, to be offered? `*` stands for anything; `deny` comes before `allow`, and no `allow` means all. */
export function isOffered(tool: string, { allow, deny = [] }: { readonly allow?: readonly string[] | undefined; readonly deny?: readonly string[] | undefined }): boolean {
  const one = (patterns: readonly string[]) => patterns.some(pattern => matches(pattern, tool))
  return !one(deny) && (allow === undefined || one(allow))
}
/** By its parts in order, not by a regular expression: names come from outside. */
function matches(pattern: string, text: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  if (rest.length === 0) return text === pattern
  const last = rest.pop()!
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false
  let at = first.length
  for (const part of rest) {
    const found = text.indexOf(part, at)
    if (found < 0 || found + part.length > text.length - last.length) return false
    at = found + part.length
  }
  return true
}

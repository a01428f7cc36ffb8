/**
 * Shows a visible rewrite: the arguments of a call are put right before anybody judges them, and core tells the model what was changed.
 * Paths lose blanks, quotes and `file://` around them; commands lose Windows line ends. Nothing else: `~/`, `..` and links mean what they mean, judging them is others' job.
 * Arguments were validated before this, so only what already fits a tool's schema can be put right.
 */
import { fileURLToPath } from 'node:url'
import type { Context } from 'harnessx'

export const name = 'normalize-arguments'

export function apply(ctx: Context) {
  ctx.on('agent/tool-arguments', ({ call }) => {
    const changed = Object.entries(call.arguments).map(([key, value]) => [key, typeof value === 'string' ? normalized(key, value) : value] as const)
    return changed.some(([key, value]) => value !== call.arguments[key]) ? Object.fromEntries(changed) : undefined
  })
}

const PATH_KEY = /^(?:path|file|file_?(?:path|name)|dir|directory|folder|cwd)$/i

function normalized(key: string, value: string): string {
  if (key === 'command') return value.replaceAll('\r\n', '\n')
  return PATH_KEY.test(key) ? withoutUrl(withoutQuotes(value.trim())) : value
}
function withoutQuotes(path: string): string {
  const inner = /^(["'`])(.+)\1$/s.exec(path)?.[2]
  return inner === undefined || inner.includes(path[0]!) ? path : inner.trim()
}
function withoutUrl(path: string): string {
  if (!path.toLowerCase().startsWith('file://')) return path
  try { return fileURLToPath(path) } catch { return path }     // a URL of another machine: the tool will say so
}

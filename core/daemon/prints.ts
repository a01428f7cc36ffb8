/**
 * What plugins print while the daemon hosts them becomes lines of its log, with the name of whoever printed. Changes the process, so only a daemon asks for it.
 * Knows no log file. A line that never ends is cut.
 */
import { currentOwner } from '../kernel/async-context.js'

type Stream = 'stdout' | 'stderr'
const MAX_LINE = 16 * 1024

/** `alone`: nobody looks at the streams, so what is printed on nobody's account is taken too, and what plugins print goes nowhere else. The disposer gives the streams back. */
export function takePrints(tell: (line: string, stream: Stream, plugin: string | undefined) => void, { alone }: { alone: boolean }): () => void {
  const halves = new Map<string, string>()
  let telling = false
  const undo = (['stdout', 'stderr'] as const).map(name => {
    const stream = process[name], { write } = stream
    const take = (text: string, plugin: string | undefined) => {
      const key = `${name} ${plugin ?? ''}`, lines = ((halves.get(key) ?? '') + text).split('\n')
      const rest = lines.pop()!
      if (rest.length > MAX_LINE) lines.push(rest)
      if (rest === '' || rest.length > MAX_LINE) halves.delete(key)
      else halves.set(key, rest)
      telling = true                                         // a sink that prints itself is not taken again
      try { for (const line of lines) tell(line, name, plugin) } finally { telling = false }
    }
    stream.write = ((...args: Parameters<typeof write>) => {
      const plugin = currentOwner()?.id
      if (telling || (plugin === undefined && !alone)) return write.apply(stream, args)
      const [chunk] = args as [string | Uint8Array]
      take(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'), plugin)
      if (!alone || plugin === undefined) return write.apply(stream, args)
      const done = args.at(-1) as unknown
      if (typeof done === 'function') process.nextTick(done as () => void)
      return true
    }) as typeof write
    return () => { stream.write = write }
  })
  return () => { for (const back of undo) back() }
}

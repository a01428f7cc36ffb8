/** A question to the person at the terminal. Most runs ask none, and load nothing for it. */
import type { Io } from './io.js'

/** One line from the terminal; Ctrl-C and Ctrl-D are no answer, which means no. */
export async function question(io: Io, text: string): Promise<string> {
  const { createInterface } = process.getBuiltinModule('node:readline/promises')
  const lines = createInterface({ input: io.stdin, output: io.stderr, historySize: 0 })
  const left = new AbortController()
  lines.once('SIGINT', () => { left.abort() }).once('close', () => { left.abort() })
  try { return (await lines.question(text, { signal: left.signal })).trim() } catch (error) {
    if (!left.signal.aborted) throw error
    io.stderr.write('\n')
    return ''
  } finally { lines.close() }
}

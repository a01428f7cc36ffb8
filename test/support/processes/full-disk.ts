/** Writes a session in a process whose files may not grow past a limit (ulimit -f), says `full CODE` when the limit is met, waits for a line, and goes on. Arguments: folder. */
import { once } from 'node:events'
import { FileSessionStore } from '../../../core/agent/session-store-file.js'
import type { HarnessError } from '../../../core/errors.js'

process.on('SIGXFSZ', () => {})                                                                   // the limit then shows as EFBIG
const store = new FileSessionStore({ folder: process.argv[2]! })
const writer = await store.create({ id: 'full', cwd: '/', depth: 0 })
const append = (content: string) => writer.append({ type: 'message', turn: 1, step: 0, role: 'user', content: [{ type: 'text', text: content }], source: { kind: 'user' } })
let kept = 0
try {
  for (;;) { append('z'.repeat(3000)); kept++ }
} catch (error) {
  await writer.commit()
  console.log(`full ${(error as HarnessError).code} ${kept} ${process.pid}`)
}
await once(process.stdin, 'data')
append('after')
await writer.close()
console.log('done')
process.exit(0)

/** Writes a session until it is killed: opens it (makes it the first time), then appends and commits, and says `ack SEQ` once a record is safe. Arguments: folder, id, durability. */
import { FileSessionStore } from '../../../core/agent/session-store-file.js'
import type { Durability } from '../../../core/agent/session-file.js'
import { writeSync } from 'node:fs'

const [folder, id, durability] = process.argv.slice(2) as [string, string, Durability]
const store = new FileSessionStore({ folder, durability })
const known = (await store.list()).some(summary => summary.id === id)
const writer = known ? await store.open(id) : await store.create({ id, cwd: '/', depth: 0 })
await writer.commit()
writeSync(1, `ready ${writer.events.length}\n`)
for (let turn = 1; ; turn++) {
  writer.append({ type: 'turn-start', turn, prompt: 'p'.repeat(turn % 500), source: { kind: 'user' } })
  writer.append({ type: 'message', turn, step: 0, role: 'assistant', content: [{ type: 'text', text: 'x'.repeat((turn * 97) % 9000) }], source: { kind: 'model' } })
  if (turn % 50 === 0) writer.append({ type: 'tool-result', turn, step: 0, callId: 'big', name: 'bash', kind: 'ok', content: 'y'.repeat(300_000), isError: false, elapsedMs: 1 })
  const { seq } = writer.append({ type: 'turn-end', turn, reason: 'completed', usage: { inputTokens: 0, outputTokens: 0 }, elapsedMs: 0, stats: { steps: 0, toolCalls: 0, blocked: 0 } })
  await writer.commit()
  writeSync(1, `ack ${seq}\n`)
}

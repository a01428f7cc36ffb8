/** `hx permission test "CMD"`: what the plugin that offers the command "permission" would say to it, in the config in force. Judges nothing and knows no rule. */
import type { Io } from './io.js'
import { withClient } from './connect.js'

const LIMIT_MS = 30_000

export const test = (io: Io, words: readonly string[], { tool, mode }: { tool?: string; mode?: string }): Promise<number> => withClient(io, {}, async client => {
  const args = [...tool === undefined ? [] : ['--tool', tool], ...mode === undefined ? [] : ['--mode', mode], ...io.json ? ['--json'] : [], '--', ...words].join(' ')
  const { text = '' } = await client.command({ name: 'permission', args, cwd: io.cwd }, AbortSignal.timeout(LIMIT_MS))
  io.say(text)
  return 0
})

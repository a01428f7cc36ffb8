/** Another process that saves files: see processes/saver.mjs. It answers `answerMs` after a save, so that its answer does not wake who is at work on it. Its clock is the machine's, so its answers can be compared with `nanoseconds()` here. */
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

/** The ways of one whole save, of which the last is slow. */
export const SAVES = ['in place', 'by rename', 'with a swap file', 'in chunks', 'deleted and written anew'] as const
export type How = typeof SAVES[number] | 'byte by byte'
export interface Saver {
  /** Resolves when it is done, to the moment in which its last step began: nobody can have seen the whole text earlier. */
  save(how: How, file: string, text: string): Promise<bigint>
  close(): void
}
export const nanoseconds = (): bigint => process.hrtime.bigint()

export function startSaver(answerMs = 0): Saver {
  const child = spawn(process.execPath, [fileURLToPath(new URL('../../test/support/processes/saver.mjs', import.meta.url)), String(answerMs)], { stdio: ['pipe', 'pipe', 'inherit'] })
  const waiting = new Map<string, { resolve: (at: bigint) => void; reject: (error: Error) => void }>()
  let last = 0
  createInterface({ input: child.stdout }).on('line', line => {
    const [id, at] = line.split(' ') as [string, string]
    waiting.get(id)?.resolve(BigInt(at))
    waiting.delete(id)
  })
  child.once('exit', code => { for (const { reject } of waiting.values()) reject(new Error(`the saver ended with ${code}`)) })
  return {
    save: (how, file, text) => new Promise((resolve, reject) => {
      const id = String(++last)
      waiting.set(id, { resolve, reject })
      child.stdin.write(`${JSON.stringify({ id, how, file, text })}\n`)
    }),
    close: () => { child.kill() },
  }
}

/**
 * Cold start: from the spawn of a command to what the user waits for, beside bare `node -e 0`. The commands take turns, so that a busy moment hits all alike.
 * `hx agent` is timed to the arrival of its first request at a model server.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startScriptedModel } from '../support/scripted-model.js'
import { row, type Row } from './row.js'

const ROUNDS = 15
const hx = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url))

const run = (args: readonly string[], env: NodeJS.ProcessEnv, cwd: string): Promise<void> => new Promise((resolve, reject) => {
  const child = spawn(process.execPath, args, { env, cwd, stdio: 'ignore' })
  child.once('error', reject).once('exit', () => { resolve() })
})

export async function benchStart(): Promise<Row[]> {
  const folder = mkdtempSync(join(tmpdir(), 'hx-bench-'))
  writeFileSync(join(folder, 'README.md'), '# bench\n')
  let arrived = () => {}
  const server = await startScriptedModel(() => { arrived(); return { text: 'done' } })
  const env = { PATH: process.env['PATH'], HOME: folder, HX_HOME: join(folder, '.hx'), OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'bench' }
  const timed: Record<string, () => Promise<number>> = {
    'node -e 0': async () => { const begin = performance.now(); await run(['-e', '0'], env, folder); return performance.now() - begin },
    'hx --help': async () => { const begin = performance.now(); await run([hx, '--help'], env, folder); return performance.now() - begin },
    'hx status': async () => { const begin = performance.now(); await run([hx, 'status'], env, folder); return performance.now() - begin },
    'hx agent, to its first request': async () => {
      const begin = performance.now()
      const first = new Promise<number>(resolve => { arrived = () => { resolve(performance.now() - begin) } })
      const done = run([hx, 'agent', '--ephemeral', 'say done'], env, folder)
      const ms = await Promise.race([first, done.then(() => Number.NaN)])
      await done
      return ms
    },
  }
  try {
    const samples = new Map<string, number[]>(Object.keys(timed).map(name => [name, []]))
    for (let round = 0; round < ROUNDS + 1; round++) for (const [name, time] of Object.entries(timed)) {
      const ms = await time()
      if (round > 0) samples.get(name)!.push(ms)             // the first round warms the disk cache
    }
    const base = row('node -e 0', 'ms', samples.get('node -e 0')!)
    return [base, ...[...samples].slice(1).map(([name, all]) => row(name, 'ms', all, base))]
  } finally {
    await server.close()
    rmSync(folder, { recursive: true, force: true })
  }
}

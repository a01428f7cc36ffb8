/**
 * Cold start: from the spawn of a command to what the user waits for, beside bare `node -e 0`. The commands take turns, so that a busy moment hits all alike.
 * `hx agent` is timed to the arrival of its first request at a model server. Where a daemon serves, it is the daemon that asks.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
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

function place(): string {
  const folder = mkdtempSync(join(tmpdir(), 'hx-bench-'))
  writeFileSync(join(folder, 'README.md'), '# bench\n')
  return folder
}

export async function benchStart(): Promise<Row[]> {
  const folder = place(), served = place()
  let arrived = () => {}
  const server = await startScriptedModel(() => { arrived(); return { text: 'done' } })
  const environment = (home: string) => ({ PATH: process.env['PATH'], HOME: home, HX_HOME: join(home, '.hx'), OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'bench' })
  const env = environment(folder), beside = environment(served)
  const whole = async (args: readonly string[], where = env) => { const begin = performance.now(); await run(args, where, where.HOME); return performance.now() - begin }
  const toFirstRequest = async (where: typeof env) => {
    const begin = performance.now()
    const first = new Promise<number>(resolve => { arrived = () => { resolve(performance.now() - begin) } })
    const done = run([hx, 'agent', '--ephemeral', 'say done'], where, where.HOME)
    const ms = await Promise.race([first, done.then(() => Number.NaN)])
    await done
    return ms
  }
  const timed: Record<string, () => Promise<number>> = {
    'node -e 0': () => whole(['-e', '0']),
    'hx --help': () => whole([hx, '--help']),
    'hx status': () => whole([hx, 'status']),
    'hx status, a daemon serves': () => whole([hx, 'status'], beside),
    'hx agent, to its first request': () => toFirstRequest(env),
    'hx agent, a daemon serves': () => toFirstRequest(beside),
  }
  try {
    await run([hx, 'start'], beside, served)
    const samples = new Map<string, number[]>(Object.keys(timed).map(name => [name, []]))
    for (let round = 0; round < ROUNDS + 1; round++) for (const [name, time] of Object.entries(timed)) {
      const ms = await time()
      if (round > 0) samples.get(name)!.push(ms)             // the first round warms the disk cache
    }
    const base = row('node -e 0', 'ms', samples.get('node -e 0')!)
    return [base, ...[...samples].slice(1).map(([name, all]) => row(name, 'ms', all, base))]
  } finally {
    await run([hx, 'stop'], beside, served)
    await server.close()
    for (const each of [folder, served]) await rm(each, { recursive: true, force: true, maxRetries: 10 })         // what was just stopped still keeps its code
  }
}

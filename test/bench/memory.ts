/**
 * Memory at rest: the resident set of a daemon with the shipped plugins beside a bare Node that does nothing, and the heap that a session costs whose turn has ended.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { startApp } from '../support/app.js'
import { row, type Row } from './row.js'

const hx = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url))
const STARTS = 3, SESSIONS = 1000
/** What a start leaves behind is collected by then. */
const REST_MS = 5000

export async function benchMemory(): Promise<Row[]> {
  const bare: number[] = [], daemon: number[] = []
  for (let i = 0; i < STARTS; i++) {
    bare.push(await resident(['-e', 'console.log(); setInterval(() => {}, 1e9)'], process.env))
    const home = mkdtempSync(join(tmpdir(), 'hx-bench-memory-'))
    daemon.push(await resident(['--max-semi-space-size=8', hx, 'start', '--foreground'], { PATH: process.env['PATH'], HOME: home, HX_HOME: home }, home))
    await rm(home, { recursive: true, force: true, maxRetries: 10 })
  }
  const node = row('a bare node', 'MB', bare)
  return [node, row('the daemon, idle', 'MB', daemon, node), ...await sessions()]
}

/** In MB, after a rest. The process says something when it is up. */
async function resident(args: readonly string[], env: NodeJS.ProcessEnv, cwd = tmpdir()): Promise<number> {
  const child = spawn(process.execPath, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit')
  await Promise.race([once(child.stdout, 'data'), once(child.stderr, 'data'), ended])
  await sleep(REST_MS)
  const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, 'utf8'))?.[1])
  child.kill('SIGTERM')
  await ended
  return kilobytes / 1024
}

async function sessions(): Promise<Row[]> {
  const running = await startApp({ files: {}, config: 'agent: { model: scripted }\nsessions: { durability: none }\nplugins: []\n', watch: false })
  try {
    for (let i = 0; i < 50; i++) await running.run({ prompt: 'warm up' })
    const used = () => { for (let i = 0; i < 4; i++) globalThis.gc?.(); return process.memoryUsage().heapUsed }
    const before = used()
    for (let i = 0; i < SESSIONS; i++) await running.run({ prompt: 'hello' })
    return [row('heap for each of 1,000 sessions at rest', 'KB', [(used() - before) / 1024 / SESSIONS])]
  } finally {
    await running.close()
  }
}

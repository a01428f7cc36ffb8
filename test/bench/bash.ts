/**
 * One bash call: the tool bare, in the sandbox, and what the policy adds once its parser is loaded.
 * First whole calls, from the hook around the tool to its result, as a turn makes them: several, with a model that takes a moment for each reply. What a later call of a turn finds waiting, the first one has to build.
 * Then the parts. What bubblewrap costs where it hides nothing is the machine's own price for a process more and its namespaces: the floor under a sandbox that is built while somebody waits.
 * The ways take turns, so that a busy moment hits all alike.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Context } from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import * as permission from '../../plugins/permission/index.js'
import { commandLine } from '../../plugins/sandbox/command-line.js'
import { findProgram, look } from '../../plugins/sandbox/files.js'
import { gitFolders } from '../../plugins/sandbox/git.js'
import * as sandbox from '../../plugins/sandbox/index.js'
import { systemPaths } from '../../plugins/sandbox/system.js'
import * as toolBash from '../../plugins/tool-bash/index.js'
import { row, type Row } from './row.js'

const ROUNDS = 100
const TURNS = 25, CALLS = 6
/** Quicker than any model that thinks. */
const MODEL_MS = 25
const COMMAND = 'git status --short | head -n 20 && grep -rn "TODO" src --include="*.ts" | sort > out.txt || true'

const run = (argv: readonly string[], cwd: string): Promise<void> => new Promise((resolve, reject) => {
  spawn(argv[0]!, argv.slice(1), { cwd, stdio: 'ignore', detached: true }).once('error', reject).once('exit', () => { resolve() })
})
const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

/** Turns of a host with the tool: the time of each call. */
async function callsOf(plugins: readonly { readonly module: object }[]): Promise<{ turn(): Promise<readonly number[]>; close(): Promise<void> }> {
  let times: number[] = [], asked = 0
  const clock = { name: 'clock', apply: (ctx: Context) => { ctx.on('agent/tool-end', ({ elapsedMs }) => { times.push(elapsedMs) }) } }
  const host = await createTestHost({ plugins: [...plugins, { module: clock }], replies: async () => {
    await delay(MODEL_MS)
    return asked++ % (CALLS + 1) === CALLS ? 'done' : { calls: [{ name: 'bash', arguments: { command: 'true' } }] }
  } })
  return { turn: async () => { times = []; await host.run('go'); return times }, close: () => host.close() }
}

async function benchCalls(bwrap: string | undefined): Promise<Row[]> {
  const bare = await callsOf([{ module: toolBash }]), confined = bwrap === undefined ? undefined : await callsOf([{ module: sandbox }, { module: toolBash }])
  const first: number[] = [], later: number[] = [], firstConfined: number[] = [], laterConfined: number[] = []
  try {
    for (let turn = 0; turn < TURNS + 1; turn++) for (const [host, firsts, laters] of [[bare, first, later], [confined, firstConfined, laterConfined]] as const) {
      const [one, ...others] = await host?.turn() ?? []
      if (turn === 0 || one === undefined) continue           // the very first one asks whether bubblewrap works
      firsts.push(one)
      laters.push(...others)
    }
  } finally { await Promise.all([bare.close(), confined?.close()]) }
  const rows = [row('a later call of a turn, no sandbox', 'ms', later), row('the first call of a turn, no sandbox', 'ms', first)]
  return confined === undefined ? rows : [...rows, row('a later call of a turn, in the sandbox', 'ms', laterConfined, rows[0]), row('the first call of a turn, in the sandbox', 'ms', firstConfined, rows[1])]
}

export async function benchBash(): Promise<Row[]> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hx-bench-')))
  const home = process.env['HOME'] ?? '/', path = process.env['PATH'] ?? ''
  const bwrap = findProgram('bwrap', path)
  const calls = await benchCalls(bwrap)
  const shell = ['/bin/bash', '-c', 'true']
  const bounds = { writable: [folder], readable: [], protected: [], secret: [] }
  const confined = (network: boolean) => [...commandLine({ program: bwrap!, bounds, home, network, system: systemPaths(home, path, [], look), git: gitFolders([folder], home) }, look).argv, ...shell]
  const policy = permission.policyOf(permission.Config.parse({}))
  const ways: Record<string, () => Promise<unknown>> = {
    'a shell': () => run(shell, folder),
    ...bwrap === undefined ? {} : { 'a shell in bubblewrap that hides nothing': () => run([bwrap, '--ro-bind', '/', '/', ...shell], folder), 'a shell in the sandbox': () => run(confined(false), folder), 'with network: true': () => run(confined(true), folder) },
    'the policy, one command line': () => permission.judgeCommand(COMMAND, policy, async () => 'inside'),
  }
  const samples = new Map<string, number[]>(Object.keys(ways).map(name => [name, []]))
  try {
    for (let round = 0; round < ROUNDS + 3; round++) for (const [name, work] of Object.entries(ways)) {
      const ms = await timed(work)
      if (round >= 3) samples.get(name)!.push(ms)             // the first ones load the parser and warm the disk cache
    }
    const base = row('a shell', 'ms', samples.get('a shell')!)
    return [...calls, base, ...[...samples].slice(1).map(([name, all]) => row(name, 'ms', all, base))]
  } finally { rmSync(folder, { recursive: true, force: true }) }
}

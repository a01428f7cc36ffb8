/**
 * One bash call: the tool bare, in the sandbox, and what the policy adds once its parser is loaded. Bare is a shell spawned by Node, as the tool does it.
 * What bubblewrap costs where it hides nothing is the machine's own price for a process more and its namespaces: the floor under the sandbox.
 * The ways take turns, so that a busy moment hits all alike.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import * as permission from '../../plugins/permission/index.js'
import { commandLine } from '../../plugins/sandbox/command-line.js'
import { findProgram, look } from '../../plugins/sandbox/files.js'
import { gitFolders } from '../../plugins/sandbox/git.js'
import { systemPaths } from '../../plugins/sandbox/system.js'
import { row, type Row } from './row.js'

const ROUNDS = 100
const COMMAND = 'git status --short | head -n 20 && grep -rn "TODO" src --include="*.ts" | sort > out.txt || true'

const run = (argv: readonly string[], cwd: string): Promise<void> => new Promise((resolve, reject) => {
  spawn(argv[0]!, argv.slice(1), { cwd, stdio: 'ignore', detached: true }).once('error', reject).once('exit', () => { resolve() })
})
const timed = async (work: () => Promise<unknown>): Promise<number> => {
  const begin = performance.now()
  await work()
  return performance.now() - begin
}

export async function benchBash(): Promise<Row[]> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'hx-bench-')))
  const home = process.env['HOME'] ?? '/', path = process.env['PATH'] ?? ''
  const bwrap = findProgram('bwrap', path)
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
    return [base, ...[...samples].slice(1).map(([name, all]) => row(name, 'ms', all, base))]
  } finally { rmSync(folder, { recursive: true, force: true }) }
}

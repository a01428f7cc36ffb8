/** Processes that a bench starts and measures from outside. Linux. */
import { spawn, type ChildProcess } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** A command in a group of its own, so that what it starts is counted, and ended, with it. */
export const begin = ([command, ...args]: readonly string[], env: NodeJS.ProcessEnv, cwd: string): ChildProcess => spawn(command!, args, { env, cwd, stdio: ['pipe', 'pipe', 'pipe'], detached: true })

/** Resident MB of all processes of the group that `child` leads. */
export function residentMB({ pid }: ChildProcess): number {
  let kilobytes = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const group = readFileSync(`/proc/${name}/stat`, 'utf8').split(') ').at(-1)!.split(' ')[2]
      if (Number(group) === pid) kilobytes += Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${name}/status`, 'utf8'))?.[1] ?? 0)
    } catch { /* it has ended meanwhile */ }
  }
  return kilobytes / 1024
}
export function endGroup({ pid }: ChildProcess): void {
  try { process.kill(-pid!, 'SIGKILL') } catch { /* all of it has ended */ }
}

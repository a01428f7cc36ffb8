/** Runs the built `hx` at a terminal, by `script` of util-linux: what a person sees comes as text, what is typed goes in. */
import { spawn, spawnSync } from 'node:child_process'
import { onTestFinished } from 'vitest'
import { CLI, until, type Place } from './hx.js'

/** No pseudo-terminal can be had without it (the one of the BSDs takes other arguments). */
export const hasTerminal = spawnSync('script', ['--version']).stdout?.toString().includes('util-linux') ?? false

export interface Terminal {
  /** Everything printed so far. */
  text(): string
  /** Waits until this is printed, behind what was waited for before. */
  shows(what: string | RegExp): Promise<void>
  type(keys: string): void
  readonly code: Promise<number | null>
}

export const terminal = (here: Pick<Place, 'folder' | 'env'>, args: readonly string[], more: Record<string, string> = {}): Terminal =>
  shellTerminal(here, [process.execPath, CLI, ...args].map(arg => `'${arg.replaceAll("'", `'\\''`)}'`).join(' '), more)

/** A line of shell at a terminal. */
export function shellTerminal({ folder, env }: Pick<Place, 'folder' | 'env'>, command: string, more: Record<string, string> = {}): Terminal {
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], { cwd: folder, env: { ...env, NO_COLOR: '1', TERM: 'xterm', SHELL: '/bin/sh', ...more }, stdio: ['pipe', 'pipe', 'inherit'] })
  let said = '', seen = 0
  child.stdout.setEncoding('utf8').on('data', text => { said += text })
  child.stdin.on('error', () => {})                          // it may end before it has read all
  const code = new Promise<number | null>(resolve => { child.once('close', resolve) })
  onTestFinished(async () => { child.kill('SIGKILL'); await code })
  return {
    text: () => said, code,
    shows: async what => {
      await until(() => {
        const rest = said.slice(seen), found = typeof what === 'string' ? rest.indexOf(what) : rest.search(what)
        if (found < 0) return false
        seen += found + (typeof what === 'string' ? what.length : what.exec(rest)![0].length)
        return true
      })
    },
    type: keys => { child.stdin.write(keys) },
  }
}

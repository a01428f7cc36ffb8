/**
 * Runs one command of a hook in a shell: JSON on stdin, what it says and how it ended back. Never throws.
 * Invariants: after its time, or when the signal aborts, it and all it started are gone; what it says is bounded; no key of a model is in its environment.
 */
import { spawn, type ChildProcess, type ChildProcessByStdio } from 'node:child_process'
import { existsSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { messageOf } from 'harnessx'

export interface Ended { readonly code: number | undefined; readonly stdout: string; readonly stderr: string; /** Why there is no code. */ readonly failure?: string }
export interface Setting { readonly cwd: string; /** Beside this process's own. */ readonly env: NodeJS.ProcessEnv; readonly timeoutMs: number; readonly signal: AbortSignal }

const MOST_CHARACTERS = 1_000_000
/** After its end, what it left running may hold its pipes this long. */
const PIPE_MS = 300
const SHELL = existsSync('/bin/bash') ? '/bin/bash' : '/bin/sh'

export function runCommand(command: string, input: string, { cwd, env, timeoutMs, signal }: Setting): Promise<Ended> {
  return new Promise(resolve => {
    const said = { stdout: '', stderr: '' }
    let failure: string | undefined
    let child: ChildProcessByStdio<Writable, Readable, Readable>
    try {
      child = spawn(SHELL, ['-c', command], { cwd, env: { ...environment(), ...env }, detached: true, stdio: ['pipe', 'pipe', 'pipe'] })
    } catch (error) {                                                // a NUL in the command, or one that is too long
      resolve({ ...said, code: undefined, failure: `it could not be run: ${messageOf(error)}` })
      return
    }
    const stop = (why: string) => { failure ??= why; killAll(child) }
    const letGo = () => { stop('the turn ended') }
    const timer = setTimeout(() => { stop(`it did not end within ${timeoutMs / 1000} s`) }, timeoutMs)
    let lingering: NodeJS.Timeout | undefined
    const settle = (code: number | null) => {
      clearTimeout(timer)
      clearTimeout(lingering)
      signal.removeEventListener('abort', letGo)
      resolve({ ...said, code: failure === undefined ? code ?? undefined : undefined, ...(failure === undefined ? code === null && { failure: 'a signal ended it' } : { failure }) })
    }
    signal.addEventListener('abort', letGo, { once: true })
    if (signal.aborted) letGo()
    for (const name of ['stdout', 'stderr'] as const) child[name].setEncoding('utf8').on('data', (piece: string) => { if (said[name].length < MOST_CHARACTERS) said[name] += piece })
    child.stdin.on('error', () => {})                                // it may not want to read
    child.stdin.end(input)
    child.on('error', error => { failure ??= `it could not be run: ${error.message}`; settle(null) })
    child.on('exit', () => { lingering = setTimeout(() => { child.stdout.destroy(); child.stderr.destroy() }, PIPE_MS) })
    child.on('close', settle)
  })
}

/** The whole group: a shell's children outlive it otherwise. */
function killAll(child: ChildProcess): void {
  if (child.pid === undefined) return
  try { process.kill(-child.pid, 'SIGKILL') } catch { child.kill('SIGKILL') }       // the group is gone already
}

function environment(): NodeJS.ProcessEnv {
  const { DEEPSEEK_API_KEY: _deepseek, OPENAI_API_KEY: _openai, ...rest } = process.env
  return rest
}

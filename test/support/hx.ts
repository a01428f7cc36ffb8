/** Runs the built command as a user would: a process of its own, in a folder of its own, with an environment of its own. */
import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

export const CLI = fileURLToPath(new URL('../../dist/cli.cjs', import.meta.url))

export interface Ended { readonly code: number | null; readonly stdout: string; readonly stderr: string; readonly signal: NodeJS.Signals | null }
export interface Place {
  readonly folder: string
  readonly env: Record<string, string>
  write(file: string, text: string): string
  /** Runs `hx` to its end; standard input is what is given, or empty. */
  hx(args: readonly string[], options?: { cwd?: string; env?: Record<string, string>; input?: string }): Promise<Ended>
  /** Starts `hx` and leaves it running. */
  start(args: readonly string[], options?: { cwd?: string; env?: Record<string, string> }): Running
}
export interface Running { readonly child: ChildProcess; readonly output: () => { stdout: string; stderr: string }; readonly ended: Promise<Ended> }

/** A folder with these files, and a home for hx beside it; gone when the test ends. */
export function place(files: Readonly<Record<string, string>> = {}): Place {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'hx-test-')))
  const folder = join(root, 'work')
  mkdirSync(folder)
  const running = new Set<Running>()
  onTestFinished(async () => {
    for (const { child } of running) child.kill('SIGKILL')
    await Promise.all([...running].map(one => one.ended))
    await rm(root, { recursive: true, force: true, maxRetries: 10 })      // a process that ends may be writing still; only this one tries again
  })
  const env = { PATH: process.env['PATH'] ?? '', HOME: join(root, 'home'), HX_HOME: join(root, 'hx'), LANG: 'C.UTF-8' }
  const write = (file: string, text: string) => {
    const path = join(folder, file)
    mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    return path
  }
  for (const [file, text] of Object.entries(files)) write(file, text)
  const begin = (args: readonly string[], options: { cwd?: string; env?: Record<string, string>; input?: string }): Running => {
    const child = spawn(process.execPath, [CLI, ...args], { cwd: options.cwd ?? folder, env: { ...env, ...options.env }, stdio: ['pipe', 'pipe', 'pipe'] })
    const said = { stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', text => { said.stdout += text })
    child.stderr.setEncoding('utf8').on('data', text => { said.stderr += text })
    child.stdin.on('error', () => {})                        // it may end without reading
    child.stdin.end(options.input ?? '')
    const one: Running = {
      child, output: () => said,
      ended: new Promise(resolve => { child.once('close', (code, signal) => { running.delete(one); resolve({ code, signal, ...said }) }) }),
    }
    running.add(one)
    return one
  }
  return { folder, env, write, hx: (args, options = {}) => begin(args, options).ended, start: (args, options = {}) => begin(args, options) }
}

/** Waits until it holds; the test's own time limit ends the wait. */
export async function until<T>(look: () => T | undefined | false | Promise<T | undefined | false>, everyMs = 10): Promise<T> {
  for (;;) {
    const found = await look()
    if (found) return found
    await new Promise(resolve => { setTimeout(resolve, everyMs) })
  }
}

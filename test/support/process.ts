/** Real processes for tests: a TypeScript program of test/support/processes is bundled with the core files it imports, and run by plain node. */
import { spawn, type ChildProcess, type SpawnOptions } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

const atExit: (() => void)[] = []
process.once('exit', () => { for (const end of atExit) end() })

/** Path of the bundled program, in a temporary folder that goes with this process. */
export async function compile(program: string): Promise<string> {
  const folder = mkdtempSync(join(tmpdir(), 'hx-process-'))
  atExit.push(() => { rmSync(folder, { recursive: true, force: true }) })
  const bundle = await rolldown({ input: fileURLToPath(new URL(`./processes/${program}.ts`, import.meta.url)), platform: 'node', logLevel: 'silent' })
  const file = join(folder, `${program}.mjs`)
  await bundle.write({ file, format: 'esm' })
  await bundle.close()
  return file
}

export interface Started {
  readonly child: ChildProcess
  /** The next line of its output; undefined after the last. */
  line(): Promise<string | undefined>
  send(line: string): void
  kill(signal?: NodeJS.Signals): Promise<void>
}
/** Starts a program; what it prints is read line by line. */
export function start(command: string, args: readonly string[], options: SpawnOptions = {}): Started {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'], ...options })
  const gone = new Promise<void>(done => { child.once('exit', () => { done() }) })
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]()
  child.stdin!.on('error', () => {})                                                              // a killed reader closes the pipe; the test sees that by its lines
  atExit.push(() => { child.kill('SIGKILL') })
  return {
    child,
    async line() {
      const { value, done } = await lines.next()
      return done ? undefined : value
    },
    send: line => { child.stdin!.write(`${line}\n`) },
    kill: signal => { child.kill(signal ?? 'SIGKILL'); return gone },
  }
}

/**
 * Spawns the first program of a command: in a process group of its own, its output in two pipes, no input, and no other descriptor of the host's.
 * Says in words for the model why it could not.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync, readdirSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { messageOf } from 'harnessx'
import type { Stream } from './output.js'
import type { PipeSupply } from './pipes.js'

export interface Command {
  /** The shell and what it runs, and what may stand before it. */
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Value of the mark in its environment. */
  readonly mark: string
}
export interface Program {
  readonly child: ChildProcess
  readonly streams: Readonly<Record<Stream, Readable>>
  readonly mark: string
}

/** O_CLOEXEC, as /proc tells it. */
const CLOSE_ON_EXEC = 0o2000000

/** `more`: a descriptor 3, from which it reads what we write. */
export async function startProgram({ argv: [program = '', ...args], cwd, env, mark }: Command, supply: PipeSupply, more: readonly 'pipe'[] = []): Promise<Program> {
  const pipes = await supply.take()                                       // without them sockets, and only /dev/stderr can not be opened
  const nothing = inherited().length === 0 ? undefined : openSync('/dev/null', 'r')
  try {
    const child = spawn(program, args, { cwd, env, detached: true, stdio: covered(['ignore', ...pipes?.childEnds ?? ['pipe', 'pipe'] as const, ...more], nothing) })
    await new Promise<void>((resolve, reject) => { child.once('spawn', resolve).once('error', reject) })
    supply.prepare()
    return { child, streams: pipes ?? { stdout: child.stdout!, stderr: child.stderr! }, mark }
  } catch (error) {
    pipes?.stdout.destroy()
    pipes?.stderr.destroy()
    throw await startFailure(error, cwd, args.at(-1) ?? '')
  } finally {
    pipes?.childEnds.forEach(fd => { closeSync(fd) })
    if (nothing !== undefined) closeSync(nothing)
  }
}

type Stdio = ('ignore' | 'pipe' | number)[]
let known: readonly number[] | undefined
/** What this process was started with beside its three, which every child would hold too: an open folder leads out of any sandbox. It may be in use here, so it is not closed. */
const inherited = (): readonly number[] => known ??= descriptors().filter(fd => fd > 2 && isHandedOn(fd))
function covered(stdio: Stdio, nothing: number | undefined): Stdio {
  if (nothing === undefined) return stdio
  const all = [...stdio]
  for (const fd of inherited()) {
    while (all.length < fd) all.push('ignore')
    all[fd] ??= nothing
  }
  return all
}
function descriptors(): readonly number[] {
  try { return readdirSync('/proc/self/fd').map(Number) } catch { return [] }   // no Linux, and no sandbox
}
function isHandedOn(fd: number): boolean {
  try {
    return (parseInt(/^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1] ?? '', 8) & CLOSE_ON_EXEC) === 0
  } catch { return false }                                                // closed by now: the one that listed them
}

async function startFailure(error: unknown, cwd: string, command: string): Promise<Error> {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'E2BIG') return new Error(`the command is too long for this system (${command.length.toLocaleString('en-US')} characters); write it to a file and run that`, { cause: error })
  if (code === 'ENOENT' && !await stat(cwd).catch(() => undefined)) return new Error(`the working directory "${cwd}" does not exist any more`, { cause: error })
  return new Error(`the shell could not be started: ${messageOf(error)}`, { cause: error })
}

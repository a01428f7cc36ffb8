/** Spawns the first program of a command: in a process group of its own, its output in two pipes, no input. Says in words for the model why it could not. */
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync } from 'node:fs'
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

/** `more`: a descriptor 3, from which it reads what we write. */
export async function startProgram({ argv: [program = '', ...args], cwd, env, mark }: Command, supply: PipeSupply, more: readonly 'pipe'[] = []): Promise<Program> {
  const pipes = await supply.take()                                       // without them sockets, and only /dev/stderr can not be opened
  try {
    const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', ...pipes?.childEnds ?? ['pipe', 'pipe'] as const, ...more] })
    await new Promise<void>((resolve, reject) => { child.once('spawn', resolve).once('error', reject) })
    return { child, streams: pipes ?? { stdout: child.stdout!, stderr: child.stderr! }, mark }
  } catch (error) {
    pipes?.stdout.destroy()
    pipes?.stderr.destroy()
    throw await startFailure(error, cwd, args.at(-1) ?? '')
  } finally {
    pipes?.childEnds.forEach(fd => { closeSync(fd) })
  }
}

async function startFailure(error: unknown, cwd: string, command: string): Promise<Error> {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'E2BIG') return new Error(`the command is too long for this system (${command.length.toLocaleString('en-US')} characters); write it to a file and run that`, { cause: error })
  if (code === 'ENOENT' && !await stat(cwd).catch(() => undefined)) return new Error(`the working directory "${cwd}" does not exist any more`, { cause: error })
  return new Error(`the shell could not be started: ${messageOf(error)}`, { cause: error })
}

/**
 * One running command: a shell in a process group of its own, its output, its end, and how to stop all of it.
 *
 *   start ──▶ runs ──▶ exited ──▶ over            exited: the shell has ended; over: nobody holds its output any more
 *               └─ stop() ─▶ stopped ──▶ over     every process of it got SIGTERM, then SIGKILL
 *
 * What a command leaves in the background keeps it from being over; its output is still read, so that it neither blocks nor dies of a broken pipe.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { messageOf } from 'harnessx'
import type { Output, Stream } from './output.js'
import type { PipeSupply } from './pipes.js'
import { find, send, stopAll, type Target } from './processes.js'

export interface Ending { readonly code: number | null; readonly signal: NodeJS.Signals | null }
export interface Command {
  /** The shell and what it runs, and what may stand before it. */
  readonly argv: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** Value of the mark in its environment. */
  readonly mark: string
}

export type StopOutcome = Awaited<ReturnType<typeof stopAll>>

/** Between SIGTERM and SIGKILL. */
const GRACE_MS = 5000
/** A shell that is gone has been reaped by then. */
const REAPED_MS = 1000

export class Job {
  readonly pid: number
  readonly output: Output
  readonly exited: Promise<Ending>
  readonly over: Promise<void>
  readonly #mark: string
  readonly #streams: readonly Readable[]
  #hasExited = false
  #isOver = false
  #giveUp!: (ending: Ending) => void
  #stop: { readonly reason: string; readonly outcome: Promise<StopOutcome> } | undefined

  private constructor(child: ChildProcess, streams: Readonly<Record<Stream, Readable>>, mark: string, output: Output) {
    this.pid = child.pid!
    this.output = output
    this.#mark = mark
    this.#streams = [streams.stdout, streams.stderr]
    this.exited = new Promise<Ending>(resolve => {
      this.#giveUp = resolve
      child.once('exit', (code, signal) => { this.#hasExited = true; resolve({ code, signal }) })
    })
    this.over = Promise.all([this.exited, this.#pump('stdout', streams.stdout), this.#pump('stderr', streams.stderr)]).then(() => { this.#isOver = true })
  }

  static async start({ argv: [program = '', ...args], cwd, env, mark }: Command, output: Output, supply: PipeSupply): Promise<Job> {
    const pipes = await supply.take()                                     // without them sockets, and only /dev/stderr can not be opened
    try {
      const child = spawn(program, args, { cwd, env, detached: true, stdio: ['ignore', ...pipes?.childEnds ?? ['pipe', 'pipe'] as const] })
      await new Promise<void>((resolve, reject) => { child.once('spawn', resolve).once('error', reject) })
      return new Job(child, pipes ?? { stdout: child.stdout!, stderr: child.stderr! }, mark, output)
    } catch (error) {
      pipes?.stdout.destroy()
      pipes?.stderr.destroy()
      throw await startFailure(error, cwd, args.at(-1) ?? '')
    } finally {
      pipes?.childEnds.forEach(fd => { closeSync(fd) })
    }
  }

  get hasExited(): boolean { return this.#hasExited }
  /** Why it was stopped. */
  get stopReason(): string | undefined { return this.#stop?.reason }

  /** Stops every process of it; the first reason stands. Resolves when they are gone, or can not be got rid of. */
  async stop(reason: string, graceMs = GRACE_MS): Promise<StopOutcome> {
    this.#stop ??= { reason, outcome: this.#end(graceMs) }
    return this.#stop.outcome
  }
  /** What still runs of it after its shell has exited. Asked cheaply first, since it is asked after each command. */
  async remaining(): Promise<readonly number[]> {
    return this.#isOver && !send(-this.pid, 0) ? [] : find(this.#target())
  }

  async #end(graceMs: number): Promise<StopOutcome> {
    const outcome = await stopAll(() => this.#target(), graceMs)
    if (!await settles(this.exited, REAPED_MS)) this.#giveUp({ code: null, signal: null })
    for (const stream of this.#streams) stream.destroy()                  // whoever escaped may still hold them
    return outcome
  }
  #target(): Target {
    const certain = !this.#hasExited || (process.platform !== 'linux' && !this.#isOver)   // without marks, the group of a command whose output is still held is the best guess
    return { mark: this.#mark, group: certain ? this.pid : undefined }
  }
  async #pump(name: Stream, stream: Readable): Promise<void> {
    try {
      for await (const bytes of stream) {
        await this.output.add(name, bytes as Uint8Array)
        if (this.output.isFull) void this.stop('stopped, because it printed too much')
      }
    } catch {
      // destroyed by #end: what is unread by then is nobody's loss
    }
    this.output.end(name)
  }
}

/** Does it settle within `ms`? */
export async function settles(promise: Promise<unknown>, ms: number): Promise<boolean> {
  const limit = new AbortController()
  try {
    return await Promise.race([promise.then(() => true), delay(ms, false, { signal: limit.signal })])
  } finally {
    limit.abort()
  }
}

async function startFailure(error: unknown, cwd: string, command: string): Promise<Error> {
  const code = (error as NodeJS.ErrnoException).code
  if (code === 'E2BIG') return new Error(`the command is too long for this system (${command.length.toLocaleString('en-US')} characters); write it to a file and run that`, { cause: error })
  if (code === 'ENOENT' && !await stat(cwd).catch(() => undefined)) return new Error(`the working directory "${cwd}" does not exist any more`, { cause: error })
  return new Error(`the shell could not be started: ${messageOf(error)}`, { cause: error })
}

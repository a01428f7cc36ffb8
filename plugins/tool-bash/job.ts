/**
 * One running command: a shell in a process group of its own, its output, its end, and how to stop all of it.
 *
 *   start ──▶ runs ──▶ exited ──▶ over            exited: the shell has ended; over: nobody holds its output any more
 *               └─ stop() ─▶ stopped ──▶ over     every process of it got SIGTERM, then SIGKILL
 *
 * What a command leaves in the background keeps it from being over; its output is still read, so that it neither blocks nor dies of a broken pipe.
 */
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import type { Output, Stream } from './output.js'
import type { PipeSupply } from './pipes.js'
import { find, send, stopAll, type Target } from './processes.js'
import { startProgram, type Command, type Program } from './program.js'

export interface Ending { readonly code: number | null; readonly signal: NodeJS.Signals | null }
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

  /** The program has not ended yet. */
  constructor({ child, streams, mark }: Program, output: Output) {
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

  static async start(command: Command, output: Output, supply: PipeSupply): Promise<Job> { return new Job(await startProgram(command, supply), output) }

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

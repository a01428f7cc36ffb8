/**
 * Shells started ahead, at most one a session: to build a sandbox takes longer than most commands do, and while the model thinks nobody waits for it.
 * One shell takes one command, and only where it would be started now as it was: the same command line, environment and folder, and a confinement that still rests on the same.
 * It waits in its own sandbox, before anything of the model's has run in there; what it reads comes from a descriptor that nobody else holds and that is closed before the command begins.
 *
 *   prepare ──▶ starts ──▶ waits ──▶ take: runs its command        or it ends: not as wanted, drop (the turn is over), idle, close
 */
import type { Socket } from 'node:net'
import { isPlain } from './environment.js'
import { Job } from './job.js'
import type { Output } from './output.js'
import type { PipeSupply } from './pipes.js'
import { startProgram, type Command, type Program } from './program.js'
import { send } from './processes.js'

/** How the next command of a session is to be started, and the command. */
export interface Way extends Omit<Command, 'mark'> {
  readonly command: string
  /** What the confinement rests on now. */
  readonly standing: () => string
}

/** Reads the command up to a NUL character, or ends where the host did; then it is as if the shell had been started with it. */
const WAIT = 'IFS= read -rd "" -u 3 c || exit; exec 3<&-; exec "$0" -c "$c"'
/** The next request leaves first. */
const AFTER_MS = 5
const IDLE_MS = 60_000
/** The shell reads byte by byte: a longer one is sooner there by a shell of its own. */
const MOST_BYTES = 4000

/** What such a shell runs. Undefined where it can't be done. */
export const waitingShell = (shell: string): readonly string[] | undefined => shell.endsWith('/bash') ? [shell, '-c', WAIT, shell] : undefined

interface Place { readonly way: Way; timer: NodeJS.Timeout; shell?: Promise<WaitingShell | undefined> }

export class Ahead {
  readonly #places = new Map<string, Place>()
  readonly #pipes: PipeSupply
  constructor(pipes: PipeSupply) { this.#pipes = pipes }

  prepare(session: string, way: Way, marked: () => Pick<Command, 'env' | 'mark'>): void {
    this.drop(session)
    if (!isPlain(way.env)) return                                         // more may be what a shell obeys before it has a command (BASH_ENV, LD_PRELOAD), from a file that an earlier command wrote
    const place: Place = { way, timer: setTimeout(() => {
      place.shell = WaitingShell.start(way, marked(), this.#pipes)
      place.timer = setTimeout(() => { if (this.#places.get(session) === place) this.drop(session) }, IDLE_MS).unref()
    }, AFTER_MS).unref() }
    this.#places.set(session, place)
  }
  /** The one that waits for this session, if it is what would be started now; if not, it ends. */
  async take(session: string, way: Way | undefined): Promise<WaitingShell | undefined> {
    const shell = await this.#leave(session)
    if (shell && way && shell.isReadyFor(way)) return shell
    shell?.end()
    return undefined
  }
  drop(session: string): void { void this.#end(session) }
  async close(): Promise<void> { await Promise.all([...this.#places.keys()].map(session => this.#end(session))) }

  async #end(session: string): Promise<void> { (await this.#leave(session))?.end() }
  async #leave(session: string): Promise<WaitingShell | undefined> {
    const place = this.#places.get(session)
    clearTimeout(place?.timer)
    this.#places.delete(session)
    return place?.shell
  }
}

class WaitingShell {
  readonly #program: Program
  readonly #way: string
  readonly #standing: string
  private constructor(program: Program, way: string, standing: string) {
    this.#program = program
    this.#way = way
    this.#standing = standing
    this.#hold(false)
    this.#input.on('error', () => { /* it has ended, which its exit tells */ })
  }

  static async start(way: Way, marked: Pick<Command, 'env' | 'mark'>, pipes: PipeSupply): Promise<WaitingShell | undefined> {
    try {
      const standing = way.standing()                                     // before: what changes meanwhile makes it unfit
      return new WaitingShell(await startProgram({ ...way, ...marked }, pipes, ['pipe']), wordsOf(way), standing)
    } catch { return undefined }                                          // the next call starts its own and says why it can't
  }

  isReadyFor(way: Way): boolean {
    const { exitCode, signalCode } = this.#program.child
    return exitCode === null && signalCode === null && Buffer.byteLength(way.command) <= MOST_BYTES && wordsOf(way) === this.#way && way.standing() === this.#standing
  }
  run(command: string, output: Output): Job {
    this.#hold(true)
    this.#input.end(`${command}\0`, () => { this.#input.destroy() })     // what was written waits in the pipe
    return new Job(this.#program, output)
  }
  /** At once: there is nothing in it to be ended gently. */
  end(): void {
    const { child, streams } = this.#program
    if (child.exitCode === null && child.signalCode === null) send(-child.pid!, 'SIGKILL')
    for (const stream of [this.#input, streams.stdout, streams.stderr]) stream.destroy()
  }

  get #input(): Socket { return this.#program.child.stdio[3] as Socket }
  /** Nobody stays alive for one that only waits. */
  #hold(kept: boolean): void {
    const { child, streams: { stdout, stderr } } = this.#program
    for (const handle of [child, this.#input, stdout as Socket, stderr as Socket]) if (kept) handle.ref(); else handle.unref()
  }
}

const wordsOf = ({ argv, cwd, env }: Way): string => JSON.stringify([argv, cwd, env])

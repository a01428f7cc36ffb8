/**
 * All commands of one mounted version of the plugin: starts them with a mark that names host, version, session and command, and stops them with their session or the plugin.
 * What left its group and closed its output is no job any more, but still carries the mark and is found by it.
 */
import type { Logger } from 'harnessx'
import { Ahead, type Way } from './ahead.js'
import { Job } from './job.js'
import type { Output } from './output.js'
import { PipeSupply } from './pipes.js'
import { leftovers, MARK, ownMark, stopAll } from './processes.js'
import type { Command } from './program.js'

/** At an unload the host waits two seconds for a plugin. */
const UNLOAD_GRACE_MS = 800

export class Jobs {
  readonly #mark = `${ownMark()}-${Math.random().toString(16).slice(2, 10)}`
  readonly #jobs = new Map<Job, string>()
  /** Shells that are not there yet: whoever stops waits for them, else they would begin when nobody looks any more. */
  readonly #starting = new Set<Promise<unknown>>()
  readonly #pipes = new PipeSupply()
  readonly #ahead = new Ahead(this.#pipes)
  #started = 0
  #stopped = false

  /** In the shell that waits for this session where it is of the `way`, else in one of its own. */
  async start(session: string, command: Omit<Command, 'mark'>, output: Output, way?: Way): Promise<Job> {
    if (this.#stopped) throw new Error('no command is started any more: the plugin is being unloaded')
    const starting = this.#begin(session, command, output, way).then(job => {
      this.#jobs.set(job, session)
      void job.over.then(() => { this.#jobs.delete(job) })
      return job
    })
    this.#starting.add(starting)
    try { return await starting } finally { this.#starting.delete(starting) }
  }
  /** A shell for the next command of the session, which it has to ask for in this way. */
  startAhead(session: string, way: Way): void {
    if (!this.#stopped) this.#ahead.prepare(session, way, () => this.#marked(session, way.env))
  }
  /** No next command is near. */
  dropAhead(session: string): void { this.#ahead.drop(session) }
  /** Commands of a session whose shell still runs. */
  running(session: string): readonly Job[] { return [...this.#jobs].filter(([job, owner]) => owner === session && !job.hasExited).map(([job]) => job) }

  async stopSession(session: string): Promise<void> {
    this.#ahead.drop(session)
    await this.#begun()
    return this.#stop(this.#markOf(session), [...this.#jobs].filter(([, owner]) => owner === session).map(([job]) => job))
  }
  async stopAll(): Promise<void> {
    this.#stopped = true
    await Promise.all([this.#begun(), this.#ahead.close()])
    await Promise.all([this.#pipes.close(), this.#started > 0 && this.#stop(this.#mark, [...this.#jobs.keys()])])
  }

  async #begin(session: string, command: Omit<Command, 'mark'>, output: Output, way: Way | undefined): Promise<Job> {
    const waiting = await this.#ahead.take(session, way)
    return waiting && way ? waiting.run(way.command, output) : Job.start({ ...command, ...this.#marked(session, command.env) }, output, this.#pipes)
  }
  #marked(session: string, env: Command['env']): Pick<Command, 'env' | 'mark'> {
    const mark = `${this.#markOf(session)}${++this.#started}.`
    return { env: { ...env, [MARK]: mark }, mark }
  }
  async #begun(): Promise<void> { await Promise.allSettled(this.#starting) }
  #markOf(session: string): string { return `${this.#mark}.${session}.` }
  /** By the mark too, at the same time: that ends those that are no job any more, and shortens the grace of one that is being stopped already. */
  async #stop(mark: string, jobs: readonly Job[]): Promise<void> {
    await Promise.all([stopAll(() => ({ mark }), UNLOAD_GRACE_MS), ...jobs.map(job => job.stop('stopped with its session or plugin', UNLOAD_GRACE_MS))])
  }
}

/** Says which commands an earlier host has left behind; whether they are still wanted, only a person knows. */
export async function reportLeftovers(logger: Logger): Promise<void> {
  const pids = await leftovers()
  if (pids.length > 0) logger.warn(`${pids.length} processes of commands run on, whose host ended without stopping them: ${pids.join(' ')}; stop them with: kill ${pids.join(' ')}`, { pids })
}

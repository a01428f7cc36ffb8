/**
 * The tool `bash`: runs a command to its end, its time limit or the end of the turn, or starts it in the background.
 * Returns as soon as the shell has exited, whoever still holds its output.
 */
import { z, type Tool, type ToolOutput, type ToolRun } from 'harnessx'
import { waitingShell, type Way } from './ahead.js'
import { commandEnvironment } from './environment.js'
import { settles, type Job } from './job.js'
import type { Jobs } from './jobs.js'
import { Output } from './output.js'
import { endNote, report } from './report.js'

export interface BashConfig {
  readonly timeout: number
  readonly maxTimeout: number
  readonly maxCharacters: number
  readonly maxBytes: number
  readonly maxBackground: number
  readonly env: readonly string[]
}

/** How long the last output may take to arrive after the shell has exited. */
const LAST_OUTPUT_MS = 100
const MOST_LOOKS = 10
/** A background command that fails at once is told as any other. */
const FIRST_LOOK_MS = 300
const PROGRESS_MS = 1000
const PROGRESS_LENGTH = 200

export function bashTool(jobs: Jobs, shell: string, config: BashConfig): Tool {
  const maxSeconds = config.maxTimeout / 1000
  const parameters = z.object({
    command: z.string().min(1).describe('Command line for the shell.'),
    timeout: z.number().positive().max(maxSeconds).optional().describe(`Seconds after which it is stopped. Default ${config.timeout / 1000}, at most ${maxSeconds}. In the background: no limit unless given.`),
    background: z.boolean().optional().describe('Start it and return at once, for servers and watchers. Its output goes to a file.'),
  })
  return {
    name: 'bash',
    description: [
      'Run a shell command in the workspace. Each call is a new shell that starts in the workspace folder: cd, variables and functions do not last; chain with && instead.',
      'There is no terminal and no input: use flags such as -y instead of prompts. Gives stdout and stderr in order of arrival, and the exit code.',
      'Output that is too long is shown in part and kept whole in a file. What runs in the background goes on until stop_command ends it or the session is archived.',
    ].join(' '),
    parameters,
    unconfined: 'programs',
    async execute({ command, timeout, background = false }: z.infer<typeof parameters>, run: ToolRun) {
      if (command.includes('\0')) throw new Error('the command holds a NUL character, which no shell can take')
      run.signal.throwIfAborted()
      if (background) refuseTooMany(jobs.running(run.session.id), config.maxBackground)
      const output = new Output({ folder: () => run.outputDir, maxCharacters: config.maxCharacters, maxBytes: config.maxBytes })
      const place = { cwd: run.session.cwd, env: commandEnvironment(process.env, config.env) }
      const way = wayAhead(run, shell, { ...place, command })
      const job = await jobs.start(run.session.id, { ...place, argv: run.launch([shell, '-c', command]) }, output, way)
      run.lingers(job.over)
      try {
        return await (background ? inBackground(job, timeout) : toItsEnd(job, run, timeout ?? config.timeout / 1000))
      } finally {
        if (way && !run.signal.aborted) jobs.startAhead(run.session.id, way)
      }
    },
  }
}

/** Bare, a shell is there as fast as a waiting one. */
function wayAhead(run: ToolRun, shell: string, rest: Omit<Way, 'argv' | 'standing'>): Way | undefined {
  const argv = waitingShell(shell), { standing } = run
  return argv && standing && { ...rest, argv: run.launch(argv), standing }
}

async function toItsEnd(job: Job, run: ToolRun, seconds: number): Promise<ToolOutput> {
  const onAbort = (): void => { void job.stop('stopped, because the turn was') }
  const limit = setTimeout(() => { void job.stop(timedOut(seconds)) }, seconds * 1000)
  const progress = setInterval(progressOf(job, run), PROGRESS_MS)
  run.signal.addEventListener('abort', onAbort)
  if (run.signal.aborted) onAbort()                                       // while it was started
  try {
    return await conclude(job)
  } finally {
    clearTimeout(limit)
    clearInterval(progress)
    run.signal.removeEventListener('abort', onAbort)
  }
}

async function inBackground(job: Job, seconds: number | undefined): Promise<ToolOutput> {
  await job.output.makeFile()
  if (job.output.failure !== undefined) {
    await job.stop('stopped, because its output could not be kept')
    throw new Error(`the command was stopped, because the file for its output could not be made: ${job.output.failure}`)
  }
  if (await settles(job.exited, FIRST_LOOK_MS)) return conclude(job)
  if (seconds !== undefined) {
    const limit = setTimeout(() => { void job.stop(timedOut(seconds)) }, seconds * 1000)
    void job.exited.then(() => { clearTimeout(limit) })
  }
  void job.over.then(async () => job.output.close(job.stopReason ?? endNote(await job.exited)))
  return `[started in the background: pid ${job.pid}. Its output goes to "${job.output.file}", at the end the exit code. To stop it: stop_command with this pid]`
}

/** Waits for the shell and tells what came of it. */
async function conclude(job: Job): Promise<ToolOutput> {
  const ending = await job.exited
  await lastOutput(job)
  const reason = job.stopReason
  const stopped = reason === undefined ? undefined : { reason, outcome: await job.stop(reason) }
  const remaining = await job.remaining()
  const printed = await job.output.ends()
  job.output.seal()
  void job.over.then(() => job.output.close())
  return report({ printed, file: job.output.file, failure: job.output.failure, ending, stopped, remaining: stopped ? [] : remaining })
}

/** What is printed before the exit arrives after it. Whoever holds the output longer is not waited for: quiet for a moment is enough, and there is an end to it. */
async function lastOutput(job: Job): Promise<void> {
  for (let seen = -1, looks = 0; seen !== job.output.bytes && looks < MOST_LOOKS; looks++) {
    seen = job.output.bytes
    if (await settles(job.over, LAST_OUTPUT_MS)) return
  }
}

function progressOf(job: Job, run: ToolRun): () => void {
  let told = ''
  return () => {
    const line = job.output.lastLine.slice(0, PROGRESS_LENGTH)
    if (line !== told) run.progress(told = line)
  }
}

function refuseTooMany(running: readonly Job[], most: number): void {
  if (running.length >= most) throw new Error(`${most} commands of this session run in the background already, which is the limit; stop one first: stop_command with one of the pids ${running.map(job => job.pid).join(', ')}`)
}
const timedOut = (seconds: number): string => `timed out after ${seconds} s and was stopped; give a longer timeout, or run it in the background`

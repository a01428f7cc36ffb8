/**
 * What the model reads of a command: both ends of its output, and notes in brackets on how it ended. Pure.
 */
import type { Ending, StopOutcome } from './job.js'
import type { HeadTail } from './head-tail.js'

export interface CommandOutcome {
  readonly printed: ReturnType<HeadTail['ends']>
  readonly file: string | undefined
  /** Why the file is missing or not whole. */
  readonly failure: string | undefined
  readonly ending: Ending
  readonly stopped: { readonly reason: string; readonly outcome: StopOutcome } | undefined
  /** Pids that still run after the shell has exited. */
  readonly remaining: readonly number[]
}

const SHOWN_PIDS = 10

export function report(command: CommandOutcome): { content: string; isError: boolean } {
  const { ending, stopped, remaining } = command
  const notes = [stopped ? stopNote(stopped) : endNote(ending)]
  if (remaining.length > 0) notes.push(`${remaining.length} ${remaining.length === 1 ? 'process that it started still runs' : 'processes that it started still run'} in the background (pid ${remaining.slice(0, SHOWN_PIDS).join(', ')}${remaining.length > SHOWN_PIDS ? ', …' : ''}); what ${remaining.length === 1 ? 'it prints' : 'they print'} from now on ${command.file ? 'goes to the file' : 'is lost'}`)
  return { content: [printedText(command), ...notes.map(note => `[${note}]`)].join('\n'), isError: stopped !== undefined || ending.code !== 0 }
}

export const endNote = ({ code, signal }: Ending): string => signal === null ? `exit code ${code}` : `killed by ${signal}`

function stopNote({ reason, outcome }: NonNullable<CommandOutcome['stopped']>): string {
  return `${reason}${{ none: '', terminated: '', killed: '; it did not end on SIGTERM and was killed', left: '; some of its processes could not be stopped' }[outcome]}`
}

function printedText({ printed: { head, tail, missing }, file, failure }: CommandOutcome): string {
  if (missing === 0) return `${head}${tail}`.replace(/\n$/, '') || '(no output)'
  const where = failure === undefined ? `all of it is in "${file}": read it with read_file or grep` : `it could not be kept in a file: ${failure}`
  return `${head}\n[… ${missing.toLocaleString('en-US')} characters left out; ${where} …]\n${tail.replace(/\n$/, '')}`
}

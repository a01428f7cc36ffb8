/**
 * The streams of one command: answers to stdout, everything else to stderr, JSON when asked for. Knows no command.
 * A reader that goes away (`hx … | head`) is no error: what is left to say is dropped and the command ends as it would have.
 */
import { realpathSync, statSync } from 'node:fs'
import { basename, resolve } from 'node:path'
import { isAtLeast, type Level, type LogRecord, type LogSink, type Wanted } from '../kernel/log.js'
import { at, HarnessError, messageOf, notStored, type Place } from '../errors.js'
import { colours, plain, printable, wantsColour, type Paint } from './terminal.js'

/** Options that every command takes. */
export interface Globals {
  readonly config?: string
  readonly dir?: string
  readonly json?: boolean
  readonly trust?: boolean
  readonly quiet?: boolean
  readonly verbose?: boolean
}

export class Io {
  readonly stdout = process.stdout
  readonly stderr = process.stderr
  readonly env = process.env
  globals: Globals = {}
  #cwd: string | undefined
  readonly paint: Paint = wantsColour(process.stdout, process.env) ? colours : plain
  readonly paintNote: Paint = wantsColour(process.stderr, process.env) ? colours : plain

  /** Why an answer could not be written, if it was more than a reader who left. */
  lost: Error | undefined

  constructor() {
    this.stdout.on('error', (error: NodeJS.ErrnoException) => { if (error.code !== 'EPIPE') this.lost ??= error })
    this.stderr.on('error', () => {})                       // there is nowhere left to say so
  }
  /** Node makes the stream when it is asked for, and loads all that reads files and pipes. */
  get stdin(): typeof process.stdin { return process.stdin }
  get json(): boolean { return this.globals.json === true }
  /** Where the command stands, as a real path: `-C`, else the folder that was the current one when it was first asked for. */
  get cwd(): string { return this.#cwd ??= realFolder(this.globals.dir) }
  /** A person can be asked: both ends are terminals, and nobody parses the output. */
  get interactive(): boolean { return !this.json && this.stderr.isTTY === true && this.stdin.isTTY === true }

  say(text: string): void { this.stdout.write(text.endsWith('\n') ? text : `${text}\n`) }
  note(text: string): void { if (!this.globals.quiet) this.stderr.write(`${text}\n`) }
  line(value: unknown): void { this.stdout.write(`${JSON.stringify(value)}\n`) }

  /** What of the host's log is shown. */
  shown(otherwise: () => Level = () => 'warn'): Wanted {
    const { quiet, verbose } = this.globals
    return (level, part) => part !== 'stdout' && part !== 'stderr'                             // it stands there already
      && isAtLeast(level, quiet ? 'error' : verbose ? 'debug' : otherwise())
  }
  /** The host's log on a terminal: from `otherwise` on, everything with `-v`, errors alone with `-q`. */
  logSink(otherwise?: () => Level): LogSink {
    const shown = this.shown(otherwise)
    return (record: LogRecord) => {
      if (!shown(record.level, record.part)) return
      const who = record.plugin === undefined || record.message.startsWith(`plugin "${record.plugin}"`) ? 'hx' : `hx: plugin "${record.plugin}"`
      const tone = record.level === 'error' ? 'red' : record.level === 'warn' ? 'yellow' : 'dim'
      this.stderr.write(`${this.paintNote(tone, `${who}: ${printable(record.message)}`)}\n`)
    }
  }

  /** Says what went wrong, once, and gives the exit code. */
  fail(error: unknown): number {
    const known = error instanceof HarnessError ? error : ofSystem(error)
    const { file, line, column } = known?.place ?? {}
    if (this.json) this.line({ type: 'error', code: known?.code ?? 'internal', message: messageOf(known ?? error), file, line, column })
    else {
      this.stderr.write(`${this.paintNote('red', 'hx:')} ${printable(placed(messageOf(known ?? error), known?.place))}\n`)
      if (!known || this.globals.verbose) this.stderr.write(`${error instanceof Error ? error.stack : ''}\n`)
    }
    return known?.exit ?? 1
  }
  /** Everything said has left the process, or its reader has; what went wrong with it is known. */
  async flush(): Promise<void> {
    await Promise.all([this.stdout, this.stderr].map(stream => stream.writableLength === 0 || stream.destroyed ? undefined : new Promise<void>(done => { stream.write('', () => { done() }) })))
    await new Promise(done => { setImmediate(done) })       // a stream tells of its failure in a later tick
  }
}

/** The message with its place, named once and in full: a log's short name of a file can be that of more than one. */
function placed(message: string, place: Place | undefined): string {
  if (!place || message.includes(place.file)) return message
  const short = { ...place, file: basename(place.file) }
  const said = [at(short), `(${at({ ...short, column: undefined })})`].find(one => message.includes(one))
  return said === undefined ? `${message} (${at(place)})` : message.replace(said, () => said.replace(short.file, () => place.file))
}

/** Codes of a disk that takes no more: a write names no path with them. */
const DISK = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EIO', 'EFBIG'])
/** What the file system refused is no mistake of the host: the disk is full or read-only, a folder belongs to somebody else. */
function ofSystem(error: unknown): HarnessError | undefined {
  const { syscall, path, code = '' } = (error ?? {}) as NodeJS.ErrnoException
  if (syscall === undefined || (path === undefined && !DISK.has(code))) return undefined
  return path === undefined ? notStored('something could not be written', error) : notStored(`"${path}" can not be used`, error, path)
}
function realFolder(dir: string | undefined): string {
  let path = dir ?? ''
  try { path = realpathSync(path = resolve(path)) } catch (error) {
    // Node gives a byte that is not UTF-8 as U+FFFD, and no path leads there any more.
    const why = path.includes('\ufffd') ? 'has a path that is not UTF-8, and can not be worked in; rename it' : 'does not exist'
    throw new HarnessError('usage', `${dir === undefined ? 'the current folder' : `the folder "${dir}"`} ${why}`, { cause: error })
  }
  if (!statSync(path).isDirectory()) throw new HarnessError('usage', `"${dir}" is not a folder`)
  return path
}

/**
 * The log of the host: records with a level, an optional owner and fields, handed to sinks. Knows no file and no format; who prints is decided outside.
 * Sinks are called in order and must not throw; one that does is dropped with a last word on stderr. What a sink gets has its secrets hidden.
 */
import { Secrets } from './secrets.js'

export type Level = 'debug' | 'info' | 'warn' | 'error'
export const LEVELS: readonly Level[] = ['debug', 'info', 'warn', 'error']
export const isAtLeast = (level: Level, least: Level): boolean => LEVELS.indexOf(level) >= LEVELS.indexOf(least)

/** One line of the log. `plugin` is the entry's id when a plugin speaks or is spoken of. */
export interface LogRecord {
  readonly ts: string
  readonly level: Level
  readonly message: string
  readonly plugin?: string | undefined
  /** Where it comes from when no plugin speaks: a part of core; `stdout` or `stderr` for what was printed and not logged. */
  readonly part?: string | undefined
  readonly fields?: Readonly<Record<string, unknown>> | undefined
}
export type LogSink = (record: LogRecord) => void
/** Which records a sink is for. */
export type Wanted = (level: Level, part: string | undefined) => boolean

export interface Logger {
  debug(message: string, fields?: Record<string, unknown>): void
  info(message: string, fields?: Record<string, unknown>): void
  warn(message: string, fields?: Record<string, unknown>): void
  error(message: string, fields?: Record<string, unknown>): void
}

export class Log implements Logger {
  readonly #sinks = new Map<LogSink, Wanted>()
  /** What no record shows. */
  readonly secrets = new Secrets()
  /** Adds a sink, of all records or of those that are wanted; what nobody wants is not even made. The disposer takes it out. */
  sink(sink: LogSink, wanted: Wanted = () => true): () => void {
    this.#sinks.set(sink, wanted)
    return () => { this.#sinks.delete(sink) }
  }
  debug(message: string, fields?: Record<string, unknown>): void { this.write('debug', message, fields) }
  info(message: string, fields?: Record<string, unknown>): void { this.write('info', message, fields) }
  warn(message: string, fields?: Record<string, unknown>): void { this.write('warn', message, fields) }
  error(message: string, fields?: Record<string, unknown>): void { this.write('error', message, fields) }
  /** The logger of one plugin. */
  of(plugin: string): Logger { return this.#logger(plugin) }
  /** The logger of a part of core. */
  part(part: string): Logger { return this.#logger(undefined, part) }
  #logger(plugin?: string, part?: string): Logger {
    const write = (level: Level) => (message: string, fields?: Record<string, unknown>) => { this.write(level, message, fields, plugin, part) }
    return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') }
  }
  write(level: Level, message: string, fields?: Record<string, unknown>, plugin?: string, part?: string): void {
    const takers = [...this.#sinks].flatMap(([sink, wanted]) => wanted(level, part) ? [sink] : [])
    if (takers.length === 0) return
    const record: LogRecord = { ts: new Date().toISOString(), level, message: this.secrets.hide(message), plugin, ...(part !== undefined && { part }), fields: fields && this.secrets.hideIn(fields) as Record<string, unknown> }
    for (const sink of takers) {
      try { sink(record) } catch (error) {
        this.#sinks.delete(sink)
        process.stderr.write(`hx: a log sink failed and was dropped: ${error instanceof Error ? error.message : String(error)}\n`)
      }
    }
  }
}

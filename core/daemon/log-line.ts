/**
 * A record of the log as one line of its file, and back: one JSON object, whose text holds nothing that a terminal or a line-wise reader would obey. Pure.
 */
import { LEVELS, type Level, type LogRecord } from '../kernel/log.js'

/** A plugin that prints without end has to stop somewhere. */
const MAX_CHARS = 16 * 1024
/** JSON leaves these as they are: what follows ASCII in the way of control characters, line separators, changes of direction. */
const OBEYED = /[\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g

/** With its newline. */
export function lineOf({ ts, level, plugin, part, message, fields }: LogRecord): string {
  const cut = message.length > MAX_CHARS ? `${message.slice(0, MAX_CHARS)}… (${message.length - MAX_CHARS} more)` : message
  const shown = fields && Object.keys(fields).length > 0 ? fields : undefined
  const who = { plugin, part: part ?? (plugin === undefined ? 'core' : undefined) }
  let text = JSON.stringify({ ts, level, ...who, message: cut, fields: shown })
  if (text.length > 4 * MAX_CHARS) text = JSON.stringify({ ts, level, ...who, message: cut, fields: { left: 'too large for a line' } })
  return `${text.replace(OBEYED, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)}\n`
}

/** Undefined when the line is no record: something else wrote it. */
export function readLine(line: string): LogRecord | undefined {
  if (!line.startsWith('{')) return undefined
  try {
    const value = JSON.parse(line) as Partial<LogRecord>
    return typeof value.ts === 'string' && typeof value.message === 'string' && LEVELS.includes(value.level as Level) ? value as LogRecord : undefined
  } catch { return undefined }                               // half a line
}

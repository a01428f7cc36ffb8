/** The log of a daemon on the disk: what the host and its plugins log from a level on, and whatever plugins print. Joins log-file.ts, log-line.ts and prints.ts. */
import { isAtLeast, type Level, type Log } from '../kernel/log.js'
import { LogFile } from './log-file.js'
import { lineOf } from './log-line.js'
import { takePrints } from './prints.js'

export interface KeptLog {
  readonly file: string
  readonly least: () => Level
  /** Nobody looks at this process's streams. */
  readonly alone: boolean
}

/** Throws when the file can not be opened. The disposer ends it. */
export function keepLog(log: Log, { file, least, alone }: KeptLog): () => void {
  const kept = new LogFile(file)
  const lost = (lines: number) => lineOf({ ts: new Date().toISOString(), level: 'error', message: `${lines} lines of this log could not be written and are lost`, part: 'daemon' })
  const unsink = log.sink(record => { kept.write(lineOf(record), lost) }, (level, part) => isPrinted(part) || isAtLeast(level, least()))
  const unprint = takePrints((line, stream, plugin) => { if (line.trim() !== '') log.write('info', line, undefined, plugin, stream) }, { alone })
  return () => {
    unprint()
    unsink()
    kept.close()
  }
}

export const isPrinted = (part: string | undefined): boolean => part === 'stdout' || part === 'stderr'

/** `hx logs [-f]`: the end of what the daemon wrote, and what it goes on to write, readable or as it stands. Needs no daemon. */
import { open, stat, type FileHandle } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import { logFiles } from '../daemon/log-file.js'
import { readLine } from '../daemon/log-line.js'
import { HarnessError } from '../errors.js'
import { isAtLeast, type Level, type LogRecord } from '../kernel/log.js'
import { find } from './connect.js'
import type { Io } from './io.js'
import { logFile } from './launch.js'
import { onSignals } from './signals.js'
import { printable } from './terminal.js'

const LINES = 50
/** So much is read in one go; how often a file is looked at. */
const PIECE_BYTES = 1024 * 1024, LOOK_MS = 200

interface Options { readonly follow?: boolean; readonly lines?: number; readonly level?: Level; readonly plugin?: string }
type Show = (line: string) => string | undefined

export async function logs(io: Io, { follow = false, lines = LINES, ...wanted }: Options): Promise<number> {
  const file = logFile(find(io)), files = logFiles(file), show: Show = line => shown(io, line, wanted)
  const first = await open(file, 'r').catch((error: NodeJS.ErrnoException) => { if (error.code === 'ENOENT') return undefined; throw error })
  if (!first) throw new HarnessError('daemon_missing', `no daemon of this config has written a log yet ("${file}"); start one with "hx start"`)
  try {
    const { size } = await first.stat()
    const last = await ending(first, size, lines, show)
    for (const before of files.slice(1)) {
      if (last.length >= lines) break
      const older = await open(before, 'r').catch(() => undefined)       // there are fewer
      if (!older) break
      try { last.unshift(...await ending(older, (await older.stat()).size, lines - last.length, show)) } finally { await older.close() }
    }
    for (const text of last) io.say(text)
    return follow ? await tail(io, files, first, size, show) : 0
  } finally { await first.close() }
}

/** The last lines that are shown, of the first `size` bytes of a file. */
async function ending(handle: FileHandle, size: number, count: number, show: Show): Promise<string[]> {
  const found: string[] = []
  let cut = Buffer.alloc(0)                                  // the end of a line whose begin is further up
  for (let to = size; to > 0 && found.length < count;) {
    const from = Math.max(0, to - PIECE_BYTES), bytes = Buffer.concat([await piece(handle, from, to), cut])
    const start = from === 0 ? 0 : bytes.indexOf(0x0a) + 1
    cut = bytes.subarray(0, start)
    const lines = bytes.subarray(start).toString('utf8').split('\n')
    for (let index = lines.length - 1; index >= 0 && found.length < count; index--) {
      const text = lines[index] === '' ? undefined : show(lines[index]!)
      if (text !== undefined) found.push(text)
    }
    to = from
  }
  return found.reverse()
}

/** Until a signal ends it. The daemon puts the file aside when it has grown, and begins another. */
async function tail(io: Io, files: readonly string[], first: FileHandle, from: number, show: Show): Promise<number> {
  const signals = onSignals()
  let handle = first, at = from, decoder = new StringDecoder('utf8'), rest = ''
  try {
    while (signals.code === undefined) {
      const { size, ino } = await handle.stat()
      if (size > at) {
        const read = await piece(handle, at, Math.min(size, at + PIECE_BYTES))
        at += read.length
        const whole = (rest + decoder.write(read)).split('\n')
        rest = whole.pop()!
        for (const line of whole) {
          const text = show(line)
          if (text !== undefined) io.say(text)
        }
        continue
      }
      const next = await follower(files, ino, size < at)
      if (next) {
        if (handle !== first) await handle.close()
        handle = next
        decoder = new StringDecoder('utf8')
        rest = ''
        at = 0
        continue
      }
      await sleep(LOOK_MS)
    }
    return signals.code
  } finally {
    if (handle !== first) await handle.close()
    signals.off()
  }
}
/** The file behind the one of this inode, when it is not the last any more: of several, the oldest. */
async function follower(files: readonly string[], ino: number, shrunk: boolean): Promise<FileHandle | undefined> {
  const inodes = await Promise.all(files.map(file => stat(file).then(found => found.ino, () => undefined)))
  const now = inodes.indexOf(ino)
  if (now === 0 && !shrunk) return undefined
  return open(files[now > 0 ? now - 1 : 0]!, 'r').catch(() => undefined)           // being put aside; it is looked for again
}

async function piece(handle: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(to - from)
  return buffer.subarray(0, (await handle.read(buffer, 0, buffer.length, from)).bytesRead)
}

/** How a line is printed; undefined when it is not what was asked for. What is no record was written by something else, and is shown unless only some are wanted. */
function shown(io: Io, line: string, { level, plugin }: Pick<Options, 'level' | 'plugin'>): string | undefined {
  const record = readLine(line)
  if (!record) return level !== undefined || plugin !== undefined || line === '' ? undefined : io.json ? JSON.stringify({ line }) : printable(line)
  if ((level !== undefined && !isAtLeast(record.level, level)) || (plugin !== undefined && record.plugin !== plugin)) return undefined
  return io.json ? line : readable(io, record)
}
const TONES = { debug: 'dim', info: 'green', warn: 'yellow', error: 'red' } as const
function readable(io: Io, { ts, level, plugin, part = 'core', message, fields }: LogRecord): string {
  const time = new Date(ts), two = (value: number) => String(value).padStart(2, '0')
  const when = `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())} ${two(time.getHours())}:${two(time.getMinutes())}:${two(time.getSeconds())}`
  const own = `plugin "${plugin}" `, said = message.startsWith(own) ? message.slice(own.length) : message
  const more = io.globals.verbose && fields ? ` ${io.paint('dim', printable(JSON.stringify(fields)))}` : typeof fields?.['report'] === 'string' ? ` (${printable(fields['report'])})` : ''
  return `${io.paint('dim', when)} ${io.paint(TONES[level], level.padEnd(5))} ${io.paint('bold', printable(plugin ?? part))} ${printable(said)}${more}`
}

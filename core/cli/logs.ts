/** `hx logs [-f]`: the end of what the daemon in the background wrote, and what it goes on to write. Needs no daemon. */
import { open, type FileHandle } from 'node:fs/promises'
import { StringDecoder } from 'node:string_decoder'
import { setTimeout as sleep } from 'node:timers/promises'
import { HarnessError } from '../errors.js'
import { find } from './connect.js'
import type { Io } from './io.js'
import { logFile } from './launch.js'
import { onSignals } from './signals.js'
import { printable } from './terminal.js'

const LINES = 50
/** No more is read from the end; how often a file is looked at. */
const TAIL_BYTES = 1024 * 1024, LOOK_MS = 200

export async function logs(io: Io, { follow = false, lines = LINES }: { follow?: boolean; lines?: number }): Promise<number> {
  const file = logFile(find(io))
  let handle: FileHandle
  try { handle = await open(file, 'r') } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    throw new HarnessError('daemon_missing', `no daemon of this config has written a log yet ("${file}"); one in the foreground writes to where it was started`, { cause: error })
  }
  try {
    const { size } = await handle.stat(), from = Math.max(0, size - TAIL_BYTES)
    const text = (await piece(handle, from, size)).toString('utf8')
    const all = text === '' ? [] : text.replace(/\n$/, '').split('\n')
    for (const line of all.slice(from > 0 ? 1 : 0).slice(-lines)) tell(io, line)
    if (follow) return await tail(io, file, handle, size)
    return 0
  } finally { await handle.close() }
}

/** Until a signal ends it. A new daemon may put the file aside and begin another. */
async function tail(io: Io, file: string, first: FileHandle, from: number): Promise<number> {
  const signals = onSignals()
  let handle = first, at = from, decoder = new StringDecoder('utf8'), rest = ''
  try {
    while (signals.code === undefined) {
      const { size, ino } = await handle.stat()
      if (size > at) {
        const read = await piece(handle, at, Math.min(size, at + TAIL_BYTES))
        at += read.length
        const whole = (rest + decoder.write(read)).split('\n')
        rest = whole.pop()!
        for (const line of whole) tell(io, line)
        continue
      }
      const now = await open(file, 'r').catch(() => undefined)   // being replaced
      if (now && ((await now.stat()).ino !== ino || size < at)) {
        await handle.close()
        handle = now
        decoder = new StringDecoder('utf8')
        rest = ''
        at = 0
        continue
      }
      await now?.close()
      await sleep(LOOK_MS)
    }
    return signals.code
  } finally {
    await handle.close()
    signals.off()
  }
}

async function piece(handle: FileHandle, from: number, to: number): Promise<Buffer> {
  const buffer = Buffer.alloc(to - from)
  return buffer.subarray(0, (await handle.read(buffer, 0, buffer.length, from)).bytesRead)
}
function tell(io: Io, line: string): void {
  if (io.json) io.line({ line })
  else io.say(printable(line))
}

/** Changes of what runs here that a tool may have made: shown, and, to a person at a terminal, put as a question. */
import { basename } from 'node:path'
import { HarnessError } from '../errors.js'
import type { HeldFile } from '../loader/held-changes.js'
import type { Client, ReloadReport } from './client.js'
import type { Io } from './io.js'
import { question } from './question.js'
import { oneLine, printable } from './terminal.js'

/** One line for each. */
export const heldLines = (held: readonly HeldFile[]): string[] =>
  held.map(({ file, change, added, removed }) => `${oneLine(file, 300)} ${change === 'changed' ? '' : `${change} `}(+${added} -${removed})`)
export const HOW = 'changed while a tool ran, so not loaded; "hx plugins reload --held" loads it, putting the file back drops it'

/** An edit of a file whose change waits for a yes would load that change with it. */
export function refuseHeld(held: readonly HeldFile[], file: string): void {
  const [line] = heldLines(held.filter(one => one.file === file))
  if (line !== undefined) throw new HarnessError('held', `${line} ${HOW}; nothing was written`, { place: { file } })
}

export const shownDiff = (held: readonly HeldFile[]): string => held.map(({ file, diff }) => `${oneLine(file, 300)}\n${printable(diff).replace(/^/gm, '  ')}`).join('\n')

/** After a turn: tells of what is held, and at a terminal asks whether to load it. A daemon that ended with the turn holds nothing. */
export async function tellHeld(io: Io, client: Client): Promise<void> {
  const { held } = await client.status().catch((error: unknown) => {
    if (error instanceof HarnessError && error.code === 'daemon_missing') return { held: [] }
    throw error
  })
  if (held.length === 0) return
  if (!io.interactive) {
    if (client.where === 'daemon') for (const line of heldLines(held)) io.note(io.paintNote('yellow', `hx: ${line}: ${HOW}`))
    return                                                   // in process the log has said it
  }
  const { paintNote } = io, name = held.map(({ file }) => oneLine(basename(file))).join(', ')
  io.stderr.write(`${heldLines(held).map(line => paintNote('yellow', `hx: a tool may have changed ${line}`)).join('\n')}\n`)
  for (;;) {
    const said = (await question(io, `  load ${held.length > 1 ? 'them' : 'it'}? [y/N/d diff] > `)).toLowerCase()
    if (said === 'd' || said === 'diff') io.stderr.write(`${shownDiff(held)}\n`)
    else if (said !== 'y' && said !== 'yes') { io.note(`hx: ${name}: not loaded; ${HOW.split('; ')[1]}`); return }
    else { tellReport(io, await client.reloadHeld(), text => { io.note(`hx: ${text}`) }); return }
  }
}
/** What a reload came to, and whether all of it did. */
export function tellReport(io: Io, report: ReloadReport, say: (text: string) => void = text => { io.say(text) }): boolean {
  say(report.reloaded.length > 0 ? `reloaded: ${report.reloaded.join(', ')}` : report.failed.length > 0 ? 'nothing was reloaded' : 'done')
  for (const { id, message } of report.failed) say(`${io.paint('red', 'failed')} ${id}: ${message}`)
  return report.failed.length === 0
}

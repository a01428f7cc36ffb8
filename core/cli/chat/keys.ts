/** The keys of a terminal in raw mode, one by one; a pasted block is one key. Knows no meaning of any. Invariant: a block whose end was lost swallows no key for ever. */
import { emitKeypressEvents } from 'node:readline'
import type { Key } from './editor.js'

const PASTE_ON = '\u001b[?2004h', PASTE_OFF = '\u001b[?2004l'

/** A terminal sends a block at once. After this long without any of it what has come is shown, and Ctrl-C is a key again; the rest may still come, and must not be taken for keys. */
const PASTED_MS = 500

interface Pressed { readonly name?: string | undefined; readonly ctrl?: boolean; readonly meta?: boolean; readonly sequence?: string }

/** Until what is returned is called, which gives the terminal back as it was. May be called again. */
export function onKeys(stdin: NodeJS.ReadStream, stdout: { write(text: string): unknown }, press: (key: Key) => void): () => void {
  let pasted: string[] | undefined, stalled: NodeJS.Timeout | undefined, quiet = false
  const shown = () => {
    const block = (pasted ?? []).join('')
    pasted = []
    quiet = true
    if (block !== '') press({ name: 'paste', ctrl: false, meta: false, text: block })
  }
  const ended = () => {
    clearTimeout(stalled)
    pasted = stalled = undefined
    quiet = false
  }
  const handler = (text: string | undefined, { name = '', ctrl = false, meta = false, sequence = text ?? '' }: Pressed) => {
    if (name === 'paste-start') {
      ended()
      pasted = []
      stalled = setTimeout(shown, PASTED_MS)
    } else if (name === 'paste-end') {
      shown()
      ended()
    } else if (pasted && !(quiet && ctrl && name === 'c')) {
      quiet = false
      pasted.push(sequence)
      stalled?.refresh()
    } else {
      ended()
      press({ name, ctrl, meta, text: ctrl || meta ? '' : text ?? '' })
    }
  }
  emitKeypressEvents(stdin)
  stdin.on('keypress', handler)
  stdin.setRawMode(true)
  stdin.resume()
  stdout.write(PASTE_ON)
  let over = false
  const off = () => {
    if (over) return
    over = true
    ended()
    process.off('exit', off)
    stdin.off('keypress', handler)
    stdin.setRawMode(false)
    stdin.pause()
    stdout.write(PASTE_OFF)
  }
  process.once('exit', off)                                  // however the process ends: a terminal in raw mode is of no use to anybody
  return off
}

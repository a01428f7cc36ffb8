/** The keys of a terminal in raw mode, one by one; a pasted block is one key. Knows no meaning of any. */
import { emitKeypressEvents } from 'node:readline'
import type { Key } from './editor.js'

const PASTE_ON = '\u001b[?2004h', PASTE_OFF = '\u001b[?2004l'

interface Pressed { readonly name?: string | undefined; readonly ctrl?: boolean; readonly meta?: boolean; readonly sequence?: string }

/** Until what is returned is called, which gives the terminal back as it was. May be called again. */
export function onKeys(stdin: NodeJS.ReadStream, stdout: { write(text: string): unknown }, press: (key: Key) => void): () => void {
  let pasted: string[] | undefined
  const handler = (text: string | undefined, { name = '', ctrl = false, meta = false, sequence = text ?? '' }: Pressed) => {
    if (name === 'paste-start') pasted = []
    else if (name === 'paste-end') {
      const block = (pasted ?? []).join('')
      pasted = undefined
      press({ name: 'paste', ctrl: false, meta: false, text: block })
    } else if (pasted) pasted.push(sequence)
    else press({ name, ctrl, meta, text: ctrl || meta ? '' : text ?? '' })
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
    process.off('exit', off)
    stdin.off('keypress', handler)
    stdin.setRawMode(false)
    stdin.pause()
    stdout.write(PASTE_OFF)
  }
  process.once('exit', off)                                  // however the process ends: a terminal in raw mode is of no use to anybody
  return off
}

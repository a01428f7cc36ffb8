/**
 * What was typed before, over all conversations of this user: one JSON text a line, for the owner alone. Several chats may write at once; each only adds.
 * A history that can't be read or written is none: it never stops a conversation.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { makeFolder } from '../../kernel/folder.js'

const KEPT = 1000
/** A longer text was pasted; it is not kept. */
const MAX_TEXT = 10_000

export class History {
  readonly #file: string
  readonly #entries: string[]
  /** Where one is while looking back; past the end is the text that is being written. */
  #at: number
  #draft = ''
  #lost = false

  constructor(file: string) {
    this.#file = file
    const all = read(file)
    this.#entries = all.slice(-KEPT)
    this.#at = this.#entries.length
    if (all.length > 2 * KEPT) this.#write(() => { writeFileSync(file, this.#entries.map(line).join(''), { mode: 0o600 }) })
  }

  /** Keeps a text, and is at the end again. */
  add(text: string): void {
    if (text.trim() !== '' && text !== this.#entries.at(-1) && text.length <= MAX_TEXT) {
      this.#entries.push(text)
      this.#write(() => {
        makeFolder(dirname(this.#file))
        appendFileSync(this.#file, line(text), { mode: 0o600 })
      })
    }
    this.#at = this.#entries.length
  }
  /** The one before, given what stands there now; undefined at the first. */
  back(now: string): string | undefined {
    if (this.#at === 0) return undefined
    if (this.#at === this.#entries.length) this.#draft = now
    return this.#entries[--this.#at]
  }
  forth(): string | undefined {
    if (this.#at >= this.#entries.length) return undefined
    return ++this.#at === this.#entries.length ? this.#draft : this.#entries[this.#at]
  }
  /** The last one before where one is that holds `part`. */
  search(now: string, part: string): string | undefined {
    const at = this.#entries.slice(0, this.#at).findLastIndex(text => text.includes(part))
    if (at < 0) return undefined
    if (this.#at === this.#entries.length) this.#draft = now
    return this.#entries[this.#at = at]
  }

  #write(work: () => void): void {
    if (this.#lost) return
    try { work() } catch { this.#lost = true }               // a full or read-only disk: what is typed now is known until the end
  }
}

const line = (text: string): string => `${JSON.stringify(text)}\n`

function read(file: string): string[] {
  let content: string
  try { content = readFileSync(file, 'utf8') } catch { return [] }       // the first time
  return content.split('\n').flatMap(row => {
    try {
      const text: unknown = JSON.parse(row)
      return typeof text === 'string' ? [text] : []
    } catch { return [] }                                    // a torn line, or somebody else's
  })
}

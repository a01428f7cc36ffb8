/**
 * A text of any length of which only both ends are kept: at most `limit` characters in all. Pure data, no file.
 */
export class HeadTail {
  readonly #half: number
  #head = ''
  #tail: string[] = []
  #tailLength = 0
  #length = 0
  constructor(limit: number) { this.#half = Math.floor(limit / 2) }

  get length(): number { return this.#length }
  add(text: string): void {
    this.#length += text.length
    const room = this.#half - this.#head.length
    if (room > 0) this.#head += text.slice(0, room)
    const rest = room > 0 ? text.slice(room) : text
    if (rest === '') return
    this.#tail.push(rest)
    this.#tailLength += rest.length
    while (this.#tailLength - this.#tail[0]!.length >= this.#half) this.#tailLength -= this.#tail.shift()!.length
    if (this.#tail.length > 1000) this.#tail = [this.#tail.join('')]
  }
  /** Both ends, and how many characters between them are gone. */
  ends(): { head: string; tail: string; missing: number } {
    const kept = this.#tail.join('').slice(-this.#half)
    if (this.#head.length + kept.length === this.#length) return { head: this.#head, tail: kept, missing: 0 }
    const head = wholeEnd(this.#head), tail = wholeStart(kept)
    return { head, tail, missing: this.#length - head.length - tail.length }
  }
}

/** No half of a surrogate pair at the cut. */
const wholeEnd = (text: string): string => /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text
const wholeStart = (text: string): string => /^[\udc00-\udfff]/.test(text) ? text.slice(1) : text

/**
 * What a client reads of text that comes in pieces. Pure. A step is apart from the one before by an empty line. Of an attempt that is made again, only what the client has not read
 * is told while it says the same; where it says something else it begins anew. What was told can't be taken back.
 */
export class ToldText {
  /** All of it. */
  text = ''
  #step = -1
  #attempt = 0
  /** Of this step: what the client has read, and what the attempt has said. */
  #read = ''
  #said = ''

  /** What of the piece is to be told; often nothing while an attempt repeats. */
  add(step: number, attempt: number, piece: string): string {
    if (step !== this.#step) this.#read = ''
    if (step !== this.#step || attempt !== this.#attempt) this.#said = '';
    [this.#step, this.#attempt] = [step, attempt]
    this.#said += piece
    if (this.#read.startsWith(this.#said)) return ''
    const goesOn = this.#read !== '' && this.#said.startsWith(this.#read)
    const told = goesOn ? this.#said.slice(this.#read.length) : `${this.text === '' ? '' : '\n\n'}${this.#said}`
    this.#read = this.#said
    this.text += told
    return told
  }
}

/**
 * What one command prints. The model reads both ends of it, cleaned, both streams in the order in which their lines came; the file has every byte.
 * The file is made when the text grows longer than what the model reads, or at once when it is asked for. Memory is bounded; a full disk loses the file, not the command.
 */
import { randomBytes } from 'node:crypto'
import { open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import { TextDecoder } from 'node:util'
import { messageOf } from 'harnessx'
import { cleanText } from './clean-text.js'
import { HeadTail } from './head-tail.js'

export type Stream = 'stdout' | 'stderr'
export interface OutputOptions {
  /** Folder of the file; asked only when there is one to make. */
  readonly folder: () => string
  readonly maxCharacters: number
  readonly maxBytes: number
}

/** A line that does not end is passed on when it is this long. */
const LONGEST_OPEN_LINE = 64 * 1024

export class Output {
  readonly #options: OutputOptions
  readonly #shown: HeadTail
  readonly #open = { stdout: openLine(), stderr: openLine() }
  #current: Stream = 'stdout'
  #atLineStart = true
  #lastLine = ''
  #bytes = 0
  /** Bytes that wait for a file to be needed. */
  #held: Uint8Array[] | undefined = []
  #sealed = false
  #handle: FileHandle | undefined
  #file: string | undefined
  #failure: string | undefined
  #writing: Promise<void> = Promise.resolve()
  constructor(options: OutputOptions) {
    this.#options = options
    this.#shown = new HeadTail(options.maxCharacters)
  }

  get file(): string | undefined { return this.#file }
  /** Why there is no file, or not all in it. */
  get failure(): string | undefined { return this.#failure }
  get lastLine(): string { return this.#lastLine }
  get bytes(): number { return this.#bytes }
  /** Nothing more is kept. */
  get isFull(): boolean { return this.#bytes > this.#options.maxBytes }

  /** Resolves when the bytes are taken, so that a fast program waits for a slow disk. */
  async add(stream: Stream, bytes: Uint8Array): Promise<void> {
    if (this.isFull) return
    this.#bytes += bytes.length
    this.#show(stream, this.#open[stream].decoder.decode(bytes, { stream: true }))
    await this.#keep(bytes)
  }
  /** A stream is at its end. */
  end(stream: Stream): void { this.#show(stream, this.#open[stream].decoder.decode()) }
  /** Everything up to now: lines that are still open count as they stand. What is missing in the middle is in the file. */
  async ends(): Promise<ReturnType<HeadTail['ends']>> {
    for (const stream of ['stdout', 'stderr'] as const) {
      this.#pass(stream, this.#open[stream].text)
      this.#open[stream].text = ''
    }
    await (this.#shown.length > this.#options.maxCharacters ? this.makeFile() : this.#writing)
    return this.#shown.ends()
  }

  /** Makes the file now, if there is none. */
  async makeFile(): Promise<void> {
    if (this.#held === undefined) return this.#writing
    const held = this.#held
    this.#held = undefined
    return this.#inLine(async () => {
      const file = join(this.#options.folder(), `bash-${randomBytes(4).toString('hex')}.txt`)
      this.#handle = await open(file, 'wx', 0o600)
      this.#file = file
      for (const bytes of held) await this.#handle.writeFile(bytes)
    })
  }
  /** The model has its answer: what comes now is only kept if there is a file. */
  seal(): void {
    this.#sealed = true
    this.#held &&= []
  }
  /** After the last byte. `lastWord` is a note for whoever reads the file. */
  async close(lastWord?: string): Promise<void> {
    if (lastWord !== undefined) await this.#inLine(async () => { await this.#handle?.writeFile(`\n[${lastWord}]\n`) })
    await this.#writing
    try { await this.#handle?.close() } catch (error) { this.#failure ??= messageOf(error) }
    this.#handle = undefined
  }

  #keep(bytes: Uint8Array): Promise<void> {
    if (this.#held === undefined) return this.#inLine(async () => { await this.#handle?.writeFile(bytes) })
    if (this.#sealed) return this.#writing
    this.#held.push(bytes)
    return this.#bytes > this.#options.maxCharacters ? this.makeFile() : this.#writing
  }
  /** One write after the other. After a failure the file is left as it is; the command goes on. */
  #inLine(write: () => Promise<void>): Promise<void> {
    this.#writing = this.#writing.then(async () => {
      if (this.#failure !== undefined) return
      try { await write() } catch (error) { this.#failure = messageOf(error) }
    })
    return this.#writing
  }

  #show(stream: Stream, text: string): void {
    const line = this.#open[stream]
    line.text += text
    const end = line.text.length > LONGEST_OPEN_LINE ? line.text.length : line.text.lastIndexOf('\n') + 1
    this.#pass(stream, line.text.slice(0, end))
    line.text = line.text.slice(end)
    const last = cleanText(line.text || text).trimEnd()
    if (last !== '') this.#lastLine = last.slice(last.lastIndexOf('\n') + 1)
  }
  #pass(stream: Stream, raw: string): void {
    const text = cleanText(raw)
    if (text === '') return
    if (stream !== this.#current) {
      this.#shown.add(`${this.#atLineStart ? '' : '\n'}[${stream}]\n`)
      this.#current = stream
    }
    this.#shown.add(text)
    this.#atLineStart = text.endsWith('\n')
  }
}

const openLine = (): { decoder: TextDecoder; text: string } => ({ decoder: new TextDecoder(), text: '' })

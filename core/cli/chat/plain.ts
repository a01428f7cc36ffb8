/**
 * A conversation line by line, for a terminal that can't move its cursor (TERM=dumb): nothing is drawn over, a turn is shown as it goes, then the next line is read.
 */
import { createInterface } from 'node:readline/promises'
import { messageOf } from '../../errors.js'
import { tellHeld } from '../held.js'
import type { Io } from '../io.js'
import { terminalApprover } from '../prompt.js'
import { printable } from '../terminal.js'
import { runCommand, type CommandContext } from './commands.js'
import type { Conversation } from './conversation.js'
import { resolveMentions } from './mentions.js'
import { recalled } from './recall.js'
import { painted, type Line } from './spans.js'
import { TurnView } from './turn-view.js'

export class Plain {
  readonly #io: Io
  readonly #talk: Conversation
  #code: number | undefined
  #gone = new AbortController()

  constructor(io: Io, talk: Conversation) {
    this.#io = io
    this.#talk = talk
  }

  async run(): Promise<number> {
    const stopped = () => { if (this.#talk.busy) this.#talk.abort(); else this.stop(130) }
    process.on('SIGINT', stopped)
    try {
      await this.#recall()
      for (let line = await this.#read(); line !== undefined && this.#code === undefined; line = await this.#read()) if (line.trim() !== '') await this.#take(line.trim())
      return this.#code ?? 0
    } finally { process.off('SIGINT', stopped) }
  }
  note(text: string): void { this.#io.stdout.write(`${printable(text)}\n`) }
  stop(code: number): void {
    this.#code = code
    this.#gone.abort()
  }

  async #take(text: string): Promise<void> {
    try {
      if (text.startsWith('/')) await runCommand(text, this.#context())
      else await this.#turn(text)
    } catch (error) { this.note(messageOf(error)) }
  }
  async #turn(text: string): Promise<void> {
    const { prompt, problems } = resolveMentions(text, this.#io.cwd)
    if (problems.length > 0) { this.note(`${problems.join('; ')}; nothing was sent`); return }
    const view = new TurnView({ width: () => this.#width, thoughts: () => false, verbose: this.#io.globals.verbose === true })
    try {
      await this.#talk.turn(prompt, terminalApprover(this.#io, this.#talk.client), event => {
        view.see(event)
        this.#print(view.take())
      }, () => {
        view.close()
        this.#print(view.take())
      })
    } finally {
      view.close()
      this.#print(view.take())
    }
    await tellHeld(this.#io, this.#talk.client)
  }
  #context(): CommandContext {
    return {
      talk: this.#talk, cwd: this.#io.cwd, paint: this.#io.paint, signal: this.#gone.signal,
      say: text => { this.note(text) }, submit: prompt => { void this.#take(prompt) }, recall: () => this.#recall(), leave: () => { this.stop(0) },
    }
  }
  async #recall(): Promise<void> { if (this.#talk.session !== undefined) this.#print(recalled(await this.#talk.events(), this.#width)) }
  get #width(): number { return Math.max(20, (this.#io.stdout.columns || 80) - 1) }
  #print(lines: readonly Line[]): void { for (const line of lines) this.#io.stdout.write(`${painted(line, this.#io.paint)}\n`) }

  /** A line, and those that a backslash at its end asks for; undefined at the end of input. */
  async #read(): Promise<string | undefined> {
    if (this.#code !== undefined) return undefined
    const lines = createInterface({ input: this.#io.stdin, output: this.#io.stdout, terminal: false, historySize: 0 })
    const closed = new Promise<undefined>(resolve => { lines.once('close', () => { resolve(undefined) }) })
    try {
      let text = '', prompt = '> '
      for (;;) {
        const line = await Promise.race([lines.question(prompt, { signal: this.#gone.signal }), closed])
        if (line === undefined) return this.#leftOpen()
        if (!line.endsWith('\\')) return text + line
        text += `${line.slice(0, -1)}\n`
        prompt = '. '
      }
    } catch (error) {
      if (this.#gone.signal.aborted) return this.#leftOpen()
      throw error
    } finally { lines.close() }
  }
  /** The cursor stands behind a prompt that nobody answers any more. */
  #leftOpen(): undefined { this.#io.stdout.write('\n') }
}

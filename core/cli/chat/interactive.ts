/**
 * A conversation on a terminal that can move its cursor: what is said scrolls by, below it stand the turn that runs, what is queued, and the text that is being typed.
 * One loop: keys and events change the state, a frame shows it. Knows no client; conversation.ts does.
 */
import { HarnessError, messageOf } from '../../errors.js'
import type { Io } from '../io.js'
import { oneLine, printable } from '../terminal.js'
import { Asking } from './asking.js'
import { below, echoed, type Below } from './below.js'
import { runCommand, commandSources, type CommandContext } from './commands.js'
import { accepted, complete, type Completion, type Sources } from './completion.js'
import type { Conversation } from './conversation.js'
import { draftOf, edit, EMPTY, insert, type Draft, type Key } from './editor.js'
import { Frames } from './frames.js'
import type { History } from './history.js'
import { onKeys } from './keys.js'
import { resolveMentions } from './mentions.js'
import { recalled } from './recall.js'
import { Screen } from './screen.js'
import { ShellJob } from './shell-job.js'
import { fit, hanging, painted, span, wrap, type Line } from './spans.js'
import { TurnView } from './turn-view.js'

/** What was typed before the chat began comes at once. */
const EARLY_MS = 50

export class Interactive {
  readonly #io: Io
  readonly #talk: Conversation
  readonly #history: History
  readonly #screen: Screen
  readonly #frames: Frames
  #draft: Draft = EMPTY
  #queue: string[] = []
  /** Words for the running turn that it has not taken yet. */
  #handed: string[] = []
  #view: TurnView | undefined
  readonly #asking: Asking
  #waiting: Line[] = []
  #hint: string | undefined
  #thoughts = false
  #lastThoughts = ''
  /** A command of the chat that takes its time. */
  #busy: { readonly label?: string; readonly controller: AbortController } | undefined
  #leaving: number | undefined
  #done!: (code: number) => void
  #commands: Sources['commands'] = []
  #mayLeave: 'ctrl-c' | 'ctrl-d' | undefined
  /** What Ctrl-R looks for, as long as no other key comes. */
  #sought: string | undefined
  #job: ShellJob | undefined

  constructor(io: Io, talk: Conversation, history: History) {
    this.#io = io
    this.#talk = talk
    this.#history = history
    const screen = this.#screen = new Screen(io.stdout)
    this.#frames = new Frames(() => { this.#draw() }, () => this.#view !== undefined || this.#busy !== undefined)
    this.#asking = new Asking(io, talk, {
      get width() { return screen.width },
      say: lines => { this.#flush(); this.#say(lines) }, note: text => { this.note(text) }, problem: message => { this.#problem(message) },
      changed: () => { this.#frames.now() },
    })
  }

  /** Until the person leaves; the exit code. */
  async run(): Promise<number> {
    const left = new Promise<number>(resolve => { this.#done = resolve })
    let early = true                                          // typed before the terminal was ours, where Enter reads as a new line
    setTimeout(() => { early = false }, EARLY_MS)
    const keys = () => onKeys(this.#io.stdin, this.#io.stdout, key => { this.#press(early && key.name === 'enter' ? { ...key, name: 'return' } : key) })
    const job = this.#job = new ShellJob(keys, () => { this.#screen.forget(); this.#frames.now() })
    const resized = () => { this.#frames.now() }
    this.#io.stdout.on('resize', resized)
    try {
      this.#busy = { controller: new AbortController() }      // what is entered meanwhile comes after
      await this.#refresh()
      await this.#recall()
      this.#busy = undefined
      this.#next()
      return await left
    } finally {
      this.#frames.end()
      this.#io.stdout.off('resize', resized)
      this.#flush()
      this.#screen.clear()
      job.end()
    }
  }
  /** Says something beside the conversation. */
  note(text: string): void {
    this.#flush()
    this.#say(text.split('\n').flatMap(line => wrap([span(printable(line), 'dim')], this.#screen.width)))
  }
  /** Somebody ends the process from outside. */
  stop(code: number): void { this.#leave(code) }

  // ---- what is done

  #submit(text: string): void {
    if (this.#view || this.#busy) { this.#queue.push(text); return }
    if (text.startsWith('/') && !text.startsWith('//') && /^\/[\w-]*(\s|$)/.test(text)) void this.#command(text)
    else void this.#turn(text)
  }
  async #turn(text: string): Promise<void> {
    const { prompt, problems } = resolveMentions(text, this.#io.cwd)
    this.#echo(text)
    if (problems.length > 0) {
      this.#problem(`${problems.join('; ')}; nothing was sent`)
      if (this.#draft.text === '') this.#draft = draftOf(text)
      return
    }
    const view = this.#view = new TurnView({ width: () => this.#screen.width, thoughts: () => this.#thoughts, verbose: this.#io.globals.verbose === true, folded: ' (Ctrl-T shows it)' })
    this.#say([[]])
    this.#frames.soon()
    try {
      await this.#talk.turn(prompt, this.#asking.approver, event => {
        view.see(event)
        if (event.type === 'message' && event.role === 'user' && event.source.kind === 'user' && event.step > 0) this.#handed.shift()
        this.#frames.soon()
      }, () => { view.close() })
    } catch (error) {
      this.#flush()
      this.#problem(messageOf(error))
      if (this.#draft.text === '') this.#draft = draftOf(text)
    } finally {
      view.close()
      this.#flush()
      if (view.lastThoughts !== '') this.#lastThoughts = view.lastThoughts
      this.#view = undefined
      this.#handed = []
      await this.#held()
      this.#next()
    }
  }
  /** Before whatever was queued runs on what may have been changed. */
  async #held(): Promise<void> {
    this.#busy = { controller: new AbortController() }
    try { if (this.#leaving === undefined) await this.#asking.held(() => this.#draft.text !== '') } catch (error) { this.#problem(messageOf(error)) } finally { this.#busy = undefined }
  }
  async #command(text: string): Promise<void> {
    this.#echo(text)
    const controller = new AbortController()
    this.#busy = { label: text.split(/\s/, 1)[0]!, controller }
    let follow: string | undefined
    const context: CommandContext = {
      talk: this.#talk, cwd: this.#io.cwd, paint: this.#io.paint, signal: controller.signal,
      say: said => { this.#say(said.split('\n').flatMap(line => hanging(line, this.#screen.width))) },
      submit: prompt => { follow = prompt },
      recall: () => this.#recall(),
      leave: () => { this.#leave(0) },
    }
    this.#frames.soon()
    try {
      await runCommand(text, context)
      await this.#refresh()
    } catch (error) {
      this.#problem(controller.signal.aborted ? 'given up' : messageOf(error))
    } finally {
      this.#busy = undefined
      if (follow === undefined) this.#next()
      else await this.#turn(follow)
    }
  }
  #next(): void {
    this.#frames.now()
    if (this.#leaving !== undefined) return
    const next = this.#queue.shift()
    if (next !== undefined) this.#submit(next)
  }
  async #steer(text: string): Promise<void> {
    try {
      this.#handed.push(text)
      if (await this.#talk.steer(text)) this.note('handed to the running turn, which takes it at its next step')
      else { this.#handed = []; this.#submit(text) }
    } catch (error) { this.#problem(messageOf(error)) }
  }
  #leave(code: number): void {
    this.#leaving = code
    this.#busy?.controller.abort(new HarnessError('aborted', 'the chat was left'))
    this.#done(code)
  }
  async #refresh(): Promise<void> {
    try { this.#commands = await commandSources(this.#talk) } catch (error) { this.#problem(messageOf(error)) }
  }
  async #recall(): Promise<void> {
    if (this.#talk.session === undefined) return
    this.#say(recalled(await this.#talk.events(), this.#screen.width))
  }

  // ---- keys

  #press(key: Key): void {
    const leaving = this.#mayLeave, sought = this.#sought
    this.#mayLeave = this.#sought = undefined
    this.#hint = undefined
    if (key.ctrl && key.name === 'c') this.#interrupt(leaving)
    else if (key.ctrl && key.name === 'z') { this.#screen.clear(); this.#job?.stop() }
    else if (key.ctrl && key.name === 't') this.#toggleThoughts()
    else if (key.ctrl && key.name === 'l') this.#screen.erase()
    else if (this.#asking.current?.press(key)) this.#frames.soon()
    else if (key.ctrl && key.name === 'd' && this.#draft.text === '') this.#end(leaving)
    else if (key.ctrl && key.name === 'r') this.#search(sought ?? this.#draft.text)
    else if (key.name === 'return' && !key.ctrl && !key.meta) this.#enter()
    else if (key.name === 'tab') this.#complete()
    else if (key.name === 'escape' && this.#draft.text !== '') this.#draft = { ...this.#draft }
    else this.#edit(key)
    if (key.ctrl) this.#frames.now()                          // what stops something is seen at once
    else this.#frames.soon()
  }
  #edit(key: Key): void {
    const next = edit(this.#draft, key)
    if (next) { this.#draft = next; return }
    const back = key.name === 'up' || (key.ctrl && key.name === 'p')
    if (back && this.#draft.text === '' && this.#queue.length > 0) { this.#draft = draftOf(this.#queue.pop()!); return }
    const other = back ? this.#history.back(this.#draft.text) : key.name === 'down' || (key.ctrl && key.name === 'n') ? this.#history.forth() : undefined
    if (other !== undefined) this.#draft = draftOf(other)
  }
  #search(part: string): void {
    const found = this.#history.search(this.#draft.text, part), named = `what you typed before${part === '' ? '' : ` with "${oneLine(part, 40)}"`}`
    if (found === undefined) { this.#hint = `nothing ${this.#draft.text === part ? 'of' : 'further back in'} ${named}`; return }
    this.#draft = draftOf(found)
    this.#sought = part
    this.#hint = `${named}; Ctrl-R goes further back`
  }
  #enter(): void {
    const { text, cursor } = this.#draft
    if (text.slice(0, cursor).endsWith('\\')) { this.#draft = insert({ text: text.slice(0, cursor - 1) + text.slice(cursor), cursor: cursor - 1 }, '\n'); return }
    if (text.trim() === '') return
    this.#draft = EMPTY
    this.#history.add(text)
    if (text.startsWith('>') && this.#view) { void this.#steer(text.slice(1).trim()); return }
    this.#submit(text.trim())
  }
  #interrupt(leaving: 'ctrl-c' | 'ctrl-d' | undefined): void {
    if (this.#asking.current?.dismiss) this.#asking.current.dismiss()
    else if (this.#view) {
      this.#view.stopping = true
      this.#talk.abort()
      const unheard = [...this.#handed, ...this.#queue]        // nobody waits for what was to follow
      if (unheard.length > 0) this.#draft = draftOf([...unheard, this.#draft.text].filter(text => text !== '').join('\n'))
      this.#handed = []
      this.#queue = []
    } else if (this.#busy) this.#busy.controller.abort(new HarnessError('aborted', 'given up'))
    else if (this.#draft.text !== '') this.#draft = EMPTY
    else if (leaving === 'ctrl-c') this.#leave(130)
    else { this.#mayLeave = 'ctrl-c'; this.#hint = 'Ctrl-C again, or Ctrl-D, leaves' }
  }
  #end(leaving: 'ctrl-c' | 'ctrl-d' | undefined): void {
    if (!this.#view || this.#talk.client.where === 'daemon' || leaving === 'ctrl-d') { this.#leave(0); return }
    this.#mayLeave = 'ctrl-d'
    this.#hint = 'the turn would end with this process: Ctrl-D again leaves, Ctrl-C stops it'
  }
  #toggleThoughts(): void {
    this.#thoughts = !this.#thoughts
    const last = this.#view?.lastThoughts || this.#lastThoughts
    if (this.#view?.thinking) this.#view.showThoughts()
    else if (this.#thoughts && last !== '') {
      this.#flush()
      this.#say([[], ...printable(last).trim().split('\n').flatMap(line => wrap([span(line.replaceAll('\t', '    '), 'dim')], this.#screen.width)), []])
    }
    this.#hint = this.#thoughts ? 'thoughts are shown as they come' : 'thoughts are folded'
  }
  #complete(): void {
    const found = this.#completion()
    if (found) this.#draft = accepted(this.#draft, found)
    else if (this.#draft.text !== '') this.#hint = 'nothing here to complete'
  }
  #completion(): Completion | undefined { return complete(this.#draft, { cwd: this.#io.cwd, commands: this.#commands }) }

  // ---- what is seen

  #say(lines: readonly Line[]): void {
    this.#waiting.push(...lines)
    this.#frames.soon()
  }
  #problem(message: string): void { this.#say(wrap([span(printable(message), 'red')], this.#screen.width)) }
  #echo(text: string): void { this.#say(echoed(text, this.#screen.width)) }
  /** What the turn has said moves to what is said. */
  #flush(): void { if (this.#view) this.#waiting.push(...this.#view.take()) }

  #draw(): void {
    if (this.#leaving !== undefined || this.#job?.stopped) return
    this.#flush()
    const { width } = this.#screen, { paint } = this.#io
    const said = this.#waiting.map(line => fit(line, width))
    this.#waiting = []
    const { lines, cursor } = below(this.#below(), width)
    this.#screen.frame(said.map(line => painted(line, paint)), lines.map(line => painted(fit(line, width), paint)), cursor)
  }
  #below(): Below {
    const { current } = this.#asking
    return {
      question: current, turn: this.#view?.live(), busy: this.#busy?.label, queue: this.#queue, draft: this.#draft, hint: this.#hint,
      completion: this.#draft.text === '' ? undefined : this.#completion(), talk: this.#talk,
    }
  }
}

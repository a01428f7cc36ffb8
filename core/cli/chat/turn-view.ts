/**
 * A turn as a person follows it: the reply as it comes, calls as they run, what came of them. Takes the events of a run, in order; gives lines. Knows no terminal and no client.
 * Invariants: what the log says stands, whatever was streamed before it; each call that began is shown with its end; text of models, tools and plugins comes out without control characters.
 */
import type { RunEvent } from '../../agent/services.js'
import type { EventOf } from '../../agent/session-events.js'
import { dollars } from '../../agent/cost.js'
import { textOf, type RawToolCall } from '../../agent/vocabulary.js'
import { elapsed, oneLine, printable } from '../terminal.js'
import { MarkdownStream } from './markdown-stream.js'
import { cut, span, wrap, type Line } from './spans.js'

export interface ViewOptions {
  width(): number
  /** Are thoughts shown as they are, or folded into a line? */
  thoughts(): boolean
  readonly verbose: boolean
  /** How folded thoughts are shown, where they can be. */
  readonly folded?: string
}
interface Running { readonly name: string; readonly label: string; readonly since: number; progress: string }

/** What stands apart from what. */
type Kind = 'text' | 'thoughts' | 'calls'

const FRAMES = '⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'
const FRAME_MS = 100

export class TurnView {
  readonly #options: ViewOptions
  #lines: Line[] = []
  #text: MarkdownStream
  /** What has come of this reply. */
  #streamed = ''
  #attempt = 1
  #thoughts = ''
  #thoughtSince: number | undefined
  #shown: MarkdownStream | undefined
  /** So many characters of the thoughts were shown. */
  #shownThoughts = 0
  #arguments = 0
  readonly #calls = new Map<string, Running>()
  #raw: readonly RawToolCall[] = []
  readonly #since: number
  #waitingSince: number
  #ended = false
  /** Lines were said since the begin: what is next stands apart from it. */
  #said = false
  #kind: Kind | undefined
  #lastThoughts = ''
  /** Of this reply, thoughts were told already. */
  #thought = false
  /** What an error said; the turn that it ends says it again. */
  #told: string | undefined
  stopping = false

  constructor(options: ViewOptions, now = performance.now()) {
    this.#options = options
    this.#text = new MarkdownStream(options.width)
    this.#since = this.#waitingSince = now
  }
  /** Of the last reply that had some. */
  get lastThoughts(): string { return this.#lastThoughts }

  get thinking(): boolean { return this.#thoughtSince !== undefined }

  /** Of what is being thought, all that was not shown, while thoughts are. */
  showThoughts(): void {
    if (!this.#options.thoughts() || this.#thoughts === '') return
    this.#shown ??= new MarkdownStream(this.#options.width)
    this.#tell('thoughts', this.#shown.push(this.#thoughts.slice(this.#shownThoughts)).map(dimmed))
    this.#shownThoughts = this.#thoughts.length
  }

  /** Lines that are said for good since the last look. */
  take(): Line[] {
    const lines = this.#lines
    this.#lines = []
    return lines
  }

  see(event: RunEvent, now = performance.now()): void {
    switch (event.type) {
      case 'delta': this.#delta(event, now); return
      case 'progress': {
        const call = this.#calls.get(event.callId)
        if (call) call.progress = oneLine(event.message)
        return
      }
      case 'request':
        this.#waitingSince = now
        if (event.attempt > 1) this.#again()
        return
      case 'message': this.#message(event, now); return
      case 'tool-intent':
        this.#calls.set(event.callId, { name: event.name, label: labelOf(event.name, event.arguments), since: now, progress: '' })
        return
      case 'tool-result': this.#result(event, now); this.#waitingSince = now; return
      case 'approval': this.#say([span(`  ${event.answer === 'denied' ? `denied${event.by === 'user' ? '' : ` (${event.by === 'nobody' ? 'nobody could be asked' : event.by})`}` : `allowed: ${event.answer}${event.by === 'mode' ? ' (by the mode)' : ''}`}${event.note ? `: ${oneLine(event.note)}` : ''}`, 'dim')]); return
      case 'compaction': this.#say([span('  older messages gave way to a summary', 'dim')]); return
      case 'warning': this.#finish(now); this.#say([span(`! ${oneLine(event.message, 400)}`, 'yellow')]); return
      case 'error':
        this.#finish(now)
        this.#told = event.message
        this.#say(...wrap([span(`${event.phase} failed: ${printable(event.message)}`, 'red')], this.#options.width()))
        return
      case 'turn-end': this.#end(event, now); return
      default: return
    }
  }

  /** Nothing more comes, whether the turn has ended or is not heard of any more. */
  close(now = performance.now()): void {
    if (this.#ended) return
    this.#finish(now)
    for (const { label } of this.#calls.values()) this.#tell('calls', [[span('✗ ', 'yellow'), span(cut(label, this.#options.width() - 16)), span('  interrupted', 'dim')]])
    this.#calls.clear()
    this.#ended = true
  }

  /** What changes while the turn runs. */
  live(now = performance.now()): Line[] {
    if (this.#ended) return []
    const width = this.#options.width(), frame = FRAMES[Math.floor((now - this.#since) / FRAME_MS) % FRAMES.length]!
    const apart = (lines: Line[], kind: Kind): Line[] => lines.length > 0 && this.#said && this.#kind !== kind ? [[], ...lines] : lines
    const text = [...apart(this.#shown?.tail().map(dimmed) ?? [], 'thoughts'), ...apart(this.#text.tail(), 'text')]
    const calls = [...this.#calls.values()].map(({ label, since, progress }): Line => {
      const time = elapsed(Math.round((now - since) / 100) * 100)
      return [span(`${frame} `, 'yellow'), span(cut(`${label}${progress === '' ? '' : ` · ${progress}`}`, width - time.length - 4)), span(`  ${time}`, 'dim')]
    })
    const waited = seconds(now - this.#waitingSince)
    const status = this.stopping ? 'stopping' : this.#thoughtSince !== undefined ? `thinking ${seconds(now - this.#thoughtSince)}${this.#options.thoughts() ? '' : `  ${this.#thoughts.slice(-2 * width).replace(/\s+/g, ' ').trim().slice(-(width - 40)).trim()}`}` : this.#arguments > 0 ? `writing a call (${this.#arguments} characters)` : this.#streamed !== '' ? 'answering' : this.#calls.size > 0 ? '' : `waiting for the model ${waited}`
    return [...text, ...apart(calls, 'calls'), ...status === '' ? [] : [[], [span(`${frame} `, 'cyan'), span(cut(`${printable(status).replace(/\n/g, ' ')}`, width - 24), 'dim'), span('  (Ctrl-C stops)', 'dim')]]]
  }

  #delta(event: Extract<RunEvent, { type: 'delta' }>, now: number): void {
    if (event.attempt !== this.#attempt) { this.#attempt = event.attempt; if (this.#streamed !== '') this.#again() }
    if (event.kind === 'arguments') { this.#arguments += event.text.length; this.#endThoughts(now); return }
    if (event.kind === 'reasoning') {
      if (this.#thoughtSince === undefined) this.#thoughtSince = now
      this.#thoughts += event.text
      this.showThoughts()
      return
    }
    this.#endThoughts(now)
    this.#streamed += event.text
    this.#reply(this.#text.push(event.text))
  }
  /** The stream broke and the request is made again: what came of it stays, and is no answer. */
  #again(): void {
    if (this.#streamed === '') return
    this.#reply(this.#text.end())
    this.#say([span('  (cut off; asked again)', 'dim')])
    this.#fresh()
  }
  #message(event: EventOf<'message'>, now: number): void {
    if (event.role !== 'assistant') {
      if (event.source.kind === 'user' && event.step > 0) this.#say(...wrap([span('> ', 'bold', 'cyan'), span(printable(textOf(event)), 'bold')], this.#options.width()))
      else if (event.source.kind !== 'user' && this.#options.verbose) this.#say([span(`  (${event.source.kind} ${oneLine(event.source.id ?? '')}) ${oneLine(textOf(event), 200)}`, 'dim')])
      return
    }
    const whole = textOf(event)
    if (event.reasoning !== undefined && !this.#thought && this.#thoughtSince === undefined) { this.#thoughts = event.reasoning; this.#thoughtSince = now }
    this.#endThoughts(now)
    if (whole.startsWith(this.#streamed)) this.#reply(this.#text.push(whole.slice(this.#streamed.length)))
    else {                                                   // pieces were missed: the log has it whole
      this.#reply(this.#text.end())
      this.#text = new MarkdownStream(this.#options.width)
      this.#say([span('  (pieces of this were missed; the whole reply:)', 'dim')])
      this.#reply(this.#text.push(whole))
    }
    this.#reply(this.#text.end())
    this.#raw = event.toolCalls ?? []
    this.#fresh()
  }
  #fresh(): void {
    this.#text = new MarkdownStream(this.#options.width)
    this.#streamed = ''
    this.#arguments = 0
    this.#thought = false
  }
  #endThoughts(now: number): void {
    if (this.#thoughtSince === undefined) return
    if (this.#shown) this.#tell('thoughts', this.#shown.end().map(dimmed))
    const time = now - this.#thoughtSince
    if (this.#thoughts.trim() !== '') {
      this.#lastThoughts = this.#thoughts
      this.#thought = true
      if (!this.#shown) this.#say([span(`∴ thought${time >= 100 ? ` for ${elapsed(time)}` : ''}${this.#options.folded ?? ''}`, 'dim')])
    }
    this.#shown = undefined
    this.#shownThoughts = 0
    this.#thoughts = ''
    this.#thoughtSince = undefined
  }
  #result({ callId, name, kind, content, elapsedMs, plugin }: EventOf<'tool-result'>, now: number): void {
    const call = this.#calls.get(callId)
    this.#calls.delete(callId)
    const width = this.#options.width(), raw = this.#raw.find(({ id }) => id === callId)
    const label = call?.label ?? labelOf(name, raw ? parsed(raw.arguments) : {})
    const ok = kind === 'ok', time = call ? `  ${elapsed(kind === 'interrupted' ? now - call.since : elapsedMs)}` : ''      // the log knows no time of a call that was cut off
    const head: Line = [span(ok ? '✓ ' : '✗ ', ok ? 'green' : kind === 'failed' || kind === 'invalid' ? 'red' : 'yellow'), span(cut(label, Math.max(10, Math.min(width - 2 - time.length - (ok ? 24 : 0), 100)))), span(time, 'dim')]
    const outcome = ok ? briefly(content) : ''
    this.#tell('calls', [outcome !== '' ? [...head, span(`  ${cut(outcome, Math.max(4, width - head.reduce((sum, { text }) => sum + text.length, 2)))}`, 'dim')] : head])
    if (!ok) this.#tell('calls', [[span(`  ${cut(`${content.startsWith(kind) ? '' : `${kind}${plugin === undefined ? '' : ` by ${plugin}`}: `}${oneLine(content, 400)}`, width - 2)}`, kind === 'failed' || kind === 'invalid' ? 'red' : 'yellow')]])
  }
  /** Whatever has come of a reply that does not come to its end. */
  #finish(now: number): void {
    this.#endThoughts(now)
    if (this.#streamed === '') return
    this.#reply(this.#text.end())
    this.#fresh()
  }
  #end({ reason, message, stats, usage, elapsedMs }: EventOf<'turn-end'>, now: number): void {
    this.close(now)
    const told = message === undefined || message === this.#told
    if (reason !== 'completed' && (reason !== 'failed' || message === undefined || !told)) this.#say(...wrap([span(`${reason}${told ? '' : `: ${printable(message)}`}`, reason === 'aborted' ? 'yellow' : 'red')], this.#options.width()))
    const parts = [`${stats.steps} ${stats.steps === 1 ? 'step' : 'steps'}`, ...stats.toolCalls > 0 ? [`${stats.toolCalls} ${stats.toolCalls === 1 ? 'call' : 'calls'}`] : [], ...stats.blocked > 0 ? [`${stats.blocked} refused`] : [], `${usage.inputTokens + usage.outputTokens} tokens`, ...usage.cost === undefined ? [] : [dollars(usage.cost)], elapsed(elapsedMs)]
    this.#lines.push([], [span(cut(parts.join(' · '), this.#options.width()), 'dim')])
  }

  #reply(lines: Line[]): void { this.#tell('text', lines) }
  /** Lines that stand by themselves. */
  #say(...lines: Line[]): void { this.#tell('calls', lines) }
  #tell(kind: Kind, lines: Line[]): void {
    if (lines.length === 0) return
    if (this.#said && this.#kind !== kind) this.#lines.push([])
    this.#lines.push(...lines)
    this.#said = true
    this.#kind = kind
  }
}

const dimmed = (line: Line): Line => line.map(({ text }) => span(text, 'dim'))
const seconds = (ms: number): string => `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`

/** A call in one line: a command as it stands, else the name and the words of its arguments. */
export function labelOf(name: string, args: unknown): string {
  const values = typeof args === 'object' && args !== null ? Object.entries(args) : []
  const command = name === 'bash' && values.find(([key]) => key === 'command')?.[1]
  if (typeof command === 'string') return `$ ${oneLine(command, 300)}`
  return oneLine([name, ...values.map(([key, value], place) => typeof value === 'string' && place === 0 ? oneLine(value, 120) : `${key}=${oneLine(typeof value === 'string' ? value : JSON.stringify(value), 60)}`)].join(' '), 300)
}
/** What a call gave, in a few words. */
function briefly(content: string): string {
  const lines = printable(content).trim().split('\n').filter(line => line.trim() !== '')
  return lines.length > 1 ? `${lines.length} lines` : oneLine(lines[0] ?? 'nothing', 80)
}
function parsed(text: string): unknown {
  try { return JSON.parse(text) } catch { return { '': text } }          // what the model wrote is no JSON: shown as it stands
}

/**
 * One registered handler: its function, options, figures, and the check of how it was registered. Knows no dispatch.
 * Figures are kept per version: a reload begins anew.
 */
import { types } from 'node:util'
import { at, HarnessError, type Place, show } from '../errors.js'
import type { Activity } from './async-context.js'
import type { HookKind } from './hooks.js'
import type { Origin, Owner } from './owners.js'
import { placeIn, type FlatError } from './report.js'
import type { Rule } from './rules.js'

export interface Options {
  readonly prepend?: boolean | undefined
  readonly timeout?: number | undefined
  readonly onError?: 'block' | 'pass' | undefined
  readonly tools?: readonly (string | RegExp)[] | undefined
}
// any: a handler's payload and `next` differ by hook; what is called with what is the dispatcher's to keep
export type HandlerFunction = (...args: any[]) => unknown

/** What decides its place: `prepend`, then the row of its entry, then `nth`, its number among the handlers of its plugin. */
export interface HandlerInfo {
  readonly plugin: string; readonly file?: string | undefined; readonly line?: number | undefined
  readonly calls: number; readonly errors: number; readonly blocks: number; readonly timeouts: number; readonly p50: number; readonly p95: number; readonly max: number
  readonly prepend: boolean
  /** 1… */
  readonly nth: number
  /** The row of its entry, 1… from the top, and where it stands; absent for a handler of core. */
  readonly row?: number | undefined
  readonly entry?: { readonly file: string; readonly line?: number | undefined } | undefined
}
/** `undefined`: handlers wait for a plugin to define it. */
export interface HookInfo { readonly hook: string; readonly kind: HookKind | 'undefined'; readonly handlers: readonly HandlerInfo[] }

/** Milliseconds of its own time that a handler of decide, amend and watch gets. */
const OWN_MS = 5000
const LONGEST_MS = 2 ** 31 - 1
const SAMPLES = 128
/** Names of unknown tools come from the model, without end. */
const MOST_NAMES = 1000

/** It is an activity itself: what a synchronous hook calls runs on the account of its owner. */
export class Handler implements Activity {
  readonly hook: string
  readonly owner: Owner
  readonly run: HandlerFunction
  readonly options: Options
  readonly parent = undefined
  readonly over = false
  readonly seat: number
  calls = 0
  errors = 0
  blocks = 0
  timeouts = 0
  readonly #site: () => Place | undefined
  readonly #wanted = new Map<string, boolean>()
  #times: Float32Array | undefined
  #timed = 0
  #max = 0

  constructor(hook: string, owner: Owner, run: HandlerFunction, options: Options, { seat, site }: Origin) {
    this.hook = hook
    this.owner = owner
    this.seat = seat
    this.run = run
    this.options = options
    this.#site = site
  }
  /** Where in the plugin an error came from, for the end of a sentence: the line that threw, else the one that registered the handler. */
  where({ stack }: FlatError): string {
    const found = placeIn(stack, this.owner.file) ?? this.#site()
    return found === undefined ? '' : ` (${at(found)})`
  }
  /** Milliseconds of its own time that a call may take. */
  limit(kind: HookKind): number { return this.options.timeout ?? (kind === 'around' ? Infinity : OWN_MS) }

  /** Is it for this tool? */
  wants(tool: string | undefined): boolean {
    const { tools } = this.options
    if (tools === undefined || tool === undefined) return true
    let known = this.#wanted.get(tool)
    if (known === undefined) {
      if (this.#wanted.size >= MOST_NAMES) this.#wanted.clear()
      this.#wanted.set(tool, known = tools.some(entry => matches(entry, tool)))
    }
    return known
  }
  /** Entries of `tools` that match none of these. */
  unmatched(tools: readonly string[]): readonly (string | RegExp)[] {
    return this.options.tools?.filter(entry => !tools.some(tool => matches(entry, tool))) ?? []
  }

  took(ms: number): void {
    (this.#times ??= new Float32Array(SAMPLES))[this.#timed++ % SAMPLES] = ms
    if (ms > this.#max) this.#max = ms
  }
  info(nth: number): HandlerInfo {
    const sorted = this.#times?.slice(0, this.#timed).sort() ?? new Float32Array()
    const share = (part: number) => rounded(sorted[Math.floor(sorted.length * part)] ?? 0)
    const { calls, errors, blocks, timeouts } = this
    return { plugin: this.owner.id, ...place(this.#site()), calls, errors, blocks, timeouts, p50: share(0.5), p95: share(0.95), max: rounded(this.#max), prepend: this.options.prepend ?? false, nth, ...(this.owner.row >= 0 && { row: this.owner.row + 1 }) }
  }
}

/** Throws `hook_invalid` unless this can be registered. `rule` is undefined for a hook that nobody has defined yet. */
export function checkRegistration(plugin: string, hook: string, run: unknown, options: unknown, rule: Rule | undefined): asserts run is HandlerFunction {
  const wrong = typeof run !== 'function' ? `the handler must be a function, received ${show(run)}` : optionProblem(options) ?? (rule && misfit(options as Options, rule))
  if (wrong !== undefined) throw new HarnessError('hook_invalid', `plugin "${plugin}", hook "${hook}": ${wrong}`)
}
/** What in these options can't hold for a hook of this rule. */
export function misfit({ onError, tools }: Options, rule: Rule): string | undefined {
  if (onError !== undefined && !rule.closed) return `onError is for hooks that refuse when a handler fails; this one is ${rule.kind} and goes on`
  if (tools !== undefined && rule.ofCall === false) return 'tools is for hooks of a tool call; this one has none'
  return undefined
}

function optionProblem(options: unknown): string | undefined {
  if (typeof options !== 'object' || options === null) return `options must be an object, received ${show(options)}`
  const { prepend, timeout, onError, tools, ...others } = options as Record<string, unknown>
  const [other] = Object.keys(others)
  if (other !== undefined) return `there is no option "${other}"; there are prepend, timeout, onError and tools`
  if (prepend !== undefined && typeof prepend !== 'boolean') return `prepend must be true or false, received ${show(prepend)}`
  if (timeout !== undefined && !(typeof timeout === 'number' && timeout > 0 && timeout <= LONGEST_MS)) return `timeout must be milliseconds from 1 to ${LONGEST_MS}, received ${show(timeout)}`
  if (onError !== undefined && onError !== 'block' && onError !== 'pass') return `onError must be "block" or "pass", received ${show(onError)}`
  if (tools === undefined) return undefined
  if (!Array.isArray(tools) || tools.length === 0) return `tools must be a list of names and patterns with at least one entry, received ${show(tools)}; leave it out for all tools`
  const odd: unknown = tools.find(entry => !types.isRegExp(entry) && !(typeof entry === 'string' && /^[\w-]+$/.test(entry)))
  return odd === undefined ? undefined : `tools: ${show(odd)} is no tool's name; for a pattern write a RegExp, such as /write_.*/, which must match the whole name`
}

/** Exact for names; a pattern must match the whole name, and its own position and stickiness don't count. */
const matches = (entry: string | RegExp, tool: string): boolean => typeof entry === 'string' ? entry === tool : new RegExp(`^(?:${entry.source})$`, entry.flags.replace(/[gy]/g, '')).test(tool)
const place = (site: Place | undefined) => site && { file: site.file, line: site.line }
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

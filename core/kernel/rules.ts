/**
 * What the kinds of hooks do with what their handlers return: pure functions from values to values. Which decisions a hook has, and which is stricter, comes in as parameters.
 * A rule reads what a handler returned into an opinion (or throws Wrong), says whether it ends the chain, carries it on to the later handlers, and merges it with what they came to.
 * Knows no owner table, time or async, and no word of the agent.
 */
import { isDeepStrictEqual } from 'node:util'
import { show } from '../errors.js'
import { adopt, freeze, Wrong } from './frozen.js'
import type { HookKind } from './hooks.js'

/** One line of the session log: a decision that a handler made, what it changed, its failure, or that it was slow. `ms` is its own time. */
export interface Trace { readonly plugin: string; readonly kind: string; readonly reason?: string | undefined; readonly change?: string | undefined; readonly ms?: number | undefined }
// Values of hooks are opaque here: a rule gets and gives what its own parameters make of them, and DESIGN of the hook says what that is. Hence the one `any` of this file.
type Value = any

/** What one handler, or the handlers from one on, came to. `value` is what `next()` shows the handler outside. */
export interface Opinion<V = unknown> {
  readonly value: V
  /** Who decided; absent when it is the default. */
  readonly plugin?: string | undefined
  /** The refusal is a failure, not a policy. */
  readonly failure?: 'hook_failed' | 'guard_inactive' | undefined
  /** The outermost milder decision of the `spare` kind, beside one that waits for a yes. */
  readonly answer?: Opinion<Value> | undefined
  /** What handlers of an amend hook gave beside the value, in order. */
  readonly context?: readonly Value[] | undefined
}
/** What a whole dispatch came to. */
export interface Verdict<V = unknown> extends Opinion<V> { readonly trace: readonly Trace[] }

export interface Rule {
  readonly kind: HookKind
  /** Its payload has a `call`, so that handlers may name tools. Undefined: not known. */
  readonly ofCall?: boolean | undefined
  /** A failing handler refuses. */
  readonly closed: boolean
  /** Refused while a required guard is not active. */
  readonly guarded: boolean
  /** The verdict when nobody has an opinion. */
  start(payload: Value): Opinion
  /** Throws Wrong. `rest` is what the later handlers came to, if `next()` was called. */
  read(own: Value, payload: Value, rest: Opinion | undefined, plugin: string): Opinion
  /** Does it end the chain, when `next()` was not called? */
  ends(opinion: Opinion): boolean
  /** The payload for the later handlers, when `next()` was not called. */
  carry(payload: Value, opinion: Opinion): Value
  merge(opinion: Opinion, rest: Opinion, afterNext: boolean): Opinion
  /** amend and around: what a handler made of a value, in one line; called only where it made another. */
  readonly summary?: ((before: Value, after: Value) => string) | undefined
  /** amend: the value in a payload, before the later handlers. */
  readonly get?: ((payload: Value) => Value) | undefined
  /** around: the payload after `next(change)`; absent when `next` takes nothing. Throws Wrong. */
  change?: ((payload: Value, change: Value) => Value) | undefined
  /** Closed hooks: the refusal for a failure. */
  refuse?: ((plugin: string, why: string, failure: 'hook_failed' | 'guard_inactive') => Opinion) | undefined
}

/** Reads the decision of one kind; `base` is the decision of the later handlers, or undefined before `next()` and after a refusal. */
export type Reader = (own: Value, payload: Value, base: Value, plugin: string) => object
export interface Judging {
  /** All kinds of decisions, the strictest first. */
  readonly kinds: Readonly<Record<string, Reader>>
  /** The kind that ends the chain and that a failure makes. */
  readonly refusal?: string
  /** What is judged, for the text of a failure: `could not judge this <subject>`. */
  readonly subject?: string
  /** A milder kind that is kept beside a standing decision of another kind, for the case of a yes. */
  readonly spare?: { readonly kind: string; readonly beside: string }
  readonly start: (payload: Value) => object
  /** With it, a decision that doesn't refuse becomes the later handlers' payload, and theirs is the sum. */
  readonly carry?: (payload: Value, decision: Value) => Value
  /** With `carry`: fields that the later handlers don't see, so the outermost one's stand. */
  readonly outermost?: readonly string[]
  readonly guarded?: boolean
  readonly ofCall?: boolean
}

/** decide: the strictest stands; of equals the outermost. A policy's refusal stands over a broken judge's. */
export function judge({ kinds, refusal, subject = 'call', spare, start, carry, outermost = [], guarded = false, ofCall }: Judging): Rule {
  const order = Object.keys(kinds)
  const rank = (opinion: Opinion) => order.indexOf((opinion.value as Value).kind) + (opinion.failure ? 0.5 : 0)
  const refuses = (opinion: Opinion) => (opinion.value as Value).kind === refusal
  return {
    kind: 'decide', ofCall, closed: refusal !== undefined, guarded,
    start: payload => ({ value: freeze(start(payload)) }),
    read(raw, payload, rest, plugin) {
      const own: Value = adopt(raw, 'the decision')
      const kind: unknown = own?.kind
      const reader = typeof kind === 'string' && Object.hasOwn(kinds, kind) ? kinds[kind] : undefined
      if (!reader) throw new Wrong(`a decision is one of ${order.join(', ')}, or nothing; received ${show(own)}`)
      const value = reader(own, payload, rest && !refuses(rest) ? rest.value : undefined, plugin)
      const extra = Object.keys(own).find(key => !(key in value) && own[key] !== undefined)
      if (extra !== undefined) throw new Wrong(`"${kind}" takes no "${extra}"`)
      const opinion: Opinion<Value> = { value: freeze(value), plugin }
      return kind === spare?.kind ? { ...opinion, answer: opinion } : opinion
    },
    ends: refuses,
    carry: (payload, { value }) => carry ? freeze(carry(payload, value)) : payload,
    merge(opinion, rest, afterNext) {
      if (carry && !afterNext && !refuses(opinion)) {                         // it went through the later handlers; theirs is the sum
        if (refuses(rest)) return rest
        const own = outermost.filter(field => (opinion.value as Value)[field] !== undefined).map(field => [field, (opinion.value as Value)[field]])
        return { ...rest, plugin: rest.plugin ?? opinion.plugin, ...(own.length > 0 && { value: freeze({ ...rest.value as object, ...Object.fromEntries(own) }) }) }
      }
      const stands = rank(opinion) <= rank(rest) ? opinion : rest
      const answer = opinion.answer ?? rest.answer
      return answer && (stands.value as Value).kind === spare?.beside ? { ...stands, answer } : stands
    },
    ...(refusal !== undefined && { refuse: (plugin, why, failure) => ({
      value: freeze({ kind: refusal, reason: failure === 'guard_inactive' ? `required plugin "${plugin}" is not active (${why})` : `plugin "${plugin}" could not judge this ${subject} (${why})` }), plugin, failure,
    }) }),
  }
}

export interface Amending {
  /** The value in the payload, and the payload with another. */
  readonly get: (payload: Value) => Value
  readonly put: (payload: Value, value: Value) => Value
  /** Throws Wrong. */
  readonly read: (own: Value, payload: Value) => Value
  /** What a handler gave beside the value. */
  readonly context?: (own: Value, plugin: string) => readonly unknown[] | undefined
  readonly summary?: (before: Value, after: Value) => string
  readonly ofCall?: boolean
}
/** amend: the value on its way through all handlers. */
export function amend({ get, put, read, context, summary, ofCall }: Amending): Rule {
  return {
    kind: 'amend', ofCall, closed: false, guarded: false, summary, get,
    start: payload => ({ value: freeze(get(payload)) }),
    read(raw, payload, rest, plugin) {
      const own: Value = adopt(raw)
      const value: unknown = freeze(read(own, payload)), before: unknown = rest ? rest.value : get(payload)
      const beside = context?.(own, plugin)
      return { ...(isDeepStrictEqual(value, before) ? { value: before } : { value, plugin }), ...(beside && { context: freeze(beside) }) }
    },
    ends: () => false,
    carry: (payload, { value }) => freeze(put(payload, value)),
    merge(opinion, rest, afterNext) {
      const stands = afterNext && opinion.plugin !== undefined ? opinion : rest
      const beside = opinion.context || rest.context ? { context: freeze([...opinion.context ?? [], ...rest.context ?? []]) } : {}
      return { ...stands, plugin: stands.plugin ?? opinion.plugin, ...beside }
    },
  }
}

/** around: `read` checks a value that stands for the act's. */
export const around = (read: (own: Value) => Value, { change, summary, ofCall }: { change?: (payload: Value, change: Value) => Value; summary?: (before: Value, after: Value) => string; ofCall?: boolean } = {}): Rule => ({
  ...TOLD, kind: 'around', ofCall, summary, read: (own, _payload, _rest, plugin) => ({ value: freeze(read(adopt(own))), plugin }), change,
})
/** watch: what is returned doesn't matter. */
export const watch = ({ ofCall }: { ofCall?: boolean } = {}): Rule => ({ ...TOLD, kind: 'watch', ofCall })

const TOLD: Omit<Rule, 'kind'> = {
  closed: false, guarded: false,
  start: () => ({ value: undefined }), read: () => ({ value: undefined }), ends: () => false, carry: payload => payload, merge: opinion => opinion,
}

/** CONTRACT STUB, to be replaced by the implementation with these signatures. */
import type { HookInfo } from '../agent/services.js'
import type { HookName, HookOf, Payload } from './hooks.js'
import type { Rule } from './rules.js'

/** One line per decision for the session log. */
export interface Trace { readonly plugin: string; readonly kind: string; readonly reason?: string | undefined }
/** What a dispatch came to. `value` is what `next()` of an outermost handler would show. */
export interface Verdict<V = unknown> {
  readonly value: V
  /** Who decided; absent when it is the default. */
  readonly plugin?: string | undefined
  /** The refusal is a failure, not a policy. */
  readonly failure?: 'hook_failed' | 'guard_inactive' | undefined
  /** pre-tool-use: the outermost answer, used after a yes to an ask. */
  readonly answer?: Verdict<{ kind: 'answer'; result: { content: string; isError: boolean } }> | undefined
  /** post-tool-use: context of every handler, in order, with its source. */
  readonly context?: readonly import('../agent/vocabulary.js').Message[] | undefined
  readonly trace: readonly Trace[]
}
export declare class Dispatcher {
  /** Makes a hook known; core calls it for each of its own. */
  declare(hook: string, rule: Rule): void
  /** decide and amend never reject because of a handler. around rejects with what the act or a handler threw. All reject with `signal.reason` once the payload's signal is aborted. */
  dispatch<K extends HookName>(hook: K, payload: Payload<K>, how?: { inner?: (payload: Payload<K>) => unknown; check?: (value: unknown) => string | undefined }): Promise<Verdict<HookOf<K>['next']>>
  /** A synchronous watch hook: called, not awaited. */
  tell<K extends HookName>(hook: K, payload: Payload<K>): void
  /** Is anybody there? For hot paths that would build a payload for nobody. */
  has(hook: HookName): boolean
  /** Waiting for a person is nobody's own time: pauses every enclosing handler. */
  waiting<T>(work: () => Promise<T>): Promise<T>
  /** A required guard that is not active: `cause` says why; undefined once it is. */
  guard(id: string, cause: string | undefined): void
  list(): readonly HookInfo[]
}

/**
 * Walks the handlers of one dispatch, outermost first. What a value means is the rule's to say, when a wait ends is pending's; here are order, `next()`, and what a failure does.
 * Invariants: a chain works on the list its dispatch began with; handlers that don't await cost no promise; every `next()` is awaited by core if the handler doesn't;
 * `decide` never rejects, so that a `next()` nobody awaits can't become an unhandled rejection: what a dispatch throws instead stands in `run.stopped`.
 */
import { isDeepStrictEqual } from 'node:util'
import { HarnessError, messageOf, readable } from '../errors.js'
import { enter } from './async-context.js'
import { adopt, freeze, isFrozenWrite, Wrong } from './frozen.js'
import { Act, type Asker, Ended, Frame, Misuse, type Run, type Thrown } from './frame.js'
import { isThenable } from './limits.js'
import { flatten } from './report.js'
import type { Opinion } from './rules.js'

/** decide and amend: asks the handlers from `from` on. The opinion goes to the asker; the promise is what its `next()` shows. `now` is the time, just read. */
export async function decide(run: Run, asker: Asker, from: number, payload: unknown, now: number): Promise<unknown> {
  const { rule, handlers } = run
  const carried: Opinion[] = []                                                  // of those that did not call next(), outermost first
  let verdict: Opinion | undefined
  for (let at = from; verdict === undefined; at++) {
    const handler = handlers[at]
    if (run.stopped) verdict = rule.start(payload)                               // shown to nobody who still counts
    else if (handler === undefined) verdict = run.inner ? await defaultOf(run, run.inner, payload) : rule.start(payload)
    else if (handler.wants(run.tool)) {
      const frame = new Frame(run, handler), given = payload, later = at + 1
      let own: unknown, thrown: Thrown | undefined
      try {
        own = frame.call(now, given, change => next(run, frame, change, given, (_, time) => decide(run, frame, later, given, time)))
        if (isThenable(own)) own = await run.pending.settle(run, frame, own)
      } catch (error) {
        thrown = { error }
      }
      now = frame.end()
      if (frame.rest && !frame.settled) {
        await frame.rest
        now = performance.now()
      }
      const rest = frame.opinion, opinion = run.stopped ? undefined : opinionOf(run, frame, own, thrown, given)
      if (opinion === undefined) slow(run, frame)
      if (opinion === undefined) verdict = rest
      else if (rest) verdict = rule.merge(opinion, rest, true)
      else if (rule.ends(opinion)) verdict = opinion
      else { carried.push(opinion); payload = rule.carry(payload, opinion) }
    }
  }
  verdict = carried.reduceRight((rest, opinion) => rule.merge(opinion, rest, false), verdict)
  asker.rested(verdict, now)
  return verdict.value
}

/**
 * around: the value of the handlers from `from` on and the act inside them, or what they threw; goes to the asker too.
 * What `next()` threw passes unchanged and is not the handler's fault; what a handler throws itself is the act's failure.
 */
export async function around(run: Run, asker: Asker, from: number, payload: unknown, now: number): Promise<unknown> {
  const { rule, handlers } = run
  try {
    let opinion: Opinion | undefined
    for (let at = from; opinion === undefined; at++) {
      const handler = handlers[at]
      if (run.stopped) throw run.stopped.reason
      if (handler === undefined) opinion = { value: freeze(await perform(run, payload)) }
      else if (handler.wants(run.tool)) {
        const frame = new Frame(run, handler), later = at + 1
        try {
          let own = frame.call(now, payload, change => next(run, frame, change, payload, (changed, time) => around(run, frame, later, changed, time)))
          if (isThenable(own)) own = await run.pending.settle(run, frame, own)
          frame.end()
          if (frame.misuse) throw frame.misuse
          const none = own === undefined || own === null
          if (none) await frame.rest                                             // core awaits what the handler didn't, and rethrows what it swallowed
          opinion = none || own === frame.opinion?.value ? frame.opinion : rule.read(own, payload, undefined, handler.owner.id)
          stood(run, frame, opinion)
        } catch (caught) {
          const error = readable(caught)
          frame.end()
          if (run.stopped) throw error
          if (frame.thrown && frame.thrown.error === error) {
            stood(run, frame, undefined)
            throw error
          }
          failed(run, frame, error)
          throw error instanceof Ended || error instanceof Wrong ? new HarnessError('plugin_failed', `plugin "${handler.owner.id}" failed in "${run.hook}": ${error.why}`, { cause: error }) : error
        } finally {
          if (frame.rest && !frame.settled) {
            run.act?.abort(new HarnessError('aborted', `plugin "${handler.owner.id}" no longer waits for it`))
            await frame.rest.catch(dropped)
          }
        }
      }
      now = performance.now()
    }
    asker.rested(opinion, now)
    return opinion.value
  } catch (error) {
    asker.failed(error, performance.now())
    throw error
  }
}

/** watch: tells one after another. When the signal is aborted the rest is still told, so that who saw a start sees its end, but nobody is waited for. */
export async function tell(run: Run, payload: unknown): Promise<void> {
  let now = performance.now()
  for (const handler of run.handlers) {
    if (!handler.wants(run.tool)) continue
    const frame = new Frame(run, handler)
    let thrown: Thrown | undefined
    try {
      const told = frame.call(now, payload)
      if (isThenable(told)) await run.pending.settle(run, frame, told)
    } catch (error) {
      thrown = { error }
    }
    now = frame.end()
    if (thrown && !run.stopped) failed(run, frame, thrown.error)
    else slow(run, frame)
  }
}

/** The act, in the async context of who began the dispatch. */
async function perform(run: Run, payload: unknown): Promise<unknown> {
  if (!run.inner) return undefined
  const act = run.act = new Act(run)
  try { return await enter(run, run.inner, payload, act) } catch (error) { throw readable(error) } finally {
    run.act = undefined
    run.pending.ended(act)
  }
}

/** What a handler's `next` does: checks how it is used, stops the clock, and lets the later ones go on. */
function next(run: Run, frame: Frame, change: unknown, payload: unknown, go: (payload: unknown, now: number) => Promise<unknown>): Promise<unknown> {
  const { rule } = run
  if (frame.over) return misused(frame, 'next() was called after the handler had ended')
  if (change !== undefined && !rule.change) return misused(frame, 'next() takes no argument; return what you want changed')
  if (frame.rest && rule.kind !== 'around') return misused(frame, 'next() may be called once')
  if (frame.rest && !frame.settled) return misused(frame, 'next() may be called again only after the last one has settled')
  let changed = payload
  if (change !== undefined && rule.change) {
    try { changed = rule.change(payload, adopt(change, 'the change')) } catch (error) { return misused(frame, `next(): ${messageOf(error)}`) }
  }
  const now = performance.now()
  frame.asks(now)
  frame.rest = go(changed, now)
  if (rule.kind === 'around') frame.rest.catch(dropped)
  return frame.rest
}
/** A misused `next` makes a running handler fail, also when it swallows the error. */
function misused(frame: Frame, what: string): Promise<never> {
  const error = frame.misuse ??= new Misuse(what)
  const refused = Promise.reject(error)
  refused.catch(dropped)
  return refused
}
/** Whoever is to know of it learns it elsewhere: the chain awaits the same promise, or the handler has failed already. */
const dropped = (): void => {}

/** The default of a plugin's own decide or amend hook. */
async function defaultOf(run: Run, inner: NonNullable<Run['inner']>, payload: unknown): Promise<Opinion> {
  try {
    const own = await enter(run, inner, payload, new Act(run))
    if (own !== undefined && own !== null) return { ...run.rule.read(own, payload, undefined, ''), plugin: undefined }
  } catch (error) {
    run.stop(error)
  }
  return run.rule.start(payload)
}

/** What a handler of decide or amend came to; undefined: no opinion. */
function opinionOf(run: Run, frame: Frame, own: unknown, thrown: Thrown | undefined, payload: unknown): Opinion | undefined {
  const { rule } = run, { handler } = frame, plugin = handler.owner.id
  try {
    if (thrown) throw thrown.error
    if (frame.misuse) throw frame.misuse
    if (own === undefined || own === null || own === frame.opinion?.value) return undefined
    const opinion = rule.read(own, payload, frame.opinion, plugin)
    const problem = opinion.plugin === undefined ? undefined : run.check?.(opinion.value)
    if (problem !== undefined) throw new Wrong(problem)
    if (rule.ends(opinion)) handler.blocks++
    if (rule.kind === 'decide') {
      const { kind, reason } = opinion.value as { kind: string; reason?: string }
      run.log(reason === undefined ? { plugin, kind, ms: frame.took } : { plugin, kind, reason, ms: frame.took })
    } else if (opinion.plugin !== undefined) {
      const before = frame.opinion ? frame.opinion.value : rule.get?.(payload as never)
      run.log({ plugin, kind: 'amended', ms: frame.took, ...(rule.summary && { change: rule.summary(before as never, opinion.value as never) }) })
    }
    return opinion
  } catch (error) {
    return failed(run, frame, error)
  }
}
/** A handler stood around the act: worth a line when it gave another value than the act's, stood in for it, or had it made again. */
function stood(run: Run, frame: Frame, opinion: Opinion | undefined): void {
  const { asked, opinion: rest, took, handler } = frame, { summary } = run.rule
  const own = opinion !== undefined && opinion !== rest && !(rest && isDeepStrictEqual(opinion.value, rest.value))
  if (!own && asked < 2) { slow(run, frame); return }
  const change = [
    ...asked > 1 ? [`${asked} attempts${opinion === undefined ? ', the last failed' : ''}`] : [],
    ...own && asked > 0 && !rest ? ['in place of a failure'] : [],
    ...own && rest && summary ? [summary(rest.value as never, opinion.value as never)] : [],
  ].join(', ')
  run.log({ plugin: handler.owner.id, kind: !own ? 'repeated' : asked === 0 ? 'answered' : 'replaced', ms: took, ...(change !== '' && { change }) })
}
/** A handler without an opinion is worth a line only when it took its time. */
function slow(run: Run, { handler, took }: Frame): void {
  if (took > SLOW_MS && !run.stopped) run.log({ plugin: handler.owner.id, kind: 'slow', ms: took })
}
const SLOW_MS = 100
/** Counts and reports a failure. The refusal it means, where a failing judge refuses. */
function failed(run: Run, { handler, took }: Frame, thrown: unknown): Opinion | undefined {
  const error = readable(thrown), { rule, hook } = run, plugin = handler.owner.id, timedOut = error instanceof Ended && error.timedOut
  if (timedOut) handler.timeouts++
  else handler.errors++
  const flat = flatten(error)
  const hint = isFrozenWrite(flat) ? '; payloads are frozen: return a changed copy' : ''
  run.report({ level: 'error', plugin, hook, what: timedOut ? 'timed out' : 'failed', message: `plugin "${plugin}": its handler of "${hook}" failed: ${flat.message}${hint}${handler.where(flat)}`, error: flat })
  const why = error instanceof Ended || error instanceof Wrong ? error.why : 'it threw an error'
  const refuses = rule.refuse !== undefined && handler.options.onError !== 'pass'
  run.log({ plugin, kind: refuses ? 'hook_failed' : 'failed', reason: why, ms: took })
  if (!refuses) return undefined
  return rule.refuse!(plugin, why, 'hook_failed')
}

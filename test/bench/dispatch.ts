/**
 * Cost of a dispatch, by kind and number of handlers, beside a hand-written chain of the same handlers and beside other hook libraries.
 * Everything takes turns in the same process, inside one async context, since an AsyncLocalStorage that is active slows every promise, those of the baseline too.
 * Handlers await, as real ones do, unless a row says synchronous; each dispatch gets a payload of its own, as the loop makes it. tapable and hookable have no `next`: their handlers run one after another.
 */
import { Context } from 'cordis'
import { createHooks } from 'hookable'
import compose from 'koa-compose'
import tapable from 'tapable'
import { declareHooks } from '../../core/agent/hook-rules.js'
import { enter } from '../../core/kernel/async-context.js'
import { Dispatcher } from '../../core/kernel/dispatch.js'
import { Owners, type Scope } from '../../core/kernel/owners.js'
import { row, type Row } from './row.js'

const ROUNDS = 100
const CALLS = 200
const COUNTS = [0, 1, 5, 10] as const

type Next = () => Promise<unknown>
type Handler = (payload: object, next: Next) => unknown
/** One contestant: a dispatch, and the one it is measured against. */
interface Contestant { readonly name: string; readonly run: () => unknown; readonly baseline?: string }

const ALLOW = Object.freeze({ kind: 'allow' })
const signal = new AbortController().signal
const session = Object.freeze({ id: 'bench', cwd: '/', depth: 0, messages: Object.freeze([]) })
const call = Object.freeze({ id: '1', name: 'bash', arguments: Object.freeze({ command: 'ls' }) })
const result = Object.freeze({ content: 'README.md', isError: false })
const payload = () => ({ session, turn: 1, step: 0, signal, call, result, elapsedMs: 1, outcome: 'ok' }) as const
const delta = () => ({ session, turn: 1, step: 0, signal, kind: 'text', text: 'a', attempt: 1 }) as const

const wraps: Handler = async (_, next) => { const later = await next(); return later }
const judges = (_: object) => undefined
const watches = async () => { await null }
const tells = (_: object) => {}

function hooks(hook: string, handler: unknown, count: number): Dispatcher {
  const owners = new Owners()
  const dispatcher = new Dispatcher(owners, () => {})
  declareHooks(dispatcher)
  for (let row = 0; row < count; row++) {
    const scope: Scope = { owner: { id: `p${row}`, generation: 1, row, stage: 'live' }, path: () => [0], effect: undo => undo as () => void }
    dispatcher.registerHandler(scope, hook, handler)
  }
  return dispatcher
}
const repeat = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value)

/** What one would write for a single hook. koa-compose is the same without async functions of its own. */
function chain(handlers: readonly Handler[], inner: () => Promise<unknown>) {
  return (payload: object): Promise<unknown> => {
    const from = async (at: number): Promise<unknown> => {
      const handler = handlers[at]
      return handler ? await handler(payload, () => from(at + 1)) : await inner()
    }
    return from(0)
  }
}
async function series(handlers: readonly ((payload: object) => unknown)[], payload: object): Promise<void> {
  for (const handler of handlers) await handler(payload)
}

function contestants(count: number): Contestant[] {
  const named = (name: string) => `${name}, ${count} handlers`
  const inner = async () => ALLOW, ran = async () => result
  const wrapped = repeat(count, wraps)
  const byHand = named('chain by hand'), watchedByHand = named('series by hand'), toldByHand = named('loop by hand'), checkedByHand = named('checks by hand')
  const hand = chain(wrapped, inner), told = repeat(count, tells), watched = repeat(count, watches), checked = repeat(count, judges)
  const decide = hooks('agent/pre-tool-use', wraps, count), amend = hooks('agent/post-tool-use', wraps, count), around = hooks('agent/tool-use', wraps, count)
  const sync = hooks('agent/pre-tool-use', judges, count), watch = hooks('agent/tool-end', watches, count), deltas = hooks('agent/delta', tells, count)
  const koa = compose(wrapped)
  const waterfall = new tapable.AsyncSeriesWaterfallHook<[object]>(['payload'])
  const hookable = createHooks()
  const bus = new Context() as unknown as { on(name: string, handler: Handler): void; waterfall(name: string, payload: object, inner: () => unknown): unknown }
  for (let i = 0; i < count; i++) {
    waterfall.tapPromise(`p${i}`, async payload => { await null; return payload })
    hookable.hook('call', async () => { await null })
    bus.on('bench/call', wraps)
  }
  return [
    { name: byHand, run: () => hand(payload()) },
    { name: named('decide'), run: () => decide.dispatch('agent/pre-tool-use', payload()), baseline: byHand },
    { name: named('amend'), run: () => amend.dispatch('agent/post-tool-use', payload()), baseline: byHand },
    { name: named('around'), run: () => around.dispatch('agent/tool-use', payload(), { inner: ran }), baseline: byHand },
    { name: named('koa-compose'), run: () => koa(payload(), inner), baseline: byHand },
    { name: named('tapable, waterfall'), run: () => waterfall.promise(payload()), baseline: byHand },
    { name: named('hookable, serial'), run: () => hookable.callHook('call', payload()), baseline: byHand },
    { name: named('cordis, waterfall'), run: () => bus.waterfall('bench/call', payload(), inner), baseline: byHand },
    { name: watchedByHand, run: () => series(watched, payload()) },
    { name: named('watch'), run: () => watch.dispatch('agent/tool-end', payload()), baseline: watchedByHand },
    { name: checkedByHand, run: () => series(checked, payload()) },
    { name: named('decide, synchronous'), run: () => sync.dispatch('agent/pre-tool-use', payload()), baseline: checkedByHand },
    { name: toldByHand, run: () => { const at = delta(); for (const tell of told) tell(at) } },
    { name: named('delta'), run: () => { deltas.tell('agent/delta', delta()) }, baseline: toldByHand },
  ]
}

export async function benchDispatch(): Promise<Row[]> {
  const all = COUNTS.flatMap(contestants)
  const samples = new Map(all.map(({ name }) => [name, [] as number[]]))
  await enter({ owner: undefined, parent: undefined, over: false }, async () => {
    for (let round = -10; round < ROUNDS; round++) {
      for (const { name, run } of all) {
        const begin = performance.now()
        for (let i = 0; i < CALLS; i++) await run()
        if (round >= 0) samples.get(name)!.push((performance.now() - begin) * 1000 / CALLS)             // the first rounds warm the compiler
      }
    }
  })
  const rows = new Map<string, Row>()
  for (const { name, baseline } of all) rows.set(name, row(name, 'µs', samples.get(name)!, baseline === undefined ? undefined : rows.get(baseline)))
  return [...rows.values()]
}

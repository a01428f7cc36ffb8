/** What the compiler holds. Most of it is checked by `tsc`: an expected error that isn't one fails the typecheck. */
import { describe, expect, expectTypeOf, it } from 'vitest'
import { accept, allow, answer, ask, block, enter, proceed, reject, send, stop } from '../../core/agent/hooks.js'
import type { Entered, Judged } from '../../core/agent/hooks.js'
import { RULES } from '../../core/agent/hook-rules.js'
import type { Message, ToolResult } from '../../core/agent/vocabulary.js'
import type { Dispatcher, Verdict } from '../../core/kernel/dispatch.js'
import type { Amend, Context, Decide, Handler, HandlerOptions, HookName, Hooks, Payload, Watch } from '../../core/kernel/hooks.js'

declare module '../../core/kernel/hooks.js' {
  interface Hooks {
    'types-test/told': Watch<{ readonly what: string }>
    'types-test/amended': Amend<{ readonly value: number }, number>
    'types-test/judged': Decide<{ readonly call: { readonly name: string } }, Judged>
  }
}
/** Never called: it is there to be compiled. */
export function plugin(ctx: Context, hooks: Dispatcher): void {
  ctx.on('agent/pre-tool-use', ({ call }) => { if (call.arguments['x']) return block('no') })
  ctx.on('agent/pre-tool-use', async (_, next) => { const d = await next(); return d.kind === 'block' ? d : allow() }, { tools: ['bash', /x/], onError: 'pass', timeout: 10, prepend: true })
  ctx.on('agent/pre-step', async (_, next) => { const d = await next(); return d.kind === 'reject' ? d : { ...d, messages: [...d.messages, 'note'] } })
  ctx.on('agent/pre-request', () => send({ options: { temperature: 0 } }))
  ctx.on('agent/request', (_, next) => next({ model: 'x', options: {} }))
  ctx.on('agent/stop', () => proceed('go on'))
  ctx.on('agent/post-tool-use', ({ result }) => ({ ...result, context: ['note'] }))
  ctx.on('agent/turn-end', ({ reason, usage }) => `${reason} ${usage.inputTokens}`)
  ctx.on('types-test/amended', ({ value }) => value + 1)
  ctx.on('types-test/judged', () => block('no'), { tools: ['bash'], onError: 'pass' })

  // @ts-expect-error an unknown hook
  ctx.on('agent/pre-tool-usee', () => {})
  // @ts-expect-error a decision of another hook
  ctx.on('agent/pre-tool-use', () => reject('no'))
  // @ts-expect-error a boolean is no decision
  ctx.on('agent/pre-tool-use', () => false)
  // @ts-expect-error next takes nothing here
  ctx.on('agent/pre-tool-use', (_, next) => next({}))
  // @ts-expect-error next takes model and options only
  ctx.on('agent/request', (_, next) => next({ messages: [] }))
  // @ts-expect-error payloads are readonly
  ctx.on('agent/pre-tool-use', payload => { payload.call.name = 'x' })
  // @ts-expect-error a watch has no next
  ctx.on('agent/turn-end', (_, next) => next())
  // @ts-expect-error onError is for hooks that decide
  ctx.on('agent/post-tool-use', () => {}, { onError: 'pass' })
  // @ts-expect-error no call, no tools
  ctx.on('agent/pre-step', () => {}, { tools: ['bash'] })
  // @ts-expect-error an option that is not there
  ctx.on('agent/pre-step', () => {}, { timeOut: 3 })
  // @ts-expect-error not the value of the hook
  ctx.on('types-test/amended', () => 'text')

  void hooks.dispatch('types-test/told', { what: 'x' })
  // @ts-expect-error a payload of another hook
  void hooks.dispatch('types-test/told', { value: 1 })
}

type AgentHook = keyof Hooks & `agent/${string}`
/** One right handler of every hook: a hook that is missing here, or one too many, fails the typecheck. */
export const RIGHT: { readonly [K in AgentHook]: Handler<K> } = {
  'agent/user-prompt-submit': async ({ prompt }, next) => { const d = await next(); return prompt === '' || d.kind === 'reject' ? reject('no') : accept([...d.messages, 'note']) },
  'agent/system-prompt': async ({ sections }, next) => [...await next(), ...sections, { id: 'a', text: 'b' }],
  'agent/pre-step': async (_, next) => { const d = await next(); return d.kind === 'reject' ? d : enter([...d.messages, { role: 'system', content: 'x' }], { compact: { through: 3, messages: ['sum'] } }) },
  'agent/pre-request': ({ model, tools, options }) => send({ model, options: { ...options, temperature: 0 }, tools: tools.map(({ name }) => name) }),
  'agent/request': async ({ model }, next) => { const reply = await next({ model, options: {} }); return { ...reply, finish: 'stop' } },
  'agent/tool-arguments': ({ call }) => ({ ...call.arguments, path: 'a' }),
  'agent/pre-tool-use': ({ call }) => call.originalArguments ? block('no') : call.name === 'x' ? ask('why') : call.id === '' ? answer({ content: 'a', isError: true }) : allow(),
  'agent/tool-use': async (_, next) => (await next()).content,
  'agent/post-tool-use': async ({ elapsedMs }, next) => ({ content: `${(await next()).content} ${elapsedMs}`, context: ['note'] }),
  'agent/stop': ({ reply, stats, stopHookActive }) => stopHookActive || stats.blocked > 0 ? stop() : proceed(reply),
  'agent/session-start': ({ source }) => { source satisfies 'new' | 'resume' | 'fork' },
  'agent/session-end': ({ reason }) => { reason satisfies 'closed' | 'archived' | 'shutdown' },
  'agent/turn-start': ({ prompt, session }) => { `${prompt} ${session.cwd} ${session.depth} ${session.messages.length}` satisfies string },
  'agent/turn-end': ({ reason, usage, stats, kind }) => { `${reason} ${usage.inputTokens + stats.steps} ${kind ?? ''}` satisfies string },
  'agent/step-start': ({ turn, step }) => { turn + step satisfies number },
  'agent/step-end': ({ usage, toolCalls }) => { usage.outputTokens + toolCalls satisfies number },
  'agent/tool-start': ({ call }) => { call.arguments satisfies string | Readonly<Record<string, unknown>> },
  'agent/tool-end': ({ result, outcome, plugin }) => { `${result.content} ${outcome} ${plugin ?? ''}` satisfies string },
  'agent/ask': ({ call, reason }) => { `${call.name} ${reason}` satisfies string },
  'agent/compacted': ({ through, before, after }) => { through + before - after satisfies number },
  'agent/error': ({ error, phase }) => { `${error.code} ${phase}` satisfies string },
  'agent/delta': ({ kind, text, signal }) => { if (!signal.aborted) `${kind} ${text}` satisfies string },
}
/** One wrong value of every hook that returns one. */
export const WRONG: { readonly [K in AgentHook as Hooks[K] extends Watch<infer _> ? never : K]: Handler<K> } = {
  // @ts-expect-error a block is a decision about a call
  'agent/user-prompt-submit': () => block('no'),
  // @ts-expect-error sections are {id, text}
  'agent/system-prompt': () => ['text'],
  // @ts-expect-error messages are a list
  'agent/pre-step': () => enter('note'),
  // @ts-expect-error messages can't be sent
  'agent/pre-request': () => send({ messages: [] }),
  // @ts-expect-error a reply is more than its text
  'agent/request': () => 'text',
  // @ts-expect-error arguments are an object
  'agent/tool-arguments': () => 'path',
  // @ts-expect-error kinds are spelled as they are
  'agent/pre-tool-use': () => ({ kind: 'deny', reason: 'no' }),
  // @ts-expect-error a result has text
  'agent/tool-use': () => ({ content: 1 }),
  // @ts-expect-error a result has text
  'agent/post-tool-use': () => ({ text: 'x' }),
  // @ts-expect-error "continue" needs a message
  'agent/stop': () => ({ kind: 'continue' }),
}

describe('types of hooks', () => {
  it('have a right handler here for every hook there is, and a wrong one for each that returns something', () => {
    expect(Object.keys(RIGHT)).toEqual(Object.keys(RULES))
    expect(Object.keys(WRONG)).toEqual(Object.entries<{ kind: string }>(RULES).filter(([, { kind }]) => kind !== 'watch').map(([hook]) => hook))
  })
  it('complete the names of hooks, which are never just any string', () => {
    expectTypeOf<string>().not.toExtend<HookName>()
    expectTypeOf<Parameters<Context['on']>[0]>().toEqualTypeOf<HookName>()
    expectTypeOf<'agent/pre-tool-use'>().toExtend<HookName>()
  })
  it('give each hook its payload, its decisions and what next() shows', () => {
    expectTypeOf<Payload<'types-test/told'>>().toEqualTypeOf<{ readonly what: string }>()
    expectTypeOf<Handler<'types-test/told'>>().toEqualTypeOf<(payload: { readonly what: string }) => unknown>()
    expectTypeOf<Parameters<Handler<'agent/pre-step'>>[1]>().toEqualTypeOf<() => Promise<Entered>>()
    expectTypeOf<HandlerOptions<'agent/turn-end'>>().not.toHaveProperty('tools')
    expectTypeOf<HandlerOptions<'agent/pre-tool-use'>>().toHaveProperty('tools')
    expectTypeOf<Awaited<ReturnType<typeof dispatched>>>().toEqualTypeOf<Verdict<ToolResult>>()
  })
  it('make decisions of the makers', () => {
    expectTypeOf(enter([] as readonly Message[])).toHaveProperty('kind').toEqualTypeOf<'enter'>()
    expect(plugin).toBeTypeOf('function')
  })
})
const dispatched = (hooks: Dispatcher, payload: Payload<'agent/post-tool-use'>) => hooks.dispatch('agent/post-tool-use', payload)

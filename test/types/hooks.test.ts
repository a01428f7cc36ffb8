/** What the compiler holds. Most of it is checked by `tsc`: an expected error that isn't one fails the typecheck. */
import { describe, expect, expectTypeOf, it } from 'vitest'
import { allow, block, enter, proceed, reject, send } from '../../core/agent/hooks.js'
import type { Entered, Judged } from '../../core/agent/hooks.js'
import type { Message, ToolResult } from '../../core/agent/vocabulary.js'
import type { Dispatcher, Verdict } from '../../core/kernel/dispatch.js'
import type { Amend, Context, Decide, Handler, HandlerOptions, Payload, Watch } from '../../core/kernel/hooks.js'

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

describe('types of hooks', () => {
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

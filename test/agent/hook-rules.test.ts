import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { OTHER_NAMES, OWN_RULES, RULES, TOOL_HOOKS } from '../../core/agent/hook-rules.js'
import { accept, allow, answer, ask, block, enter, proceed, reject, send, stop, type Entered, type ToolDecision } from '../../core/agent/hooks.js'
import { type Message, userMessage } from '../../core/agent/vocabulary.js'
import { message, payloads, testHooks, texts } from '../support/hooks.js'

const source = (id: string) => ({ kind: 'plugin', id })
/** The verdict of handlers that return these, outermost first; `true` beside one: it calls next() before. */
async function judged(...handlers: readonly (readonly [unknown, boolean])[]) {
  const made = testHooks()
  handlers.forEach(([decision, asks], i) => made.plugin('abcdef'[i]!).on('agent/pre-tool-use', async (_, next) => { if (asks) await next(); return decision as ToolDecision }))
  return { ...await made.hooks.dispatch('agent/pre-tool-use', payloads.call()), reports: made.reports }
}
function entered(value: Entered): Extract<Entered, { kind: 'enter' }> {
  if (value.kind !== 'enter') throw new Error(`rejected: ${value.reason}`)
  return value
}

describe('agent/pre-tool-use', () => {
  const KINDS = { block: block('outer'), ask: ask('outer'), answer: answer('outer'), allow: allow() }
  const INNER = { block: block('inner'), ask: ask('inner'), answer: answer('inner'), allow: allow() }
  const ORDER = ['block', 'ask', 'answer', 'allow'] as const
  const pairs = ORDER.flatMap(outer => ORDER.flatMap(inner => [false, true].map(asks => [outer, inner, asks] as const)))
  it.each(pairs)('lets the stricter of an outer %s and an inner %s stand (after next(): %s), of equals the outer', async (outer, inner, asks) => {
    const { value, plugin } = await judged([KINDS[outer], asks], [INNER[inner], false])
    const outerStands = ORDER.indexOf(outer) <= ORDER.indexOf(inner)
    expect([value.kind, plugin]).toEqual(outerStands ? [outer, 'a'] : [inner, 'b'])
  })
  it('comes to the strictest of any handlers, whatever they await; nobody makes it milder', async () => {
    const kind = fc.constantFrom(...ORDER, undefined)
    await fc.assert(fc.asyncProperty(fc.array(fc.tuple(kind, fc.boolean()), { maxLength: 6 }), async handlers => {
      const { value } = await judged(...handlers.map(([kind, asks]) => [kind && KINDS[kind], asks] as const))
      // one that blocks without next() ends the chain: who comes after it is not asked
      const end = handlers.findIndex(([kind, asks]) => kind === 'block' && !asks)
      const asked = handlers.slice(0, end < 0 ? undefined : end + 1).map(([kind]) => kind).filter(kind => kind !== undefined)
      expect(value.kind).toBe(asked.sort((a, b) => ORDER.indexOf(a) - ORDER.indexOf(b))[0] ?? 'allow')
    }), { numRuns: 200 })
  })
  it('ends the chain at a block', async () => {
    const { hooks, plugin } = testHooks()
    const seen: string[] = []
    plugin('a').on('agent/pre-tool-use', () => block('no'))
    plugin('b').on('agent/pre-tool-use', () => { seen.push('b') })
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    expect(seen).toEqual([])
  })
  it('hands the outermost answer along with an ask, wherever the two stand', async () => {
    for (const handlers of [
      [[ask('sure?'), false], [answer('first'), false], [answer('second'), false]],
      [[answer('first'), false], [ask('sure?'), false], [answer('second'), false]],
      [[answer('first'), true], [answer('second'), true], [ask('sure?'), false]],
      [[ask('sure?'), true], [allow(), true], [answer('first'), false]],
    ] as const) {
      const { value, answer } = await judged(...handlers)
      expect([value, answer?.value]).toEqual([ask('sure?'), { kind: 'answer', result: { content: 'first', isError: false } }])
    }
  })
  it('drops the answers when the call is blocked, and puts the outermost of two asks', async () => {
    expect((await judged([answer('x'), false], [block('no'), false])).answer).toBeUndefined()
    expect((await judged([ask('first'), false], [ask('second'), false]))).toMatchObject({ value: ask('first'), plugin: 'a' })
  })
  it('shows results in the shape of payloads to next()', async () => {
    const { hooks, plugin } = testHooks()
    let seen: unknown
    plugin('a').on('agent/pre-tool-use', async (_, next) => { seen = await next() })
    plugin('b').on('agent/pre-tool-use', () => answer('text'))
    await hooks.dispatch('agent/pre-tool-use', payloads.call())
    expect(seen).toEqual({ kind: 'answer', result: { content: 'text', isError: false } })
  })
  it('ranks a failure between a block and an ask', async () => {
    const boom = {} as ToolDecision
    expect(await judged([boom, true], [block('policy'), false])).toMatchObject({ value: block('policy'), failure: undefined })
    expect(await judged([boom, true], [ask('sure?'), false])).toMatchObject({ plugin: 'a', failure: 'hook_failed' })
    expect(await judged([ask('sure?'), true], [boom, false])).toMatchObject({ plugin: 'b', failure: 'hook_failed' })
    expect(await judged([block('policy'), true], [boom, false])).toMatchObject({ value: block('policy'), plugin: 'a', failure: undefined })
  })
  it.each([
    ['{}', {}], ['false', false], ['true', true], ['a string', 'block'], ['42', 42], ['an unknown kind', { kind: 'deny', reason: 'x' }], ['kind __proto__', JSON.parse('{"kind":"__proto__"}')], ['kind constructor', { kind: 'constructor' }],
    ['a block without reason', { kind: 'block' }], ['a block with an empty reason', { kind: 'block', reason: ' ' }], ['a reason that is no string', { kind: 'ask', reason: 42 }], ['an extra field', { kind: 'allow', reason: 'why not' }],
    ['a wrong answer', { kind: 'answer', result: 42 }], ['a function inside', { kind: 'block', reason: 'x', log: () => {} }], ['a class instance', new (class { kind = 'allow' })()], ['a list', [allow()]],
    ['a throwing getter', { get kind() { throw new Error('mine') } }], ['a decision of another hook', reject('x')],
  ])('fails closed on %s, and no word of it reaches the model', async (_, value) => {
    const { value: decision, failure, reports } = await judged([value, false], [allow(), false])
    expect(failure).toBe('hook_failed')
    expect(decision).toMatchObject({ kind: 'block', reason: expect.stringMatching(/^plugin "a" could not judge this call \(it (returned a wrong value|threw an error)\)$/) })
    expect(reports).toHaveLength(1)
  })
  it('says what a decision may be', async () => {
    expect((await judged([{ kind: 'deny' }, false])).reports[0]?.message).toContain('plugin "a": its handler of "agent/pre-tool-use" failed: a decision is one of block, ask, answer, allow, or nothing; received {"kind":"deny"}')
    expect((await judged([{ kind: 'allow', why: 1 }, false])).reports[0]?.message).toContain('"allow" takes no "why"')
  })
})

describe('agent/user-prompt-submit and agent/pre-step', () => {
  it('keep what is there, in order, and stamp the source of what is new, whatever stands there', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/user-prompt-submit', ({ messages }) => accept(['before', ...messages, { role: 'system', content: 'after', source: { kind: 'user' } } as never]))
    const { value } = await hooks.dispatch('agent/user-prompt-submit', payloads.prompt('hi'))
    expect(value).toEqual({ kind: 'accept', messages: [
      { role: 'user', content: [{ type: 'text', text: 'before' }], source: source('a') }, message('hi'), { role: 'system', content: [{ type: 'text', text: 'after' }], source: source('a') },
    ] })
  })
  it('carry what was decided without next() on to the later handlers, never past them', async () => {
    const { hooks, plugin } = testHooks()
    let seen: string[] = []
    plugin('a').on('agent/pre-step', ({ messages }) => enter([...messages, 'a']))
    plugin('b').on('agent/pre-step', ({ messages }) => { seen = texts(messages); return enter([...messages, 'b']) })
    plugin('c').on('agent/pre-step', async (_, next) => { const d = await next(); return d.kind === 'reject' ? d : { ...d, messages: ['c', ...d.messages] } })
    const { value, plugin: who, trace } = await hooks.dispatch('agent/pre-step', payloads.step('one'))
    const { messages } = entered(value)
    expect([seen, texts(messages), messages.map(({ source }) => source?.id), who]).toEqual([['one', 'a'], ['c', 'one', 'a', 'b'], ['c', undefined, 'a', 'b'], 'c'])
    expect(trace.map(({ plugin, kind }) => `${plugin} ${kind}`)).toEqual(['a enter', 'b enter', 'c enter'])
  })
  it('keep each adder’s source through an outer copy, by value too', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-step', async (_, next) => { const d = await next(); return d.kind === 'reject' ? d : enter(structuredClone(d.messages) as Message[]) })
    plugin('b').on('agent/pre-step', ({ messages }) => enter([...messages, 'note']))
    expect(entered((await hooks.dispatch('agent/pre-step', payloads.step('one'))).value).messages.map(({ source }) => source?.id)).toEqual([undefined, 'b'])
  })
  it.each([
    ['drops one', (messages: readonly Message[]) => messages.slice(1)],
    ['changes the order', (messages: readonly Message[]) => [...messages].reverse()],
    ['edits one', (messages: readonly Message[]) => messages.map(({ role }) => ({ role, content: 'edited' }))],
    ['knows none of them', () => ['note']],
  ])('fail closed on a decision that %s, and say how it is done', async (_, change) => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-step', ({ messages }) => enter(change(messages)))
    expect(await hooks.dispatch('agent/pre-step', payloads.step('one', 'two'))).toMatchObject({ value: { kind: 'reject', reason: 'plugin "a" could not judge this step (it returned a wrong value)' }, failure: 'hook_failed' })
    expect(reports[0]?.message).toContain('messages must keep all 2 that were there, in order: return enter([...messages, "yours"]); after next(), start from its decision')
  })
  it('demand after next() what its decision holds', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/pre-step', async ({ messages }, next) => { await next(); return enter([...messages, 'mine']) })
    plugin('b').on('agent/pre-step', ({ messages }) => enter([...messages, 'theirs']))
    expect((await hooks.dispatch('agent/pre-step', payloads.step('one'))).failure).toBe('hook_failed')
    expect(reports[0]?.message).toContain('must keep all 2')
  })
  it('accept any way of adding to any messages, and nothing that loses one', async () => {
    const words = fc.array(fc.string({ maxLength: 3 }), { maxLength: 4 })
    await fc.assert(fc.asyncProperty(words, fc.array(fc.tuple(fc.nat(8), fc.string({ maxLength: 3 })), { maxLength: 4 }), fc.option(fc.nat(3)), async (there, added, lost) => {
      const { hooks, plugin } = testHooks()
      plugin('a').on('agent/pre-step', ({ messages }) => {
        const all: (Message | string)[] = [...messages]
        if (lost !== null && lost < all.length) all.splice(lost, 1)
        for (const [at, text] of added) all.splice(at, 0, text)
        return enter(all)
      })
      const { value } = await hooks.dispatch('agent/pre-step', payloads.step(...there))
      if (lost !== null && lost < there.length && new Set(there).size === there.length) expect(value.kind).toBe('reject')
      if (lost === null) expect(entered(value).messages.filter(({ source }) => !source)).toEqual(there.map(message))
    }), { numRuns: 200 })
  })
  it('end the chain at a reject, which nobody can undo', async () => {
    const { hooks, plugin } = testHooks()
    const seen: string[] = []
    plugin('a').on('agent/user-prompt-submit', async ({ messages }, next) => { const d = await next(); seen.push(d.kind); return accept(messages) })
    plugin('b').on('agent/user-prompt-submit', ({ messages }) => accept([...messages, 'b']))
    plugin('c').on('agent/user-prompt-submit', () => reject('not here'))
    plugin('d').on('agent/user-prompt-submit', () => { seen.push('d') })
    expect(await hooks.dispatch('agent/user-prompt-submit', payloads.prompt('hi'))).toMatchObject({ value: reject('not here'), plugin: 'c', failure: undefined })
    expect(seen).toEqual(['reject'])
    expect(hooks.list()[0]!.handlers.map(({ blocks }) => blocks)).toEqual([0, 0, 1, 0])
  })
  it('let a reject after next() stand over a failure inside', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-step', async (_, next) => { await next(); return reject('policy') })
    plugin('b').on('agent/pre-step', () => { throw new Error('boom') })
    expect(await hooks.dispatch('agent/pre-step', payloads.step())).toMatchObject({ value: reject('policy'), plugin: 'a', failure: undefined })
  })
  it('keep a compact that is left out, and of two the outermost, with and without next()', async () => {
    const compact = (through: number) => ({ through, messages: [`summary ${through}`] })
    const through = async (...handlers: readonly (readonly [number | undefined, boolean])[]) => {
      const { hooks, plugin } = testHooks()
      handlers.forEach(([seq, asks], i) => plugin('abc'[i]!).on('agent/pre-step', async ({ messages }, next) => {
        const d = asks ? await next() : undefined
        return enter(d?.kind === 'enter' ? d.messages : messages, seq === undefined ? {} : { compact: compact(seq) })
      }))
      const { compact: made } = entered((await hooks.dispatch('agent/pre-step', payloads.step('one'))).value)
      return made && [made.through, texts(made.messages)[0], made.messages[0]?.source?.id]
    }
    expect(await through([1, false], [undefined, false])).toEqual([1, 'summary 1', 'a'])
    expect(await through([undefined, true], [2, false])).toEqual([2, 'summary 2', 'b'])
    expect(await through([undefined, false], [2, false])).toEqual([2, 'summary 2', 'b'])
    expect(await through([1, false], [2, false])).toEqual([1, 'summary 1', 'a'])
    expect(await through([1, true], [2, false])).toEqual([1, 'summary 1', 'a'])
    expect(await through([undefined, false])).toBeUndefined()
  })
  it('keep messages of the session in a compact as they are, calls and sources too; of a result the content may be another', async () => {
    const call: Message = { role: 'assistant', content: [], source: { kind: 'model', id: 'm' }, toolCalls: [{ id: 'c1', name: 'bash', arguments: '{}' }] }
    const result: Message = { role: 'tool', content: [{ type: 'text', text: 'much' }], source: { kind: 'tool', id: 'bash' }, toolCallId: 'c1' }
    const session = [message('hi'), call, result], payload = { ...payloads.step(), session: { ...payloads.step().session, messages: session } }
    const compacted = async (messages: readonly unknown[]) => {
      const { hooks, plugin } = testHooks()
      plugin('a').on('agent/pre-step', () => enter([], { compact: { through: 3, messages: messages as never } }))
      const { value, failure } = await hooks.dispatch('agent/pre-step', payload)
      return failure ?? entered(value).compact?.messages
    }
    const less = [{ type: 'text', text: 'less' }]
    expect(await compacted(session)).toEqual(session)
    expect(await compacted(['note', call, { ...result, content: less }])).toEqual([{ role: 'user', content: [{ type: 'text', text: 'note' }], source: source('a') }, call, { ...result, content: less }])
    expect(await compacted([call, { ...result, content: less, source: { kind: 'user' } }])).toEqual([call, { ...result, content: less }])
    for (const made of [[{ ...call, toolCalls: [{ id: 'c1', name: 'rm', arguments: '{}' }] }], [{ ...result, toolCallId: 'c2' }], [result, call], [{ ...result, content: 7 }]]) expect(await compacted(made)).toBe('hook_failed')
  })
  it('drop a compact when the step is rejected', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-step', ({ messages }) => enter(messages, { compact: { through: 3, messages: [] } }))
    plugin('b').on('agent/pre-step', () => reject('no'))
    expect((await hooks.dispatch('agent/pre-step', payloads.step('one'))).value).toEqual(reject('no'))
  })
  it.each([
    ['a role for results', [{ role: 'tool', content: 'x' }]], ['tool calls', [{ role: 'assistant', content: 'x', toolCalls: [] }]], ['content that is none', [{ role: 'user', content: 42 }]], ['a text part without text', [{ role: 'user', content: [{ type: 'text' }] }]],
    ['no list', 'text'], ['a number', [42]],
  ])('refuse messages with %s', async (_, messages) => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-step', () => enter(messages as never))
    expect((await hooks.dispatch('agent/pre-step', payloads.step())).failure).toBe('hook_failed')
  })
  it('take other parts than text as they are', async () => {
    const { hooks, plugin } = testHooks()
    const image = { type: 'image_url', image_url: { url: 'data:' } }
    plugin('a').on('agent/pre-step', ({ messages }) => enter([...messages, { role: 'user', content: [image] }]))
    expect(entered((await hooks.dispatch('agent/pre-step', payloads.step())).value).messages).toEqual([{ role: 'user', content: [image], source: source('a') }])
  })
  it.each([{ through: 0, messages: [] }, { through: 1.5, messages: [] }, { through: 1 }, { through: 1, messages: [], more: 1 }, { through: 1, messages: [], asked: true }, 'all'])('refuse compact %j', async compact => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/pre-step', ({ messages }) => enter(messages, { compact } as never))
    expect((await hooks.dispatch('agent/pre-step', payloads.step())).failure).toBe('hook_failed')
  })
})

describe('agent/pre-request', () => {
  const sent = async (...decisions: readonly (readonly [object, boolean])[]) => {
    const { hooks, plugin, reports } = testHooks()
    const seen: unknown[] = []
    decisions.forEach(([change, asks], i) => plugin('abc'[i]!).on('agent/pre-request', async ({ model, options, tools }, next) => {
      seen.push([model, options, tools.map(({ name }) => name)])
      if (asks) await next()
      return send(change)
    }))
    return { ...await hooks.dispatch('agent/pre-request', payloads.request()), seen, reports }
  }
  it('leaves unchanged what is left out, option by option, and shows the later handlers what was changed', async () => {
    const { value, seen } = await sent([{ model: 'openai/x' }, false], [{ options: { temperature: 0 } }, false], [{ tools: ['bash'] }, false])
    expect(value).toEqual({ kind: 'send', model: 'openai/x', options: { temperature: 0, max_tokens: 100 }, tools: ['bash'] })
    expect(seen).toEqual([['deepseek/chat', { temperature: 1, max_tokens: 100 }, ['bash', 'read_file']], ['openai/x', { temperature: 1, max_tokens: 100 }, ['bash', 'read_file']], ['openai/x', { temperature: 0, max_tokens: 100 }, ['bash', 'read_file']]])
  })
  it('builds on the decision of next(), and takes out an option that is undefined', async () => {
    const { value } = await sent([{ options: { temperature: undefined, seed: 1 } }, true], [{ model: 'openai/x', options: { temperature: 0 } }, false])
    expect(value).toEqual({ kind: 'send', model: 'openai/x', options: { max_tokens: 100, seed: 1 }, tools: ['bash', 'read_file'] })
  })
  it('lets tools only become fewer, also after next()', async () => {
    expect((await sent([{ tools: ['bash', 'other'] }, false])).failure).toBe('hook_failed')
    const { value, reports } = await sent([{ tools: ['bash', 'read_file'] }, true], [{ tools: ['bash'] }, false])
    expect([value, reports[0]?.message]).toEqual([reject('plugin "a" could not judge this request (it returned a wrong value)'), expect.stringContaining('tools can only become fewer: "read_file" was not there')])
    expect((await sent([{ tools: [] }, false])).value).toMatchObject({ tools: [] })
  })
  it.each([[{ messages: [] }, 'takes no "messages"'], [{ model: '' }, 'model must be a name'], [{ options: [] }, 'options must be an object'], [{ tools: 'bash' }, 'tools must be a list of names']])('refuses %j', async (change, says) => {
    const { failure, reports } = await sent([change, false])
    expect([failure, reports[0]?.message]).toEqual(['hook_failed', expect.stringContaining(says)])
  })
})

describe('agent/stop', () => {
  it('asks all, and lets the outermost continue count', async () => {
    const { hooks, plugin } = testHooks()
    const seen: string[] = []
    const decisions = [stop(), proceed('b'), proceed('c'), stop()]
    decisions.forEach((decision, i) => plugin('abcd'[i]!).on('agent/stop', () => { seen.push('abcd'[i]!); return decision }))
    expect(await hooks.dispatch('agent/stop', payloads.stop())).toMatchObject({ value: { kind: 'continue', message: { role: 'user', content: [{ text: 'b' }], source: source('b') } }, plugin: 'b' })
    expect(seen).toEqual(['a', 'b', 'c', 'd'])
  })
  it('takes no refusal of another hook, and goes on without an opinion', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/stop', () => block('x') as never)
    expect((await hooks.dispatch('agent/stop', payloads.stop())).value).toEqual(stop())
    expect(reports).toHaveLength(1)
  })
})

describe('amend', () => {
  it('hands a value without next() to the later ones, and shows next() the value as they left it', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/system-prompt', ({ sections }) => [...sections, { id: 'a', text: 'a' }])
    plugin('b').on('agent/system-prompt', async (_, next) => { const sections = await next(); return [{ id: 'b', text: String(sections.length) }, ...sections] })
    plugin('c').on('agent/system-prompt', ({ sections }) => sections.filter(({ id }) => id !== 'core'))
    const { value, trace, plugin: who } = await hooks.dispatch('agent/system-prompt', payloads.sections('core', 'more'))
    expect(value.map(({ id, text }) => `${id}=${text}`)).toEqual(['b=2', 'more=more', 'a=a'])
    expect([trace.map(({ plugin, kind }) => `${plugin} ${kind}`), who]).toEqual([['a amended', 'c amended', 'b amended'], 'b'])
  })
  it('takes a value of the outermost after a next() that was not awaited', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/post-tool-use', (_, next) => { void next(); return 'a' })
    plugin('b').on('agent/post-tool-use', () => 'b')
    expect((await hooks.dispatch('agent/post-tool-use', payloads.result())).value.content).toBe('a')
  })
  it('counts an equal value as no change', async () => {
    const { hooks, plugin } = testHooks()
    plugin('a').on('agent/tool-arguments', async (_, next) => ({ ...await next() }))
    plugin('b').on('agent/tool-arguments', ({ call }) => ({ ...call.arguments }))
    const { value, plugin: who, trace } = await hooks.dispatch('agent/tool-arguments', payloads.call())
    expect([value, who, trace]).toEqual([{ command: 'ls' }, undefined, []])
  })
  it('names who changed the arguments, and takes a rewrite that does not fit for a wrong value', async () => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/tool-arguments', () => ({ comand: 'typo' }))
    plugin('b').on('agent/tool-arguments', ({ call }) => ({ command: `nice ${String(call.arguments['command'])}` }))
    const { value, plugin: who } = await hooks.dispatch('agent/tool-arguments', payloads.call(), { check: value => 'command' in (value as object) ? undefined : 'command is missing' })
    expect([value, who, reports.map(({ plugin, message }) => `${plugin} ${message}`)]).toEqual([{ command: 'nice ls' }, 'b', [expect.stringContaining('a plugin "a": its handler of "agent/tool-arguments" failed: command is missing')]])
  })
  it('keeps context of every handler once, in order, with its source, and does not show it to next()', async () => {
    const { hooks, plugin } = testHooks()
    let seen: unknown
    plugin('a').on('agent/post-tool-use', async (_, next) => { seen = await next(); return { ...seen as object, content: 'a', context: ['a'] } })
    plugin('b').on('agent/post-tool-use', ({ result }) => ({ ...result, context: ['b', userMessage('b2')] }))
    plugin('c').on('agent/post-tool-use', () => ({ content: 'c', context: ['c'] }))
    const { value, context } = await hooks.dispatch('agent/post-tool-use', payloads.result())
    expect([value, seen]).toEqual([{ content: 'a', isError: false }, { content: 'c', isError: false }])
    expect(context?.map(message => [texts([message])[0], message.source.id])).toEqual([['a', 'a'], ['b', 'b'], ['b2', 'b'], ['c', 'c']])
  })
  it.each([
    ['agent/tool-arguments', 'text', payloads.call()], ['agent/tool-arguments', [], payloads.call()], ['agent/system-prompt', [{ id: 1, text: 'x' }], payloads.sections('core')], ['agent/system-prompt', { id: 'a', text: 'x' }, payloads.sections('core')],
    ['agent/post-tool-use', { content: 42 }, payloads.result()], ['agent/post-tool-use', { content: 'x', isError: 'no' }, payloads.result()], ['agent/post-tool-use', { content: 'x', context: 'text' }, payloads.result()],
  ] as const)('%s skips a handler that returns %j', async (hook, wrong, payload) => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on(hook as 'agent/system-prompt', () => wrong as never)
    const { trace } = await hooks.dispatch(hook as 'agent/system-prompt', payload as never)
    expect([trace.map(({ kind }) => kind), reports.length]).toEqual([['failed'], 1])
  })
})

describe('agent/request', () => {
  const reply = (text: string) => ({ message: { role: 'assistant' as const, content: [{ type: 'text', text }] }, finish: 'stop' as const })
  it('lets next() change model and options, option by option, and nothing else', async () => {
    const { hooks, plugin } = testHooks()
    plugin('fallback').on('agent/request', async (_, next) => { try { return await next({ options: { temperature: 0 } }) } catch { return next({ model: 'openai/x' }) } })
    const sent: unknown[] = []
    const { value } = await hooks.dispatch('agent/request', payloads.request(), { inner: ({ model, options }) => {
      sent.push([model, options])
      if (model === 'deepseek/chat') throw new Error('down')
      return reply('hi')
    } })
    expect(value).toEqual(reply('hi'))
    expect(sent).toEqual([['deepseek/chat', { temperature: 0, max_tokens: 100 }], ['openai/x', { temperature: 1, max_tokens: 100 }]])
  })
  it.each([[{ messages: [] }, 'it takes {model?, options?} and nothing else'], ['x', 'it takes {model?, options?}'], [{ model: 42 }, 'model must be a name'], [{ options: { f: () => {} } }, 'must be plain data']])('refuses next(%j)', async (change, says) => {
    const { hooks, plugin, reports } = testHooks()
    plugin('a').on('agent/request', (_, next) => next(change as never))
    await expect(hooks.dispatch('agent/request', payloads.request(), { inner: () => reply('hi') })).rejects.toThrow('it misused next()')
    expect(reports[0]?.message).toContain(says)
  })
  it('takes a reply from a handler, and refuses what is none', async () => {
    for (const [value, good] of [[reply('cached'), true], [{ ...reply('x'), finish: undefined }, false], ['text', false], [{ message: { role: 'user', content: [] }, finish: 'stop' }, false]] as const) {
      const { hooks, plugin } = testHooks()
      plugin('cache').on('agent/request', () => value as never)
      const dispatched = hooks.dispatch('agent/request', payloads.request(), { inner: () => reply('hi') })
      if (good) expect((await dispatched).value).toEqual(value)
      else await expect(dispatched).rejects.toThrow('plugin "cache" failed in "agent/request": it returned a wrong value')
    }
  })
})

describe('the table', () => {
  it('has a rule for every hook, fail closed on four, guarded on three, with a call on seven', () => {
    const named = (which: (rule: (typeof RULES)[keyof typeof RULES]) => unknown) => Object.entries(RULES).filter(([, rule]) => which(rule)).map(([hook]) => hook.slice(6))
    expect(Object.keys(RULES)).toHaveLength(22)
    expect(named(({ closed }) => closed)).toEqual(['user-prompt-submit', 'pre-step', 'pre-request', 'pre-tool-use'])
    expect(named(({ guarded }) => guarded)).toEqual(['user-prompt-submit', 'pre-step', 'pre-tool-use'])
    expect(TOOL_HOOKS).toEqual(['agent/tool-arguments', 'agent/pre-tool-use', 'agent/tool-use', 'agent/post-tool-use', 'agent/tool-start', 'agent/tool-end', 'agent/ask'])
    expect(Object.values(OWN_RULES).map(({ guarded }) => guarded)).toEqual([false, false, false, false])
  })
  it('names no name of another tool twice', () => {
    const names = Object.values(OTHER_NAMES).flat().map(name => name.toLowerCase().replace(/[^a-z0-9]/g, ''))
    expect(new Set(names).size).toBe(names.length)
  })
})

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { INTERRUPTED } from '../../core/agent/conversation.js'
import { buildRequest, checkPairs, estimateTokens, Transcript } from '../../core/agent/request.js'
import type { SessionEvent, SessionEventBody } from '../../core/agent/session-events.js'
import { text, textOf, type Message } from '../../core/agent/vocabulary.js'
import { calls, result, says, turnStart } from './session-store.contract.js'

const request = (more: Partial<Extract<SessionEventBody, { type: 'request' }>> = {}): SessionEventBody => ({ type: 'request', turn: 1, step: 0, model: 'm/x', options: {}, attempt: 1, ...more })
const compaction = (through: number, ...messages: Message[]): SessionEventBody => ({ type: 'compaction', turn: 1, step: 0, through, messages, source: { kind: 'plugin', id: 'compact' } })
const log = (...bodies: SessionEventBody[]): SessionEvent[] => bodies.map((body, index) => ({ seq: index + 1, ts: '2026-11-30T00:00:00.000Z', ...body }))
const user = (content: string): Message => ({ role: 'user', content: [text(content)] })
/** What stands in a request, one short line a message. */
const lines = (messages: readonly Message[]): string[] => messages.map(({ role, content, toolCalls, toolCallId }) =>
  `${role}${toolCallId ? ` ${toolCallId}` : ''}: ${textOf({ content }) === INTERRUPTED ? 'interrupted' : textOf({ content })}${toolCalls ? `[${toolCalls.map(call => call.id).join()}]` : ''}`)

describe('buildRequest', () => {
  it('sends the last system text, the conversation, the last tools, and the options of the last request', () => {
    const tool = (name: string) => ({ name, description: '', parameters: { type: 'object' } })
    const built = buildRequest(log(
      { type: 'system', text: 'old' }, turnStart(1), says('hello'), { type: 'tools', tools: [tool('a')] }, request(), says('hi', { role: 'assistant' }),
      { type: 'system', text: 'new' }, { type: 'tools', tools: [tool('a'), tool('b'), tool('c')] }, says('more'),
      request({ model: 'router/vendor/model-1', options: { temperature: 0 }, tools: ['c', 'a'] }),
    ))
    expect(built).toMatchObject({ model: 'vendor/model-1', options: { temperature: 0 }, tools: [{ name: 'a' }, { name: 'c' }] })
    expect(lines(built.messages)).toEqual(['system: new', 'user: hello', 'assistant: hi', 'user: more'])
  })

  it('has no system message when there is no system text', () => {
    expect(lines(buildRequest(log(says('a'), request())).messages)).toEqual(['user: a'])
    expect(lines(buildRequest(log({ type: 'system', text: '' }, says('a'), request())).messages)).toEqual(['user: a'])
  })

  it('says when there is no request to build', () => {
    expect(() => buildRequest(log(says('a')))).toThrow(/holds none/)
  })

  it('puts results behind their message in the order of the calls, then what came meanwhile', () => {
    const built = buildRequest(log(says('go'), calls('a', 'b', 'c'), result('c', 'C'), says('context'), result('a', 'A'), result('b', 'B'), request()))
    expect(lines(built.messages)).toEqual(['user: go', 'assistant: [a,b,c]', 'tool a: A', 'tool b: B', 'tool c: C', 'user: context'])
  })

  it('tells calls apart whose ids come again, in a later reply and in the same', () => {
    const built = buildRequest(log(calls('a'), result('a', '1'), calls('a', 'a'), result('a', '2'), result('a', '3'), request()))
    expect(lines(built.messages)).toEqual(['assistant: [a]', 'tool a: 1', 'assistant: [a,a]', 'tool a: 2', 'tool a: 3'])
  })

  it('answers a call that has no result, and drops a result that has no call', () => {
    const built = buildRequest(log(calls('a', 'b'), result('x', 'lost'), result('b', 'B'), says('next'), calls('c'), request()))
    expect(lines(built.messages)).toEqual(['assistant: [a,b]', 'tool a: interrupted', 'tool b: B', 'user: next', 'assistant: [c]', 'tool c: interrupted'])
  })

  it('sends a system message of mid-conversation as text of the user', () => {
    expect(lines(buildRequest(log({ type: 'system', text: 's' }, says('a'), says('note', { role: 'system' }), request())).messages)).toEqual(['system: s', 'user: a', 'user: note'])
  })

  it('keeps what must go back untouched: unknown fields of calls and messages, reasoning, odd parts', () => {
    const toolCalls = [{ id: 'a', name: 'bash', arguments: '{"x": 1}', extra: { extra_content: { google: { thought_signature: 'abc' } } } }]
    const content = [{ type: 'image_url', image_url: { url: 'data:' } }]
    const built = buildRequest(log(says('', { role: 'assistant', content, toolCalls, reasoning: 'hm', extra: { refusal: null } }), result('a'), request()))
    expect(built.messages[0]).toMatchObject({ content, toolCalls, reasoning: 'hm', extra: { refusal: null } })
  })

  it('leaves out what is no part of the conversation: broken replies, errors, warnings', () => {
    const built = buildRequest(log(says('a'), request(), { type: 'error', turn: 1, step: 0, phase: 'request', code: 'model_failed', message: 'no', partial: 'half a' }, { type: 'warning', turn: 1, step: 0, message: 'w' }, request({ attempt: 2 })))
    expect(lines(built.messages)).toEqual(['user: a'])
  })
})

describe('a compaction', () => {
  it('puts its messages in the place of all up to its seq', () => {
    const built = buildRequest(log({ type: 'system', text: 's' }, says('1'), says('2', { role: 'assistant' }), says('3'), compaction(3, user('so far')), request()))
    expect(lines(built.messages)).toEqual(['system: s', 'user: so far', 'user: 3'])
  })
  it('never cuts between a call and its results: they stay whole', () => {
    const events = [says('1'), calls('a', 'b'), result('a', 'A'), result('b', 'B'), says('5')]
    for (const through of [2, 3]) expect(lines(buildRequest(log(...events, compaction(through, user('sum')), request())).messages), `${through}`).toEqual(['user: sum', 'assistant: [a,b]', 'tool a: A', 'tool b: B', 'user: 5'])
    expect(lines(buildRequest(log(...events, compaction(4, user('sum')), request())).messages)).toEqual(['user: sum', 'user: 5'])
  })
  it('keeps a call that still runs', () => {
    expect(lines(buildRequest(log(says('1'), calls('a'), compaction(2, user('sum')), result('a', 'A'), request())).messages)).toEqual(['user: sum', 'assistant: [a]', 'tool a: A'])
  })
  it('may be followed by another, which takes in the first', () => {
    const built = buildRequest(log(says('1'), says('2'), compaction(2, user('one')), says('4'), says('5'), compaction(4, user('two')), request()))
    expect(lines(built.messages)).toEqual(['user: two', 'user: 5'])
  })
  it('may bring calls with their results, and its loose ones do no harm', () => {
    const assistant: Message = { role: 'assistant', content: [], toolCalls: [{ id: 'k', name: 'bash', arguments: '' }] }, tool = (toolCallId: string): Message => ({ role: 'tool', content: [text(toolCallId)], toolCallId })
    const built = buildRequest(log(says('1'), compaction(1, tool('lost'), assistant, tool('k'), { role: 'system', content: [text('sum')] }), request()))
    expect(lines(built.messages)).toEqual(['assistant: [k]', 'tool k: k', 'user: sum'])
  })
})

describe('Transcript', () => {
  it('gives one snapshot until the next message, which never changes', () => {
    const transcript = new Transcript(log(says('1'), calls('a')))
    const before = transcript.messages()
    expect(transcript.messages()).toBe(before)
    transcript.append({ seq: 3, ts: '', type: 'warning', turn: 1, step: 0, message: '' })
    expect(transcript.messages()).toBe(before)
    transcript.append({ seq: 4, ts: '', ...result('a') })
    expect(before).toHaveLength(2)
    expect(transcript.messages()).toHaveLength(3)
    expect(() => (before as Message[]).push(user('x'))).toThrow(TypeError)
    expect(() => { (before[0] as { role: string }).role = 'tool' }).toThrow(TypeError)
  })

  it('shows calls that run without an answer, where a request reads interrupted', () => {
    const transcript = new Transcript(log(calls('a', 'b'), result('b'), request()))
    expect(lines(transcript.messages())).toEqual(['assistant: [a,b]', 'tool b: done'])
    expect(lines(transcript.request().messages)).toEqual(['assistant: [a,b]', 'tool a: interrupted', 'tool b: done'])
  })

  const id = fc.constantFrom('a', 'b', 'c')
  const message: fc.Arbitrary<Message> = fc.oneof(
    fc.record({ role: fc.constantFrom('user' as const, 'system' as const, 'assistant' as const), content: fc.constant([text('m')]) }),
    fc.array(id, { minLength: 1, maxLength: 3 }).map((ids): Message => ({ role: 'assistant', content: [], toolCalls: ids.map(call => ({ id: call, name: 'bash', arguments: '{}' })) })),
    id.map((toolCallId): Message => ({ role: 'tool', content: [text('r')], toolCallId })),
  )
  const body: fc.Arbitrary<SessionEventBody> = fc.oneof(
    message.map((it): SessionEventBody => it.role === 'tool' ? result(it.toolCallId!) : says(textOf(it), { role: it.role, content: it.content, ...it.toolCalls && { toolCalls: it.toolCalls } })),
    id.map(call => result(call)),
    fc.tuple(fc.nat(30), fc.array(message, { maxLength: 3 })).map(([through, messages]) => compaction(through, ...messages)),
    fc.constantFrom<SessionEventBody>(request(), { type: 'system', text: 's' }, { type: 'archived' }, turnStart(1)),
  )

  it('step by step is the same as from scratch, for any events, read at any time', () => {
    fc.assert(fc.property(fc.array(fc.tuple(body, fc.boolean()), { maxLength: 40 }), steps => {
      const events = log(request(), ...steps.map(([event]) => event))
      const transcript = new Transcript()
      for (const [index, event] of events.entries()) {
        transcript.append(event)
        if (index > 0 && steps[index - 1]![1]) { transcript.messages(); transcript.request() }
      }
      expect(transcript.request()).toEqual(buildRequest(events))
      expect(transcript.messages()).toEqual(new Transcript(events).messages())
    }))
  })

  it('makes a valid request of any events: each call has its one answer behind it, and system comes first or not at all', () => {
    fc.assert(fc.property(fc.array(body, { maxLength: 40 }), bodies => {
      const { messages } = buildRequest(log(request(), ...bodies))
      expect(checkPairs(messages)).toBeUndefined()
      expect(messages.slice(1).every(({ role }) => role !== 'system')).toBe(true)
    }))
  })

  it('costs a step its own events only', () => {
    const long = new Transcript(log(...Array.from({ length: 5000 }, (_, index) => says(`${index}`))))
    const before = long.messages()
    long.append({ seq: 5001, ts: '', ...says('new') })
    const after = long.messages()
    expect(after.slice(0, -1).every((each, index) => each === before[index])).toBe(true)
  })

  it('costs a step about the same after 10,000 messages as after 20', () => {
    const cost = (size: number): number => {
      const transcript = new Transcript(log(request(), ...Array.from({ length: size / 2 }, (_, index) => [calls(`c${index}`), result(`c${index}`)]).flat()))
      let seq = transcript.request().messages.length + 1, least = Infinity
      for (let round = 0; round < 200; round++) {
        const begun = performance.now()
        transcript.append({ seq: ++seq, ts: '', ...says('new') })
        transcript.messages()
        transcript.request()
        least = Math.min(least, performance.now() - begun)
      }
      return least
    }
    cost(20)
    expect(cost(10_000) / cost(20)).toBeLessThan(200)                    // copying the list is about 10, visiting each message is in the thousands
  })

  it('gives the same list again until something in it changes, and deeply frozen: results, stand-ins for results and the system text too', () => {
    const transcript = new Transcript(log({ type: 'system', text: 's' }, says('a'), calls('a', 'b'), result('a'), request()))
    const { messages } = transcript.request()
    expect(transcript.request().messages).toBe(messages)
    const frozen = (value: unknown): boolean => typeof value !== 'object' || value === null || (Object.isFrozen(value) && Object.values(value).every(frozen))
    expect(Object.isFrozen(messages)).toBe(true)
    for (const message of messages.filter(({ role }) => role === 'system' || role === 'tool')) expect(frozen(message), textOf(message)).toBe(true)      // the others are lines of the log, which the store froze
    transcript.append({ seq: 9, ts: '', type: 'system', text: 't' })
    expect(lines(transcript.request().messages)[0]).toBe('system: t')
    expect(lines(messages)[0]).toBe('system: s')
  })
})

describe('checkPairs', () => {
  const assistant = (...ids: string[]): Message => ({ role: 'assistant', content: [], toolCalls: ids.map(call => ({ id: call, name: 'bash', arguments: '' })) })
  const tool = (toolCallId: string): Message => ({ role: 'tool', content: [], toolCallId })
  it.each<[string, Message[], string | undefined]>([
    ['nothing', [], undefined],
    ['talk', [user('a'), { role: 'assistant', content: [] }], undefined],
    ['answered calls', [assistant('a', 'b'), tool('a'), tool('b'), user('x')], undefined],
    ['an open call at the end', [assistant('a', 'b'), tool('a')], 'the tool call "b" has no answer'],
    ['a message between', [assistant('a'), user('x'), tool('a')], 'message 2 comes before the answer to the tool call "a"'],
    ['an answer to nothing', [user('x'), tool('a')], 'message 2 answers the tool call "a", which is not open there'],
    ['two answers', [assistant('a'), tool('a'), tool('a')], 'message 3 answers the tool call "a", which is not open there'],
    ['an answer without id', [assistant('a'), { role: 'tool', content: [] }], 'message 2 answers the tool call "undefined", which is not open there'],
  ])('judges %s', (_, messages, problem) => { expect(checkPairs(messages)).toBe(problem) })
})

describe('estimateTokens', () => {
  it('grows with the text, counts calls and reasoning, and caps what is not text', () => {
    expect(estimateTokens(user(''))).toBe(4)
    expect(estimateTokens(user('x'.repeat(400)))).toBe(104)
    expect(estimateTokens(user('語'.repeat(400)))).toBe(304)
    expect(estimateTokens({ role: 'assistant', content: [], reasoning: 'x'.repeat(40), toolCalls: [{ id: 'a', name: 'b', arguments: 'x'.repeat(400) }] })).toBeGreaterThan(114)
    expect(estimateTokens({ role: 'user', content: [{ type: 'image_url', image_url: { url: 'x'.repeat(1_000_000) } }] })).toBe(1504)
  })
})

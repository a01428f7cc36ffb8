import { describe, expect, it } from 'vitest'
import { ModelError } from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import * as compaction from '../../plugins/compaction/index.js'
import { cutOf } from '../../plugins/compaction/cut.js'
import { task } from '../../plugins/compaction/task.js'
import { checkPairs } from '../../core/agent/request.js'
import { text, textOf, type Message } from '../../core/agent/vocabulary.js'
import { conversation, ofType, testAgent, until } from '../support/agent.js'

const LONG = 'a long answer '.repeat(400)                                 // about 1400 tokens
const few = { inputTokens: 0, outputTokens: 0 }                           // reports nothing: estimated
async function started(config: object = {}) {
  const agent = await testAgent()
  await agent.plugin('compaction', ctx => { compaction.apply(ctx, compaction.Config.parse({ above: 1000, keep: 0, ...config })) })
  await agent.tools({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, execute: () => 'seen' })
  return { ...agent, told: () => agent.lines.filter(({ plugin }) => plugin === 'compaction').map(({ level, message }) => `${level}: ${message.replace(/session "[^"]+"/, 'the session').replace(/about \d+/, 'about N')}`) }
}

describe('compaction', () => {
  it('puts a summary of the model in place of the turns that are over, once the conversation is long', async () => {
    const { model, run, told } = await started()
    model.says({ text: LONG, calls: [['look', {}]], usage: few }, { text: 'first answer', usage: few })
    const { session } = await run('first')
    model.says('THE SUMMARY', { text: 'second answer', usage: few })
    const { log, text } = await run('second', { session })
    expect(text).toBe('second answer')
    const [asked, sent] = model.requests.slice(-2)
    expect(asked!.tools).toEqual([])
    expect(textOf(asked!.messages[0]!)).toMatch(/^You summarise a conversation/)
    expect(textOf(asked!.messages[1]!)).toMatch(/\[user\]\nfirst\n\n\[agent\]\na long[^]*\[calls look\] \{\}\n\n\[result of look\]\nseen\n\n\[agent\]\nfirst answer/)
    expect(conversation(sent!)).toEqual(['user: Summary of the conversation so far, in place of its 4 messages:\n\nTHE SUMMARY', 'user: second'])
    expect(sent!.tools.map(({ name }) => name)).toEqual(['look'])
    expect(ofType(log, 'compaction')).toMatchObject([{ source: { kind: 'plugin', id: 'compaction' } }])
    expect(told().slice(1)).toEqual(['info: 4 messages of the session, which has about N tokens, give way to a summary'])
  })
  it('keeps the newest turns that fit, whole', async () => {
    const { model, run } = await started({ keep: 100 })
    model.says({ text: 'x'.repeat(3000), usage: few })
    const { session } = await run('one')
    model.says({ calls: [['look', {}]], usage: few }, { text: 'second answer', usage: few })
    await run('two', { session })
    model.says('SUMMARY', 'third answer')
    await run('three'.padEnd(2000), { session })
    const request = model.requests.at(-1)!
    expect(conversation(request).map(line => line.trim())).toEqual([expect.stringMatching(/^user: Summary .* its 2 messages:\n\nSUMMARY$/), 'user: two', 'assistant:', expect.stringMatching(/^tool .*seen$/), 'assistant: second answer', 'user: three'])
    expect(checkPairs(request.messages.slice(1))).toBeUndefined()
  })
  it('goes by what the endpoint reported, also after a resume', async () => {
    const first = await started()
    first.model.says({ text: 'short', usage: { inputTokens: 5000, outputTokens: 1 } })
    const { session } = await first.run('first')
    first.model.says('SUMMARY', 'second')
    expect(ofType((await first.run('go on', { session })).log, 'compaction')).toHaveLength(1)

    const { agent } = first
    first.model.says({ text: 'short again', usage: { inputTokens: 5000, outputTokens: 1 } })
    await first.run('more', { session })
    await agent.agents.close(session)
    first.model.says('SUMMARY 2', 'third')
    expect(ofType((await first.run('and more', { session })).log, 'compaction')).toHaveLength(1)
  })
  it('tries once a turn: when the model fails, it says so and the turn goes on with everything', async () => {
    const { model, run, told } = await started()
    model.says({ text: LONG, usage: few })
    const { session } = await run('first')
    model.says({ error: new ModelError('overloaded', 'busy') }, { calls: [['look', {}]], usage: few }, 'second answer')
    expect(await run('second', { session })).toMatchObject({ reason: 'completed', text: 'second answer' })
    expect(told()).toEqual(['error: the session has about N tokens and could not be summarised, so it goes on as it is: busy'])
    expect(conversation(model.requests.at(-1)!)).toHaveLength(5)
  })
  it('says when there is nothing to summarise, since all of it is the running turn', async () => {
    const { model, run, told } = await started()
    model.says({ text: LONG, calls: [['look', {}]], usage: few }, 'done')
    expect((await run('first')).reason).toBe('completed')
    expect(told()).toEqual(['warn: the session has about N tokens, and no turn that is over and not summarised yet; it goes on as it is'])
  })
  it('summarises at the next step after /compact, and heeds what stands there', async () => {
    const { agent, model, run, plugin } = await started({ above: 1_000_000 })
    model.says('one')
    const { session } = await run('first')
    expect(await agent.commands.run('compact', ' the names ', { session, cwd: '/', signal: new AbortController().signal })).toBe('The conversation so far is summarised before the next step.')
    const asked: unknown[] = []
    await plugin('outer', ctx => { ctx.on('agent/pre-step', async (_, next) => { const made = await next(); if (made.kind === 'enter' && made.compact) asked.push(made.compact.asked) }, { prepend: true }) })
    model.says('SUMMARY', 'two')
    await run('second', { session })
    expect(asked).toEqual(['the names'])
    expect(textOf(model.requests.at(-2)!.messages[1]!)).toMatch(/^Heed above all: the names\n/)
    expect(conversation(model.requests.at(-1)!)).toEqual([expect.stringContaining('SUMMARY'), 'user: second'])
    model.says('three')
    await run('third', { session })
    expect(conversation(model.requests.at(-1)!)).toHaveLength(4)
  })
  it('ends at once with the turn, and after its own limit goes on without', async () => {
    const { agent, model, run, cwd, told } = await started({ timeout: '400ms' })
    model.says({ text: LONG, usage: few })
    const { session } = await run('first')
    model.says({ deaf: true }, 'went on')
    const asked = model.requests.length, second = run('second', { session })
    await until(() => model.requests.length > asked)
    await new Promise(setImmediate)
    globalThis.gc!()                                         // which may not take the limit with it
    expect((await second).text).toBe('went on')
    expect(told().at(-1)).toMatch(/could not be summarised/)
    model.says({ deaf: true })
    const before = model.requests.length
    const third = await agent.agents.run({ prompt: 'third', session, cwd })
    await until(() => model.requests.length > before)
    agent.agents.abort(session)
    expect((await third.result).reason).toBe('aborted')
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const host = await createTestHost({ plugins: [], replies: ['one'] })
    const { result: { session } } = await host.run('first')
    await host.configure(['compaction'])
    await host.reload('compaction')
    host.says('two')
    expect((await host.run('second', { session })).result.text).toBe('two')
    await host.close()
  })
})

describe('the cut', () => {
  const user = (said: string): Message => ({ role: 'user', content: [text(said)] })
  const log = (...types: ('turn-start' | 'message' | 'compaction')[]) => types.map((type, index) => ({ type, seq: index + 1, ts: '', ...(type === 'compaction' && { through: index }) }) as never)
  it('is at the start of the earliest turn from which everything fits', () => {
    const events = log('turn-start', 'message', 'message', 'turn-start', 'message', 'message', 'turn-start', 'message')
    const messages = ['a', 'b', 'c', 'd', 'e'].map(user)
    expect(cutOf(events, messages, 0)?.through).toBe(7)
    expect(cutOf(events, messages, 1000)?.through).toBe(4)
  })
  it('is never before what was summarised already, and never leaves a summary of a summary', () => {
    expect(cutOf(log('turn-start', 'message', 'compaction', 'turn-start', 'message'), ['summary', 'b'].map(user), 0)).toBeUndefined()
    expect(cutOf([], [], 0)).toBeUndefined()
  })
})

describe('the task', () => {
  it('is bounded, whatever stands in the conversation', () => {
    const messages: Message[] = Array.from({ length: 50 }, (_, i) => ({ role: i % 2 ? 'tool' : 'user', content: [text('x'.repeat(5000))] }))
    expect(task(messages, undefined, 10_000).length).toBeLessThan(10_300)
  })
})

import { describe, expect, it } from 'vitest'
import { reject } from '../../core/agent/hooks.js'
import type { RunEvent, Tool } from '../../core/agent/services.js'
import { conversation, finished, ofType, testAgent, until, type TestAgent } from '../support/agent.js'

const write: Tool = { name: 'write', description: 'writes', parameters: { type: 'object' }, execute: () => 'written' }

/** Which sessions began and ended, and how. */
async function watchSessions({ plugin }: TestAgent): Promise<string[]> {
  const told: string[] = []
  await plugin('watch', ctx => {
    ctx.on('agent/session-start', ({ session, source, turn }) => { told.push(`start ${source} ${turn} ${session.messages.length}`) })
    ctx.on('agent/session-end', ({ reason }) => { told.push(`end ${reason}`) })
  })
  return told
}

describe('prompts of one session', () => {
  it('wait in order, and each ends with its own result', async () => {
    const { agent, model, cwd } = await testAgent()
    model.says('one', 'two', 'three')
    const first = await agent.agents.run({ prompt: '1', cwd })
    const others = await Promise.all(['2', '3'].map(prompt => agent.agents.run({ prompt, session: first.session })))
    expect(agent.agents.list()).toMatchObject([{ session: first.session, queued: 2 }])
    const results = await Promise.all([first, ...others].map(finished))
    expect(results.map(({ turn, text, reason }) => [turn, text, reason])).toEqual([[1, 'one', 'completed'], [2, 'two', 'completed'], [3, 'three', 'completed']])
    expect(results.map(({ log }) => [log[0]!.type, log.at(-1)!.type])).toEqual([['session', 'turn-end'], ['turn-start', 'turn-end'], ['turn-start', 'turn-end']])
    await until(() => agent.agents.list().length === 0)
    expect(conversation(model.requests[2]!)).toEqual(['user: 1', 'assistant: one', 'user: 2', 'assistant: two', 'user: 3'])
  })
  it('of a session that is opened by two at once meet on one lane', async () => {
    const { agent, model, run } = await testAgent()
    model.says('one', 'two', 'three')
    const { session } = await run('1')
    await agent.agents.close(session)
    const [a, b] = await Promise.all(['2', '3'].map(prompt => agent.agents.run({ prompt, session })))
    expect([(await a!.result).turn, (await b!.result).turn]).toEqual([2, 3])
  })
  it('are stopped one at a time; the next one runs', async () => {
    const { agent, model, cwd } = await testAgent()
    model.says({ hang: true }, 'two')
    const first = await agent.agents.run({ prompt: '1', cwd }), second = await agent.agents.run({ prompt: '2', session: first.session })
    await until(() => model.requests.length === 1)
    expect(agent.agents.abort(first.session)).toBe(true)
    expect([(await first.result).reason, (await second.result).reason]).toEqual(['aborted', 'completed'])
    await until(() => agent.agents.list().length === 0)
    expect(agent.agents.abort(first.session)).toBe(false)
  })
  it('are stopped one by one by whoever asked for them: one that waits leaves the turn that runs alone', async () => {
    const { agent, model, cwd } = await testAgent()
    model.says({ hang: true }, 'three')
    const first = await agent.agents.run({ prompt: '1', cwd })
    const [second, third] = await Promise.all(['2', '3'].map(prompt => agent.agents.run({ prompt, session: first.session })))
    await until(() => model.requests.length === 1)
    second!.abort('not needed any more')
    first.abort('enough')
    const results = await Promise.all([first, second!, third!].map(({ result }) => result))
    expect(results.map(({ reason, message }) => [reason, message])).toEqual([['aborted', 'enough'], ['aborted', 'not needed any more'], ['completed', undefined]])
    first.abort('too late')
    expect(model.requests).toHaveLength(2)
  })
  it('that are given up while they wait end as aborted, without a request', async () => {
    const { agent, model, cwd } = await testAgent()
    model.says({ hang: true })
    const controller = new AbortController()
    const first = await agent.agents.run({ prompt: '1', cwd }), second = await agent.agents.run({ prompt: '2', session: first.session, signal: controller.signal })
    controller.abort(new Error('changed my mind'))
    await until(() => model.requests.length === 1)
    agent.agents.abort(first.session)
    const ran = await finished(second)
    expect(ran).toMatchObject({ reason: 'aborted', stats: { steps: 0 } })
    expect(ran.log.map(event => event.type)).toEqual(['turn-start', 'turn-end'])
    expect(model.requests).toHaveLength(1)
  })
  it('from inside its own turn are refused, so that nobody waits for himself', async () => {
    const test = await testAgent()
    const refused: string[] = []
    await test.plugin('eager', ctx => {
      const again = async (session: string) => { try { await (await ctx.agents.run({ prompt: 'more', session })).result } catch (error) { refused.push((error as { code: string }).code) } }
      ctx.tools.register({ ...write, execute: async (_, { session }) => { await again(session.id); return 'x' } })
      ctx.on('agent/post-tool-use', async ({ session }) => { await again(session.id) })
    })
    test.model.says({ calls: [['write', {}]] }, 'done')
    expect((await test.run('go')).reason).toBe('completed')
    expect(refused).toEqual(['session_busy', 'session_busy'])
  })
  it('from a timer of a plugin wait like any other', async () => {
    const test = await testAgent()
    let later: Promise<unknown> | undefined
    await test.plugin('timer', ctx => {
      ctx.on('agent/turn-end', ({ session, turn }) => { if (turn === 1) ctx.setTimeout(() => { later = ctx.agents.run({ prompt: 'and then', session: session.id, source: { kind: 'plugin', id: 'timer' } }).then(run => run.result) }, 0) })
    })
    test.model.says('one', 'two')
    await test.run('go')
    await until(() => later !== undefined)
    expect(await later).toMatchObject({ turn: 2, text: 'two' })
  })
})

describe('a run', () => {
  it('is refused before anything is logged', async () => {
    const { agent, store, cwd, run, model } = await testAgent()
    const refusals: [object, string, RegExp][] = [
      [{ prompt: ' ' }, 'usage', /^a prompt must be a text that is not empty, received " "$/],
      [{ prompt: 'go', cwd: 'relative' }, 'usage', /^cwd must be the absolute path/],
      [{ prompt: 'go', maxSteps: 0 }, 'usage', /^maxSteps must be a positive integer, received 0$/],
      [{ prompt: 'go', mode: 'yolo' }, 'usage', /^mode must be one of plan, default, accept-edits, yes, received "yolo"$/],
      [{ prompt: 'go', model: 'nope/x' }, 'unknown_id', /^model "nope\/x" does not exist \(known: "scripted"\)$/],
      [{ prompt: 'go', session: 'nope' }, 'session_missing', /nope/],
    ]
    for (const [input, code, message] of refusals) await expect(agent.agents.run({ cwd, ...input } as never)).rejects.toMatchObject({ code, message: expect.stringMatching(message) })
    expect(await store.list()).toEqual([])
    model.says('fine')
    expect((await run('go')).reason).toBe('completed')
  })
  it('without a model says what to do', async () => {
    const { agent, kernel, cwd } = await testAgent()
    kernel.retire(kernel.generations()[0]!)
    await expect(agent.agents.run({ prompt: 'go', cwd })).rejects.toMatchObject({ code: 'no_model', message: 'no model: set DEEPSEEK_API_KEY or OPENAI_API_KEY, point OPENAI_BASE_URL at a local server, or try --offline' })
  })
  it('does not wait for a reader, and keeps the log lines for one that comes late', async () => {
    const { agent, model, cwd } = await testAgent()
    model.says({ chunks: Array.from({ length: 2000 }, () => 'x'.repeat(1000)), text: 'end' })
    const run = await agent.agents.run({ prompt: 'go', cwd })
    expect((await run.result).text).toBe('end')
    const ran = await finished(run)
    expect(ran.log.map(event => event.type)).toEqual(['session', 'turn-start', 'message', 'system', 'request', 'usage', 'message', 'turn-end'])
    expect(ran.events.filter(event => event.type === 'delta').reduce((sum, event) => sum + event.text.length, 0)).toBeLessThanOrEqual(256 * 1024)
  })
  it('goes on when its reader leaves', async () => {
    const { agent, model, cwd } = await testAgent()
    model.says('fine')
    const run = await agent.agents.run({ prompt: 'go', cwd })
    for await (const event of run.events) { expect((event as RunEvent).type).toBe('session'); break }
    expect((await run.result).reason).toBe('completed')
  })
  it('of a person keeps its workspace; one of a plugin without a folder takes that of the host', async () => {
    const { run, model, folder, agent } = await testAgent()
    model.says('a', 'b')
    const ran = await run('go', { cwd: folder.path })
    expect(ofType(ran.log, 'session')[0]).toMatchObject({ cwd: folder.path, depth: 0 })
    expect((await finished(await agent.agents.run({ prompt: 'go' }))).log[0]).toMatchObject({ type: 'session', cwd: folder.at('work') })
  })
  it('that is ephemeral leaves no file', async () => {
    const { run, model, store, agent } = await testAgent()
    model.says('a', 'b')
    const { session } = await run('go', { ephemeral: true })
    expect(await run('on', { session })).toMatchObject({ turn: 2 })
    expect(agent.agents.outputPath(session)).not.toBe(store.outputPath(session))
    expect(await store.list()).toEqual([])
  })
})

describe('a session', () => {
  it('starts once and ends once, also over several turns', async () => {
    const test = await testAgent()
    const told = await watchSessions(test)
    test.model.says('1', '2', '3')
    const { session } = await test.run('go')
    await test.run('go', { session })
    await test.agent.agents.close(session)
    await test.run('go', { session })
    await test.agent.stop()
    expect(told).toEqual(['start new 0 0', 'end closed', 'start resume 0 4', 'end shutdown'])
  })
  it('that is archived takes no further prompt, and rejects the next step of a turn that runs', async () => {
    const test = await testAgent()
    const told = await watchSessions(test)
    await test.tools({ ...write, execute: async (_, { session }) => { await test.agent.agents.archive(session.id); return 'x' } })
    test.model.says({ calls: [['write', {}]] })
    const ran = await test.run('go')
    expect(ran).toMatchObject({ reason: 'rejected', message: expect.stringMatching(/the session is archived and takes no further step/) })
    await expect(test.agent.agents.run({ prompt: 'go', session: ran.session })).rejects.toMatchObject({ code: 'session_archived' })
    expect(told).toEqual(['start new 0 0', 'end archived'])
    expect(await test.store.list()).toMatchObject([{ archived: true }])
  })
  it('is archived also when it is not open, once', async () => {
    const test = await testAgent()
    test.model.says('1')
    const { session } = await test.run('go')
    await test.agent.agents.close(session)
    await test.agent.agents.archive(session)
    await test.agent.agents.archive(session)
    expect((await test.store.read(session)).events.filter(event => event.type === 'archived')).toHaveLength(1)
  })
  it('that rests is closed when too many do, and opened again by itself', async () => {
    const test = await testAgent()
    const told = await watchSessions(test)
    const sessions: string[] = []
    for (let count = 0; count < 34; count++) {
      test.model.says('x')
      sessions.push((await test.run('go')).session)
    }
    await until(() => told.filter(line => line === 'end closed').length === 2)
    test.model.says('back')
    expect(await test.run('again', { session: sessions[0]! })).toMatchObject({ turn: 2, reason: 'completed' })
  })
  it('belongs to one host at a time', async () => {
    const one = await testAgent(), two = await testAgent({ store: one.store })
    one.model.says('x')
    const { session } = await one.run('go')
    await expect(two.agent.agents.run({ prompt: 'go', session })).rejects.toMatchObject({ code: 'session_busy' })
    await one.agent.agents.close(session)
    two.model.says('mine')
    expect((await two.run('go', { session })).text).toBe('mine')
  })
})

describe('a shutdown', () => {
  it('interrupts turns, answers their calls, ends them and their sessions, and refuses new ones', async () => {
    const test = await testAgent()
    const told = await watchSessions(test)
    let begun = false
    await test.tools({ ...write, execute: () => { begun = true; return new Promise(() => {}) } })
    test.model.says({ calls: [['write', {}]] })
    const run = await test.agent.agents.run({ prompt: 'go', cwd: test.cwd }), waiting = await test.agent.agents.run({ prompt: 'next', session: run.session })
    await until(() => begun)
    const asked = performance.now()
    await test.agent.stop()
    expect(performance.now() - asked).toBeLessThan(1000)
    const ran = await finished(run)
    expect(ran).toMatchObject({ reason: 'interrupted', message: 'the host shuts down' })
    expect(ofType(ran.log, 'tool-result')).toMatchObject([{ kind: 'interrupted' }])
    expect((await waiting.result).reason).toBe('interrupted')
    expect(told).toEqual(['start new 0 0', 'end shutdown'])
    await expect(test.agent.agents.run({ prompt: 'go', cwd: test.cwd })).rejects.toMatchObject({ code: 'aborted' })
    expect((await test.store.list())[0]).toMatchObject({ lastReason: 'interrupted' })
  })
  it('interrupts a turn whose session is being closed already', async () => {
    const test = await testAgent()
    let begun = false
    await test.tools({ ...write, execute: async (_, { session }) => { await test.agent.agents.archive(session.id); begun = true; return new Promise(() => {}) } })
    test.model.says({ calls: [['write', {}]] })
    const run = await test.agent.agents.run({ prompt: 'go', cwd: test.cwd })
    await until(() => begun)
    const asked = performance.now()
    await test.agent.stop()
    expect(performance.now() - asked).toBeLessThan(1000)
    expect((await run.result).reason).toBe('interrupted')
  })
  it('does not wait for ever for a watcher that hangs', async () => {
    const test = await testAgent()
    await test.plugin('slow', ctx => { ctx.on('agent/turn-end', () => new Promise(() => {}), { timeout: 60_000 }) })
    test.model.says({ hang: true })
    const run = await test.agent.agents.run({ prompt: 'go', cwd: test.cwd })
    await until(() => test.model.requests.length === 1)
    await test.agent.stop(3000)
    expect((await run.result).reason).toBe('interrupted')
  })
})

it('a rejected step of one session does not touch another', async () => {
  const test = await testAgent()
  await test.plugin('guard', ctx => { ctx.on('agent/pre-step', ({ messages }) => JSON.stringify(messages).includes('bad') ? reject('no') : undefined) })
  test.model.says('fine')
  const [bad, good] = await Promise.all([test.run('bad'), test.run('good')])
  expect([bad!.reason, good!.reason]).toEqual(['rejected', 'completed'])
})

import { describe, expect, it } from 'vitest'
import { buildRequest, checkPairs } from '../../core/agent/request.js'
import { answer, enter, proceed, reject, send } from '../../core/agent/hooks.js'
import { ModelError, type Tool } from '../../core/agent/services.js'
import { disk } from '../../core/agent/session-file.js'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { MemorySessionStore } from '../../core/agent/session-store-memory.js'
import type { SessionEvent, SessionStore, SessionWriter } from '../../core/agent/session-events.js'
import { HarnessError } from '../../core/errors.js'
import { conversation, finished, ofType, testAgent, until } from '../support/agent.js'
import { folder } from '../support/folder.js'

const look: Tool = { name: 'look', description: 'looks', parameters: { type: 'object' }, readOnly: true, execute: () => 'seen' }

describe('a turn', () => {
  it('answers a prompt and logs what it did', async () => {
    const { run, model } = await testAgent()
    model.says('hello')
    const ran = await run('hi')
    expect(ran).toMatchObject({ reason: 'completed', text: 'hello', turn: 1, unanswered: false, stats: { steps: 1, toolCalls: 0, blocked: 0 }, usage: { inputTokens: 10, outputTokens: 2 } })
    expect(ran.log.map(event => event.type)).toEqual(['session', 'turn-start', 'message', 'system', 'request', 'usage', 'message', 'turn-end'])
  })
  it('sends exactly what the log says, at every step', async () => {
    const { run, model, tools, plugin } = await testAgent()
    await tools(look)
    await plugin('notes', ctx => {
      ctx.on('agent/post-tool-use', async (_, next) => ({ ...await next(), context: ['mind the gap'] }))
      ctx.on('agent/system-prompt', async ({ step }, next) => [...await next(), { id: 'step', text: `step ${Math.min(step, 1)}` }])
      ctx.on('agent/pre-request', ({ step }) => step === 1 ? send({ options: { temperature: 0 }, tools: [] }) : undefined)
    })
    model.says({ text: 'looking', calls: [['look', {}], ['look', {}]] }, { calls: [['look', {}]] }, 'done')
    const { log } = await run('go')
    const asked = log.flatMap((event, at) => event.type === 'request' ? [buildRequest(log.slice(0, at + 1))] : [])
    expect(model.requests).toEqual(asked)
    for (const request of model.requests) expect(checkPairs(request.messages)).toBeUndefined()
    expect(ofType(log, 'system')).toHaveLength(2)
    expect(model.requests.map(request => request.tools.length)).toEqual([1, 0, 1])
    expect(conversation(model.requests[1]!)).toEqual(['user: go', 'assistant: looking', 'tool c1: seen', 'tool c2: seen', 'user: mind the gap', 'user: mind the gap'])
  })
  it('tells the model to change its plan after a refusal', async () => {
    const { run, model, cwd } = await testAgent()
    model.says('ok')
    await run('go')
    expect(model.requests[0]!.messages[0]).toMatchObject({ role: 'system', content: [{ text: expect.stringMatching(/change your plan/) }] })
    expect(JSON.stringify(model.requests[0]!.messages[0])).toContain(cwd)
  })
  it('takes the system prompt of the config instead, from the next step on', async () => {
    const { run, model, agent } = await testAgent({ config: { system: 'Be brief.' } })
    model.says('ok', 'ok')
    const first = await run('go')
    expect(ofType(first.log, 'system')[0]!.text).toMatch(/^Be brief\./)
    agent.reconfigure({ system: 'Be long.' })
    expect(ofType((await run('go', { session: first.session })).log, 'system')[0]!.text).toMatch(/^Be long\./)
  })
  it('runs on two lanes of one session as one conversation', async () => {
    const { run, model } = await testAgent()
    model.says('one', 'two')
    const { session } = await run('first')
    const second = await run('second', { session })
    expect(second.turn).toBe(2)
    expect(conversation(model.requests[1]!)).toEqual(['user: first', 'assistant: one', 'user: second'])
    expect(second.log[0]).toMatchObject({ type: 'turn-start', turn: 2 })
  })
  it('leaves nothing of a rejected prompt in the messages, and says who rejected it', async () => {
    const { run, model, plugin } = await testAgent()
    await plugin('guard', ctx => { ctx.on('agent/user-prompt-submit', ({ prompt }) => prompt === 'bad' ? reject('no such talk') : undefined) })
    const ran = await run('bad')
    expect(ran).toMatchObject({ reason: 'rejected', message: 'rejected by plugin "guard": no such talk' })
    expect(ofType(ran.log, 'message')).toEqual([])
    expect(ofType(ran.log, 'decision')).toMatchObject([{ hook: 'agent/user-prompt-submit', plugin: 'guard', kind: 'reject', reason: 'no such talk' }])
    model.says('fine')
    await run('good', { session: ran.session })
    expect(conversation(model.requests[0]!)).toEqual(['user: good'])
  })
  it('words a broken judge otherwise than a policy, without its secrets', async () => {
    const { run, plugin } = await testAgent()
    await plugin('guard', ctx => { ctx.on('agent/pre-step', () => { throw new Error('/home/me/key') }) })
    const ran = await run('go')
    expect(ran).toMatchObject({ reason: 'rejected', kind: 'hook_failed', message: 'hook_failed: plugin "guard" could not judge this step (it threw an error)' })
    expect(ofType(ran.log, 'turn-end')[0]).toMatchObject({ reason: 'rejected', kind: 'hook_failed' })
  })
  it('refuses while a required guard is not active', async () => {
    const { run, kernel } = await testAgent()
    kernel.hooks.guard('permission', 'it failed to load')
    expect(await run('go')).toMatchObject({ reason: 'rejected', kind: 'guard_inactive', message: 'guard_inactive: required plugin "permission" is not active (it failed to load)' })
  })
  it('asks nobody about what a plugin says on its own account', async () => {
    const { run, model, plugin } = await testAgent()
    const asked: string[] = []
    await plugin('guard', ctx => { ctx.on('agent/user-prompt-submit', ({ prompt }) => { asked.push(prompt) }) })
    model.says('ok', 'ok')
    await run('tick', { source: { kind: 'plugin', id: 'cron' } })
    await run('hello')
    expect(asked).toEqual(['hello'])
  })
  it('reaches the step limit with a sentence, after the calls are answered', async () => {
    const { run, model, tools } = await testAgent({ config: { maxSteps: 2 } })
    await tools(look)
    model.says({ calls: [['look', {}]] }, { calls: [['look', {}]] })
    const ran = await run('go')
    expect(ran).toMatchObject({ reason: 'max-steps', message: 'step limit reached, the task is unfinished', stats: { steps: 2, toolCalls: 2 } })
    expect(ofType(ran.log, 'tool-result')).toHaveLength(2)
  })
  it('warns of an empty reply and completes', async () => {
    const { run, model } = await testAgent()
    model.says('')
    const ran = await run('go')
    expect(ran.reason).toBe('completed')
    expect(ofType(ran.log, 'warning')[0]!.message).toBe('the reply was empty')
  })
})

describe('a stop handler', () => {
  it('is told whether it continued before, across tool calls, and anew in the next turn', async () => {
    const { run, model, plugin, tools } = await testAgent()
    const active: boolean[] = []
    await tools(look)
    await plugin('again', ctx => { ctx.on('agent/stop', ({ stopHookActive }) => { active.push(stopHookActive); if (!stopHookActive) return proceed('test it') }) })
    model.says('one', { calls: [['look', {}]] }, 'two', 'three', 'four')
    const { session } = await run('go')
    expect(active).toEqual([false, true])
    await run('more', { session })
    expect(active).toEqual([false, true, false, true])
  })
  it('can not keep a turn going for ever', async () => {
    const { run, model, plugin } = await testAgent({ config: { maxContinuations: 3 } })
    await plugin('greedy', ctx => { ctx.on('agent/stop', () => proceed('more')) })
    for (let turn = 0; turn < 2; turn++) {
      model.says('1', '2', '3', '4')
      const ran = await run('go')
      expect(ran).toMatchObject({ reason: 'completed', stats: { steps: 4 } })
      expect(ofType(ran.log, 'warning').map(event => event.message)).toEqual([expect.stringMatching(/^plugin "greedy" asks to go on again after 3 continuations.*agent\.maxContinuations/)])
    }
  })
  it('puts a message of its own there, with its source', async () => {
    const { run, model, plugin } = await testAgent()
    await plugin('again', ctx => { ctx.on('agent/stop', ({ stopHookActive }) => stopHookActive ? undefined : proceed('test it')) })
    model.says('one', 'two')
    const { log } = await run('go')
    expect(ofType(log, 'message').map(({ role, source }) => [role, source])).toEqual([
      ['user', { kind: 'user' }], ['assistant', { kind: 'model', id: 'scripted/default' }], ['user', { kind: 'plugin', id: 'again' }], ['assistant', { kind: 'model', id: 'scripted/default' }],
    ])
  })
})

describe('a request', () => {
  it('is made again as often as a handler asks, each attempt in the log', async () => {
    const { run, model, plugin } = await testAgent()
    await plugin('retry', ctx => { ctx.on('agent/request', async (_, next) => { try { return await next() } catch { return next({ options: { temperature: 1 } }) } }) })
    model.says({ chunks: ['half'], error: new ModelError('network', 'reset by peer', { partial: 'half' }) }, 'whole')
    const ran = await run('go')
    expect(ran).toMatchObject({ reason: 'completed', text: 'whole' })
    expect(ofType(ran.log, 'request')).toMatchObject([{ attempt: 1, options: {} }, { attempt: 2, options: { temperature: 1 } }])
    expect(ofType(ran.log, 'warning')[0]!.message).toBe('attempt 1 failed and is made again: reset by peer')
    expect(ran.events.filter(event => event.type === 'delta')).toMatchObject([{ text: 'half', attempt: 1 }])
    expect(conversation(model.requests[1]!)).toEqual(['user: go'])
  })
  it('goes to another model when a handler says so', async () => {
    const { run, model, plugin } = await testAgent()
    await plugin('fallback', ctx => { ctx.on('agent/request', async (_, next) => { try { return await next() } catch { return next({ model: 'scripted/org/big' }) } }) })
    model.says({ error: new Error('down') }, 'from the other')
    const { log } = await run('go')
    expect(ofType(log, 'request').map(event => event.model)).toEqual(['scripted/default', 'scripted/org/big'])
    expect(model.requests[1]!.model).toBe('org/big')
    expect(ofType(log, 'message').at(-1)!.source).toEqual({ kind: 'model', id: 'scripted/org/big' })
  })
  it('is not sent when a handler has the reply', async () => {
    const { run, model, plugin } = await testAgent()
    await plugin('cache', ctx => { ctx.on('agent/request', () => ({ message: { role: 'assistant', content: [{ type: 'text', text: 'cached' }] }, finish: 'stop' })) })
    const ran = await run('go')
    expect(ran).toMatchObject({ reason: 'completed', text: 'cached' })
    expect(ofType(ran.log, 'request')).toEqual([])
    expect(model.requests).toEqual([])
  })
  it('keeps the unknown fields of calls and the reasoning for the next one', async () => {
    const { run, model, tools } = await testAgent()
    await tools(look)
    const extra = { google: { thought_signature: 'abc' } }
    model.says({ reasoning: 'hm', calls: [['look', {}, 'x1', extra]] }, 'done')
    await run('go')
    expect(model.requests[1]!.messages.at(-2)).toMatchObject({ reasoning: 'hm', toolCalls: [{ id: 'x1', name: 'look', arguments: '{}', extra }] })
  })
})

it('runs the calls of a reply whatever its finish reason says', async () => {
  const { run, model, tools } = await testAgent()
  await tools(look)
  model.says({ calls: [['look', {}]], finish: 'stop' }, { text: 'done', finish: 'tool-calls' })
  expect(await run('go')).toMatchObject({ reason: 'completed', text: 'done', stats: { toolCalls: 1 } })
})

describe('a reply that is not whole', () => {
  it('is truncated at its length limit: text stays, calls neither run nor stay', async () => {
    const { run, model, tools } = await testAgent()
    let ran = 0
    await tools({ ...look, execute: () => { ran++; return 'x' } })
    model.says({ text: 'I will', calls: [['look', '{"pa']], finish: 'length' }, 'fine')
    const cut = await run('go')
    expect(cut).toMatchObject({ reason: 'truncated', text: 'I will', message: expect.stringMatching(/length limit/) })
    await run('on', { session: cut.session })
    expect(ran).toBe(0)
    expect(conversation(model.requests[1]!)).toEqual(['user: go', 'assistant: I will', 'user: on'])
  })
  it('fails when the stream ends without it, and keeps the partial text aside', async () => {
    const { run, model } = await testAgent()
    model.says({ chunks: ['The ans', 'wer'], cut: true }, 'fine')
    const ran = await run('go')
    expect(ran).toMatchObject({ reason: 'failed', message: 'the stream of model "scripted" ended without a reply', text: '' })
    expect(ofType(ran.log, 'error')).toMatchObject([{ phase: 'request', code: 'model_failed', partial: 'The answer' }])
    await run('on', { session: ran.session })
    expect(conversation(model.requests[1]!)).toEqual(['user: go', 'user: on'])
  })
  it('is truncated when the model says so', async () => {
    const { run, model } = await testAgent()
    model.says({ error: new ModelError('truncated', 'the stream broke off', { partial: 'some' }) })
    const ran = await run('go')
    expect(ran).toMatchObject({ reason: 'truncated', message: 'the stream broke off' })
    expect(ofType(ran.log, 'error')).toMatchObject([{ partial: 'some' }])
  })
  it('fails when the content filter took it', async () => {
    const { run, model } = await testAgent()
    model.says({ finish: 'content-filter' })
    expect(await run('go')).toMatchObject({ reason: 'failed', message: expect.stringMatching(/content filter/) })
  })
  it('fails when a model gives no reply but something else', async () => {
    const { run, plugin } = await testAgent()
    await plugin('odd', ctx => { ctx.models.register({ id: 'odd', defaultModel: 'x', ready: () => true, async* stream() { yield { kind: 'reply', reply: { text: 'hi' } as never } } }) })
    expect(await run('go', { model: 'odd' })).toMatchObject({ reason: 'failed', message: expect.stringMatching(/^the reply of "odd\/x" must be/) })
  })
  it.each([
    ['a part without a type', { content: [{ text: 'hi' }] }, undefined], ['a text part without text', { content: [{ type: 'text' }] }, undefined], ['null for a part', { content: [null] }, undefined],
    ['a usage without numbers', { content: 'hi' }, {}], ['a usage in words', { content: 'hi' }, { inputTokens: '5', outputTokens: 1 }], ['a cost that is none', { content: 'hi' }, { inputTokens: 1, outputTokens: 1, cost: NaN }],
  ])('fails on %s in a reply, so that no line is logged that a resume could not read', async (_, message, usage) => {
    const { run, plugin, store } = await testAgent()
    await plugin('odd', ctx => { ctx.models.register({ id: 'odd', defaultModel: 'x', ready: () => true, async* stream() { yield { kind: 'reply', reply: { message: { role: 'assistant', ...message }, finish: 'stop', usage } as never } } }) })
    const { reason, message: why, session } = await run('go', { model: 'odd' })
    expect([reason, why]).toEqual(['failed', expect.stringMatching(/^the reply of "odd\/x" must have/)])
    expect((await store.read(session)).problems).toEqual([])
  })
})

describe('an abort', () => {
  it('lets go of a model that does not listen', async () => {
    const { agent, model, cwd } = await testAgent()
    model.says({ chunks: ['ha'], deaf: true })
    const run = await agent.agents.run({ prompt: 'go', cwd })
    await until(() => model.requests.length === 1)
    expect(agent.agents.abort(run.session, 'enough')).toBe(true)
    const ran = await finished(run)
    expect(ran).toMatchObject({ reason: 'aborted', message: 'enough' })
    expect(ofType(ran.log, 'turn-end')).toHaveLength(1)
  })
  it('lets go of a tool that does not listen, answers its call and those behind, and drops what it says later', async () => {
    const { agent, model, tools, cwd, store } = await testAgent()
    let begun = false, end = (_: string) => {}
    await tools({ name: 'slow', description: 'slow', parameters: { type: 'object' }, execute: () => { begun = true; return new Promise<string>(resolve => { end = resolve }) } })
    model.says({ calls: [['slow', {}], ['slow', {}]] }, 'fine')
    const run = await agent.agents.run({ prompt: 'go', cwd })
    await until(() => begun)
    agent.agents.abort(run.session)
    const ran = await finished(run)
    expect(ran.reason).toBe('aborted')
    expect(ofType(ran.log, 'tool-result')).toMatchObject([{ callId: 'c1', kind: 'interrupted' }, { callId: 'c2', kind: 'interrupted', content: 'interrupted: the turn was stopped before this call ran' }])
    end('too late')
    await finished(await agent.agents.run({ prompt: 'on', session: run.session }))
    expect(conversation(model.requests[1]!)).toEqual(['user: go', 'assistant: ', expect.stringMatching(/^tool c1: interrupted/), expect.stringMatching(/^tool c2: interrupted/), 'user: on'])
    expect((await store.read(run.session)).events.filter(event => event.type === 'tool-result')).toHaveLength(2)
  })
  it('ends a dispatch that waits, and nobody is blamed', async () => {
    const { agent, plugin, cwd, kernel } = await testAgent()
    let waiting = false
    await plugin('slow', ctx => { ctx.on('agent/pre-step', () => { waiting = true; return new Promise(() => {}) }) })
    const run = await agent.agents.run({ prompt: 'go', cwd })
    await until(() => waiting)
    agent.agents.abort(run.session)
    expect((await finished(run)).reason).toBe('aborted')
    expect(kernel.hooks.list().find(({ hook }) => hook === 'agent/pre-step')!.handlers.find(({ plugin }) => plugin === 'slow')).toMatchObject({ errors: 0, timeouts: 0 })
  })
  it('tells every end of what began, also to slow watchers', async () => {
    const { agent, model, plugin, tools, cwd } = await testAgent()
    const told: string[] = []
    let begun = false
    await tools({ ...look, execute: () => { begun = true; return new Promise<string>(() => {}) } })
    await plugin('watch', ctx => {
      for (const hook of ['turn-start', 'step-start', 'tool-start', 'tool-end', 'step-end', 'turn-end'] as const) ctx.on(`agent/${hook}`, async () => { await new Promise(resolve => { setTimeout(resolve, 20) }); told.push(hook) })
    })
    model.says({ calls: [['look', {}]] })
    const run = await agent.agents.run({ prompt: 'go', cwd })
    await until(() => begun)
    agent.agents.abort(run.session)
    await run.result
    expect(told).toEqual(['turn-start', 'step-start', 'tool-start', 'tool-end', 'step-end', 'turn-end'])
  })
  it('by the caller\'s own signal names the caller', async () => {
    const { agent, model, cwd } = await testAgent()
    model.says({ hang: true })
    const controller = new AbortController()
    const run = await agent.agents.run({ prompt: 'go', cwd, signal: controller.signal })
    await until(() => model.requests.length === 1)
    controller.abort(new Error('ctrl-c'))
    expect(await run.result).toMatchObject({ reason: 'aborted', message: 'stopped by its caller: ctrl-c' })
  })
})

/** A store whose log can't be written from some event on. */
function failingAt(type: SessionEvent['type']): SessionStore {
  const memory = new MemorySessionStore()
  const wrap = (writer: SessionWriter): SessionWriter => {
    let broken = false
    return new Proxy(writer, { get: (target, key) => {
      const value: unknown = Reflect.get(target, key, target)
      if (key !== 'append') return typeof value === 'function' ? value.bind(target) : value
      return (body: SessionEvent) => {
        broken ||= body.type === type
        if (broken) throw new HarnessError('storage_failed', 'no space left on device')
        return target.append(body)
      }
    } })
  }
  return { create: async header => wrap(await memory.create(header)), open: async id => wrap(await memory.open(id)), read: id => memory.read(id), list: () => memory.list(), probe: () => memory.probe(), outputDir: id => memory.outputDir(id), outputPath: id => memory.outputPath(id) }
}

describe('a log that can not be written', () => {
  for (const type of ['turn-start', 'message', 'request', 'tool-intent', 'tool-result', 'turn-end'] as const) {
    it(`fails the turn at its ${type}, and every start still has its end`, async () => {
      const { run, model, tools, plugin } = await testAgent({ store: failingAt(type) })
      const open = new Map<string, number>(), errors: string[] = []
      let ran = 0
      await tools({ ...look, execute: () => { ran++; return 'x' } })
      await plugin('watch', ctx => {
        for (const what of ['turn', 'step', 'tool'] as const) {
          ctx.on(`agent/${what}-start`, () => { open.set(what, (open.get(what) ?? 0) + 1) })
          ctx.on(`agent/${what}-end`, () => { open.set(what, (open.get(what) ?? 0) - 1) })
        }
        ctx.on('agent/error', ({ phase, error }) => { errors.push(`${phase} ${error.code}`) })
      })
      model.says({ calls: [['look', {}]] }, 'done')
      expect(await run('go')).toMatchObject({ reason: 'failed', message: 'no space left on device' })
      expect(errors).toEqual(['storage storage_failed'])
      expect([...open.values()].filter(count => count !== 0)).toEqual([])
      expect(ran).toBe(type === 'tool-result' || type === 'turn-end' ? 1 : 0)
    })
  }
})

describe('a disk that takes its time', () => {
  /** A file store whose syncs wait for `settle`. */
  function slowDisk() {
    const own = folder(), waiting: { readonly fd: number; readonly done: () => void; readonly fail: (error: Error) => void }[] = []
    const sync = (fd: number) => new Promise<void>((done, fail) => { waiting.push({ fd, done, fail }) })
    return { waiting, store: new FileSessionStore({ folder: own.at('sessions'), disk: { ...disk, sync } }) }
  }
  const drain = async (waiting: ReturnType<typeof slowDisk>['waiting'], over: Promise<unknown>): Promise<void> => {
    let ended = false
    void over.finally(() => { ended = true })
    while (!ended) {
      waiting.shift()?.done()
      await new Promise(setImmediate)
    }
  }

  it('does not hold up the request, but whatever the reply leads to', async () => {
    const { waiting, store } = slowDisk(), { run, model, tools } = await testAgent({ store })
    let ran = 0
    await tools({ ...look, execute: () => { ran++; return 'x' } })
    model.says({ chunks: ['let me '], calls: [['look', {}]] }, 'done')
    const turn = run('go')
    await until(() => model.requests.length === 1 && waiting.length === 1)
    await new Promise(setImmediate)
    expect(ran).toBe(0)
    await drain(waiting, turn)
    expect(await turn).toMatchObject({ reason: 'completed', text: 'done' })
    expect(ran).toBe(1)
  })

  it('fails the turn when it does not confirm the prompt in the end, and no tool of the reply runs', async () => {
    const { waiting, store } = slowDisk(), { run, model, tools } = await testAgent({ store })
    let ran = 0
    await tools({ ...look, execute: () => { ran++; return 'x' } })
    model.says({ calls: [['look', {}]] }, 'done')
    const turn = run('go')
    await until(() => model.requests.length === 1 && waiting.length === 1)
    waiting.shift()!.fail(new Error('EIO: made to fail'))
    expect(await turn).toMatchObject({ reason: 'failed', message: expect.stringContaining('the disk did not confirm what was written (EIO: made to fail)') })
    expect(ran).toBe(0)
  })
})

describe('what handlers see', () => {
  it('is the conversation as it was when they were asked, frozen', async () => {
    const { run, model, plugin, tools } = await testAgent()
    await tools(look)
    const seen: (() => number)[] = [], early: number[] = []
    await plugin('spy', ctx => {
      ctx.on('agent/pre-step', ({ session, step }) => {
        seen.push(() => session.messages.length)
        if (step === 1) early.push(session.messages.length)
        expect(() => { (session.messages as unknown[]).push('x') }).toThrow(TypeError)
      })
    })
    model.says({ calls: [['look', {}]] }, 'done')
    await run('go')
    expect(early).toEqual([3])
    expect(seen.map(read => read())).toEqual([0, 3])
  })
  it('stays the same for who looks late, also when it was compacted meanwhile', async () => {
    const { run, model, plugin } = await testAgent()
    const views: { readonly messages: readonly unknown[] }[] = []
    await plugin('spy', ctx => { ctx.on('agent/turn-end', ({ session }) => { views.push(session) }) })
    await plugin('compact', ctx => { ctx.on('agent/pre-step', ({ turn, messages }) => turn === 2 ? enter(messages, { compact: { through: 6, messages: ['summary'] } }) : undefined) })
    model.says('one', 'two')
    const { session } = await run('first')
    await run('second', { session })
    expect(views.map(view => view.messages.length)).toEqual([2, 4])
    expect(views[0]!.messages).toMatchObject([{ role: 'user' }, { role: 'assistant' }])
  })
  it('has the mode of the turn', async () => {
    const { run, model, plugin } = await testAgent()
    const modes: unknown[] = []
    await plugin('spy', ctx => { ctx.on('agent/pre-step', ({ session }) => { modes.push(session.mode) }) })
    model.says('one', 'two')
    const { session } = await run('first', { mode: 'accept-edits' })
    await run('second', { session })
    expect(modes).toEqual(['accept-edits', 'default'])
  })
})

it('keeps a compaction that names no line of the log out of it', async () => {
  const { run, model, plugin } = await testAgent()
  await plugin('compact', ctx => { ctx.on('agent/pre-step', ({ messages }) => enter(messages, { compact: { through: 999, messages: ['summary'] } })) })
  model.says('one')
  const { log } = await run('go')
  expect(ofType(log, 'compaction')).toEqual([])
  expect(ofType(log, 'warning')[0]!.message).toMatch(/^plugin "compact" wants to compact through 999/)
})
it('answers a call in place of the tool and says whose answer it is', async () => {
  const { run, model, plugin, tools } = await testAgent()
  await tools(look)
  await plugin('cache', ctx => { ctx.on('agent/pre-tool-use', () => answer({ content: 'stale', isError: true })) })
  model.says({ calls: [['look', {}]] }, 'done')
  expect(ofType((await run('go')).log, 'tool-result')).toMatchObject([{ kind: 'failed', plugin: 'cache', content: 'stale', isError: true }])
})

import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { z } from 'zod'
import { allow, answer, ask, block } from '../../core/agent/hooks.js'
import type { Tool } from '../../core/agent/services.js'
import { checkPairs } from '../../core/agent/request.js'
import { conversation, finished, ofType, testAgent, until, type ScriptedCall, type TestAgent } from '../support/agent.js'

const any = { type: 'object' } as const
const look: Tool = { name: 'look', description: 'looks', parameters: any, readOnly: true, execute: () => 'seen' }
const write: Tool = { name: 'write', description: 'writes', parameters: any, execute: () => 'written' }

/** One reply with these calls, then the end; what the model read for them. */
async function results({ run, model }: TestAgent, ...calls: readonly ScriptedCall[]) {
  model.says({ calls }, 'done')
  const ran = await run('go')
  return { ran, read: conversation(model.requests.at(-1)!).filter(line => line.startsWith('tool')), log: ofType(ran.log, 'tool-result') }
}

describe('arguments', () => {
  const strict: Tool = { name: 'strict', description: 's', parameters: z.object({ path: z.string(), depth: z.number().default(3) }), execute: (args: object) => JSON.stringify(args) }

  it('are parsed exactly once', async () => {
    const test = await testAgent()
    const command = 'echo "a \\"b\\" \\\\n" \u2028 \u0000'
    await test.tools({ ...write, execute: ({ command }: { command: string }) => command })
    const { log } = await results(test, ['write', { command }])
    expect(log[0]!.content).toBe(command)
  })
  it('may be left out', async () => {
    const test = await testAgent()
    await test.tools(write, strict)
    const { read } = await results(test, ['write', ''], ['write', ' \n'], ['strict', ''])
    expect(read.slice(0, 2)).toEqual(['tool c1: written', 'tool c2: written'])
    expect(read[2]).toMatch(/^tool c3: invalid arguments for tool "strict": path: expected string, received undefined\. Expected arguments that fit this JSON Schema: \{/)
  })
  it('that are no JSON object are refused with what was wrong and the schema, and nothing runs', async () => {
    const test = await testAgent()
    let ran = 0
    await test.tools({ ...strict, execute: () => { ran++; return 'x' } })
    const { read } = await results(test, ['strict', '{"{"path":'], ['strict', 'null'], ['strict', '[]'], ['strict', '"x"'], ['strict', '3'])
    expect(read.map(line => /tool c\d: invalid arguments for tool "strict": (the arguments [^;(]*)/.exec(line)![1]!.trim())).toEqual([
      'the arguments are not valid JSON', ...['null', 'an array', 'a string', 'a number'].map(kind => `the arguments must be a JSON object, received ${kind}`),
    ])
    expect(read.every(line => line.includes('"required":["path"]'))).toBe(true)
    expect(ran).toBe(0)
  })
  it('of 200 kB of garbage do not inflate the next request', async () => {
    const test = await testAgent()
    await test.tools(write)
    await results(test, ['write', `{"a": ${'x'.repeat(200_000)}`])
    expect(JSON.stringify(test.model.requests[1]).length).toBeLessThan(3000)
  })
  it('that are nested without end are refused', async () => {
    const test = await testAgent()
    await test.tools(write)
    const { read } = await results(test, ['write', `{"a":${'['.repeat(5000)}${']'.repeat(5000)}}`])
    expect(read[0]).toMatch(/nested over 64 levels/)
  })
  it('get their defaults from the schema when the tool runs; judges see what the model sent', async () => {
    const test = await testAgent()
    const judged: unknown[] = []
    await test.tools(strict)
    await test.plugin('judge', ctx => { ctx.on('agent/pre-tool-use', ({ call }) => { judged.push(call.arguments) }) })
    const { log } = await results(test, ['strict', { path: 'a' }])
    expect(log[0]!.content).toBe('{"path":"a","depth":3}')
    expect(judged).toEqual([{ path: 'a' }])
  })
  it('reach a tool of any JSON Schema', async () => {
    const test = await testAgent()
    const parameters = { type: 'object', properties: { mode: { enum: ['a', 'b'] }, list: { type: 'array', items: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] } } }, additionalProperties: false }
    await test.tools({ ...write, parameters }, { ...look, parameters: { type: 'object', required: ['x'], if: { properties: {} }, then: {} } })
    const { read } = await results(test, ['write', { mode: 'c', list: [{ n: 1 }, { n: 'x' }], more: 1 }], ['write', { mode: 'a' }], ['look', {}], ['look', { x: 1 }])
    expect(read[0]).toContain('mode: Invalid option: expected one of "a"|"b"; list[1].n: expected')
    expect(read[0]).toContain('Unrecognized key: "more"')
    expect(read.slice(1)).toEqual(['tool c2: written', expect.stringContaining('x: is required'), 'tool c4: seen'])
  })
  it('are not held against a pattern of a schema that came from elsewhere, which could take minutes', async () => {
    const test = await testAgent()
    await test.tools({ ...write, parameters: { type: 'object', properties: { pattern: { type: 'string', pattern: '^(a+)+$' } }, required: ['pattern'] } })
    const { read } = await results(test, ['write', { pattern: `${'a'.repeat(40)}!` }], ['write', { pattern: 1 }])
    expect(read).toEqual(['tool c1: written', expect.stringContaining('pattern: expected string, received number')])
  })
  it('whatever they are, end in one answer', async () => {
    const test = await testAgent({ config: { maxSteps: 100_000 } })
    await test.tools(strict, look)
    await fc.assert(fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom('strict', 'look', 'nope', '', 'a b'), fc.oneof(fc.string(), fc.json(), fc.constant('{"path":"x"}')), fc.constantFrom('x', 'y', '', 'z')), { minLength: 1, maxLength: 6 }), async calls => {
      test.model.requests.length = 0
      test.model.says({ text: 'calling', calls }, 'done')
      const ran = await test.run('go', { ephemeral: true })
      expect(ran.reason).toBe('completed')
      for (const request of test.model.requests) expect(checkPairs(request.messages)).toBeUndefined()
      expect(ofType(ran.log, 'tool-result')).toHaveLength(calls.length)
    }), { numRuns: 60 })
  })
})

describe('a tool that is not there', () => {
  it('is answered with what was meant', async () => {
    const test = await testAgent()
    await test.tools(look, write)
    const { read, ran } = await results(test, ['lok', {}], ['something.else', {}])
    expect(read).toEqual(['tool c1: there is no tool "lok" here; did you mean "look"? the tools are look, write', 'tool c2: there is no tool "something_else" here; the tools are look, write'])
    expect(ran.stats).toEqual({ steps: 2, toolCalls: 2, blocked: 0 })
    expect(test.model.requests[1]!.messages.at(-3)!.toolCalls!.map(call => call.name)).toEqual(['lok', 'something_else'])
  })
  it('includes one that was left out of the request', async () => {
    const test = await testAgent()
    await test.tools(look, write)
    await test.plugin('few', ctx => { ctx.on('agent/pre-request', () => ({ kind: 'send', tools: ['look'] })) })
    const { read } = await results(test, ['write', {}])
    expect(read[0]).toBe('tool c1: there is no tool "write" here; the tools are look')
  })
})

describe('ids of calls', () => {
  it('that come twice are told apart, in one reply and over replies', async () => {
    const test = await testAgent()
    await test.tools(write)
    test.model.says({ calls: [['write', {}, 'call_0'], ['write', {}, 'call_0'], ['write', {}, '']] }, { calls: [['write', {}, 'call_0']] }, 'done')
    const { log } = await test.run('go')
    const ids = ofType(log, 'tool-result').map(event => event.callId)
    expect(ids[0]).toBe('call_0')
    expect(new Set(ids).size).toBe(4)
    expect(ids.slice(1)).toEqual(Array.from({ length: 3 }, () => expect.stringMatching(/^call_[0-9a-f]{24}$/)))
    for (const request of test.model.requests) expect(checkPairs(request.messages)).toBeUndefined()
  })
})

describe('what the model reads', () => {
  it('of a block has the reason and the plugin, and asks not to work around it', async () => {
    const test = await testAgent()
    await test.tools(write)
    await test.plugin('permission', ctx => { ctx.on('agent/pre-tool-use', () => block('use pnpm here')) })
    const { read, log, ran } = await results(test, ['write', {}])
    expect(read).toEqual(['tool c1: blocked by plugin "permission": use pnpm here. The same call will be refused again; do not work around it.'])
    expect(log[0]).toMatchObject({ kind: 'blocked', plugin: 'permission', isError: true })
    expect(ran).toMatchObject({ reason: 'completed', stats: { blocked: 1, toolCalls: 1 } })
    expect(ofType(ran.log, 'decision')).toMatchObject([{ hook: 'agent/pre-tool-use', plugin: 'permission', kind: 'block', reason: 'use pnpm here', callId: 'c1' }])
    expect(ofType(ran.log, 'tool-intent')).toEqual([])
  })
  it('of a broken judge is another thing', async () => {
    const test = await testAgent()
    await test.tools(write)
    await test.plugin('broken', ctx => { ctx.on('agent/pre-tool-use', () => { throw new Error('/etc/secret') }) })
    const { read, log } = await results(test, ['write', {}])
    expect(read).toEqual(['tool c1: hook_failed: plugin "broken" could not judge this call (it threw an error)'])
    expect(log[0]).toMatchObject({ kind: 'hook_failed', plugin: 'broken' })
  })
  it('of an absent guard names it', async () => {
    const test = await testAgent()
    await test.tools(write)
    await test.plugin('breaker', ctx => { ctx.on('agent/tool-start', () => { test.kernel.hooks.guard('guard', 'quarantined') }) })
    test.model.says({ calls: [['write', {}]] })
    const { log } = await test.run('go')
    expect(ofType(log, 'tool-result')).toMatchObject([{ kind: 'guard_inactive', plugin: 'guard', content: 'guard_inactive: required plugin "guard" is not active (quarantined)' }])
  })
  it('of a rewrite stands at the head of the result, and the rewritten call is judged, shown and run', async () => {
    const test = await testAgent()
    const seen: unknown[] = []
    await test.tools({ ...write, parameters: z.object({ command: z.string() }), execute: ({ command }: { command: string }) => command })
    await test.plugin('sandbox', ctx => { ctx.on('agent/tool-arguments', ({ call }) => ({ command: `safe ${call.arguments.command}` })) })
    await test.plugin('audit', ctx => {
      ctx.on('agent/pre-tool-use', ({ call }) => { seen.push(call); return ask('is it safe') })
      ctx.on('agent/post-tool-use', ({ call }) => { seen.push(call) })
    })
    test.model.says({ calls: [['write', { command: 'ls' }]] }, 'done')
    const shown: unknown[] = []
    const ran = await test.run('go', { approver: async request => { shown.push(request.call.arguments); return { answer: 'once' } } })
    const call = { id: 'c1', name: 'write', arguments: { command: 'safe ls' }, originalArguments: { command: 'ls' } }
    expect(seen).toEqual([call, call])
    expect(shown).toEqual([{ command: 'safe ls' }])
    expect(ofType(ran.log, 'tool-result')[0]!.content).toBe('note: plugin "sandbox" changed the arguments to {"command":"safe ls"}\nsafe ls')
    expect(ofType(ran.log, 'tool-intent')).toMatchObject([{ arguments: { command: 'safe ls' }, originalArguments: { command: 'ls' } }])
  })
  it('of a rewrite that does not fit is nothing: it is skipped', async () => {
    const test = await testAgent()
    await test.tools({ ...write, parameters: z.object({ command: z.string() }), execute: ({ command }: { command: string }) => command })
    await test.plugin('wrong', ctx => { ctx.on('agent/tool-arguments', () => ({ command: 7 })) })
    const { read } = await results(test, ['write', { command: 'ls' }])
    expect(read).toEqual(['tool c1: ls'])
    expect(test.lines.some(line => /doesn't fit|don't fit/.test(line.message))).toBe(true)
  })
  it('of a tool that fails is its error, whatever it threw', async () => {
    const test = await testAgent()
    const throwing = (name: string, error: unknown): Tool => ({ ...write, name, execute: () => { throw error } })
    await test.tools(throwing('a', new Error('no such file')), throwing('b', 'a string'), throwing('c', undefined), { ...write, name: 'd', execute: () => 7 as never }, { ...write, name: 'e', execute: async () => ({ content: 'bad', isError: true }) })
    const { read, log, ran } = await results(test, ['a', {}], ['b', {}], ['c', {}], ['d', {}], ['e', {}])
    expect(read).toEqual(['tool c1: no such file', 'tool c2: a string', 'tool c3: undefined was thrown', 'tool c4: tool "d" gave no result: a string or {content, isError?} was expected, received 7', 'tool c5: bad'])
    expect(log.every(event => event.kind === 'failed' && event.isError)).toBe(true)
    expect(ran.reason).toBe('completed')
  })
  it('in plan mode is that only read-only tools run', async () => {
    const test = await testAgent()
    await test.tools(look, write)
    test.model.says({ calls: [['look', {}], ['write', {}]] }, 'done')
    const { log } = await test.run('go', { mode: 'plan' })
    expect(ofType(log, 'tool-result')).toMatchObject([{ kind: 'ok' }, { kind: 'blocked', content: expect.stringMatching(/plan mode/) }])
  })
})

describe('results', () => {
  it('come in the order of the calls though they ran together, each followed by its end', async () => {
    const test = await testAgent()
    const order: string[] = []
    const gates = new Map<string, () => void>()
    await test.tools({ ...look, execute: async (_, { callId }) => {
      order.push(`run ${callId}`)
      await new Promise<void>(resolve => { gates.set(callId, resolve) })
      return callId
    } })
    await test.plugin('watch', ctx => { ctx.on('agent/tool-end', ({ call }) => { order.push(`end ${call.id}`) }) })
    test.model.says({ calls: [['look', {}], ['look', {}], ['look', {}]] }, 'done')
    const running = test.run('go')
    await until(() => gates.size === 3)
    for (const id of ['c3', 'c2', 'c1']) gates.get(id)!()
    const { log } = await running
    expect(order).toEqual(['run c1', 'run c2', 'run c3', 'end c1', 'end c2', 'end c3'])
    expect(ofType(log, 'tool-result').map(event => event.content)).toEqual(['c1', 'c2', 'c3'])
  })
  it('of a failing one in the middle do not keep the others from theirs', async () => {
    const test = await testAgent()
    await test.tools(look, { ...look, name: 'bad', execute: () => { throw new Error('boom') } })
    expect((await results(test, ['look', {}], ['bad', {}], ['look', {}])).read).toEqual(['tool c1: seen', 'tool c2: boom', 'tool c3: seen'])
  })
  it('of a thousand calls at once all come, eight at a time', async () => {
    const test = await testAgent()
    let now = 0, most = 0
    await test.tools({ ...look, execute: async () => { most = Math.max(most, ++now); await new Promise(resolve => { setImmediate(resolve) }); now--; return 'x' } })
    test.model.says({ calls: Array.from({ length: 1000 }, () => ['look', {}] as const) }, 'done')
    const ran = await test.run('go', { ephemeral: true })
    expect(ran).toMatchObject({ reason: 'completed', stats: { toolCalls: 1000 } })
    expect(ofType(ran.log, 'tool-result').map(event => event.callId)).toEqual(Array.from({ length: 1000 }, (_, at) => `c${at + 1}`))
    expect(most).toBe(8)
  })
  it('of a call that is no read-only one come before the next call is judged; a refused call holds nobody up', async () => {
    const test = await testAgent()
    const order: string[] = []
    await test.tools(...[look, write].map(tool => ({ ...tool, execute: () => { order.push(tool.name); return 'x' } })))
    await test.plugin('judge', ctx => {
      ctx.on('agent/pre-tool-use', ({ call }) => { order.push(`judge ${call.id}`); return call.arguments.no ? block('no') : allow() })
      ctx.on('agent/tool-end', ({ call }) => { order.push(`end ${call.id}`) })
    })
    await results(test, ['look', {}], ['write', { no: true }], ['look', {}], ['write', {}], ['look', {}])
    expect(order).toEqual([
      'judge c1', 'judge c2', 'judge c3', 'judge c4', 'look', 'look', 'end c1', 'end c2', 'end c3', 'write', 'end c4', 'judge c5', 'look', 'end c5',
    ])
  })
  it('are followed by the context of every handler, in order', async () => {
    const test = await testAgent()
    await test.tools(look)
    await test.plugin('a', ctx => { ctx.on('agent/post-tool-use', async (_, next) => ({ ...await next(), context: ['from a'] })) })
    await test.plugin('b', ctx => { ctx.on('agent/post-tool-use', ({ result }) => ({ content: result.content.toUpperCase(), context: ['from b'] })) })
    test.model.says({ calls: [['look', {}], ['look', {}]] }, 'done')
    await test.run('go')
    expect(conversation(test.model.requests[1]!)).toEqual(['user: go', 'assistant: ', 'tool c1: SEEN', 'tool c2: SEEN', 'user: from a', 'user: from b', 'user: from a', 'user: from b'])
  })
  it('of an intent are in the log, and durable, before the call runs', async () => {
    const test = await testAgent()
    let before: unknown[] = []
    await test.tools({ ...write, execute: async (_, { session }) => { before = (await test.store.read(session.id)).events.map(event => event.type); return 'x' } })
    await results(test, ['write', {}])
    expect(before.slice(-2)).toEqual(['message', 'tool-intent'])
  })
})

describe('a run of a tool', () => {
  it('knows its session, its place and its folder, and tells how far it is', async () => {
    const test = await testAgent()
    const runs: unknown[] = []
    await test.tools({ ...write, execute: (_, run) => { runs.push({ ...run, session: run.session.id, depth: run.session.depth, signal: run.signal.aborted, progress: 0 }); run.progress('half'); return 'x' } })
    const { ran } = await results(test, ['write', {}])
    expect(runs).toEqual([{ session: ran.session, depth: 0, launch: expect.any(Function), lingers: expect.any(Function), turn: 1, step: 0, callId: 'c1', signal: false, progress: 0, outputDir: test.store.outputPath(ran.session) }])
    expect(ran.events.filter(event => event.type === 'progress')).toEqual([{ type: 'progress', callId: 'c1', name: 'write', message: 'half' }])
  })
  it('is stood around by handlers, who may run it again, and by their failures', async () => {
    const test = await testAgent()
    let runs = 0
    await test.tools({ ...look, execute: () => { if (++runs === 1) throw new Error('flaky'); return 'fine' } }, write)
    await test.plugin('around', ctx => {
      ctx.on('agent/tool-use', async (_, next) => { try { return await next() } catch { return next() } }, { tools: ['look'] })
      ctx.on('agent/tool-use', () => { throw new Error('the sandbox is broken') }, { tools: ['write'] })
    })
    expect((await results(test, ['look', {}], ['write', {}])).read).toEqual(['tool c1: fine', 'tool c2: the sandbox is broken'])
    expect(runs).toBe(2)
  })
  it('is told to end when a handler around it has given up waiting', async () => {
    const at = await testAgent()
    let told: unknown
    await at.plugin('impatient', ctx => { ctx.on('agent/tool-use', async (_, next) => { await Promise.race([next(), new Promise(done => { setTimeout(done, 5) })]); throw new Error('too slow') }, { timeout: 20 }) })
    await at.tools({ name: 'slow', description: 'waits', parameters: { type: 'object' }, execute: (_: never, { signal }) => new Promise((_, reject) => { signal.addEventListener('abort', () => { told = signal.reason; reject(signal.reason) }) }) })
    at.model.says({ calls: [['slow', {}]] }, 'done')
    const { reason, log } = await at.run('go')
    expect(reason).toBe('completed')
    expect(ofType(log, 'tool-result')).toMatchObject([{ kind: 'failed' }])
    expect(told).toBeDefined()
  })
  it('ends with an error when its plugin is taken away and it does not let go', async () => {
    const test = await testAgent()
    let begun = false
    const plugin = await test.tools({ ...write, execute: () => { begun = true; return new Promise(() => {}) } })
    test.model.says({ calls: [['write', {}]] }, 'done')
    const running = test.run('go')
    await until(() => begun)
    test.kernel.retire(plugin)
    test.kernel.abort(plugin)
    const { log, reason } = await running
    expect(reason).toBe('completed')
    expect(ofType(log, 'tool-result')[0]).toMatchObject({ kind: 'failed', content: expect.stringMatching(/^tool "write": its plugin "tools-1" was unloaded while it ran/) })
  })
  it('gets the signal of its plugin, and what it makes of it counts', async () => {
    const test = await testAgent()
    let begun = false
    const plugin = await test.tools({ ...write, execute: (_, { signal }) => { begun = true; return new Promise(resolve => { signal.addEventListener('abort', () => { resolve('stopped half way') }) }) } })
    test.model.says({ calls: [['write', {}]] }, 'done')
    const running = test.run('go')
    await until(() => begun)
    test.kernel.abort(plugin)
    expect(ofType((await running).log, 'tool-result')[0]).toMatchObject({ kind: 'ok', content: 'stopped half way' })
  })
  it('of a nested agent fires every hook, one level deeper, and is stopped with the outer one', async () => {
    const test = await testAgent()
    const judged: unknown[] = []
    await test.tools(look)
    await test.plugin('sub', ctx => {
      ctx.tools.register({ name: 'delegate', description: 'd', parameters: any, execute: async ({ hang }: { hang?: boolean }, { session, signal }) =>
        (await (await ctx.agents.run({ prompt: hang ? 'hang' : 'inner', parent: { session: session.id, depth: session.depth }, signal })).result).text })
    })
    await test.plugin('judge', ctx => { ctx.on('agent/pre-tool-use', ({ call, session }) => { judged.push([call.name, session.depth, session.parent !== undefined, session.mode]) }) })
    test.model.says({ calls: [['delegate', {}]] }, { calls: [['look', {}]] }, 'inner done', 'outer done')
    const ran = await test.run('outer', { mode: 'accept-edits' })
    expect(ran.text).toBe('outer done')
    expect(ofType(ran.log, 'tool-result')[0]!.content).toBe('inner done')
    expect(judged).toEqual([['delegate', 0, false, 'accept-edits'], ['look', 1, true, 'accept-edits']])
    test.model.says({ calls: [['delegate', { hang: true }]] }, { hang: true })
    const run = await test.agent.agents.run({ prompt: 'again', session: ran.session })
    await until(() => test.agent.agents.list().length === 2 && test.model.requests.length === 6)
    test.agent.agents.abort(run.session)
    expect((await finished(run)).reason).toBe('aborted')
    await until(() => test.agent.agents.list().length === 0)
  })
  it('counts as unconfined while it runs, when the tool says so', async () => {
    const test = await testAgent()
    const seen: number[] = []
    await test.tools({ ...write, unconfined: true, execute: () => { seen.push(test.agent.tools.unconfined); return 'x' } }, { ...look, execute: () => { seen.push(test.agent.tools.unconfined); return 'x' } })
    await results(test, ['write', {}], ['look', {}])
    expect(seen).toEqual([1, 0])
    expect(test.agent.tools.unconfined).toBe(0)
  })
  it('counts as confined when all it does is done by programs, and a plugin confines those of the call', async () => {
    const test = await testAgent()
    const seen: unknown[] = []
    const telling = (name: string, unconfined: true | 'programs'): Tool => ({ ...write, name, unconfined, execute: (_, run) => { seen.push([name, test.agent.tools.unconfined, run.launch(['ls', name])]); return 'x' } })
    await test.tools(telling('shell', 'programs'), telling('server', true))
    let confines = true
    await test.plugin('cage', ctx => { ctx.on('agent/tool-use', ({ session, call }) => { if (confines) ctx.workspace.confine(session, call.id, argv => ['cage', ...argv]) }) })
    await results(test, ['shell', {}, 'same'], ['server', {}])
    confines = false
    await results(test, ['shell', {}, 'same'])
    expect(seen).toEqual([['shell', 0, ['cage', 'ls', 'shell']], ['server', 1, ['cage', 'ls', 'server']], ['shell', 1, ['ls', 'shell']]])
  })
})

it('an answer of a handler is used after a yes to another\'s ask', async () => {
  const test = await testAgent()
  let ran = 0
  await test.tools({ ...write, execute: () => { ran++; return 'x' } })
  await test.plugin('asks', ctx => { ctx.on('agent/pre-tool-use', () => ask('sure?')) })
  await test.plugin('cache', ctx => { ctx.on('agent/pre-tool-use', () => answer('cached')) })
  test.model.says({ calls: [['write', {}]] }, 'done')
  const { log } = await test.run('go', { approver: async () => ({ answer: 'once' }) })
  expect(ofType(log, 'tool-result')).toMatchObject([{ kind: 'ok', content: 'cached', plugin: 'cache' }])
  expect(ran).toBe(0)
})

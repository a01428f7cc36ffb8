/** Which hooks fire in which kind of turn, in what order and with what. A hook that is declared and stands in no row fails the last test. */
import { describe, expect, it } from 'vitest'
import { RULES } from '../../core/agent/hook-rules.js'
import { answer, ask, block, proceed, reject, enter } from '../../core/agent/hooks.js'
import type { RunInput, Tool } from '../../core/agent/services.js'
import { textOf, type Message } from '../../core/agent/vocabulary.js'
import type { Context, HookName } from '../../core/kernel/hooks.js'
import { testAgent, until, type Script, type TestAgent } from '../support/agent.js'

/** What a row shows of a payload: what is special to the hook, in short. */
const DETAIL: { readonly [K in keyof typeof RULES]: (payload: any) => string } = {
  'agent/user-prompt-submit': ({ prompt, messages }) => `${prompt} [${messages.map(brief)}]`,
  'agent/system-prompt': ({ sections }) => sections.map(({ id }: { id: string }) => id).join(' '),
  'agent/pre-step': ({ messages }) => messages.map(brief).join(', '),
  'agent/pre-request': ({ model, messages, tools }) => `${model} ${messages.length} messages ${tools.length} tools`,
  'agent/request': ({ model, messages, tools }) => `${model} ${messages.length} messages ${tools.length} tools`,
  'agent/tool-arguments': ({ call }) => `${call.id} ${call.name}`,
  'agent/pre-tool-use': ({ call }) => `${call.id} ${call.name}${JSON.stringify(call.arguments)}${call.originalArguments ? ` was ${JSON.stringify(call.originalArguments)}` : ''}`,
  'agent/tool-use': ({ call }) => `${call.id}`,
  'agent/post-tool-use': ({ call, result }) => `${call.id} ${result.content}${result.isError ? ' (error)' : ''}`,
  'agent/stop': ({ reply, stopHookActive }) => `${reply} ${stopHookActive}`,
  'agent/session-start': ({ source }) => source,
  'agent/session-end': ({ reason }) => reason,
  'agent/turn-start': ({ prompt }) => prompt,
  'agent/turn-end': ({ reason, kind, stats }) => `${reason}${kind ? ` ${kind}` : ''} ${stats.steps}/${stats.toolCalls}/${stats.blocked}`,
  'agent/step-start': () => '',
  'agent/step-end': ({ usage, toolCalls }) => `${usage.inputTokens}+${usage.outputTokens} tokens ${toolCalls} calls`,
  'agent/tool-start': ({ call }) => `${call.id} ${typeof call.arguments === 'string' ? `raw ${call.arguments}` : JSON.stringify(call.arguments)}`,
  'agent/tool-end': ({ call, outcome, result, plugin }) => `${call.id} ${outcome}${plugin ? ` ${plugin}` : ''}: ${result.content.split('\n')[0]!.slice(0, 60)}`,
  'agent/ask': ({ call, reason }) => `${call.id} ${reason}`,
  'agent/compacted': ({ through, before, after }) => `${through} ${before > after ? 'smaller' : 'not smaller'}`,
  'agent/error': ({ error, phase }) => `${phase} ${error.code}: ${error.message}`,
  'agent/delta': ({ kind, text, attempt }) => `${kind} ${text} ${attempt}`,
}
const brief = (message: Message) => `${message.source?.kind ?? message.role}: ${textOf(message)}`

/** Watches every hook there is and has no opinion. */
function recorder(trace: string[]) {
  return (ctx: Context) => {
    for (const hook of Object.keys(RULES) as (keyof typeof RULES)[]) {
      ctx.on(hook as 'agent/pre-step', payload => { trace.push(`${payload.turn}.${payload.step} ${hook.slice(6)} ${DETAIL[hook](payload)}`.trim()) })
    }
  }
}
const echo: Tool = { name: 'echo', description: 'says it again', parameters: { type: 'object', properties: { say: { type: 'string' } } }, readOnly: true, execute: ({ say }: { say: string }) => `echo ${say}` }
const write: Tool = { name: 'write', description: 'writes', parameters: { type: 'object' }, execute: () => 'written' }
const fails: Tool = { name: 'fails', description: 'fails', parameters: { type: 'object' }, execute: () => { throw new Error('disk on fire') } }

interface Row {
  readonly when: string
  readonly script: Script
  readonly guard?: (ctx: Context) => void
  readonly input?: Partial<RunInput>
  readonly act?: (test: TestAgent, trace: string[]) => unknown
  readonly trace: readonly string[]
}
const start = ['0.0 session-start new', '1.0 turn-start go', '1.0 user-prompt-submit go [user: go]']
const stepOf = (step: number, pending: string, messages: number) =>
  [`1.${step} step-start`, `1.${step} pre-step ${pending}`.trim(), `1.${step} system-prompt core workspace`, `1.${step} pre-request scripted/default ${messages} messages 3 tools`, `1.${step} request scripted/default ${messages} messages 3 tools`]

const ROWS: readonly Row[] = [
  {
    when: 'text only', script: [{ chunks: ['do', 'ne'], text: 'done' }],
    trace: [...start, ...stepOf(0, 'user: go', 2), '1.0 delta text do 1', '1.0 delta text ne 1', '1.0 step-end 10+2 tokens 0 calls', '1.0 stop done false', '1.0 turn-end completed 1/0/0'],
  },
  {
    when: 'with a tool', script: [{ calls: [['write', {}]] }, 'done'],
    trace: [
      ...start, ...stepOf(0, 'user: go', 2),
      '1.0 tool-start c1 {}', '1.0 tool-arguments c1 write', '1.0 pre-tool-use c1 write{}', '1.0 tool-use c1', '1.0 post-tool-use c1 written', '1.0 tool-end c1 ok: written',
      '1.0 step-end 10+2 tokens 1 calls',
      ...stepOf(1, '', 4), '1.1 step-end 10+2 tokens 0 calls', '1.1 stop done false', '1.1 turn-end completed 2/1/0',
    ],
  },
  {
    when: 'with parallel tools and a barrier', script: [{ calls: [['echo', { say: 'a' }], ['echo', { say: 'b' }], ['write', {}], ['echo', { say: 'c' }]] }, 'done'],
    trace: [
      ...start, ...stepOf(0, 'user: go', 2),
      '1.0 tool-start c1 {"say":"a"}', '1.0 tool-arguments c1 echo', '1.0 pre-tool-use c1 echo{"say":"a"}',
      '1.0 tool-start c2 {"say":"b"}', '1.0 tool-arguments c2 echo', '1.0 pre-tool-use c2 echo{"say":"b"}',
      '1.0 tool-start c3 {}', '1.0 tool-arguments c3 write', '1.0 pre-tool-use c3 write{}',
      '1.0 tool-use c1', '1.0 tool-use c2', '1.0 post-tool-use c1 echo a', '1.0 post-tool-use c2 echo b', '1.0 tool-end c1 ok: echo a', '1.0 tool-end c2 ok: echo b',
      '1.0 tool-use c3', '1.0 post-tool-use c3 written', '1.0 tool-end c3 ok: written',
      '1.0 tool-start c4 {"say":"c"}', '1.0 tool-arguments c4 echo', '1.0 pre-tool-use c4 echo{"say":"c"}', '1.0 tool-use c4', '1.0 post-tool-use c4 echo c', '1.0 tool-end c4 ok: echo c',
      '1.0 step-end 10+2 tokens 4 calls',
      ...stepOf(1, '', 7), '1.1 step-end 10+2 tokens 0 calls', '1.1 stop done false', '1.1 turn-end completed 2/4/0',
    ],
  },
  {
    when: 'a call is blocked, another rewritten', script: [{ calls: [['write', {}], ['echo', { say: 'x' }]] }, 'done'],
    guard: ctx => {
      ctx.on('agent/pre-tool-use', () => block('not today'), { tools: ['write'] })
      ctx.on('agent/tool-arguments', () => ({ say: 'y' }), { tools: ['echo'] })
    },
    trace: [
      ...start, ...stepOf(0, 'user: go', 2),
      '1.0 tool-start c1 {}', '1.0 tool-arguments c1 write', '1.0 pre-tool-use c1 write{}', '1.0 tool-end c1 blocked guard: blocked by plugin "guard": not today. The same call will be',
      '1.0 tool-start c2 {"say":"x"}', '1.0 tool-arguments c2 echo', '1.0 pre-tool-use c2 echo{"say":"y"} was {"say":"x"}', '1.0 tool-use c2', '1.0 post-tool-use c2 echo y',
      '1.0 tool-end c2 ok: note: plugin "guard" changed the arguments to {"say":"y"}',
      '1.0 step-end 10+2 tokens 2 calls',
      ...stepOf(1, '', 5), '1.1 step-end 10+2 tokens 0 calls', '1.1 stop done false', '1.1 turn-end completed 2/2/1',
    ],
  },
  {
    when: 'a call is answered', script: [{ calls: [['write', {}]] }, 'done'], guard: ctx => { ctx.on('agent/pre-tool-use', () => answer('from the cache')) },
    trace: [
      ...start, ...stepOf(0, 'user: go', 2),
      '1.0 tool-start c1 {}', '1.0 tool-arguments c1 write', '1.0 pre-tool-use c1 write{}', '1.0 post-tool-use c1 from the cache', '1.0 tool-end c1 ok guard: from the cache',
      '1.0 step-end 10+2 tokens 1 calls', ...stepOf(1, '', 4), '1.1 step-end 10+2 tokens 0 calls', '1.1 stop done false', '1.1 turn-end completed 2/1/0',
    ],
  },
  {
    when: 'a call is asked about and nobody can be asked', script: [{ calls: [['write', {}]] }, 'done'], guard: ctx => { ctx.on('agent/pre-tool-use', () => ask('is it safe')) },
    trace: [
      ...start, ...stepOf(0, 'user: go', 2),
      '1.0 tool-start c1 {}', '1.0 tool-arguments c1 write', '1.0 pre-tool-use c1 write{}', '1.0 ask c1 is it safe', '1.0 tool-end c1 denied guard: denied: nobody could be asked (is it safe)',
      '1.0 step-end 10+2 tokens 1 calls', ...stepOf(1, '', 4), '1.1 step-end 10+2 tokens 0 calls', '1.1 stop done false', '1.1 turn-end completed 2/1/1',
    ],
  },
  {
    when: 'calls are invalid or fail', script: [{ calls: [['nope', {}], ['echo', '{"say":'], ['fails', {}]] }, 'done'],
    trace: [
      ...start, ...stepOf(0, 'user: go', 2),
      '1.0 tool-start c1 {}', '1.0 tool-end c1 invalid: there is no tool "nope" here; the tools are echo, write, fai',
      '1.0 tool-start c2 raw {"say":', '1.0 tool-end c2 invalid: invalid arguments for tool "echo": the arguments are not val',
      '1.0 tool-start c3 {}', '1.0 tool-arguments c3 fails', '1.0 pre-tool-use c3 fails{}', '1.0 tool-use c3', '1.0 post-tool-use c3 disk on fire (error)', '1.0 tool-end c3 failed: disk on fire',
      '1.0 step-end 10+2 tokens 3 calls', ...stepOf(1, '', 6), '1.1 step-end 10+2 tokens 0 calls', '1.1 stop done false', '1.1 turn-end completed 2/3/0',
    ],
  },
  {
    when: 'the prompt is rejected', script: [], guard: ctx => { ctx.on('agent/user-prompt-submit', () => reject('no')) },
    trace: [...start, '1.0 turn-end rejected 0/0/0'],
  },
  {
    when: 'a judge of the prompt breaks', script: [], guard: ctx => { ctx.on('agent/user-prompt-submit', () => { throw new Error('secret detail') }) },
    trace: [...start, '1.0 turn-end rejected hook_failed 0/0/0'],
  },
  {
    when: 'the step is rejected', script: [], guard: ctx => { ctx.on('agent/pre-step', () => reject('no')) },
    trace: [...start, '1.0 step-start', '1.0 pre-step user: go', '1.0 step-end 0+0 tokens 0 calls', '1.0 turn-end rejected 0/0/0'],
  },
  {
    when: 'the request is rejected', script: [], guard: ctx => { ctx.on('agent/pre-request', () => reject('no')) },
    trace: [...start, ...stepOf(0, 'user: go', 2).slice(0, 4), '1.0 step-end 0+0 tokens 0 calls', '1.0 turn-end rejected 0/0/0'],
  },
  {
    when: 'the model fails', script: [{ error: new Error('no route') }],
    trace: [...start, ...stepOf(0, 'user: go', 2), '1.0 step-end 0+0 tokens 0 calls', '1.0 error request model_failed: no route', '1.0 turn-end failed 1/0/0'],
  },
  {
    when: 'the reply is cut', script: [{ text: 'half', calls: [['write', {}]], finish: 'length' }],
    trace: [...start, ...stepOf(0, 'user: go', 2), '1.0 step-end 10+2 tokens 0 calls', '1.0 turn-end truncated 1/0/0'],
  },
  {
    when: 'it is stopped while the model answers', script: [{ chunks: ['ha'], deaf: true }],
    act: async ({ agent }, trace) => { await until(() => trace.some(line => line.includes(' delta '))); agent.agents.abort(agent.agents.list()[0]!.session) },
    trace: [...start, ...stepOf(0, 'user: go', 2), '1.0 delta text ha 1', '1.0 step-end 0+0 tokens 0 calls', '1.0 turn-end aborted 1/0/0'],
  },
  {
    when: 'a stop handler lets it go on once', script: ['one', 'two'], guard: ctx => { ctx.on('agent/stop', ({ stopHookActive }) => stopHookActive ? undefined : proceed('and now the tests')) },
    trace: [
      ...start, ...stepOf(0, 'user: go', 2), '1.0 step-end 10+2 tokens 0 calls', '1.0 stop one false',
      ...stepOf(1, 'plugin: and now the tests', 4), '1.1 step-end 10+2 tokens 0 calls', '1.1 stop two true', '1.1 turn-end completed 2/0/0',
    ],
  },
  {
    when: 'the step limit is reached', script: [{ calls: [['write', {}]] }], input: { maxSteps: 1 },
    trace: [
      ...start, ...stepOf(0, 'user: go', 2), '1.0 tool-start c1 {}', '1.0 tool-arguments c1 write', '1.0 pre-tool-use c1 write{}', '1.0 tool-use c1', '1.0 post-tool-use c1 written', '1.0 tool-end c1 ok: written',
      '1.0 step-end 10+2 tokens 1 calls', '1.0 turn-end max-steps 1/1/0',
    ],
  },
  {
    when: 'older messages are compacted, and the session is closed', script: [{ text: 'a long answer '.repeat(50), calls: [['write', {}]] }, 'done'],
    guard: ctx => { ctx.on('agent/pre-step', ({ step, messages }) => step === 1 ? enter(messages, { compact: { through: 10, messages: ['so far'] } }) : undefined) },
    act: async ({ agent, store }, trace) => { await until(() => trace.some(line => line.includes(' stop '))); await agent.agents.close((await store.list())[0]!.id) },
    trace: [
      ...start, ...stepOf(0, 'user: go', 2), '1.0 tool-start c1 {}', '1.0 tool-arguments c1 write', '1.0 pre-tool-use c1 write{}', '1.0 tool-use c1', '1.0 post-tool-use c1 written', '1.0 tool-end c1 ok: written',
      '1.0 step-end 10+2 tokens 1 calls',
      '1.1 step-start', '1.1 pre-step', '1.1 compacted 10 smaller', ...stepOf(1, '', 2).slice(2), '1.1 step-end 10+2 tokens 0 calls', '1.1 stop done false', '1.1 turn-end completed 2/1/0',
      '0.0 session-end closed',
    ],
  },
]

async function play({ script, guard, input, act }: Row): Promise<string[]> {
  const trace: string[] = []
  const test = await testAgent()
  await test.plugin('recorder', recorder(trace))
  await test.tools(echo, write, fails)
  if (guard) await test.plugin('guard', guard)
  test.model.says(...script)
  const running = test.run('go', input)
  await act?.(test, trace)
  await running
  return trace
}

describe('hooks', () => {
  for (const row of ROWS) {
    it(`fire in order when ${row.when}`, async () => {
      expect(await play(row)).toEqual(row.trace)
    })
  }
  it('stand in a row each, and every one that is declared fires in some', () => {
    const fired = new Set(ROWS.flatMap(({ trace }) => trace.map(line => `agent/${line.split(' ')[1]}` as HookName)))
    expect([...fired].sort()).toEqual(Object.keys(RULES).sort())
  })
})

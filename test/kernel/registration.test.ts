import { describe, expect, it } from 'vitest'
import type { HookName } from '../../core/kernel/hooks.js'
import { payloads, testHooks } from '../support/hooks.js'

const register = (hook: unknown, options?: unknown, handler: unknown = () => {}) => {
  const { hooks, plugin } = testHooks()
  hooks.registerHandler(plugin('p').scope, hook as HookName, handler, options)
  return hooks
}
const refusal = (hook: unknown, options?: unknown, handler?: unknown): { code?: string; message: string } => {
  try { register(hook, options, handler) } catch (error) { return error as { code?: string; message: string } }
  return { message: 'accepted' }
}

describe('a hook’s name', () => {
  it.each([
    ['agent/pre-tool-usee', 'hook "agent/pre-tool-usee" does not exist; did you mean "agent/pre-tool-use"?'],
    ['agent/stpo', 'did you mean "agent/stop"?'],
    ['agnet/pre-step', '"agnet/pre-step" is called "agent/pre-step" here'],
    ['agent/preToolUse', '"agent/preToolUse" is called "agent/pre-tool-use" here'],
  ])('%s under agent/, or nearly, is refused with what was meant', (name, says) => {
    expect(refusal(name)).toMatchObject({ code: 'hook_unknown', message: expect.stringContaining(says) })
  })
  it('that resembles nothing gets the list', () => {
    expect(refusal('agent/xyzzy-plugh-frobnicate').message).toMatch(/does not exist; there are agent\/user-prompt-submit, .*agent\/delta/)
  })
  it.each([
    ['PreToolUse', 'agent/pre-tool-use'], ['PreTooluse', 'agent/pre-tool-use'], ['pre_tool_use', 'agent/pre-tool-use'], ['before_tool', 'agent/pre-tool-use'], ['beforeTool', 'agent/pre-tool-use'],
    ['tool.execute.before', 'agent/pre-tool-use'], ['tool_call', 'agent/pre-tool-use'], ['PostToolUse', 'agent/post-tool-use'], ['after_tool', 'agent/post-tool-use'], ['tool.execute.after', 'agent/post-tool-use'],
    ['tool_result', 'agent/post-tool-use'], ['UserPromptSubmit', 'agent/user-prompt-submit'], ['chat.message', 'agent/user-prompt-submit'], ['Stop', 'agent/stop'], ['SubagentStop', 'agent/stop'],
    ['SessionStart', 'agent/session-start'], ['session_shutdown', 'agent/session-end'], ['agent_end', 'agent/turn-end'], ['PreCompact', 'agent/pre-step'], ['Notification', 'agent/ask'], ['before_model', 'agent/pre-request'],
  ])('%s of another tool is refused with ours', (name, ours) => {
    expect(refusal(name)).toMatchObject({ code: 'hook_unknown', message: `plugin "p": "${name}" is called "${ours}" here` })
  })
  it.each(['my/hook', 'store/changed', 'my/pre-step', 'something', 'constructor', '__proto__'])('%s, which nobody has defined yet, is accepted', name => {
    expect(register(name).list()).toMatchObject([{ hook: name, kind: 'undefined', handlers: [{ plugin: 'p' }] }])
  })
  it('must be a string', () => {
    expect(refusal(42)).toMatchObject({ code: 'hook_invalid', message: 'plugin "p": a hook\'s name must be a string, received 42' })
  })
})

describe('options', () => {
  it.each([
    ['agent/pre-tool-use', {}, 'not a function', 'the handler must be a function, received "not a function"'],
    ['agent/pre-tool-use', { timeOut: 3 }, undefined, 'there is no option "timeOut"; there are prepend, timeout, onError and tools'],
    ['agent/pre-tool-use', null, undefined, 'options must be an object, received null'],
    ['agent/pre-tool-use', { prepend: 1 }, undefined, 'prepend must be true or false, received 1'],
    ['agent/pre-tool-use', { timeout: 0 }, undefined, 'timeout must be milliseconds from 1'],
    ['agent/pre-tool-use', { timeout: '5s' }, undefined, 'received "5s"'],
    ['agent/pre-tool-use', { timeout: Infinity }, undefined, 'timeout must be milliseconds'],
    ['agent/pre-tool-use', { timeout: NaN }, undefined, 'timeout must be milliseconds'],
    ['agent/pre-tool-use', { onError: 'ignore' }, undefined, 'onError must be "block" or "pass", received "ignore"'],
    ['agent/stop', { onError: 'pass' }, undefined, 'onError is for hooks that refuse when a handler fails; this one is decide and goes on'],
    ['agent/post-tool-use', { onError: 'pass' }, undefined, 'this one is amend'],
    ['agent/tool-use', { onError: 'block' }, undefined, 'this one is around'],
    ['agent/turn-end', { onError: 'pass' }, undefined, 'this one is watch'],
    ['agent/pre-step', { tools: ['bash'] }, undefined, 'tools is for hooks of a tool call; this one has none'],
    ['agent/turn-end', { tools: ['bash'] }, undefined, 'tools is for hooks of a tool call'],
    ['agent/pre-tool-use', { tools: [] }, undefined, 'with at least one entry, received []; leave it out for all tools'],
    ['agent/pre-tool-use', { tools: 'bash' }, undefined, 'tools must be a list of names and patterns'],
    ['agent/pre-tool-use', { tools: ['*'] }, undefined, 'tools: "*" is no tool\'s name; for a pattern write a RegExp'],
    ['agent/pre-tool-use', { tools: ['bash', 42] }, undefined, 'tools: 42 is no tool\'s name'],
    ['my/hook', { tools: ['*'] }, undefined, 'is no tool\'s name'],
  ])('%s %j is refused', (hook, options, handler, says) => {
    expect(refusal(hook, options, handler)).toMatchObject({ code: 'hook_invalid', message: expect.stringContaining(says) })
    expect(refusal(hook, options, handler).message).toContain('plugin "p"')
  })
  it.each([
    ['agent/user-prompt-submit', { onError: 'pass' }], ['agent/pre-step', { onError: 'block' }], ['agent/pre-request', { onError: 'pass' }], ['agent/pre-tool-use', { onError: 'pass', tools: ['bash', /write_.*/], timeout: 1, prepend: true }],
    ['agent/tool-arguments', { tools: ['bash'] }], ['agent/tool-use', { tools: ['bash'] }], ['agent/post-tool-use', { tools: ['bash'] }], ['agent/tool-start', { tools: ['bash'] }], ['agent/tool-end', { tools: ['bash'] }], ['agent/ask', { tools: ['bash'] }],
    ['agent/turn-end', undefined], ['agent/turn-end', { onError: undefined, tools: undefined }], ['my/hook', { tools: ['bash'], onError: 'pass' }],
  ])('%s %j is accepted', (hook, options) => {
    expect(refusal(hook, options).message).toBe('accepted')
  })
  it('are read once: changing them later changes nothing', async () => {
    const { hooks, plugin } = testHooks()
    const options = { tools: ['bash'] }
    let calls = 0
    plugin('p').on('agent/pre-tool-use', () => { calls++ }, options)
    options.tools.push('read_file')
    options.tools = []
    for (const tool of ['bash', 'read_file']) await hooks.dispatch('agent/pre-tool-use', payloads.call(tool))
    expect(calls).toBe(1)
  })
  it('leave nothing behind when they are refused', () => {
    const { hooks, plugin } = testHooks()
    expect(() => hooks.registerHandler(plugin('p').scope, 'agent/stop', () => {}, { onError: 'pass' })).toThrow()
    expect([hooks.size, hooks.list()]).toEqual([0, []])
  })
})

describe('a registration', () => {
  it('shows plugin, file and line of whoever called on, mapped only when somebody looks', () => {
    const { owners, hooks, plugin } = testHooks()
    const p = plugin('p')
    let looked = 0
    owners.locate = raw => { looked++; return { file: `source of ${raw.file}`, line: (raw.line ?? 0) + 1000 } }
    p.on('agent/stop', () => {})
    expect(looked).toBe(0)
    const [info] = hooks.list()[0]!.handlers
    expect(info).toMatchObject({ plugin: 'p', file: `source of ${import.meta.filename}`, prepend: false, calls: 0, p50: 0, p95: 0, max: 0 })
    expect(info!.line).toBeGreaterThan(1000)
  })
  it('leaves Error as it was', () => {
    const { prepareStackTrace, stackTraceLimit } = Error
    register('agent/stop')
    expect([Error.prepareStackTrace, Error.stackTraceLimit]).toEqual([prepareStackTrace, stackTraceLimit])
  })
  it.each(['retired', 'disposed'] as const)('of a %s plugin is refused', stage => {
    const { hooks, plugin } = testHooks()
    expect(() => plugin('p', { stage }).on('agent/stop', () => {})).toThrow(expect.objectContaining({ code: 'stale_context' }))
    expect(hooks.size).toBe(0)
  })
  it('of a staged plugin is unseen until the switch', () => {
    const { owners, hooks, plugin } = testHooks()
    const p = plugin('p', { stage: 'staged' })
    p.on('agent/stop', () => {})
    expect([hooks.list(), hooks.size]).toEqual([[], 1])
    owners.switch([p.owner])
    expect(hooks.list()).toMatchObject([{ hook: 'agent/stop', kind: 'decide', handlers: [{ plugin: 'p' }] }])
  })
  it('is taken back with the plugin, and leaves the tables as they were', () => {
    const { hooks, plugin } = testHooks()
    const p = plugin('p')
    for (let i = 0; i < 100; i++) {
      p.on('agent/stop', () => {})
      p.on('my/hook' as HookName, () => {})
      hooks.define(p.scope, `my/${i}`, { kind: 'watch' })
    }
    p.undo()
    expect([hooks.size, hooks.list(), hooks.has('agent/stop')]).toEqual([0, [], false])
  })
})

import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { block, type Context, type SessionEvent } from '../../core/api.js'
import { traceOf, type Node } from '../../core/cli/trace-tree.js'
import { createTestHost } from '../../core/testing.js'
import { place } from '../support/hx.js'

const judge = {
  name: 'judge',
  apply(ctx: Context) {
    ctx.on('agent/tool-start', () => { throw new Error('a watcher breaks') })
    ctx.on('agent/pre-step', async () => { await sleep(120) })
    ctx.on('agent/tool-arguments', ({ call }) => ({ ...call.arguments, path: 'a.txt' }), { tools: ['read_file'] })
    ctx.on('agent/pre-tool-use', () => block('not today'), { tools: ['glob'] })
  },
}

describe('a trace', () => {
  it('says of each call who decided what, what was changed and how long it took, and names slow and failed handlers', async () => {
    const host = await createTestHost({ plugins: ['tool-fs', { module: judge }], files: { 'a.txt': 'hello' }, replies: [{ calls: [{ name: 'read_file', arguments: { path: 'b.txt' } }, { name: 'glob', arguments: { pattern: '*' } }] }, 'done'] })
    try {
      const { events } = await host.run('read b.txt')
      const [turn] = traceOf(events.filter((event): event is SessionEvent => 'seq' in event))
      expect(turn).toMatchObject({ turn: 1, prompt: 'read b.txt', reason: 'completed', stats: { steps: 2, toolCalls: 2, blocked: 1 } })
      expect(turn!.steps.map(({ step }) => step)).toEqual([0, 1])
      const nodes = turn!.steps[0]!.nodes, [read, glob] = nodes.filter((node): node is Extract<Node, { type: 'call' }> => node.type === 'call')
      expect(nodes.find(node => node.type === 'decision')).toMatchObject({ hook: 'agent/pre-step', plugin: 'judge', kind: 'slow' })
      expect(read).toMatchObject({ name: 'read_file', outcome: 'ok', arguments: { path: 'a.txt' }, changedFrom: { path: 'b.txt' } })
      expect(read!.decisions.map(({ hook, kind }) => `${hook} ${kind}`)).toEqual(['agent/tool-start failed', 'agent/tool-arguments amended'])
      expect(glob).toMatchObject({ outcome: 'blocked', plugin: 'judge' })
      expect(glob!.decisions.at(-1)).toMatchObject({ kind: 'block', reason: 'not today', ms: expect.any(Number) as number })
      expect(host.log.find(({ message }) => message.includes('a watcher breaks'))?.message).toMatch(/trace\.test\.ts:\d+:\d+\)$/)
    } finally { await host.close() }
  })
  it('says what changed: arguments with their values, of a result only sizes, and who stood around a call or request and made another of it', async () => {
    const changer = {
      name: 'changer',
      apply(ctx: Context) {
        ctx.on('agent/tool-arguments', ({ call }) => ({ ...call.arguments, path: 'a.txt', limit: 3 }), { tools: ['read_file'] })
        ctx.on('agent/tool-use', async (_, next) => {
          await next()
          return { ...await next() }                              // the same once more: repeated, not replaced
        }, { tools: ['read_file'] })
        ctx.on('agent/tool-use', async () => 'from a cache', { tools: ['glob'] })
        ctx.on('agent/tool-use', async (_, next) => {
          try { return await next() } catch { return { content: 'mended' } }
        }, { tools: ['breaks'] })
        ctx.on('agent/post-tool-use', async (_, next) => {
          const result = await next()
          return result.content.replace('hunter2', '***')
        }, { tools: ['read_file'] })
        ctx.on('agent/post-tool-use', () => undefined)
        ctx.on('agent/system-prompt', async (_, next) => [...await next(), { id: 'tone', text: 'Be brief.' }])
        ctx.on('agent/request', async (_, next) => { try { return await next() } catch { return next() } })
        ctx.tools.register({ name: 'breaks', description: 'breaks', parameters: { type: 'object' }, execute: () => { throw new Error('broken') } })
      },
    }
    const host = await createTestHost({
      plugins: ['tool-fs', { module: changer }], files: { 'a.txt': 'the password is hunter2 today\n' },
      replies: [() => { throw new Error('once') }, { calls: [{ name: 'read_file', arguments: { path: 'b.txt' } }, { name: 'glob', arguments: { pattern: '*' } }, { name: 'breaks', arguments: {} }] }, 'done'],
    })
    try {
      const events = (await host.run('go')).events.filter((event): event is SessionEvent => 'seq' in event)
      const said = events.flatMap(event => event.type === 'decision' ? [`${event.hook} ${event.kind}${event.change === undefined ? '' : `: ${event.change.replace(/at \d+/, 'at N')}`}`] : [])
      expect(said.slice(0, 7).sort()).toEqual([                  // read-only calls run together, so the order of their lines is open
        'agent/system-prompt amended: tone added',
        'agent/request repeated: 2 attempts',
        'agent/tool-arguments amended: path "b.txt" → "a.txt", limit added 3',
        'agent/tool-use repeated: 2 attempts',
        'agent/post-tool-use amended: 7 characters at N → 3',
        'agent/tool-use answered',
        'agent/tool-use replaced: in place of a failure',
      ].sort())
      expect(JSON.stringify(events)).not.toContain('hunter2')
      const nodes = traceOf(events)[0]!.steps[0]!.nodes
      expect(nodes.find(node => node.type === 'call' && node.name === 'glob')).toMatchObject({ decisions: [{ kind: 'answered', plugin: 'changer' }] })
    } finally { await host.close() }
  })
  it('has what was tried when the act failed in the end', async () => {
    const stubborn = { name: 'stubborn', apply(ctx: Context) { ctx.on('agent/request', async (_, next) => { try { return await next() } catch { return next() } }) } }
    const host = await createTestHost({ plugins: [{ module: stubborn }], replies: [() => { throw new Error('once') }, () => { throw new Error('twice') }] })
    try {
      const { events, result } = await host.run('go')
      expect(result.reason).toBe('failed')
      expect(events).toContainEqual(expect.objectContaining({ type: 'decision', hook: 'agent/request', plugin: 'stubborn', kind: 'repeated', change: '2 attempts, the last failed' }))
    } finally { await host.close() }
  })
  it('is printed as a tree, one turn alone when asked for, and is there after a crash too', async () => {
    const { hx } = place({ 'a.txt': 'x' })
    await hx(['agent', '--offline', 'Read a.txt'])
    const { sessions } = JSON.parse((await hx(['sessions', '--json'])).stdout) as { sessions: { id: string }[] }
    const shown = await hx(['trace', sessions[0]!.id])
    expect(shown.stdout).toMatch(/^turn 1: Read a\.txt\n {2}completed · .*\n├─ step 0 /)
    expect(shown.stdout).toContain('read_file({"path":"a.txt"})  ok')
    expect((await hx(['trace', sessions[0]!.id, '--turn', '2'])).stderr).toContain('has no turn 2; it has 1 turn')
    expect(traceOf([{ seq: 1, ts: '2026-01-01T00:00:00.000Z', type: 'turn-start', turn: 1, prompt: 'x', source: { kind: 'user' } }])).toMatchObject([{ turn: 1, steps: [] }])
  }, 30_000)
})

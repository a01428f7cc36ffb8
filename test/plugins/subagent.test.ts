import { describe, expect, it } from 'vitest'
import { block } from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import * as subagent from '../../plugins/subagent.js'
import { conversation, ofType, testAgent, until } from '../support/agent.js'

async function started(config: object = {}) {
  const agent = await testAgent()
  await agent.plugin('subagent', ctx => { subagent.apply(ctx, subagent.Config.parse(config)) })
  await agent.tools({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, execute: () => 'seen' })
  return agent
}
const task = { calls: [['task', { title: 'find it', prompt: 'find the bug' }] as const] }

describe('subagent', () => {
  it('runs a task in a session of its own and gives its report', async () => {
    const { model, run, store, cwd } = await started()
    model.says(task, { calls: [['look', {}]] }, 'it is in line 3', 'fixed')
    const { log, events, text, session } = await run('fix it')
    expect(text).toBe('fixed')
    expect(ofType(log, 'tool-result')).toMatchObject([{ kind: 'ok', content: 'it is in line 3' }])
    expect(conversation(model.requests[1]!)).toEqual(['user: find the bug'])
    expect(events.filter(({ type }) => type === 'progress')).toMatchObject([{ message: 'find it: look' }])
    const inner = (await store.list()).find(({ parent }) => parent === session)!
    expect((await store.read(inner.id)).events[0]).toMatchObject({ type: 'session', parent: session, depth: 1, cwd })
  })
  it('fires all hooks for it, with its parent and depth', async () => {
    const { plugin, model, run } = await started()
    const seen: string[] = []
    await plugin('guard', ctx => { ctx.on('agent/pre-tool-use', ({ session, call }) => { seen.push(`${call.name} ${session.depth}`); if (call.name === 'look') return block('not here') }) })
    model.says(task, { calls: [['look', {}]] }, 'could not look', 'done')
    await run('go')
    expect(seen).toEqual(['task 0', 'look 1'])
  })
  it('does not offer the tool where it would refuse, and goes as deep as it may', async () => {
    const flat = await started()
    flat.model.says(task, 'report', 'done')
    await flat.run('go')
    expect(flat.model.requests.map(({ tools }) => tools.some(({ name }) => name === 'task'))).toEqual([true, false, true])
    const deep = await started({ maxDepth: 2 })
    deep.model.says(task, task, 'deepest', 'middle', 'top')
    expect((await deep.run('go')).text).toBe('top')
    expect(deep.model.requests.map(({ tools }) => tools.some(({ name }) => name === 'task'))).toEqual([true, true, false, true, true])
  })
  it('says how a task ended that was not completed', async () => {
    const { model, run } = await started({ maxSteps: 1 })
    model.says(task, { text: 'looking', calls: [['look', {}]] }, 'done')
    expect(ofType((await run('go')).log, 'tool-result')).toMatchObject([{ kind: 'failed', content: 'the task ended max-steps after 1 step (step limit reached, the task is unfinished); its last words:\nlooking' }])
  })
  it('ends with the turn that started it', async () => {
    const { agent, model, cwd } = await started()
    model.says(task, { hang: true })
    const outer = await agent.agents.run({ prompt: 'go', cwd })
    await until(() => model.requests.length === 2)
    agent.agents.abort(outer.session)
    expect((await outer.result).reason).toBe('aborted')
    await until(() => agent.agents.list().length === 0)
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const host = await createTestHost({ plugins: [], replies: [{ calls: [{ name: 'task', arguments: { title: 't', prompt: 'p' } }] }, 'report', 'done'] })
    await host.configure(['subagent'])
    await host.reload('subagent')
    expect((await host.run('go')).results).toEqual(['report'])
    await host.configure([])
    expect(host.tools()).toEqual([])
    await host.close()
  })
})

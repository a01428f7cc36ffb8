import { describe, expect, it } from 'vitest'
import { createTestHost } from 'harnessx/testing'
import { enter } from 'harnessx'
import * as todo from '../../plugins/todo.js'
import { pluginHost } from '../support/plugin-host.js'
import { textOf } from '../../core/agent/vocabulary.js'

const items = [{ text: 'read', state: 'done' }, { text: 'write', state: 'active' }, { text: 'test', state: 'open' }]
/** Replaces everything by a summary, in the step after it is told to. */
const compactor = () => {
  const state = { now: false }
  return { state, row: { id: 'compactor', module: { name: 'compactor', apply: (ctx: any) => ctx.on('agent/pre-step', async ({ session, messages }: any) => {
    if (!state.now) return
    state.now = false
    return enter(messages, { compact: { through: (await ctx.sessions.read(session.id)).events.at(-1)!.seq, messages: ['summary'] } })
  }) } } }
}

describe('todo', () => {
  it('keeps a list that the model gives, and shows it to the user', async () => {
    const host = await pluginHost([{ module: todo }])
    const { read, printed } = await host.call('todo', { items })
    expect(read).toBe('2 of 3 open')
    expect(printed).toEqual(['[todo] [x] read', '[todo] [>] write', '[todo] [ ] test'])
    expect((await host.call('todo', { items: [items[0]] })).read).toBe('all done')
    expect((await host.call('todo', { items: [] })).read).toBe('the list is empty')
  })
  it('refuses two active items, too many, and what is no list', async () => {
    const host = await pluginHost([{ module: todo, config: { max: 2 } }])
    expect((await host.call('todo', { items: [items[1], items[1]] })).read).toBe('only one item can be active; finish it, or set it back to open')
    expect((await host.call('todo', { items })).read).toContain('items')
    expect((await host.call('todo', { items: [{ text: '', state: 'open' }] })).read).toContain('text')
  })
  it('lets nothing that a model wrote steer the terminal', async () => {
    const host = await pluginHost([{ module: todo }])
    expect((await host.call('todo', { items: [{ text: '\u001b[2Jgone\nnext', state: 'open' }] })).printed).toEqual(['[todo] [ ]  [2Jgone next'])
  })
  it('tells the list again after a compaction, once, also in a host that starts anew', async () => {
    const { state, row } = compactor()
    const host = await pluginHost([row, { module: todo }])
    const { result: { session } } = await host.call('todo', { items })
    state.now = true
    await host.run([], { session })
    await host.reload('todo', { module: todo })
    await host.run([], { session, prompt: 'and on' })
    const notes = () => host.requests.at(-1)!.messages.map(textOf).filter(said => said.startsWith('Your todo list'))
    expect(notes()).toEqual(['Your todo list, as you left it:\n[x] read\n[>] write\n[ ] test'])
    await host.run([], { session })
    expect(notes()).toHaveLength(1)
  })
  it('says nothing of a list that is done, or was never kept', async () => {
    const { state, row } = compactor()
    const host = await pluginHost([row, { module: todo }])
    const { result: { session } } = await host.call('todo', { items: [items[0]] })
    state.now = true
    await host.run([], { session })
    await host.run([], { session })
    expect(host.requests.at(-1)!.messages.map(textOf).join()).not.toContain('Your todo list')
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const host = await createTestHost({ plugins: [] })
    await host.configure(['todo'])
    await host.reload('todo')
    expect(host.tools().map(({ name }) => name)).toEqual(['todo'])
    await host.configure([])
    expect(host.tools()).toEqual([])
    await host.close()
  })
})

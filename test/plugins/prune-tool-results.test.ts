import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createTestHost } from 'harnessx/testing'
import * as prune from '../../plugins/prune-tool-results.js'
import { buildRequest, checkPairs } from '../../core/agent/request.js'
import { conversation, ofType, testAgent } from '../support/agent.js'
import { text, textOf, type Message } from '../../core/agent/vocabulary.js'

const LEFT_OUT = '[a result of 4000 characters was left out to make room; call the tool again if you need it]'
async function started(config: object) {
  const agent = await testAgent()
  await agent.plugin('prune-tool-results', ctx => { prune.apply(ctx, prune.Config.parse(config)) })
  const give = (name: string) => ({ name, description: 'Gives much.', parameters: { type: 'object' }, execute: ({ mark }: { mark?: string }) => `${mark ?? ''}`.padEnd(4000, '.') }) as never
  await agent.tools(give('big'), give('dear'))
  return agent
}

describe('prune-tool-results', () => {
  it('leaves out results that lie far back, keeps the newest, and keeps every call with its answer', async () => {
    const { model, run, store } = await started({ keep: 1500, atLeast: 1000 })
    model.says({ text: 'look', calls: [['big', { mark: 'a' }, 'a'], ['big', { mark: 'b' }, 'b']] }, { calls: [['big', { mark: 'c' }, 'c']] }, 'done')
    const { log, reason, session } = await run('go')
    expect(reason).toBe('completed')
    const request = model.requests.at(-1)!
    expect(conversation(request)).toEqual(['user: go', 'assistant: look', `tool a: ${LEFT_OUT}`, `tool b: ${LEFT_OUT}`, 'assistant: ', expect.stringMatching(/^tool c: c\.{3999}$/)])
    expect(checkPairs(request.messages.filter(({ role }) => role !== 'system'))).toBeUndefined()
    expect(request.messages.find(({ role }) => role === 'user')!.source).toEqual({ kind: 'user' })
    expect(ofType(log, 'compaction')).toMatchObject([{ source: { kind: 'plugin', id: 'prune-tool-results' } }])
    const { events } = await store.read(session)
    expect(buildRequest(events.slice(0, events.findLastIndex(({ type }) => type === 'request') + 1)).messages).toEqual(request.messages)
    expect(ofType(events as never, 'tool-result').map(({ content }) => content.length)).toEqual([4000, 4000, 4000])
  })
  it('does it again when there is more, also after a resume, and never what it did before', async () => {
    const { model, run } = await started({ keep: 0, atLeast: 1500 })
    model.says({ calls: [['big', { mark: 'a' }, 'a'], ['big', {}, 'b']] }, 'one')
    const { session, log } = await run('first')
    expect(ofType(log, 'compaction')).toHaveLength(1)
    model.says({ calls: [['big', { mark: 'c' }, 'c']] }, { calls: [['big', { mark: 'd' }, 'd']] }, 'two')
    const again = await run('second', { session })
    expect(ofType(again.log, 'compaction')).toHaveLength(1)
    expect(conversation(model.requests.at(-1)!)).toEqual(['user: first', 'assistant: ', ...['a', 'b'].map(id => `tool ${id}: ${LEFT_OUT}`), 'assistant: one', 'user: second', 'assistant: ', `tool c: ${LEFT_OUT}`, 'assistant: ', `tool d: ${LEFT_OUT}`])
  })
  it('changes nothing that would save too little, and nothing of the tools that are named', async () => {
    const little = await started({ keep: 0, atLeast: 5000 })
    little.model.says({ calls: [['big', {}]] }, 'done')
    expect(ofType((await little.run('go')).log, 'compaction')).toEqual([])
    const dear = await started({ keep: 0, atLeast: 500, except: ['dear'] })
    dear.model.says({ calls: [['dear', { mark: 'x' }, 'x'], ['big', {}, 'y']] }, 'done')
    await dear.run('go')
    expect(conversation(dear.model.requests.at(-1)!).slice(-2)).toEqual([expect.stringMatching(/^tool x: x\.+$/), `tool y: ${LEFT_OUT}`])
  })
  it('does it in a session that is kept in memory only too', async () => {
    const { model, run } = await started({ keep: 0, atLeast: 500 })
    model.says({ calls: [['big', {}]] }, 'done')
    expect(ofType((await run('go', { ephemeral: true })).log, 'compaction')).toHaveLength(1)
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const host = await createTestHost({ plugins: ['tool-fs'], files: { 'a.txt': 'x'.repeat(3000) } })
    await host.configure([{ name: 'prune-tool-results', config: { keep: 0, atLeast: 100 } }, 'tool-fs'])
    await host.reload('prune-tool-results')
    host.says({ calls: [{ name: 'read_file', arguments: { path: 'a.txt' } }] }, 'done')
    await host.run('go')
    expect(textOf(host.requests.at(-1)!.messages.at(-1)!)).toMatch(/^\[a result of \d+ characters was left out/)
    await host.close()
  })
  it('keeps every pair whole and every message in its place, whatever the conversation', () => {
    const group = fc.oneof(fc.constant(undefined), fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 1, maxLength: 4 }))
    fc.assert(fc.property(fc.array(group, { maxLength: 12 }), fc.integer({ min: 0, max: 2000 }), (groups, keep) => {
      const messages = groups.flatMap((sizes, at): Message[] => sizes === undefined ? [{ role: 'user', content: [text(`say ${at}`)] }] : [
        { role: 'assistant', content: [], toolCalls: sizes.map((_, i) => ({ id: `${at}.${i}`, name: 'big', arguments: '{}' })) },
        ...sizes.map((size, i): Message => ({ role: 'tool', content: [text('.'.repeat(size))], toolCallId: `${at}.${i}` })),
      ])
      const old = prune.pruned(messages, prune.Config.parse({ keep, atLeast: 100 }))
      if (!old) return
      expect(checkPairs([...old.messages, ...messages.slice(old.messages.length)])).toBeUndefined()
      expect(messages[old.messages.length]?.role).not.toBe('tool')
      expect(old.messages.map(({ role, toolCallId }) => [role, toolCallId])).toEqual(messages.slice(0, old.messages.length).map(({ role, toolCallId }) => [role, toolCallId]))
    }), { numRuns: 200 })
  })
  it('finds no border where the log was compacted by somebody else meanwhile', () => {
    const rest: Message[] = [{ role: 'assistant', content: [{ type: 'text', text: 'x' }] }]
    expect(prune.borderBefore([], rest)).toBeUndefined()
  })
})

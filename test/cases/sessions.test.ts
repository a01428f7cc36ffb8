import { appendFileSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { checkPairs, estimateTokens } from '../../core/agent/request.js'
import { enter } from '../../core/agent/hooks.js'
import { textOf } from '../../core/agent/vocabulary.js'
import { conversation, finished, ofType, testAgent } from '../support/agent.js'
import { folder } from '../support/folder.js'
import { caseHost, tool } from '../support/case-host.js'

describe('a session whose process died', () => {
  /** A whole session on disk: a prompt, a call, its result, an answer. */
  async function written() {
    const own = folder(), store = new FileSessionStore({ folder: own.at('s') })
    const first = await testAgent({ store })
    await first.tools({ name: 'look', description: 'looks', parameters: { type: 'object' }, execute: () => 'seen' })
    first.model.says({ text: 'I look.', calls: [['look', {}]] }, 'all done')
    const { session } = await first.run('go')
    await first.agent.stop(1000)
    const file = own.at(`s/${session}.jsonl`)
    return { session, store, file, lines: readFileSync(file, 'utf8').trimEnd().split('\n') }
  }
  it('goes on wherever it was cut, at every line and in the middle of one: the next request is whole, and nothing runs again', async () => {
    const { session, store, file, lines } = await written()
    const ends = lines.map((_, n) => lines.slice(0, n + 1).join('\n').length + 1)
    for (const end of [...ends, ...ends.map(end => end - 2)].filter(end => end > lines[0]!.length + 1)) {
      writeFileSync(file, `${lines.join('\n')}\n`)
      truncateSync(file, end)
      const next = await testAgent({ store })
      let ran = 0
      await next.tools({ name: 'look', description: 'looks', parameters: { type: 'object' }, execute: () => { ran++; return 'again' } })
      next.model.says('one', 'two')
      expect(await next.run('on', { session })).toMatchObject({ reason: 'completed', text: 'one' })
      expect(await next.run('and on', { session })).toMatchObject({ reason: 'completed', text: 'two' })
      expect([ran, next.model.requests.map(request => checkPairs(request.messages))]).toEqual([0, [undefined, undefined]])
      expect(conversation(next.model.requests[1]!).slice(-3)).toEqual(['user: on', 'assistant: one', 'user: and on'])
      await next.agent.stop(1000)
      expect((await store.read(session)).problems).toEqual([])
    }
  })
  it('can be compacted when it lost lines, and its numbers are higher than it has lines', async () => {
    const { session, store, file, lines } = await written()
    writeFileSync(file, `${lines.filter((_, n) => n === 0 || n > 8).join('\n')}\n`)
    const next = await testAgent({ store }), last = (JSON.parse(lines.at(-1)!) as { seq: number }).seq
    await next.plugin('compact', ctx => { ctx.on('agent/pre-step', ({ messages }) => enter(messages, { compact: { through: last, messages: ['so far'] } })) })
    next.model.says('one')
    const { log } = await next.run('on', { session })
    expect([ofType(log, 'warning'), ofType(log, 'compaction')]).toMatchObject([[], [{ through: last }]])
    expect(conversation(next.model.requests[0]!)).toEqual(['user: so far', 'user: on'])
  })
  it('goes on after bytes that are no lines at all were added', async () => {
    const { session, store, file } = await written()
    appendFileSync(file, Buffer.from([0, 0, 0, 255, 254, 10, 123, 10]))
    const next = await testAgent({ store })
    next.model.says('one')
    expect(await next.run('on', { session })).toMatchObject({ reason: 'completed', text: 'one' })
    expect(conversation(next.model.requests[0]!)).toEqual(['user: go', 'assistant: I look.', 'tool c1: seen', 'assistant: all done', 'user: on'])
  })
})

describe('the size of a request', () => {
  it('is known to a plugin before each step, with the output that the last one brought, and can be kept within a limit through twenty rounds of one turn', async () => {
    const LIMIT = 12_000
    const { plugin, tools, model, run } = await testAgent()
    await tools({ name: 'print', description: 'prints', parameters: { type: 'object' }, execute: () => 'x'.repeat(10_000) })
    const seen: number[] = []
    await plugin('compact', ctx => {
      ctx.on('agent/pre-step', async ({ session }, next) => {
        const decision = await next()
        const size = session.messages.reduce((sum, message) => sum + estimateTokens(message), 0)
        seen.push(size)
        if (size < LIMIT || decision.kind === 'reject') return decision
        const { events } = await ctx.sessions.read(session.id)
        return enter(decision.messages, { compact: { through: events.at(-1)!.seq, messages: ['So far: it printed.'] } })
      })
    })
    model.says(...Array.from({ length: 20 }, () => ({ calls: [['print', {}] as const] })), 'done')
    const ran = await run('go')
    expect(ran).toMatchObject({ reason: 'completed', text: 'done', stats: { steps: 21, toolCalls: 20 } })
    const sizes = model.requests.map(request => request.messages.reduce((sum, message) => sum + estimateTokens(message), 0))
    expect(Math.max(...sizes)).toBeLessThan(LIMIT)
    expect([Math.max(...seen) >= LIMIT, seen.length]).toEqual([true, 21])
    expect(ofType(ran.log, 'compaction').length).toBeGreaterThan(1)
    expect(model.requests.map(request => checkPairs(request.messages)).every(problem => problem === undefined)).toBe(true)
  })
})

describe('a prompt for a session', () => {
  it('from inside a handler of its own turn is refused at once; from a timer it waits its turn', async () => {
    const host = await caseHost({
      plugins: {
        again: `
          ctx.on('agent/post-tool-use', async ({ session }) => {
            await ctx.agents.run({ prompt: 'nested', session: session.id }).then(() => { say('ran') }, (error: any) => { say(error.code) })
            ctx.setTimeout(() => ctx.agents.run({ prompt: 'later', session: session.id, source: { kind: 'plugin', id: ctx.id } }).then(run => run.result).then(result => { say('later', result.reason) }), 1)
          })`,
        tools: tool('act'),
      },
      replies: [{ calls: [{ name: 'act', arguments: {} }] }, 'first', 'second'],
    })
    const { result } = await host.run('go')
    expect([result.reason, result.text]).toEqual(['completed', 'first'])
    for (const end = performance.now() + 5000; !host.said().includes('later completed') && performance.now() < end;) await new Promise(done => { setTimeout(done, 5) })
    expect(host.said()).toEqual(['act ran {}', 'session_busy', 'later completed'])
    expect(host.requests.at(-1)!.messages.map(textOf).slice(-2)).toEqual(['first', 'later'])
  })
  it('comes to an end for every one of many that are asked at once, in their order', async () => {
    const { agent, model, run } = await testAgent()
    model.says('zero', ...Array.from({ length: 20 }, (_, n) => `answer ${n}`))
    const { session } = await run('begin')
    const runs = await Promise.all(Array.from({ length: 20 }, (_, n) => agent.agents.run({ prompt: `prompt ${n}`, session })))
    const ended = await Promise.all(runs.map(finished))
    expect(ended.map(({ text, turn }) => [text, turn])).toEqual(Array.from({ length: 20 }, (_, n) => [`answer ${n}`, n + 2]))
    expect(ended.every(({ log }) => ofType(log, 'turn-end').length === 1 && ofType(log, 'turn-start').length === 1)).toBe(true)
  })
})

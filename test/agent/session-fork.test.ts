import { describe, expect, it } from 'vitest'
import { buildRequest } from '../../core/agent/request.js'
import { forkSession } from '../../core/agent/session-fork.js'
import { MemorySessionStore } from '../../core/agent/session-store-memory.js'
import type { SessionEventBody } from '../../core/agent/session-events.js'
import { calls, header, result, says, turnEnd, turnStart } from './session-store.contract.js'

const request: SessionEventBody = { type: 'request', turn: 1, step: 0, model: 'm/x', options: {}, attempt: 1 }

async function store(...bodies: SessionEventBody[]): Promise<MemorySessionStore> {
  const store = new MemorySessionStore(), writer = await store.create({ ...header('old'), parent: 'p', depth: 2 })
  for (const body of bodies) writer.append(body)
  await writer.close()
  return store
}

describe('forkSession', () => {
  it('begins as the other was, says where it comes from, and leaves that as it is', async () => {
    const from = await store(turnStart(1), says('one'), request, turnEnd(1), turnStart(2), says('two'), turnEnd(2), { type: 'archived' })
    const before = (await from.read('old')).events
    expect(await forkSession(from, 'old', 5, 'new')).toBe('new')
    const { events } = await from.read('new')
    expect(events[0]).toMatchObject({ id: 'new', cwd: '/work', depth: 0, forkOf: { id: 'old', seq: 5 } })
    expect(events[0]).not.toHaveProperty('parent')
    expect(events.map(({ type }) => type)).toEqual(['session', 'turn-start', 'message', 'request', 'turn-end'])
    expect(buildRequest(events)).toEqual(buildRequest(before.slice(0, 5)))
    expect((await from.read('old')).events).toEqual(before)
    expect(await forkSession(from, 'old', 9)).toMatch(/^\d{8}-\d{6}-\w{6}$/)
  })

  it('closes the calls and the turn in which it was cut off', async () => {
    const from = await store(turnStart(1), says('one'), calls('a', 'b'), result('a'), result('b'), turnEnd(1))
    await forkSession(from, 'old', 5, 'new')
    expect((await from.read('new')).events.slice(5)).toMatchObject([{ type: 'tool-result', callId: 'b', kind: 'interrupted' }, { type: 'turn-end', reason: 'interrupted' }])
    await (await from.open('new')).close()
  })

  it('can be written at once, and is not archived', async () => {
    const from = await store(turnStart(1), { type: 'archived' }, turnEnd(1))
    await forkSession(from, 'old', 4, 'new')
    const writer = await from.open('new')
    expect(writer.events.map(({ type }) => type)).toEqual(['session', 'turn-start', 'turn-end'])
    await writer.close()
  })

  it.each([0, -1, 1.5, 99, NaN])('has no event %d to begin from', async seq => {
    await expect(forkSession(await store(turnStart(1)), 'old', seq)).rejects.toMatchObject({ code: 'unknown_id', message: `session "old" has no event ${seq}; it has 1 to 2` })
  })
  it('keeps a compaction at its place when events are left out', async () => {
    const from = await store(turnStart(1), { type: 'archived' }, says('1'), says('2'), { type: 'compaction', turn: 1, step: 0, through: 4, messages: [{ role: 'user', content: [{ type: 'text', text: 'sum' }] }], source: { kind: 'core' } }, request, turnEnd(1))
    await forkSession(from, 'old', 8, 'new')
    expect(buildRequest((await from.read('new')).events)).toEqual(buildRequest((await from.read('old')).events))
  })
})

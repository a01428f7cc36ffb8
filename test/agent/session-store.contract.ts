/** What every session store promises. Run by session-store.test.ts for each one there is; another store runs it too. */
import fc from 'fast-check'
import { existsSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { newSessionId } from '../../core/agent/session-id.js'
import type { SessionEventBody, SessionStore, SessionWriter } from '../../core/agent/session-events.js'

export interface StoreUnderTest { readonly store: SessionStore; dispose(): void }

export const header = (id: string = newSessionId()) => ({ id, cwd: '/work', depth: 0 })
export const usage = { inputTokens: 3, outputTokens: 4 }
export const says = (content: string, more: Partial<Extract<SessionEventBody, { type: 'message' }>> = {}): SessionEventBody =>
  ({ type: 'message', turn: 1, step: 0, role: 'user', content: [{ type: 'text', text: content }], source: { kind: 'user' }, ...more })
export const calls = (...ids: string[]): SessionEventBody => says('', { role: 'assistant', source: { kind: 'model' }, toolCalls: ids.map(id => ({ id, name: 'bash', arguments: '{}' })) })
export const result = (callId: string, content = 'done', turn = 1): SessionEventBody => ({ type: 'tool-result', turn, step: 0, callId, name: 'bash', kind: 'ok', content, isError: false, elapsedMs: 1 })
export const turnStart = (turn: number, prompt = `prompt ${turn}`): SessionEventBody => ({ type: 'turn-start', turn, prompt, source: { kind: 'user' } })
export const turnEnd = (turn: number, reason: 'completed' | 'failed' = 'completed'): SessionEventBody => ({ type: 'turn-end', turn, reason, usage, elapsedMs: 5, stats: { steps: 1, toolCalls: 0, blocked: 0 } })

export function sessionStoreContract(name: string, make: () => StoreUnderTest): void {
  describe(`${name}: the contract of a session store`, () => {
    let under: StoreUnderTest, store: SessionStore
    beforeEach(() => { under = make(); store = under.store })
    afterEach(() => { under.dispose() })

    async function session(...bodies: SessionEventBody[]): Promise<{ id: string; writer: SessionWriter }> {
      const { id } = header(), writer = await store.create(header(id))
      for (const body of bodies) writer.append(body)
      return { id, writer }
    }

    it('says that it can keep sessions, and keeps nothing of the question', async () => {
      await Promise.all([store.probe(), store.probe()])
      expect(await store.list()).toEqual([])
    })
    it('begins each session with its header and numbers the events without gaps', async () => {
      const writer = await store.create({ ...header('s1'), parent: 'p', depth: 1, forkOf: { id: 'f', seq: 7 } })
      const first = writer.append(turnStart(1)), second = writer.append(says('hello'))
      expect([first.seq, second.seq]).toEqual([2, 3])
      expect(writer.events[0]).toMatchObject({ seq: 1, type: 'session', v: 1, id: 's1', cwd: '/work', parent: 'p', depth: 1, forkOf: { id: 'f', seq: 7 } })
      expect(writer.events).toHaveLength(3)
      expect(second.ts).toMatch(/^\d{4}-\d\d-\d\dT.*Z$/)
      await writer.close()
    })

    it('gives back after reopening exactly what the writer showed', async () => {
      const { id, writer } = await session(turnStart(1), says('hello', { extra: { thought: [1, null] } }), turnEnd(1))
      const shown = structuredClone(writer.events)
      await writer.close()
      expect((await store.read(id)).events).toEqual(shown)
      const again = await store.open(id)
      expect(again.events).toEqual(shown)
      expect(again.append(turnStart(2)).seq).toBe(shown.length + 1)
      await again.close()
    })

    it('keeps any JSON text as it is: U+2028, NUL, lone surrogates, keys like __proto__', async () => {
      await fc.assert(fc.asyncProperty(fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.jsonValue()), { maxLength: 5 }), async pieces => {
        const odd = ['\u2028\u2029', '\0', '\ud800', 'a\nb\r\n', '\ufeff']
        const bodies = [...odd.map(content => says(content)), ...pieces.map(([content, extra]) => says(content, { extra: extra as never }))]
        const { id, writer } = await session(...bodies)
        await writer.close()
        const { events, problems } = await store.read(id)
        expect(problems).toEqual([])
        expect(JSON.stringify(events.slice(1).map(({ seq: _seq, ts: _ts, ...body }) => body))).toBe(JSON.stringify(bodies))
      }), { numRuns: 40 })
    })

    it('freezes what it gives out, and takes a copy of what it is given', async () => {
      const content = [{ type: 'text' as const, text: 'mine' }]
      const { writer } = await session()
      const event = writer.append(says('', { content }))
      content[0]!.text = 'changed'
      expect(event).toMatchObject({ content: [{ text: 'mine' }] })
      expect(() => { (event as { seq: number }).seq = 9 }).toThrow(TypeError)
      expect(() => { (event as unknown as { content: { text: string }[] }).content[0]!.text = 'x' }).toThrow(TypeError)
      await writer.close()
    })

    it('has one writer for a session at a time', async () => {
      const { id, writer } = await session(turnStart(1), turnEnd(1))
      await writer.commit()
      await expect(store.open(id)).rejects.toMatchObject({ code: 'session_busy' })
      await expect(store.create(header(id))).rejects.toMatchObject({ code: 'session_busy' })
      expect((await store.read(id)).events).toHaveLength(3)
      await writer.close()
      await writer.close()
      const again = await store.open(id)
      expect(() => writer.append(turnStart(2))).toThrow(/closed/)
      await again.close()
    })

    it('refuses to make a session that exists, and leaves it as it is', async () => {
      const { id, writer } = await session(turnStart(1))
      await writer.close()
      await expect(store.create(header(id))).rejects.toMatchObject({ code: 'session_busy', message: expect.stringContaining('exists already') })
      expect((await store.read(id)).events).toHaveLength(2)
    })

    it.each(['nothing-here', '', '..', '../escape', 'a/b', '.hidden', 'x\0y', 'x'.repeat(65), '~'])('has no session %j', async id => {
      await expect(store.open(id)).rejects.toMatchObject({ code: 'session_missing' })
      await expect(store.read(id)).rejects.toMatchObject({ code: 'session_missing' })
    })
    it.each(['', '..', '../escape', 'a/b', '.hidden', 'x'.repeat(65)])('makes no session %j', async id => {
      await expect(store.create(header(id))).rejects.toMatchObject({ code: 'unknown_id' })
      expect(() => store.outputPath(id)).toThrow(/must be/)
    })

    it('refuses an event that is not plain data, and goes on', async () => {
      const { writer } = await session()
      const cycle: Record<string, unknown> = {}
      cycle['self'] = cycle
      expect(() => writer.append(says('', { extra: cycle as never }))).toThrow(/not plain data/)
      expect(writer.append(says('next')).seq).toBe(2)
      await writer.close()
    })

    it('closes on opening what a dead writer left open: each call, then the turn', async () => {
      const { id, writer } = await session(turnStart(1), says('go'), calls('a', 'b', 'a'), result('a'), { type: 'usage', turn: 1, step: 0, model: 'm/x', ...usage })
      await writer.close()
      const again = await store.open(id)
      const added = again.events.slice(6)
      expect(added).toMatchObject([
        { seq: 7, type: 'tool-result', callId: 'b', name: 'bash', kind: 'interrupted', isError: true },
        { seq: 8, type: 'tool-result', callId: 'a', kind: 'interrupted' },
        { seq: 9, type: 'turn-end', turn: 1, reason: 'interrupted', usage, stats: { steps: 0, toolCalls: 3, blocked: 0 } },
      ])
      await again.close()
      const third = await store.open(id)
      expect(third.events).toHaveLength(9)
      await third.close()
    })

    it('leaves a session alone whose last turn ended', async () => {
      const { id, writer } = await session(turnStart(1), calls('a'), result('a'), turnEnd(1), { type: 'archived' })
      await writer.close()
      const again = await store.open(id)
      expect(again.events).toHaveLength(6)
      await again.close()
    })

    it('lists the sessions, the last used first, with a title of one line', async () => {
      const a = await session(turnStart(1, `fix\n the \u001b[31mbug\u202e ${'x'.repeat(100)}`), turnEnd(1), turnStart(2), turnEnd(2, 'failed'))
      await a.writer.close()
      await tick()
      const b = await session(turnStart(1), says('cut off'))
      await b.writer.close()
      await tick()
      const c = await store.create({ ...header(), parent: a.id, depth: 1 })
      await c.close()
      const list = await store.list()
      expect(list.map(({ id }) => id)).toEqual([c.id, b.id, a.id])
      expect(list[0]).toMatchObject({ turns: 0, title: '', archived: false, parent: a.id })
      expect(list[0]).not.toHaveProperty('lastReason')
      expect(list[1]).toMatchObject({ turns: 1, title: 'prompt 1', lastReason: 'interrupted' })
      expect(list[2]).toMatchObject({ turns: 2, cwd: '/work', lastReason: 'failed', title: `fix the [31mbug ${'x'.repeat(63)}…` })
      expect(list[2]!.updatedAt >= list[2]!.createdAt).toBe(true)
      await tick()
      const again = await store.open(a.id)
      again.append({ type: 'archived' })
      await again.close()
      expect((await store.list())[0]).toMatchObject({ id: a.id, archived: true, lastReason: 'failed' })
    })

    it('shows in the list what a session of any shape has, as the whole log would', async () => {
      const long = 'y'.repeat(70_000)
      const { id, writer } = await session(turnStart(1, `long ${long}`), says(long), turnEnd(1), turnStart(2), calls('a'), result('a', long, 2), says(long, { turn: 2 }))
      await writer.commit()
      expect((await store.list())[0]).toMatchObject({ id, turns: 2, lastReason: 'interrupted', title: `long ${'y'.repeat(74)}…` })
      writer.append(turnEnd(2))
      writer.append({ type: 'archived' })
      await writer.close()
      expect((await store.list())[0]).toMatchObject({ turns: 2, lastReason: 'completed', archived: true })
    })

    it('reads while another writes', async () => {
      const { id, writer } = await session()
      for (let turn = 1; turn <= 20; turn++) {
        writer.append(turnStart(turn))
        writer.append(turnEnd(turn))
        if (turn % 5 === 0) expect(await store.read(id)).toMatchObject({ problems: [], events: { length: 1 + 2 * turn } })
      }
      await writer.close()
    })

    it('keeps large events whole', async () => {
      const large = `${'ü'.repeat(200_000)}\n`
      const { id, writer } = await session(turnStart(1, large), calls('a'), result('a', large), turnEnd(1))
      await writer.close()
      const { events, problems } = await store.read(id)
      expect(problems).toEqual([])
      expect(events[1]).toMatchObject({ type: 'turn-start', prompt: large })
      expect(events[3]).toMatchObject({ content: large })
      expect(await store.list()).toMatchObject([{ id, turns: 1, lastReason: 'completed', title: `${'ü'.repeat(79)}…` }])
    })

    it('commits many times at once', async () => {
      const { id, writer } = await session()
      await Promise.all(Array.from({ length: 200 }, async (_, i) => { writer.append(says(`${i}`)); await writer.commit() }))
      await writer.close()
      expect((await store.read(id)).events).toHaveLength(201)
    })

    it('makes the folder for full outputs when it is asked for, and only then', async () => {
      const { id, writer } = await session()
      expect(existsSync(store.outputPath(id))).toBe(false)
      expect(store.outputDir(id)).toBe(store.outputPath(id))
      expect(existsSync(store.outputPath(id))).toBe(true)
      await writer.close()
    })
  })
}
/** Times of events count in milliseconds. */
async function tick(): Promise<void> {
  const start = Date.now()
  while (Date.now() === start) await new Promise(setImmediate)
}

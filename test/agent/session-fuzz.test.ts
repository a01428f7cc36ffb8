import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { HarnessError } from '../../core/errors.js'
import { checkPairs, Transcript } from '../../core/agent/request.js'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import { calls, header, result, says, turnEnd, turnStart } from './session-store.contract.js'

/** Session files that once went wrong, or nearly: they are tried first, and stay. */
const CORPUS = fileURLToPath(new URL('../fixtures/sessions/', import.meta.url))
let folder: string, store: FileSessionStore
beforeEach(() => { folder = mkdtempSync(join(tmpdir(), 'hx-sessions-')); store = new FileSessionStore({ folder }) })
afterEach(() => { rmSync(folder, { recursive: true }) })

/** The session as it was, to be damaged. */
async function whole(): Promise<string> {
  const writer = await store.create(header('s'))
  for (const body of [turnStart(1), says('ask ü\u2028'), calls('a', 'b'), result('a'), result('b'), says('done', { role: 'assistant', source: { kind: 'model' } }), turnEnd(1), turnStart(2), says('more', { turn: 2 }), calls('c')]) writer.append(body)
  await writer.close()
  return readFileSync(join(folder, 's.jsonl'), 'utf8')
}
const typed = async <T>(work: Promise<T>): Promise<T | undefined> => {
  try { return await work } catch (error) {
    if (!(error instanceof HarnessError) || error.code === 'internal') throw error
    expect(error.message).not.toMatch(/undefined|\[object|Cannot read|is not a function/)
    return undefined
  }
}
/** One outcome: the session can not be read, which is said; or what is left of it is in order, can be sent, and is gone on with. */
async function judged(content: string | Uint8Array): Promise<void> {
  for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
  writeFileSync(join(folder, 's.jsonl'), content)
  await store.list()
  const before = await typed(store.read('s')), writer = await typed(store.open('s'))
  try {
    expect(writer === undefined, 'what can be read can be gone on with').toBe(before === undefined)
    if (!before || !writer) return
    for (const [i, { seq }] of before.events.entries()) expect(seq).toBeGreaterThan(before.events[i - 1]?.seq ?? 0)
    expect(before.events[0]).toMatchObject({ type: 'session', id: 's' })
    expect(writer.events.slice(0, before.events.length)).toEqual(before.events)
    writer.append(says('and now'))
  } finally { await writer?.close() }                        // or whatever is tried next finds it busy
  const after = await store.read('s')
  expect(after.events.at(-1)).toMatchObject({ content: [{ text: 'and now' }] })
  expect(after.problems.filter(({ message }) => !message.includes('missing'))).toEqual([])
  expect(checkPairs(new Transcript(after.events).request({ model: 'x/m', options: {} }).messages)).toBeUndefined()
}

describe('whatever stands in the file of a session', () => {
  it('is said, or read as far as it goes, sent and gone on with: the files that are kept', async () => {
    const names = readdirSync(CORPUS)
    expect(names.length).toBeGreaterThan(4)
    for (const name of names) await judged(readFileSync(join(CORPUS, name)))
  })
  it('is said, or read as far as it goes, sent and gone on with: a whole one with parts lost, doubled and strewn', async () => {
    const text = await whole()
    const strewn = fc.constantFrom('', '\n', '\r\n', '{', '}', '[', '"', ',', ':', 'null', '0', '-1', '1e999', '\u0000', '\ufeff', '\u2028', '"seq":3,', '"type":"message",', '"content":null,', '"toolCalls":[{}],', '{"seq":5}\n', 'null\n', '[]\n', '{"seq":4,"ts":"x","type":"message"}\n', '{"seq":4,"type":"turn-end"}\n', '"__proto__":{},', '9007199254740993')
    const cut = fc.record({ at: fc.nat(text.length), length: fc.nat(80), put: fc.oneof(strewn, fc.string({ maxLength: 6 })), twice: fc.boolean() })
    await fc.assert(fc.asyncProperty(fc.array(cut, { minLength: 1, maxLength: 5 }), async cuts => {
      let damaged = text
      for (const { at, length, put, twice } of cuts) damaged = damaged.slice(0, at) + put + (twice ? damaged.slice(at, at + length) : '') + damaged.slice(at + (twice ? 0 : length))
      await judged(damaged)
    }), { numRuns: 100 })
  })
  it('is said, or read as far as it goes, sent and gone on with: good lines with a field that is gone or of another type', async () => {
    const lines = (await whole()).trimEnd().split('\n').map(line => JSON.parse(line) as Record<string, unknown>)
    const values = fc.constantFrom<unknown>(undefined, null, 0, '', 'x', [], {}, [null], [{}], true)
    await fc.assert(fc.asyncProperty(fc.nat(lines.length - 1), fc.nat(12), values, async (which, place, value) => {
      const keys = Object.keys(lines[which]!), key = keys[place % keys.length]!
      await judged(lines.map((line, i) => `${JSON.stringify(i === which ? { ...line, [key]: value } : line)}\n`).join(''))
    }), { numRuns: 100 })
  })
})

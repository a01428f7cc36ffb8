/** The index of sessions is derived: whatever is in it, or happens to it, a list shows what the logs say. */
import fc from 'fast-check'
import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { indexText, parseIndex } from '../../core/agent/session-index.js'
import { FileSessionStore } from '../../core/agent/session-store-file.js'
import type { SessionEventBody } from '../../core/agent/session-events.js'
import { folder, type Folder } from '../support/folder.js'
import { header, turnEnd, turnStart } from './session-store.contract.js'

/** As many as are worth an index. */
const MANY = 120

const text = (...bodies: object[]) => bodies.map((body, at) => `${JSON.stringify({ seq: at + 1, ts: new Date(1.7e12 + at).toISOString(), ...body })}\n`).join('')
const session = (id: string, ...bodies: SessionEventBody[]) => text({ type: 'session', v: 1, ...header(id) }, ...bodies)
const many = (count = MANY) => folder(Object.fromEntries(Array.from({ length: count }, (_, n) => [`s${n}.jsonl`, session(`s${n}`, turnStart(1, `do ${n}`), turnEnd(1))])))

interface Told { readonly level: string; readonly message: string }
/** A process of its own, as far as a store can tell; that its clock is ahead makes every file one that was touched long ago. */
function fresh({ path }: Folder, told: Told[] = [], aheadMs = 60_000): FileSessionStore {
  return new FileSessionStore({ folder: path, now: () => new Date(Date.now() + aheadMs), report: (message, level) => told.push({ level, message }) })
}
/** What the same logs say where there is no index. */
function withoutIndex(place: Folder): Promise<readonly { readonly id: string }[]> {
  const copy = folder()
  for (const name of readdirSync(place.path)) if (name.endsWith('.jsonl') && statSync(place.at(name)).isFile()) copyFileSync(place.at(name), copy.at(name))
  return fresh(copy).list()
}
const indexed = (place: Folder) => parseIndex(readFileSync(place.at('index.json'), 'utf8'))

describe('the index of sessions', () => {
  it('is made by the first list of many, for the owner alone, and spares the next one the logs', async () => {
    const place = many(), first = await fresh(place).list()
    expect(first).toHaveLength(MANY)
    expect(statSync(place.at('index.json')).mode & 0o777).toBe(0o600)
    const entries = indexed(place), one = entries.get('s7')!
    place.write('index.json', indexText(new Map(entries).set('s7', { ...one, summary: { ...one.summary, title: 'from the index' } })))
    expect((await fresh(place).list()).find(({ id }) => id === 's7')).toMatchObject({ title: 'from the index' })
  })

  it('is not written for a few sessions, nor anew for a few that changed', async () => {
    const few = many(20)
    await fresh(few).list()
    expect(readdirSync(few.path)).not.toContain('index.json')
    const place = many()
    await fresh(place).list()
    const before = readFileSync(place.at('index.json'), 'utf8')
    for (let n = 0; n < 20; n++) place.write(`later${n}.jsonl`, session(`later${n}`))
    expect(await fresh(place).list()).toHaveLength(MANY + 20)
    expect(readFileSync(place.at('index.json'), 'utf8')).toBe(before)
  })

  it('shows with any change of the logs what a list without it shows', async () => {
    const place = many()
    let clock = 1_700_000_000
    const file = fc.nat({ max: MANY + 10 }).map(n => `s${n}.jsonl`)
    const change = fc.oneof(
      fc.tuple(fc.constant('append' as const), file), fc.tuple(fc.constant('replace' as const), file), fc.tuple(fc.constant('same size' as const), file),
      fc.tuple(fc.constant('delete' as const), file), fc.tuple(fc.constant('damage' as const), file), fc.tuple(fc.constant('archive' as const), file),
      fc.tuple(fc.constant('index lost' as const), file), fc.tuple(fc.constant('all touched' as const), file),
    )
    await fc.assert(fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 6 }), async changes => {
      for (const [kind, name] of changes) {
        const path = place.at(name), id = name.slice(0, -6), was = existsSync(path) ? readFileSync(path, 'utf8') : session(id)
        if (kind === 'append') writeFileSync(path, `${was}${JSON.stringify({ seq: 90, ts: new Date(1.7e12 + 90).toISOString(), ...turnStart(2) })}\n`)
        if (kind === 'archive') writeFileSync(path, `${was}${JSON.stringify({ seq: 91, ts: new Date(1.7e12 + 91).toISOString(), type: 'archived' })}\n`)
        if (kind === 'same size') writeFileSync(path, was.replace('do ', 'DO '))
        if (kind === 'damage') writeFileSync(path, was.slice(0, was.length / 2))
        if (kind === 'replace') { writeFileSync(place.at('draft'), session(id, turnStart(1, 'another'))); renameSync(place.at('draft'), path) }
        if (kind === 'delete') rmSync(path, { force: true })
        if (kind === 'index lost') rmSync(place.at('index.json'), { force: true })
        if (existsSync(path)) utimesSync(path, ++clock, clock)              // no two changes within one tick of the file system's clock
        if (kind === 'all touched') for (const other of readdirSync(place.path)) if (other.endsWith('.jsonl')) utimesSync(place.at(other), ++clock, clock)
      }
      expect(await fresh(place).list()).toEqual(await withoutIndex(place))
    }), { numRuns: 40 })
  })

  it('forgets sessions that are gone', async () => {
    const place = many(2 * MANY)
    await fresh(place).list()
    for (let n = 0; n < MANY; n++) rmSync(place.at(`s${n}.jsonl`))
    expect(await fresh(place).list()).toHaveLength(MANY)
    expect([...indexed(place).keys()].sort()).toEqual(readdirSync(place.path).filter(name => name.endsWith('.jsonl')).map(name => name.slice(0, -6)).sort())
  })

  it('keeps nothing of a file that changed a moment ago, which may change again and look the same', async () => {
    const place = many(), now = (await fresh(place, [], 0).list()).length
    expect(now).toBe(MANY)
    expect(readdirSync(place.path)).not.toContain('index.json')
    expect(await fresh(place, [], -3_600_000).list()).toHaveLength(MANY)       // files from the future, when a clock was put back
    expect(readdirSync(place.path)).not.toContain('index.json')
  })

  it('is made anew whatever was done to it, and says so once, where somebody debugs', async () => {
    const place = many(), expected = await fresh(place).list(), good = readFileSync(place.at('index.json'))
    const damage = fc.oneof(
      fc.tuple(fc.nat({ max: good.length - 1 }), fc.integer({ min: 1, max: 255 })).map(([at, by]) => { const bytes = Buffer.from(good); bytes[at]! ^= by; return bytes }),
      fc.nat({ max: good.length - 1 }).map(length => good.subarray(0, length)),
      fc.uint8Array({ minLength: 1, maxLength: 200 }).map(more => Buffer.concat([good, more])),
      fc.constantFrom('', 'null', '{}', '{"digest":"","v":1,"sessions":{}}', '\0'.repeat(5000), '[['.repeat(50_000)).map(other => Buffer.from(other)),
    )
    await fc.assert(fc.asyncProperty(damage, async bytes => {
      writeFileSync(place.at('index.json'), bytes)
      const told: Told[] = [], store = fresh(place, told)
      expect(await store.list()).toEqual(expected)
      expect(told).toEqual([{ level: 'debug', message: expect.stringContaining('made anew from their logs') }])
      expect(readFileSync(place.at('index.json')).equals(good)).toBe(true)
      await store.list()
      expect(told).toHaveLength(1)
    }), { numRuns: 60 })
  })

  it('of another format, of an earlier hx or a later one, counts for nothing', async () => {
    const place = many(), expected = await fresh(place).list(), good = readFileSync(place.at('index.json'), 'utf8')
    const lies = new Map([...indexed(place)].map(([id, { look, summary }]) => [id, { look, summary: { ...summary, title: 'as that one saw it' } }]))
    for (const version of [0, 99]) {
      place.write('index.json', indexText(lies, version))
      const told: Told[] = []
      expect(await fresh(place, told).list()).toEqual(expected)
      expect(told).toMatchObject([{ level: 'debug', message: expect.stringContaining(`it has format ${version}`) }])
      expect(readFileSync(place.at('index.json'), 'utf8')).toBe(good)
    }
  })

  it.each([
    ['a folder', (path: string) => { mkdirSync(`${path}/inside`, { recursive: true }) }],
    ['a pipe', (path: string) => { execFileSync('mkfifo', [path]) }],
    ['a link that leads elsewhere', (path: string) => { symlinkSync('/dev/zero', path) }],
  ])('does without when its name is taken by %s', async (_what, take) => {
    for (const name of ['index.json', 'index.json.draft']) {
      const place = many()
      take(place.at(name))
      const told: Told[] = [], store = fresh(place, told)
      expect(await store.list()).toHaveLength(MANY)
      expect(await store.list()).toHaveLength(MANY)
      expect(told.filter(({ level }) => level !== 'debug')).toEqual([])
      expect(told.length).toBeLessThanOrEqual(1)
    }
  })

  it('is one whole index when many list at once, and when one died while it wrote', async () => {
    const place = many()
    place.write('index.json.draft', '{"digest":"half of')
    const lists = await Promise.all(Array.from({ length: 8 }, () => fresh(place).list()))
    for (const list of lists) expect(list).toEqual(lists[0])
    expect(indexed(place).size).toBe(MANY)
    expect(readdirSync(place.path).filter(name => !name.endsWith('.jsonl'))).toEqual(['index.json'])
  })

  it('is written by one process every few seconds at most, however often it lists', async () => {
    const place = many(), store = fresh(place), clock = vi.spyOn(performance, 'now').mockReturnValue(1_000)
    onTestFinished(() => { clock.mockRestore() })
    await store.list()
    const first = readFileSync(place.at('index.json'), 'utf8')
    for (let n = 0; n < MANY; n++) utimesSync(place.at(`s${n}.jsonl`), 1_600_000_000, 1_600_000_000)
    clock.mockReturnValue(2_000)
    expect(await store.list()).toHaveLength(MANY)
    expect(readFileSync(place.at('index.json'), 'utf8')).toBe(first)
    clock.mockReturnValue(60_000)
    expect(await store.list()).toHaveLength(MANY)
    expect(readFileSync(place.at('index.json'), 'utf8')).not.toBe(first)
  })
})

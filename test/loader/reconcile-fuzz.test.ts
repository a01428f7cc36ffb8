import { readdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { testHost } from '../support/host.js'

/** Sequences that once went wrong, or are made to, each a file: they are tried first, and stay. */
const CORPUS = fileURLToPath(new URL('../fixtures/reconcile/', import.meta.url))
const FILES = ['a', 'b', 'c'] as const, IDS = ['p', 'q', 'r', 's'] as const
const HOW = ['good', 'exclusive', 'throws', 'does not parse', 'provides', 'waits', 'refuses its config', 'gone'] as const

interface Row { readonly id: string; readonly file: string; readonly v: number; readonly on: boolean }
/** `now`: the next edit comes without waiting for this one. */
type Step = { readonly now?: boolean | undefined } & ({ readonly rows: readonly Row[] } | { readonly save: string; readonly how: typeof HOW[number] } | { readonly reload: string })

const rows: fc.Arbitrary<readonly Row[]> = fc.uniqueArray(fc.record({ id: fc.constantFrom(...IDS), file: fc.constantFrom(...FILES), v: fc.integer({ min: 1, max: 2 }), on: fc.boolean() }), { selector: ({ id }) => id })
const now = fc.boolean()
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ rows, now }),
  fc.record({ save: fc.constantFrom(...FILES), how: fc.constantFrom(...HOW), now }),
  fc.record({ reload: fc.constantFrom(...IDS), now }),
)

/** Tells what runs, and who judges; what it is made from is in its name. */
const plugin = (file: string, version: number, how: typeof HOW[number]) => `
import { probe, z } from 'harnessx'
export const reload = '${how === 'exclusive' ? 'exclusive' : 'staged'}'
${how === 'waits' ? `export const inject = ['store']` : ''}
export const Config = z.object({ v: ${how === 'refuses its config' ? 'z.string()' : 'z.number()'} })
export function apply(ctx, { v }) {
  const me = ctx.id + ' ${file}${version} ' + v
  ctx.effect(() => { probe.live.push(me); return () => { probe.live.splice(probe.live.indexOf(me), 1) } })
  ctx.on('agent/pre-tool-use', () => { probe.seen.push(me) })
  ${how === 'provides' ? `ctx.provide('store', {})` : how === 'throws' ? `throw new Error('boom')` : ''}
}${how === 'does not parse' ? ' }' : ''}
`

async function walk(steps: readonly Step[]): Promise<void> {
  const version: Record<string, number> = { a: 0, b: 0, c: 0 }
  const host = testHost(Object.fromEntries(FILES.map(file => [`${file}.ts`, plugin(file, 0, 'good')])))
  const live: string[] = host.probe['live'] = [], seen: string[] = host.probe['seen']
  const size = () => ({ ...host.kernel.size, unreleased: 0, handlers: host.kernel.hooks.size })
  const empty = size()
  let wanted: readonly Row[] = []
  const load = () => host.load(...wanted.map(({ id, file, v, on }) => ({ file: `${file}.ts`, id, name: file, config: { v }, enabled: on })))
  const save = (file: string, how: typeof HOW[number]) => {
    const text = plugin(file, ++version[file]!, how)
    if (how !== 'gone') return host.save(`${file}.ts`, text)
    rmSync(host.at(`${file}.ts`), { force: true })
    return host.host.reload([host.at(`${file}.ts`)])
  }
  const take = (step: Step): Promise<unknown> => {
    if ('rows' in step) { wanted = step.rows; return load() }
    if ('save' in step) return save(step.save, step.how)
    return host.host.reloadEntry(step.reload).catch(error => { expect(error).toMatchObject({ code: 'unknown_id' }) })
  }
  let going: Promise<unknown>[] = []
  for (const step of steps) {
    going.push(take(step))
    if (step.now) continue
    await Promise.all(going.splice(0))
    seen.length = 0
    await host.judge()
    const ids = seen.map(me => me.split(' ')[0]!)
    expect(ids, 'nobody judges twice, without a row, or out of order').toEqual(wanted.filter(({ id, on }) => on && ids.includes(id)).map(({ id }) => id))
  }
  await Promise.all(going)

  // whatever went before: with every file in order again, what runs is what the rows want
  for (const file of FILES) await save(file, 'good')
  await load()
  seen.length = 0
  await host.judge()
  const want = wanted.filter(({ on }) => on).map(({ id, file, v }) => `${id} ${file}${version[file]} ${v}`)
  expect(seen).toEqual(want)
  expect(host.states()).toEqual(Object.fromEntries(wanted.map(({ id, on }) => [id, on ? 'active' : 'disabled'])))
  await expect.poll(() => [...live].sort(), { interval: 2 }).toEqual([...want].sort())            // replaced versions end beside the queue

  wanted = []
  await load()
  await expect.poll(() => [live.length, size()], { interval: 2 }).toEqual([0, empty])
  expect(host.leaks).toEqual([])
  await host.host.stop()
}

describe('whatever is edited, in whatever order', () => {
  it('what runs is what the file wants in the end, and nothing is left over: the sequences that are kept', async () => {
    const names = readdirSync(CORPUS)
    expect(names.length).toBeGreaterThan(4)
    for (const name of names) await walk(JSON.parse(readFileSync(join(CORPUS, name), 'utf8')) as Step[])
  })
  it('what runs is what the file wants in the end, and nothing is left over: any sequence', async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), walk), { numRuns: 60 })
  }, 60_000)
})

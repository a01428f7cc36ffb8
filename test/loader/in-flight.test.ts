/** Calls that run while plugins are reloaded. The control at the end shows that a gap would be seen. */
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Registry, Scope } from '../../core/kernel/registry.js'
import { testHost, type TestHost } from '../support/host.js'
import { judge } from '../support/kernel.js'

type Work = () => Promise<number>
/** Judges slowly, and offers work that waits for a ctx timer, as a tool would. */
const worker = (v: number, more: string) => `
import { probe } from 'harnessx'
${more}
export const apply = ctx => {
  ctx.works.register('work', async () => { await new Promise(done => ctx.setTimeout(done, 2 + Math.random() * 8)); return ${v} })
  ctx.on('agent/pre-tool-use', async () => { await new Promise(done => setTimeout(done, 2)); probe.judged++ })
}`
function withWorks(host: TestHost): Registry<Work> {
  const works = host.kernel.registry<Work>('work')
  host.kernel.service('works' as never, ((scope: Scope) => ({ register: (name: string, work: Work) => works.add(scope, name, work) })) as never)
  return works
}

describe('calls in flight over reloads', () => {
  it.each([['staged', ''], ['exclusive', `export const reload = 'exclusive'`]])('all succeed, each judged once and answered by one version (%s)', async (_, more) => {
    const host = testHost({ 'w.ts': worker(0, more) }, { drainMs: 2000 })
    const works = withWorks(host)
    host.probe['judged'] = 0
    await host.load('w.ts')
    const calls: Promise<number>[] = []
    for (let v = 1; v <= 20; v++) {
      for (let i = 0; i < 8; i++) calls.push(judge(host.kernel).then(({ kind }) => { if (kind !== 'allow') throw new Error(kind); return works.use('work', work => work())! }))
      expect((await host.save('w.ts', worker(v, more))).failed).toEqual([])
      await sleep(1)
    }
    const versions = await Promise.all(calls)
    expect(host.probe['judged']).toBe(calls.length)
    expect(new Set(versions).size).toBeGreaterThan(1)
    expect(host.kernel.generations()).toHaveLength(1)
  })
})

/** Asks on eight lanes until stopped, and counts what the guard and the one behind it have not seen. */
async function under(host: TestHost, work: () => Promise<void>) {
  const found = { calls: 0, unjudged: 0, outOfOrder: 0, refused: 0 }
  let stopped = false
  const lane = async () => {
    while (!stopped) {
      const seen: string[] = []
      found.calls++
      const { kind } = await judge(host.kernel, { args: { id: host.probe['log'].push(seen) - 1 } })
      if (kind !== 'allow') found.refused++
      else if (!seen.includes('guard') || !seen.includes('other')) found.unjudged++
      else if (seen.join() !== 'first,guard,other') found.outOfOrder++
      await new Promise(setImmediate)
    }
  }
  const lanes = Array.from({ length: 8 }, lane)
  await work()
  stopped = true
  await Promise.all(lanes)
  return found
}
const note = (what: string) => `({ call }) => { probe.log[call.arguments.id].push('${what}') }`
const guard = (v: number, more: string, body: string) => `
import { probe } from 'harnessx'
${more}
export const apply = async ctx => { ${body}; ctx.on('agent/pre-tool-use', async (payload, next) => { (${note('guard')})(payload); await null; return next() }); if (${v} % 3 === 0) await new Promise(done => setTimeout(done, 2)) }`
const other = (more: string) => `
import { probe } from 'harnessx'
${more}
export const apply = ctx => { ctx.on('agent/pre-tool-use', ${note('other')}); ctx.on('agent/pre-tool-use', ${note('first')}, { prepend: true }) }`

describe('a guard under continuous reload', () => {
  it.each<[string, string, string, string]>([
    ['staged', '', '', ''],
    ['exclusive', `export const reload = 'exclusive'`, '', ''],
    ['as a provider, with its dependent', `export const provides = ['vault']`, `ctx.provide('vault', {})`, `export const inject = ['vault']`],
  ])('leaves no call unjudged, out of order or refused: %s', async (_, more, body, otherMore) => {
    const host = testHost({ 'guard.ts': guard(0, more, body), 'other.ts': other(otherMore) }, { drainMs: 2000 })
    host.probe['log'] = []
    await host.load({ file: 'guard.ts', required: true }, 'other.ts')
    const { calls, ...found } = await under(host, async () => {
      for (let v = 1; v <= 40; v++) expect((await host.save('guard.ts', guard(v, more, body))).failed).toEqual([])
    })
    expect(found).toEqual({ unjudged: 0, outOfOrder: 0, refused: 0 })
    expect(calls).toBeGreaterThan(40)
    expect(host.info('guard').version).toBe(41)
  })
  it('would be seen with a gap: switching it off and on again lets calls pass unjudged', async () => {
    const host = testHost({ 'guard.ts': guard(0, '', ''), 'other.ts': other('') })
    host.probe['log'] = []
    await host.load('guard.ts', 'other.ts')
    const { unjudged } = await under(host, async () => {
      for (let v = 1; v <= 5; v++) {
        await host.load({ file: 'guard.ts', enabled: false }, 'other.ts')
        await sleep(5)
        await host.load('guard.ts', 'other.ts')
      }
    })
    expect(unjudged).toBeGreaterThan(0)
  })
  it('that is required refuses in that gap instead', async () => {
    const host = testHost({ 'guard.ts': `export const inject = ['vault']\n${guard(0, '', '')}`, 'vault.ts': `export const apply = ctx => { ctx.provide('vault', {}) }`, 'other.ts': other('') })
    host.probe['log'] = []
    const rows = (enabled: boolean) => [{ file: 'guard.ts', required: true }, 'other.ts', { file: 'vault.ts', enabled }] as const
    await host.load(...rows(true))
    const { unjudged, refused } = await under(host, async () => {
      for (let v = 1; v <= 5; v++) {
        await host.load(...rows(false))
        await sleep(5)
        await host.load(...rows(true))
      }
    })
    expect(unjudged).toBe(0)
    expect(refused).toBeGreaterThan(0)
  })
})


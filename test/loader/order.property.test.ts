import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { testHost } from '../support/host.js'

const NAMES = ['a', 'b', 'c', 'd'] as const
/** Registers one handler before and one behind an optional scope, and one that is prepended. */
const plugin = (name: string, v: number, exclusive: boolean) => `
import { probe } from 'harnessx'
export const reload = '${exclusive ? 'exclusive' : 'staged'}'
const note = what => () => { probe.seen.push('${name}' + what) }
export const apply = ctx => {
  ctx.on('agent/pre-tool-use', note('1'))
  ctx.inject(['late'], child => { child.on('agent/pre-tool-use', note('2')) })
  ctx.on('agent/pre-tool-use', note('3'))
  ctx.on('agent/pre-tool-use', note('0'), { prepend: true })
} // ${v}
`
type Step = { do: 'reload'; name: string; exclusive: boolean } | { do: 'toggle'; name: string } | { do: 'reorder'; order: string[] } | { do: 'late' }
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constant('reload' as const), name: fc.constantFrom(...NAMES), exclusive: fc.boolean() }),
  fc.record({ do: fc.constant('toggle' as const), name: fc.constantFrom(...NAMES) }),
  fc.record({ do: fc.constant('reorder' as const), order: fc.shuffledSubarray([...NAMES], { minLength: NAMES.length }) }),
  fc.constant({ do: 'late' as const }),
)

describe('the order of handlers', () => {
  it('is that of the config after any sequence of reloads, toggles, reorders and late services', async () => {
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), async steps => {
      const host = testHost({ ...Object.fromEntries(NAMES.map(name => [`${name}.ts`, plugin(name, 0, false)])), 'late.ts': `export const apply = ctx => { ctx.provide('late', {}) }` })
      let order: readonly string[] = NAMES, late = false, version = 0
      const off = new Set<string>()
      const load = () => host.load(...order.map(name => ({ file: `${name}.ts`, enabled: !off.has(name) })), { file: 'late.ts', enabled: late })
      await load()
      for (const step of steps) {
        if (step.do === 'reload') await host.save(`${step.name}.ts`, plugin(step.name, ++version, step.exclusive))
        else if (step.do === 'toggle') { if (!off.delete(step.name)) off.add(step.name) }
        else if (step.do === 'reorder') order = step.order
        else late = !late
        if (step.do !== 'reload') await load()

        host.probe['seen'].length = 0
        await host.judge()
        const on = order.filter(name => !off.has(name))
        expect(host.probe['seen']).toEqual([...on.map(name => `${name}0`), ...on.flatMap(name => [`${name}1`, ...late ? [`${name}2`] : [], `${name}3`])])
      }
      await host.host.stop()
    }), { numRuns: 25 })
  })
})

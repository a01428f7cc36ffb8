import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { costOf, dollars, priceOf } from '../../core/agent/cost.js'
import { ofType, testAgent } from '../support/agent.js'

const PRICES = { 'scripted/default': { input: 1, cached: 0.1, output: 2 } }
const loop = (text: string) => ({ name: 'look', description: 'looks', parameters: { type: 'object', properties: {} }, execute: () => text })

describe('prices', () => {
  it('count cached input at its own price, and as other input when it has none', () => {
    expect(costOf({ inputTokens: 1_000_000, outputTokens: 500_000, cachedTokens: 400_000 }, { input: 1, cached: 0.1, output: 2 })).toBeCloseTo(0.6 + 0.04 + 1, 10)
    expect(costOf({ inputTokens: 1_000_000, outputTokens: 0, cachedTokens: 400_000 }, { input: 1, output: 2 })).toBe(1)
  })
  it('are never negative and never above what nothing cached costs, whatever an endpoint reports', () => {
    const tokens = fc.nat(10_000_000), amount = fc.double({ min: 0, max: 1000, noNaN: true })
    fc.assert(fc.property(tokens, tokens, fc.integer({ min: -5, max: 20_000_000 }), amount, amount, fc.double({ min: 0, max: 1, noNaN: true }), (inputTokens, outputTokens, cachedTokens, input, output, share) => {
      const cost = costOf({ inputTokens, outputTokens, cachedTokens }, { input, cached: input * share, output })
      expect(cost).toBeGreaterThanOrEqual(0)
      expect(cost).toBeLessThanOrEqual(costOf({ inputTokens, outputTokens }, { input, output }) * (1 + 1e-9))
    }))
  })
  it('are found by the full name, else by the id, and never in what every object has', () => {
    const all = { 'a/b': { input: 1, output: 1 }, a: { input: 2, output: 2 } }
    expect(priceOf(all, 'a/b')?.input).toBe(1)
    expect(priceOf(all, 'a/c/d')?.input).toBe(2)
    expect(priceOf(all, 'b/b')).toBeUndefined()
    expect(priceOf(all, 'constructor')).toBeUndefined()
  })
  it('are shown with two digits that say something', () => {
    expect([0, 1.5, 0.42, 0.0123, 0.000134].map(dollars)).toEqual(['$0', '$1.50', '$0.42', '$0.012', '$0.00013'])
  })
})

describe('the cost of a turn', () => {
  it('stands in each usage line, in the end of the turn and in its result', async () => {
    const { run, model, tools } = await testAgent({ config: { prices: PRICES } })
    await tools(loop('x'))
    const usage = { inputTokens: 1000, outputTokens: 100, cachedTokens: 500 }
    model.says({ calls: [['look', {}]], usage }, { text: 'done', usage })
    const { log, usage: whole } = await run('go')
    const each = (500 * 1 + 500 * 0.1 + 100 * 2) / 1e6
    for (const line of ofType(log, 'usage')) expect(line.cost).toBeCloseTo(each, 12)
    expect(ofType(log, 'turn-end')[0]!.usage.cost).toBeCloseTo(2 * each, 12)
    expect(whole.cost).toBeCloseTo(2 * each, 12)
  })
  it('is absent where no price is known, so that nothing reads as free', async () => {
    const { run, model } = await testAgent()
    model.says('done')
    const { log, usage } = await run('go')
    expect(usage).toEqual({ inputTokens: 10, outputTokens: 2 })
    expect('cost' in ofType(log, 'usage')[0]!).toBe(false)
  })
})

describe('agent.maxCost', () => {
  const usage = { inputTokens: 1_000_000, outputTokens: 0 }
  it('ends a turn that would go on, after its calls are answered, with a sentence', async () => {
    const { run, model, tools } = await testAgent({ config: { prices: PRICES, maxCost: 1.5 } })
    await tools(loop('x'))
    model.says({ calls: [['look', {}]], usage }, { calls: [['look', {}]], usage }, 'never asked for')
    const { reason, message, stats, log } = await run('go')
    expect({ reason, message }).toEqual({ reason: 'max-cost', message: 'cost limit reached ($2.00 of agent.maxCost $1.50), the task is unfinished' })
    expect(stats.steps).toBe(2)
    expect(ofType(log, 'tool-result')).toHaveLength(2)
    expect(model.requests).toHaveLength(2)
  })
  it('lets a turn complete whose last reply goes over it', async () => {
    const { run, model } = await testAgent({ config: { prices: PRICES, maxCost: 0.5 } })
    model.says({ text: 'done', usage })
    expect((await run('go')).reason).toBe('completed')
  })
  it('does not let a stop handler go on beyond it', async () => {
    const { run, model, plugin } = await testAgent({ config: { prices: PRICES, maxCost: 0.5 } })
    await plugin('more', ctx => { ctx.on('agent/stop', () => ({ kind: 'continue', message: 'go on' })) })
    model.says({ text: 'done', usage })
    expect((await run('go')).reason).toBe('max-cost')
    expect(model.requests).toHaveLength(1)
  })
  it('counts what the turns inside a turn cost, and stops those too', async () => {
    const { run, model, tools, agent } = await testAgent({ config: { prices: PRICES, maxCost: 2.5 } })
    const inner: string[] = []
    await tools(loop('x'), {
      name: 'task', description: 'runs another', parameters: { type: 'object', properties: {} },
      execute: async (_: never, { session }) => {
        const nested = await agent.agents.run({ prompt: 'inner', cwd: session.cwd, parent: { session: session.id, depth: session.depth } })
        inner.push((await nested.result).reason)
        return 'ok'
      },
    })
    model.says({ calls: [['task', {}]], usage }, { calls: [['look', {}]], usage }, { calls: [['look', {}]], usage }, 'never asked for')
    const { reason, usage: own } = await run('go')
    expect(inner).toEqual(['max-cost'])
    expect(reason).toBe('max-cost')
    expect(own.cost).toBe(1)
    expect(model.requests).toHaveLength(3)
  })
  it('says once that a model without a price does not count', async () => {
    const { run, model, tools } = await testAgent({ config: { maxCost: 1 } })
    await tools(loop('x'))
    model.says({ calls: [['look', {}]], usage }, 'done')
    const { reason, log } = await run('go')
    expect(reason).toBe('completed')
    expect(ofType(log, 'warning').map(({ message }) => message)).toEqual(['model "scripted/default" has no price, so what it costs does not count towards agent.maxCost; add one under agent.prices'])
  })
})

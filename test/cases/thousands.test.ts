import { describe, expect, it } from 'vitest'
import type { Context } from '../../core/kernel/hooks.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'

describe('a reply with a thousand calls', () => {
  it('is answered call by call, in order, eight at a time where they only read', async () => {
    let running = 0, most = 0
    const slow = echoTool(async ({ n }) => {
      most = Math.max(most, ++running)
      await new Promise(done => { setImmediate(done) })
      running--
      return `n ${String(n)}`
    }, { readOnly: true })
    const host = await pluginHost([slow])
    const { result, results } = await host.run([Array.from({ length: 1000 }, (_, n) => ({ name: n % 10 === 9 ? 'nope' : 'echo', arguments: n % 10 === 8 ? '{"n":' : { n } }))])
    expect([result.reason, results.length, most]).toEqual(['completed', 1000, 8])
    expect(results.filter(one => one.startsWith('n ')).map(one => Number(one.slice(2)))).toEqual(Array.from({ length: 1000 }, (_, n) => n).filter(n => n % 10 < 8))
  })
})

describe('a plugin that fails a thousand times', () => {
  it('with an error, a rejection, or nothing at all is counted each time, and stops neither turn nor other plugins', async () => {
    const seen: number[] = []
    const fails = { module: { name: 'fails', apply(ctx: Context) {
      let n = 0
      ctx.on('agent/tool-end', () => { if (n++ % 3 === 0) throw undefined; if (n % 3 === 0) throw new Error('again'); return Promise.reject() })
    } } }
    const sees = { module: { name: 'sees', apply(ctx: Context) { ctx.on('agent/tool-end', () => { seen.push(1) }) } } }
    const host = await pluginHost([fails, sees, echoTool(() => 'ok', { readOnly: true })])
    const before = host.registered()
    const { result } = await host.run([Array.from({ length: 1000 }, () => ({ name: 'echo', arguments: {} }))])
    expect([result.reason, seen.length]).toEqual(['completed', 1000])
    expect(host.lines.filter(({ plugin, level }) => plugin === 'fails' && (level === 'error' || level === 'warn')).length).toBe(1000)
    expect(host.registered()).toEqual(before)
  })
})

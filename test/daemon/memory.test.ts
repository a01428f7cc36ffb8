import { describe, expect, it } from 'vitest'
import { watchMemory } from '../../core/daemon/memory.js'
import { place, until } from '../support/hx.js'

const MB = 1024 * 1024
const look = () => new Promise(done => { setTimeout(done, 5) })

describe('the watch of memory', () => {
  it('tells once, and only when memory stays used up: what a collection frees does not count', async () => {
    const told: string[] = []
    let used = 100, looks = 0
    const off = watchMemory(sentence => { told.push(sentence) }, () => { looks++; return { used_heap_size: used * MB, external_memory: 0, heap_size_limit: 1000 * MB } }, 1)
    for (const now of [900, 900, 100]) {
      const before = looks
      used = now
      await until(() => looks > before, 0)
      if (looks > before + 1) used = 100                       // a starved timer looks twice
    }
    used = 100
    await look()
    used = 900
    await until(() => told.length > 0)
    for (let n = 0; n < 5; n++) await look()
    expect(told).toEqual(['900 MB of heap and 0 MB of buffers are in use, of 1000 MB that Node allows'])
    off()
  })
})

describe('a daemon whose plugin keeps all memory', () => {
  it('takes no new turn, ends in order with a report, and the next command starts it again', { timeout: 60_000 }, async () => {
    const eats = (on: boolean) => `import type { Context } from 'harnessx'
import { getHeapStatistics } from 'node:v8'
const kept: object[] = []
const room = () => { const { used_heap_size, heap_size_limit } = getHeapStatistics(); return used_heap_size < 0.77 * heap_size_limit }
export function apply(ctx: Context) { ${on ? `ctx.setInterval(() => { if (room()) kept.push(Array.from({ length: 100_000 }, (_, n) => ({ n }))) }, 5)` : ''} }
`
    const here = place({ 'harness.config.yaml': 'plugins: [eats, tool-fs, model-offline]\n', 'plugins/eats.ts': eats(true), 'README.md': '# Demo\n' })
    // V8 gives up by itself above four fifths of the old space; small young generations keep the limit that it tells near that space's size
    const daemon = here.start(['start', '--foreground', '--trust'], { env: { NODE_OPTIONS: '--max-old-space-size=300 --max-semi-space-size=1' } })
    const { code, stderr } = await daemon.ended
    expect([code, stderr]).toEqual([1, expect.stringMatching(/memory is nearly used up: \d+ MB of heap and \d+ MB of buffers are in use, of \d+ MB that Node allows; no new turn is taken/)])
    expect((await here.hx(['status'])).stderr).toContain('ended without being stopped')
    here.write('plugins/eats.ts', eats(false))
    expect((await here.hx(['agent', '--offline', '--trust', 'Read README.md'])).stdout).toContain('"Demo"')
  })
})

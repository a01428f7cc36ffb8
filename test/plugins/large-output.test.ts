import { describe, expect, it } from 'vitest'
import * as largeOutput from '../../plugins/large-output.js'
import * as truncate from '../../plugins/truncate.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'

describe('large-output', () => {
  it('warns over 100,000 characters, as they were before the cut, and changes nothing', async () => {
    const host = await pluginHost([{ module: largeOutput }, { module: truncate }, echoTool(({ size }) => 'x'.repeat(Number(size)))])
    await host.call('echo', { size: 100_000 })
    expect(host.lines).toEqual([])
    const { read } = await host.call('echo', { size: 100_001 })
    expect(host.lines.map(({ level, plugin, message }) => ({ level, plugin, message }))).toEqual([{ level: 'warn', plugin: 'large-output', message: 'echo gave 100001 characters of output, more than 100000' }])
    expect(read).toContain('50001 of 100001 characters are missing')
  })
  it('takes another limit', async () => {
    const host = await pluginHost([{ module: largeOutput, config: { max: 3 } }, echoTool(() => 'four')])
    expect((await host.call('echo', {})).read).toBe('four')
    expect(host.lines).toHaveLength(1)
  })
})

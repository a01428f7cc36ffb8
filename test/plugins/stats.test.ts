import { describe, expect, it } from 'vitest'
import { block, type Context } from '../../core/api.js'
import * as stats from '../../plugins/stats.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'

const refuser = { module: { name: 'refuser', apply: (ctx: Context) => { ctx.on('agent/pre-tool-use', ({ call }) => { if (call.arguments['refuse']) return block('no') }) } } }

describe('stats', () => {
  it('prints tokens and time of each step and of the turn', async () => {
    const host = await pluginHost([{ module: stats }, refuser, echoTool(() => 'ok')])
    const time = String.raw`time=\d+(?:ms|\.\ds)`
    const { printed } = await host.run([[{ name: 'echo', arguments: {} }, { name: 'echo', arguments: { a: 1 } }], [{ name: 'echo', arguments: { refuse: true } }]])
    expect(printed).toEqual([
      expect.stringMatching(new RegExp(`^\\[stats\\] tokens=15 ${time} step=1 tool_calls=2$`)), expect.stringMatching(new RegExp(`^\\[stats\\] tokens=15 ${time} step=2 tool_calls=1$`)),
      expect.stringMatching(new RegExp(`^\\[stats\\] tokens=15 ${time} step=3 tool_calls=0$`)), expect.stringMatching(new RegExp(`^\\[stats\\] tokens=45 ${time} turn=1 steps=3 tool_calls=3 blocked=1$`)),
    ])
  })
})

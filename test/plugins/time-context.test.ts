import { afterEach, describe, expect, it, vi } from 'vitest'
import { reject, textOf, type Context, type Message } from '../../core/api.js'
import * as timeContext from '../../plugins/time-context.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'

const TIME = /^The time is \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\.$/
const readings = (messages: readonly Message[]) => messages.filter(message => TIME.test(textOf(message)))

describe('time-context', () => {
  afterEach(() => { vi.useRealTimers() })

  it('tells the time as one more message of the step, with its own source', async () => {
    const host = await pluginHost([{ module: timeContext }])
    const { events } = await host.run([])
    expect(host.requests[0]!.messages.map(({ role, source }) => [role, source?.kind])).toEqual([...host.requests[0]!.messages[0]!.role === 'system' ? [['system', expect.anything()]] : [], ['user', 'user'], ['user', 'plugin']])
    expect(readings(host.requests[0]!.messages)[0]).toMatchObject({ role: 'user', source: { kind: 'plugin', id: 'time-context' } })
    expect(events.filter(event => event.type === 'message' && event.source.kind === 'plugin')).toHaveLength(1)
  })
  it('tells it at most once in ten minutes per session, however many steps and turns there are', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2030-01-01T00:00:00Z') })
    const host = await pluginHost([{ module: timeContext }, echoTool(() => 'ok')])
    const { result } = await host.run([[{ name: 'echo', arguments: {} }]])
    vi.setSystemTime(Date.parse('2030-01-01T00:09:59Z'))
    await host.run([], { session: result.session })
    expect(readings(host.requests.at(-1)!.messages)).toHaveLength(1)
    vi.setSystemTime(Date.parse('2030-01-01T00:10:00Z'))
    await host.run([], { session: result.session })
    expect(readings(host.requests.at(-1)!.messages).map(textOf)).toEqual(['The time is 2030-01-01T00:00:00.000Z.', 'The time is 2030-01-01T00:10:00.000Z.'])
    await host.run([])
    expect(readings(host.requests.at(-1)!.messages)).toHaveLength(1)
  })
  it('remembers across a reload, since it reads the log', async () => {
    const host = await pluginHost([{ module: timeContext }])
    const { result } = await host.run([])
    await host.reload('time-context', { module: timeContext })
    await host.run([], { session: result.session })
    expect(readings(host.requests.at(-1)!.messages)).toHaveLength(1)
  })
  it('takes another pace, under another id', async () => {
    const host = await pluginHost([{ module: timeContext, id: 'clock', config: { every: '1ms' } }, echoTool(async () => { await new Promise(resolve => { setTimeout(resolve, 5) }); return 'ok' })])
    await host.run([[{ name: 'echo', arguments: {} }]])
    expect(readings(host.requests.at(-1)!.messages).map(({ source }) => source?.id)).toEqual(['clock', 'clock'])
  })
  it('adds nothing to a step that is rejected', async () => {
    const host = await pluginHost([{ module: timeContext }, { module: { name: 'no', apply: (ctx: Context) => { ctx.on('agent/pre-step', () => reject('closed')) } } }])
    const { result, events } = await host.run([])
    expect([result.reason, events.filter(event => event.type === 'message')]).toEqual(['rejected', []])
  })
})

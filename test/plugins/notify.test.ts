import { existsSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask } from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import * as notify from '../../plugins/notify.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'
import { folder } from '../support/folder.js'
import { until } from '../support/agent.js'

const asks = { id: 'asks', module: { name: 'asks', apply: (ctx: { on: Function }) => ctx.on('agent/pre-tool-use', () => ask('it is late')) } }

async function hookServer(status = 200) {
  const got: { body: any; headers: Record<string, unknown> }[] = []
  const server = createServer(async (request, response) => {
    let body = ''
    for await (const piece of request) body += piece
    got.push({ body: JSON.parse(body), headers: request.headers })
    response.writeHead(status).end('ok')
  })
  await new Promise<void>(resolve => { server.listen(0, '127.0.0.1', resolve) })
  onTestFinished(() => { server.close(); server.closeAllConnections() })
  return { got, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` }
}
const warnings = (host: Awaited<ReturnType<typeof pluginHost>>) => host.lines.filter(({ plugin, level }) => plugin === 'notify' && level === 'warn').map(({ message }) => message)

describe('notify', () => {
  it('runs a command with the notice on stdin and in its arguments, without keys in its environment, before the turn is over', async () => {
    const out = folder()
    process.env['OPENAI_API_KEY'] = 'sk-test'
    onTestFinished(() => { delete process.env['OPENAI_API_KEY'] })
    const host = await pluginHost([{ module: notify, config: { command: ['sh', '-c', `cat > ${out.at('stdin')}; printf %s "$1" > ${out.at('text')}; env > ${out.at('env')}`, 'sh', '{}'] } }])
    const { result } = await host.run([])
    expect(JSON.parse(readFileSync(out.at('stdin'), 'utf8'))).toMatchObject({ event: 'turn-end', reason: 'completed', session: result.session, turn: 1, cwd: host.folder.path })
    expect(readFileSync(out.at('text'), 'utf8')).toMatch(/^hx: completed after \d+ s in \//)
    expect(readFileSync(out.at('env'), 'utf8')).not.toContain('sk-test')
    expect(warnings(host)).toEqual([])
  })
  it('posts to a webhook, with the headers of the config, when a question waits', async () => {
    const server = await hookServer()
    const host = await pluginHost([{ module: notify, config: { webhook: server.url, on: ['ask'], headers: { 'x-key': 'k' } } }, asks, echoTool(() => 'ran')])
    await host.call('echo', {})
    await until(() => server.got.length === 1)
    expect(server.got[0]).toMatchObject({ body: { event: 'ask', tool: 'echo', reason: 'it is late', text: expect.stringContaining('hx asks about echo') }, headers: { 'x-key': 'k' } })
  })
  it('tells nothing of turns that were over soon', async () => {
    const out = folder()
    const host = await pluginHost([{ module: notify, config: { command: ['touch', out.at('told')], after: '1h' } }])
    await host.run([])
    expect(existsSync(out.at('told'))).toBe(false)
  })
  it.each([
    [{ command: ['no-such-program-here'] }, /"no-such-program-here" could not be run/],
    [{ command: ['sh', '-c', 'exit 3'] }, /"sh" ended with 3/],
    [{ command: ['sleep', '20'], timeout: '50ms' }, /"sleep" did not end in time/],
    [{ webhook: 'http://127.0.0.1:1/x?key=secret' }, /^nobody could be told of turn-end: http:\/\/127\.0\.0\.1:1 could not be reached/],
  ])('costs a line in the log, never the turn: %j', async (config, message) => {
    const host = await pluginHost([{ module: notify, config }])
    expect((await host.run([])).result.reason).toBe('completed')
    expect(warnings(host)).toEqual([expect.stringMatching(message)])
  })
  it('says what a webhook answers that is no yes', async () => {
    const { url } = await hookServer(500)
    const host = await pluginHost([{ module: notify, config: { webhook: url } }])
    await host.run([])
    expect(warnings(host)).toEqual([expect.stringMatching(/answered 500$/)])
  })
  it('refuses a config that leads nowhere', () => {
    for (const config of [{}, { webhook: 'file:///x' }, { command: [] }, { command: ['x'], on: [] }]) expect(notify.Config.safeParse(config).success).toBe(false)
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const server = await hookServer()
    const host = await createTestHost({ plugins: [], replies: ['one', 'two'] })
    await host.configure([{ name: 'notify', config: { webhook: server.url } }])
    await host.reload('notify')
    await host.run('go')
    await host.configure([])
    await host.run('go')
    expect(server.got).toHaveLength(1)
    await host.close()
  })
})

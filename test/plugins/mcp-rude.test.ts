/** mcp against servers that misbehave: processes and HTTP servers of their own, each worse than the last. What is wrong stays with its server, and is said. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as mcp from '../../plugins/mcp/index.js'
import { until } from '../support/agent.js'
import { folder } from '../support/folder.js'
import { pluginHost, type PluginHost } from '../support/plugin-host.js'

const PROCESSES = join(import.meta.dirname, '../support/processes'), RUDE = join(PROCESSES, 'mcp-rude.mjs')
const rude = (how: string, more: object = {}) => ({ command: process.execPath, args: [RUDE, how], ...more })
const started = (servers: object, more: object = {}) => pluginHost([{ module: mcp, config: { servers, ...more } }])
const warnings = (host: PluginHost) => host.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)
const offered = (host: PluginHost) => host.tools().map(({ name }) => name.replace(/^mcp__\w+?__/, ''))
const alive = (pid: number): boolean => { try { return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1')) } catch { return false } }

describe('a server of a command that', () => {
  it('never answers is said so, keeps nobody from loading, and is gone after an unload though it ignores every request to end', async () => {
    const out = folder()
    const host = await started({ mute: { command: process.execPath, args: [RUDE, 'mute', out.at('pid')], startTimeout: '700ms' }, good: rude('good') })
    expect(warnings(host)).toContain('server "mute" is not connected: it did not answer within 0.7 s; it is tried again in 1 s')
    expect((await host.call('mcp__good__plain', {})).read).toBe('fine')
    await host.unload('mcp')
    for (const pid of readFileSync(out.at('pid'), 'utf8').trim().split('\n').map(Number)) expect(alive(pid)).toBe(false)
  })
  it('writes what is no message, and to its standard error without end, is heard all the same; the log has a part of it', async () => {
    const host = await started({ rude: rude('good') })
    expect((await host.call('mcp__rude__garbage', {})).read).toBe('said between noise')
    expect((await host.call('mcp__rude__flood', {})).read).toBe('flooded')
    await until(() => host.log.some(({ message }) => /the rest of them is left out/.test(message)))
    expect(host.log.filter(({ message }) => message.includes('says: line')).length).toBeLessThan(300)
  })
  it('answers with 50 MB is cut off, and started anew for the next call', async () => {
    const host = await started({ rude: rude('good') })
    expect((await host.call('mcp__rude__huge', {})).read).toBe('MCP server "rude" sent more than 10 MB in one message and was ended while "huge" ran; what it did until then stays')
    expect((await host.call('mcp__rude__plain', {})).read).toBe('fine')
  })
  it('has bad schemas and bad entries among its tools loses those alone, each is said once, and of two of one name the first counts', async () => {
    const host = await started({ rude: rude('good') })
    expect(host.tools().find(({ name }) => name === 'mcp__rude__twice')).toBeDefined()
    const told = ['its tool "list" is left out: inputSchema.type: Invalid input: expected "object"', 'its tool "twice" is listed twice; the first counts', ...[15, 16, 17, 18].map(place => `number ${place} in its list is left out: `)]
    for (const part of told) expect(warnings(host).filter(line => line.startsWith(`server "rude": ${part}`))).toHaveLength(1)
    const fits = { name: 'a', next: { name: 'b', next: { name: 'c' } }, n: 2 }
    for (const name of ['cycle', 'untyped', 'empty', 'none', 'nothing', 'draft', 'result']) expect([name, (await host.call(`mcp__rude__${name}`, fits)).read]).toEqual([name, 'fine'])
    expect((await host.call('mcp__rude__cycle', {})).read).toMatch(/^invalid arguments for tool "mcp__rude__cycle"/)
    for (const name of ['endless', 'nowhere', 'pattern']) expect([name, (await host.call(`mcp__rude__${name}`, { a: 'x' })).result.reason]).toEqual([name, 'completed'])
  })
  it('answers what fits no answer, or with an error, has that told to the model', async () => {
    const host = await started({ rude: rude('good') })
    expect((await host.call('mcp__rude__error', {})).read).toBe('MCP server "rude": MCP error -32000: it is broken')
    expect((await host.call('mcp__rude__wrong', {})).read).toMatch(/^MCP server "rude": /)
    expect((await host.call('mcp__rude__plain', {})).read).toBe('fine')
  })
  it('takes a tool back while it runs still has its answer read; the next call of it finds none', async () => {
    const host = await started({ rude: rude('good') })
    expect((await host.call('mcp__rude__vanish', {})).read).toBe('vanished')
    await until(() => offered(host).join() === 'left')
    expect((await host.call('mcp__rude__vanish', {})).read).toMatch(/^there is no tool "mcp__rude__vanish"/)
  })
  it('says five hundred times that its tools have changed is asked for them a few times', async () => {
    const host = await started({ rude: rude('good') })
    expect((await host.call('mcp__rude__storm', {})).read).toBe('blown')
    expect(Number((await host.call('mcp__rude__lists', {})).read)).toBeLessThan(20)
  })
  it('does not care that a call is cancelled is left to itself: the turn ends, and the next one is served', async () => {
    const host = await started({ rude: rude('good') })
    const leaving = new AbortController()
    const call = host.call('mcp__rude__hang', {}, { signal: leaving.signal })
    await until(() => host.requests.length === 1)
    leaving.abort()
    expect((await call).result.reason).toBe('aborted')
    expect((await host.call('mcp__rude__plain', {})).read).toBe('fine')
  })
  it('ends as soon as it is connected is started again after longer and longer pauses', async () => {
    const host = await started({ dies: rude('dies') })
    await until(() => warnings(host).some(line => line.endsWith('it is tried again in 2 s')), 'the second pause', 8000)
    expect(warnings(host)[0]).toBe('server "dies" is not connected: it ended; it is tried again in 1 s')
  })
})

describe('a server over HTTP that', () => {
  let far = '', server: ChildProcess
  beforeAll(async () => {
    server = spawn(process.execPath, [join(PROCESSES, 'mcp-rude-http.mjs')], { stdio: ['ignore', 'pipe', 'inherit'] })
    far = `http://127.0.0.1:${String((await once(server.stdout!, 'data'))[0]).trim()}`
  })
  afterAll(() => { server.kill('SIGKILL') })
  const at = (name: string, more: object = {}) => ({ url: `${far}/${name}`, ...more })
  const heard = async (name: string) => (await fetch(`${far}/heard/${name}`, { headers: { connection: 'close' } })).json()

  it.each([['refuses', 'who are you?'], ['nothing', 'nothing here'], ['breaks', 'xxxxx'], ['page', 'text/html']])('%s is said so, in a few words', async (name, words) => {
    const host = await started({ far: at(name) })
    expect(warnings(host)).toEqual([expect.stringMatching(/^server "far" is not connected: .{10,310}; it is tried again in 1 s$/)])
    expect(warnings(host)[0]).toContain(words)
    await host.close()
  })
  it('sends us elsewhere is followed on its own ground, and nowhere else with our headers', async () => {
    const host = await started({ away: at('away', { headers: { 'x-api-key': 'k' } }), within: at('within') })
    expect(offered(host)).toEqual(['look'])
    expect(warnings(host)[0]).toMatch(/^server "away" is not connected: .*redirect/)
    expect(await heard('well')).toEqual([])
    expect((await host.call('mcp__within__look', {})).read).toBe('seen')
    await host.close()
  })
  it('forgets its session is asked anew, nothing that has ended is called cancelled, and it hears when the session is over', async () => {
    const host = await started({ far: at('forgets') })
    expect((await host.call('mcp__far__look', {})).read).toBe('seen')
    await host.close()
    const methods = await heard('forgets') as string[]
    expect(methods.filter(method => method === 'initialize')).toHaveLength(2)
    expect(methods).not.toContain('notifications/cancelled')
    expect(methods.at(-1)).toBe('DELETE')
  })
  it.each(['json', 'stream'])('answers without end (%s) is read no further than a message may be', async name => {
    const host = await started({ far: at(name) })
    const before = Number(await heard('sent').catch(() => 0))
    expect((await host.call('mcp__far__look', {})).read).toBe('MCP server "far" sent more than 10 MB in one message and was ended while "look" ran; what it did until then stays')
    expect(Number(await heard('sent')) - before).toBeLessThan(60)
    await host.close()
  })
  it('never answers is given up, and an unload does not wait for it', async () => {
    const host = await started({ deaf: at('deaf', { timeout: '300ms' }), mute: at('mute', { startTimeout: '500ms' }) })
    expect(warnings(host)).toEqual(['server "mute" is not connected: it did not answer within 0.5 s; it is tried again in 1 s'])
    expect((await host.call('mcp__deaf__look', {})).read).toBe('MCP server "deaf" said nothing of "look" for 0.3 s, and was told to stop it')
    await host.close()
  })
})

/** mcp on the real host, against real servers in processes of their own: one of ours that misbehaves on demand, and the reference server of the protocol. */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestHost } from 'harnessx/testing'
import * as mcp from '../../plugins/mcp/index.js'
import { isOffered, toolName } from '../../plugins/mcp/names.js'
import { freePort } from '../support/free-port.js'
import { until } from '../support/agent.js'
import { pluginHost, type PluginHost } from '../support/plugin-host.js'

const root = join(import.meta.dirname, '../..')
const OURS = join(root, 'test/support/processes/mcp-server.mjs'), EVERYTHING = join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js')
const ours = (more: object = {}) => ({ command: process.execPath, args: [OURS], ...more })
const started = (servers: object, more: object = {}) => pluginHost([{ module: mcp, config: { servers, ...more } }])
const offered = (host: PluginHost) => host.registered().flatMap(line => line.startsWith('mcp__') ? [line.split(' ')[0]!] : [])
const alive = (pid: number): boolean => { try { return !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1')) } catch { return false } }
const said = (host: PluginHost, words: string) => host.lines.some(({ message }) => message.includes(words))

async function listening(args: readonly string[], env: object = {}): Promise<ChildProcess> {
  const server = spawn(process.execPath, args, { stdio: ['ignore', 'ignore', 'pipe'], env: { ...process.env, ...env } })
  onTestFinished(() => { server.kill('SIGKILL') })
  await once(server.stderr!, 'data')
  return server
}

describe('names of tools', () => {
  it('tell server and tool, and are what providers take', () => {
    expect(toolName('git', 'git_log')).toBe('mcp__git__git_log')
    expect(toolName('s', 'a.b')).toMatch(/^mcp__s__a_b_[0-9a-f]{8}$/)
    fc.assert(fc.property(fc.string({ minLength: 1 }), tool => { expect(toolName('server', tool)).toMatch(/^[A-Za-z0-9_-]{1,64}$/) }))
  })
  it('are never shared by two tools of different names', () => {
    fc.assert(fc.property(fc.string({ minLength: 1 }), fc.string({ minLength: 1 }), (a, b) => { fc.pre(a !== b); expect(toolName('s', a)).not.toBe(toolName('s', b)) }))
    expect(toolName('s', 'a.b')).not.toBe(toolName('s', 'a_b'))
    expect(toolName('s', `${'x'.repeat(100)}1`)).not.toBe(toolName('s', `${'x'.repeat(100)}2`))
  })
  it('are allowed and denied by patterns in which only * means something', () => {
    expect(isOffered('read_file', {})).toBe(true)
    expect(isOffered('read_file', { allow: ['read_*'] })).toBe(true)
    expect(isOffered('write_file', { allow: ['read_*'] })).toBe(false)
    expect(isOffered('read_file', { allow: ['read_*'], deny: ['*_file'] })).toBe(false)
    expect(isOffered('aXb', { allow: ['a.b'] })).toBe(false)
    expect(isOffered('ab', { allow: ['ab*b'] })).toBe(false)
    expect(isOffered('a-b-c', { allow: ['a*b*c'] })).toBe(true)
  })
})

describe('a server of a command', () => {
  it('offers its tools, all pages of them, by names that fit', async () => {
    const host = await started({ one: ours() })
    expect(offered(host)).toHaveLength(14)
    expect(offered(host)).toContain('mcp__one__look')
    const { read, requests } = { ...await host.call(toolName('one', 'weird.name/öl'), {}), requests: host.requests }
    expect(read).toBe('weird')
    expect(requests[0]!.tools.find(({ name }) => name === 'mcp__one__look')).toMatchObject({ description: 'Does look.', parameters: { type: 'object' } })
    expect((await host.call(toolName('one', `long_${'x'.repeat(80)}`), {})).read).toBe('long')
  })
  it('marks as read-only what the server says is, so that plan mode runs that alone; and gets no variable that its config does not name', async () => {
    process.env['HX_TEST_SECRET'] = 'canary'
    onTestFinished(() => { delete process.env['HX_TEST_SECRET'] })
    const host = await started({ one: ours({ env: { TOKEN: 'yes' } }) })
    expect((await host.call('mcp__one__look', {}, { mode: 'plan' })).read).toBe('seen')
    expect((await host.call('mcp__one__pid', {}, { mode: 'plan' })).read).toContain('in plan mode only read-only tools run')
    const { read } = await host.call('mcp__one__env', {})
    expect(read.split(' ')).toEqual(expect.arrayContaining(['PATH', 'HOME', 'TOKEN']))
    expect(read).not.toContain('HX_TEST_SECRET')
  })
  it('has its tools followed as they come and go', async () => {
    const host = await started({ one: ours() })
    await host.call('mcp__one__grow', {})
    await until(() => offered(host).includes('mcp__one__late'))
    expect(offered(host)).not.toContain('mcp__one__fails')
    expect((await host.call('mcp__one__late', {})).read).toBe('better than never')
  })
  it('is started again when it dies, and the model is told what happened', async () => {
    const host = await started({ one: ours() })
    const first = (await host.call('mcp__one__pid', {})).read
    expect((await host.call('mcp__one__die', {})).read).toBe('MCP server "one" ended while "die" ran; what it did until then stays')
    expect(said(host, 'server "one" is not connected: it ended; its last words: I give up; it is tried again in 1 s')).toBe(true)
    expect(offered(host)).toContain('mcp__one__pid')
    const second = (await host.call('mcp__one__pid', {})).read          // a call doesn't wait for the pause
    expect([Number(second) > 0, second === first]).toEqual([true, false])
    expect(said(host, 'server "one" is connected again')).toBe(true)
  })
  it('tells of progress, and is told when a call is not wanted any more', async () => {
    const host = await started({ one: ours() })
    const stop = new AbortController()
    const running = host.call('mcp__one__slow', {}, { signal: stop.signal })
    await until(() => said(host, 'says: ready'))
    setTimeout(() => { stop.abort() }, 300)
    const { events } = await running
    expect(events).toContainEqual(expect.objectContaining({ type: 'progress', name: 'mcp__one__slow', message: 'step 1' }))
    await until(() => said(host, 'says: was cancelled'))
  })
  it('has its call given up when it says nothing for too long, and goes on with others; allow and deny say which', async () => {
    const host = await started({ one: ours({ timeout: '200ms', allow: ['look', 'h*', 'die'], deny: ['die'] }) })
    expect(offered(host)).toEqual(['mcp__one__hang', 'mcp__one__look'])
    expect((await host.call('mcp__one__hang', {})).read).toBe('MCP server "one" said nothing of "hang" for 0.2 s, and was told to stop it')
    expect((await host.call('mcp__one__look', {})).read).toBe('seen')
  })
  it('has what is no text described and kept, and what is too long cut', async () => {
    const host = await started({ one: ours() }, { maxCharacters: 1000 })
    const { read } = await host.call('mcp__one__mixed', {})
    expect(read).toMatch(/^\[image, image\/png, 9 bytes, in "[^"]+\.png"\]\n\[resource file:\/\/\/a\.txt\]\nof a\n\[link to b: file:\/\/\/b\.txt\]$/)
    expect(readFileSync(/"([^"]+)"/.exec(read)![1]!, 'utf8')).toBe('a picture')
    const big = (await host.call('mcp__one__big', {})).read
    expect(big).toMatch(/\[cut here: 99000 of 100000 characters are missing; the whole is in "[^"]+"\]$/)
    expect(readFileSync(/"([^"]+)"/.exec(big)![1]!, 'utf8')).toHaveLength(100_000)
    expect((await host.call('mcp__one__structured', {})).read).toBe('{\n  "degrees": 21\n}')
    expect((await host.call('mcp__one__fails', {})).events).toContainEqual(expect.objectContaining({ type: 'tool-result', kind: 'failed', content: 'no such thing' }))
  })
  it('serves until its successor does when the plugin is reloaded; unloaded, no process is left, also none that it started itself', async () => {
    const host = await started({ one: ours() })
    const before = host.registered(), first = Number((await host.call('mcp__one__pid', {})).read)
    await host.reload('mcp', { module: mcp, config: { servers: { one: ours() } } })
    expect(host.registered()).toEqual(before)
    const second = Number((await host.call('mcp__one__pid', {})).read)
    expect([alive(second), first === second]).toEqual([true, false])
    await until(() => !alive(first))
    const child = Number((await host.call('mcp__one__child', {})).read)
    expect(alive(child)).toBe(true)
    await host.unload('mcp')
    await until(() => !alive(second) && !alive(child))
    expect(host.registered().filter(line => line.includes('mcp'))).toEqual([])
  })
  it('that can not be started fails neither the plugin nor the others, and says why once', async () => {
    const host = await started({ bad: { command: 'no-such-program' }, one: ours() })
    expect(offered(host)).toContain('mcp__one__look')
    expect(host.lines.filter(({ level }) => level === 'warn').map(({ message }) => message)).toEqual([expect.stringContaining('server "bad" is not connected: "no-such-program" was not found')])
    expect(await host.command('mcp', '', (await host.run([])).result.session)).toMatch(/^bad: failed \("no-such-program" was not found.*\), 0 tools\none: ready, 14 tools: /)
  })
})

describe('mcp', () => {
  it('is switched on, changed, reloaded and switched off in a running host, and leaves nothing', async () => {
    const row = (servers: object) => ({ name: 'mcp', config: { servers } })
    const host = await createTestHost({ plugins: [], replies: [{ calls: [{ name: 'mcp__one__pid', arguments: {} }] }, 'done', { calls: [{ name: 'mcp__one__pid', arguments: {} }] }, 'done'] })
    await host.configure([row({ one: ours({ allow: ['pid'] }) })])
    const [pid] = (await host.run('go')).results
    await host.configure([row({ one: ours({ allow: ['pid'] }), two: ours({ allow: ['look'] }) })])
    expect(host.tools().map(({ name }) => name)).toEqual(['mcp__one__pid', 'mcp__two__look'])
    expect((await host.run('go')).results).toEqual([pid])               // the one that did not change was not restarted
    await host.reload('mcp')
    expect(host.tools()).toHaveLength(2)
    await host.configure([])
    expect(host.tools()).toEqual([])
    await host.close()                                                   // throws when something was left
    await until(() => !alive(Number(pid)))
  })
})

describe('a server over HTTP', () => {
  it('is used, and used again after it was started anew', async () => {
    const port = await freePort()
    const first = await listening([OURS, String(port)])
    const host = await started({ far: { url: `http://127.0.0.1:${port}/mcp` } })
    expect((await host.call('mcp__far__pid', {})).read).toBe(String(first.pid))
    first.kill('SIGKILL')
    await once(first, 'exit')
    expect((await host.call('mcp__far__pid', {})).read).toMatch(/^MCP server "far": .*ECONNREFUSED/)
    const second = await listening([OURS, String(port)])
    expect((await host.call('mcp__far__pid', {})).read).toBe(String(second.pid))
  })
  it('that has forgotten the session is asked once more in a new one', async () => {
    const port = await freePort()
    const first = await listening([OURS, String(port)])
    const host = await started({ far: { url: `http://127.0.0.1:${port}/mcp` } })
    first.kill('SIGKILL')
    await once(first, 'exit')
    const second = await listening([OURS, String(port)])                 // nobody has noticed
    expect((await host.call('mcp__far__pid', {})).read).toBe(String(second.pid))
  })
})

describe('the reference server', () => {
  it.each(['stdio', 'streamableHttp'])('works over %s', async how => {
    const port = await freePort()
    if (how !== 'stdio') await listening([EVERYTHING, how], { PORT: String(port) })
    const host = await started({ everything: how === 'stdio' ? { command: process.execPath, args: [EVERYTHING] } : { url: `http://127.0.0.1:${port}/mcp` } })
    expect((await host.call('mcp__everything__echo', { message: 'hello' })).read).toBe('Echo: hello')
    expect((await host.call('mcp__everything__get-sum', { a: 2, b: 3 })).read).toContain('5')
    expect((await host.call('mcp__everything__get-sum', { a: 'two' })).read).toMatch(/^invalid arguments for tool "mcp__everything__get-sum"/)
    expect((await host.call('mcp__everything__get-tiny-image', {})).read).toMatch(/\[image, image\/png, \d+ bytes, in "/)
    const { events } = await host.call('mcp__everything__trigger-long-running-operation', { duration: 1, steps: 4 })
    expect(events.filter(({ type }) => type === 'progress').length).toBeGreaterThan(2)
  })
})

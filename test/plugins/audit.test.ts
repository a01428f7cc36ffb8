import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import * as audit from '../../plugins/audit.js'
import * as permission from '../../plugins/permission/index.js'
import * as toolBash from '../../plugins/tool-bash/index.js'
import { echoTool, pluginHost, type PluginHost } from '../support/plugin-host.js'

const linesOf = (host: PluginHost, file = 'audit.jsonl') => readFileSync(join(host.dataDir('audit'), file), 'utf8').split('\n').filter(line => line !== '').map(line => JSON.parse(line))

describe('audit', () => {
  it('records the start and end of every call, refused and invalid ones too, with the length that was written back', async () => {
    const host = await pluginHost([{ module: audit }, { module: permission }, { module: toolBash }])
    const { result, results } = await host.run([[{ name: 'bash', arguments: { command: 'echo hello' } }], [{ name: 'bash', arguments: { command: 'sudo ls' } }], [{ name: 'nope', arguments: '{"a":' }]])
    const base = { ts: expect.stringMatching(/^\d{4}-/), session: result.session, turn: 1 }
    expect(linesOf(host)).toEqual([
      { ...base, event: 'start', step: 0, id: 'call_1', tool: 'bash', arguments: { command: 'echo hello' } }, { ...base, event: 'end', step: 0, id: 'call_1', tool: 'bash', outcome: 'ok', chars: results[0]!.length, elapsedMs: expect.any(Number) },
      { ...base, event: 'start', step: 1, id: 'call_2', tool: 'bash', arguments: { command: 'sudo ls' } }, { ...base, event: 'end', step: 1, id: 'call_2', tool: 'bash', outcome: 'blocked', plugin: 'permission', chars: results[1]!.length, elapsedMs: expect.any(Number) },
      { ...base, event: 'start', step: 2, id: 'call_3', tool: 'nope', arguments: '{"a":' }, { ...base, event: 'end', step: 2, id: 'call_3', tool: 'nope', outcome: 'invalid', chars: results[2]!.length, elapsedMs: expect.any(Number) },
    ])
    expect(statSync(join(host.dataDir('audit'), 'audit.jsonl')).mode & 0o777).toBe(0o600)
  })
  it('keeps secrets out', async () => {
    const host = await pluginHost([{ module: audit }, echoTool(() => 'ok')])
    await host.call('echo', {
      apiKey: 'hx-canary-1', nested: [{ 'X-Auth-Token': 'hx-canary-2', password: { a: 'hx-canary-3' } }], max_tokens: 5, plain: 'stays', url: 'https://x.test?access_key=hx-canary-4&a=1',
      command: `API_TOKEN=hx-canary-5 curl -H "Authorization: Bearer hx-canary-6" --password 'hx-canary-7 x' --token=hx-canary-8 -d '{"client_secret": "hx-canary-9"}' sk-hxcanary00000000000`, text: 'the token is stable',
    })
    const [start] = linesOf(host)
    expect(JSON.stringify(start)).not.toMatch(/hx-?canary/)
    expect(start.arguments).toMatchObject({ apiKey: '[redacted]', max_tokens: 5, plain: 'stays', text: 'the token is stable', url: 'https://x.test?access_key=[redacted]&a=1' })
  })
  it('takes other words to redact', async () => {
    const host = await pluginHost([{ module: audit, config: { redact: ['pin'] } }, echoTool(() => 'ok')])
    await host.call('echo', { pin: '1234', password: 'x', text: 'pin=12' })
    expect(linesOf(host)[0].arguments).toEqual({ pin: '[redacted]', password: 'x', text: 'pin=[redacted]' })
  })
  it('cuts long texts and says by how much', async () => {
    const host = await pluginHost([{ module: audit }, echoTool(() => 'ok')])
    await host.call('echo', { content: 'x'.repeat(10_007) })
    expect(linesOf(host)[0].arguments.content).toBe(`${'x'.repeat(10_000)}… (7 more characters)`)
  })
  it('sets the file aside when it has grown, and keeps so many', async () => {
    const host = await pluginHost([{ module: audit, config: { maxBytes: 400, keep: 2, file: 'a.jsonl' } }, echoTool(() => 'ok')])
    for (let i = 0; i < 6; i++) await host.call('echo', { i })
    expect(readdirSync(host.dataDir('audit')).filter(file => file.startsWith('a.')).sort()).toEqual(['a.jsonl', 'a.jsonl.1', 'a.jsonl.2'])
    for (const file of ['a.jsonl', 'a.jsonl.1', 'a.jsonl.2']) expect(statSync(join(host.dataDir('audit'), file)).size).toBeLessThanOrEqual(400)
    const kept = ['a.jsonl.2', 'a.jsonl.1', 'a.jsonl'].flatMap(file => linesOf(host, file)).map(({ id, event }) => `${event} ${id}`)
    expect(kept.at(-1)).toBe('end call_6')
    expect(new Set(kept).size).toBe(kept.length)
  })
  it('loses no line when it is reloaded and unloaded, and keeps the order of calls that run together', async () => {
    const host = await pluginHost([{ module: audit }, echoTool(async () => { await new Promise(resolve => { setTimeout(resolve, 2) }); return 'ok' }, { readOnly: true })])
    const turns = Array.from({ length: 5 }, () => Array.from({ length: 6 }, (_, i) => ({ name: 'echo', arguments: { i } })))
    const running = host.run(turns)
    await host.reload('audit', { module: audit })
    await running
    await host.unload('audit')
    const lines = linesOf(host)
    expect([lines.filter(({ event }) => event === 'start').length, lines.filter(({ event }) => event === 'end').length]).toEqual([30, 30])
  })
  it('warns once while it can not write, never stops a call, and goes on with whole lines', async () => {
    const host = await pluginHost([{ module: audit, config: { file: 'logs/audit.jsonl' } }, echoTool(() => 'ok')])
    expect((await host.call('echo', {})).read).toBe('ok')
    expect((await host.call('echo', {})).read).toBe('ok')
    expect(host.lines.filter(({ level }) => level === 'warn').map(({ plugin, message }) => [plugin, message])).toEqual([['audit', expect.stringMatching(/^".*logs\/audit\.jsonl" could not be written, so calls go unrecorded until it can: ENOENT/)]])
    mkdirSync(join(host.dataDir('audit'), 'logs'))
    writeFileSync(join(host.dataDir('audit'), 'logs/audit.jsonl'), '{"half":')
    await host.call('echo', {})
    const text = readFileSync(join(host.dataDir('audit'), 'logs/audit.jsonl'), 'utf8').split('\n').filter(line => line !== '')
    expect([text[0], text.slice(1).map(line => JSON.parse(line).event)]).toEqual(['{"half":', ['start', 'end']])
    rmSync(join(host.dataDir('audit'), 'logs'), { recursive: true })
    await host.call('echo', {})
    expect(host.lines.filter(({ level }) => level === 'warn')).toHaveLength(2)
    expect(existsSync(join(host.dataDir('audit'), 'logs'))).toBe(false)
  })
  it.runIf(existsSync('/dev/full'))('outlives a disk that is full', async () => {
    const host = await pluginHost([{ module: audit, config: { file: '/dev/full' } }, echoTool(() => 'ok')])
    expect((await host.call('echo', {})).read).toBe('ok')
    expect(host.lines.map(({ message }) => message)).toEqual([expect.stringContaining('ENOSPC')])
  })
})

import { describe, expect, it } from 'vitest'
import * as audit from '../../plugins/audit.js'
import * as hookLog from '../../plugins/hook-log.js'
import * as largeOutput from '../../plugins/large-output.js'
import * as toolErrors from '../../plugins/tool-errors.js'
import * as truncate from '../../plugins/truncate.js'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { echoTool, pluginHost } from '../support/plugin-host.js'

describe('truncate', () => {
  it('cuts at 50,000 characters and says how many are missing', async () => {
    const host = await pluginHost([{ module: truncate }, echoTool(() => 'x'.repeat(50_123))])
    const { read } = await host.call('echo', {})
    expect(read).toBe(`${'x'.repeat(50_000)}\n[cut here: 123 of 50123 characters are missing; ask for a smaller part to see them]`)
  })
  it('leaves what fits', async () => {
    const host = await pluginHost([{ module: truncate }, echoTool(() => 'x'.repeat(50_000))])
    expect((await host.call('echo', {})).read).toBe('x'.repeat(50_000))
  })
  it('never cuts a character in half', async () => {
    const host = await pluginHost([{ module: truncate, config: { max: 10 } }, echoTool(() => '😀'.repeat(20).replace(/^/, 'x'))])
    const { read } = await host.call('echo', {})
    expect(read).toBe('x😀😀😀😀\n[cut here: 32 of 41 characters are missing; ask for a smaller part to see them]')
  })
  it('keeps that a result is an error, and cuts after the others have worded it', async () => {
    const host = await pluginHost([{ module: hookLog }, { module: audit }, { module: toolErrors }, { module: largeOutput }, { module: truncate }, echoTool(() => ({ content: 'y'.repeat(120_000), isError: true }))])
    const { read, printed, events } = await host.call('echo', {})
    expect(read.startsWith('error: echo: yyy')).toBe(true)
    expect(read).toMatch(/y\n\[cut here: 7\d{4} of 12\d{4} characters are missing/)
    expect(events.find(event => event.type === 'tool-result')).toMatchObject({ kind: 'failed', isError: true })
    const [, end] = readFileSync(join(host.dataDir('audit'), 'audit.jsonl'), 'utf8').trim().split('\n').map(line => JSON.parse(line))
    expect(end).toMatchObject({ event: 'end', outcome: 'failed', chars: read.length })
    expect(printed).toContain(`[HOOK] PostToolUse echo output_chars=${read.length}`)
    expect(host.lines.filter(line => line.plugin === 'large-output').map(line => line.message)).toEqual([expect.stringMatching(/^echo gave 1200\d\d characters of output, more than 100000$|^echo gave 12\d{4} characters/)])
  })
})

import { describe, expect, it } from 'vitest'
import * as toolErrors from '../../plugins/tool-errors.js'
import * as toolFs from '../../plugins/tool-fs/index.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'

describe('tool-errors', () => {
  it('words every failure the same way, with one line of advice', async () => {
    const host = await pluginHost([{ module: toolErrors }, { module: toolFs }, echoTool(() => { throw new TypeError('Error: boom') })])
    expect((await host.call('echo', {})).read).toBe('error: echo: boom\nhint: the same call will fail the same way; change the arguments or the plan.')
    expect((await host.call('read_file', { path: 'no.txt' })).read).toMatch(/^error: read_file: .*no\.txt.*\nhint: look for the right path with glob or grep before you try again\.$/s)
  })
  it('leaves results that are no errors', async () => {
    const host = await pluginHost([{ module: toolErrors }, echoTool(() => 'error: all is well')])
    expect((await host.call('echo', {})).read).toBe('error: all is well')
  })
  it('changes nothing the second time', async () => {
    const host = await pluginHost([{ module: toolErrors, id: 'one' }, { module: toolErrors, id: 'two' }, echoTool(() => ({ content: 'boom', isError: true }))])
    expect((await host.call('echo', {})).read).toBe('error: echo: boom\nhint: the same call will fail the same way; change the arguments or the plan.')
  })
  it('says so when there is no reason', async () => {
    const host = await pluginHost([{ module: toolErrors }, echoTool(() => ({ content: ' ', isError: true }))])
    expect((await host.call('echo', {})).read).toContain('error: echo: it failed and gave no reason\n')
  })
})

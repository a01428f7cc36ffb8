import { describe, expect, it } from 'vitest'
import * as normalize from '../../plugins/normalize-arguments.js'
import * as toolFs from '../../plugins/tool-fs/index.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'

const normalized = async (args: object) => {
  const seen: unknown[] = []
  const host = await pluginHost([{ module: normalize }, echoTool(args => { seen.push(args); return 'ok' })])
  const { read, events } = await host.call('echo', args)
  return { args: seen[0], read, decisions: events.flatMap(event => event.type === 'decision' ? [event.hook] : []) }
}

describe('normalize-arguments', () => {
  it.each([
    [{ path: ' a.txt\n' }, { path: 'a.txt' }], [{ path: '"a b.txt"' }, { path: 'a b.txt' }], [{ path: "'a.txt'" }, { path: 'a.txt' }], [{ path: '`a.txt`' }, { path: 'a.txt' }],
    [{ path: 'file:///tmp/a%20b.txt' }, { path: '/tmp/a b.txt' }], [{ file_path: ' x ' }, { file_path: 'x' }], [{ command: 'a\r\nb\r\n' }, { command: 'a\nb\n' }],
  ])('puts %j right', async (sent, wanted) => { expect((await normalized(sent)).args).toEqual(wanted) })
  it.each([[{ path: '~/a' }], [{ path: '../a' }], [{ path: `"it's` }], [{ path: `'a' and 'b'` }], [{ path: 'file://host/x' }], [{ command: ' "ls"  -la ' }], [{ content: ' "x"\r\n' }], [{ path: 3 }], [{}]])('leaves %j as it is', async sent => {
    expect(await normalized(sent)).toEqual({ args: sent, read: 'ok', decisions: [] })
  })
  it('tells the model and the log what it changed', async () => {
    const { read, decisions } = await normalized({ path: '"a.txt"', other: 1 })
    expect(read).toBe('note: plugin "normalize-arguments" changed the arguments to {"path":"a.txt","other":1}\nok')
    expect(decisions).toEqual(['agent/tool-arguments'])
  })
  it('works for the shipped tools', async () => {
    const host = await pluginHost([{ module: normalize }, { module: toolFs }], { files: { 'a b.txt': 'hello' } })
    expect((await host.call('read_file', { path: '"a b.txt" ' })).read).toContain('hello')
  })
})

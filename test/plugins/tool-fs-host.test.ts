/** tool-fs as a plugin: on the real kernel and the real loop. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { block, type Context } from 'harnessx'
import * as toolFs from '../../plugins/tool-fs/index.js'
import { pluginHost } from '../support/plugin-host.js'

const plugin = (id: string, apply: (ctx: Context) => void) => ({ id, module: { name: id, apply } })

describe('tool-fs on the host', () => {
  it('offers five tools, the reading ones to be run together', async () => {
    let ctx!: Context
    const host = await pluginHost([{ module: toolFs }, plugin('peek', own => { ctx = own })])
    expect(ctx.tools.list().map(tool => [tool.name, tool.readOnly])).toEqual([['read_file', true], ['write_file', false], ['edit_file', false], ['glob', true], ['grep', true]])
    await host.unload('tool-fs')
    expect(ctx.tools.list()).toEqual([])
  })
  it('reads, writes, edits and searches in one turn', async () => {
    const host = await pluginHost([{ module: toolFs }], { files: { 'a.txt': 'one\n' } })
    const { results } = await host.run([
      [{ name: 'read_file', arguments: { path: 'a.txt' } }, { name: 'glob', arguments: { pattern: '*' } }],
      [{ name: 'edit_file', arguments: { path: 'a.txt', old_text: 'one', new_text: 'two' } }, { name: 'write_file', arguments: { path: 'b.txt', content: 'two\n' } }, { name: 'grep', arguments: { pattern: 'two' } }],
    ])
    expect(results).toEqual(['one', 'a.txt', 'edited "a.txt": 1 replacement, at line 1', 'created "b.txt" (1 line, 4 bytes)', 'a.txt:1:two\nb.txt:1:two'])
  })
  it('runs none of its tools when a plugin refuses the call', async () => {
    const host = await pluginHost([plugin('no', ctx => { ctx.on('agent/pre-tool-use', () => block('not now')) }), { module: toolFs }], { files: { 'a.txt': 'one\n' } })
    const calls = [
      { name: 'read_file', arguments: { path: 'a.txt' } }, { name: 'write_file', arguments: { path: 'new.txt', content: 'x' } }, { name: 'edit_file', arguments: { path: 'a.txt', old_text: 'one', new_text: 'two' } },
      { name: 'glob', arguments: { pattern: '*' } }, { name: 'grep', arguments: { pattern: 'one' } },
    ]
    const { results } = await host.run([calls])
    expect(results).toHaveLength(5)
    for (const result of results) expect(result).toContain('not now')
    expect(readFileSync(host.folder.at('a.txt'), 'utf8')).toBe('one\n')
    expect(existsSync(host.folder.at('new.txt'))).toBe(false)
  })
  it('edits a file again that a plugin reformatted after the first edit', async () => {
    const format = plugin('format', ctx => {
      ctx.on('agent/post-tool-use', ({ session, call }) => {
        const file = `${session.cwd}/${String(call.arguments['path'])}`
        writeFileSync(file, readFileSync(file, 'utf8').replace(/ ?= ?/g, ' = '))
      }, { tools: ['edit_file'] })
    })
    const host = await pluginHost([format, { module: toolFs }], { files: { 'a.js': 'a=1\nb=1\n' } })
    const edit = (old_text: string, new_text: string) => [{ name: 'edit_file', arguments: { path: 'a.js', old_text, new_text } }]
    const { results } = await host.run([edit('a=1', 'a=2'), edit('b=1', 'b=2'), edit('b = 1', 'b = 2')])
    expect(results[1]).toBe('old_text is not in "a.js"; nothing was changed. Nearest is line 2, where 1 of 1 line is equal but for blanks. It reads now:\nb = 1')
    expect(results[2]).toBe('edited "a.js": 1 replacement, at line 2')
  })
  it('words a wrong call and a failing one for the model', async () => {
    const host = await pluginHost([{ module: toolFs }])
    expect((await host.call('read_file', { file: 'x' })).read).toMatch(/^invalid arguments for tool "read_file": path: /)
    expect((await host.call('read_file', { path: 'x' })).read).toBe('"x" does not exist; the folder "." is there, but has nothing of a similar name')
    expect((await host.call('read_file', { path: '/etc/passwd' })).read).toMatch(/^outside_workspace: /)
  })
  it('keeps the answer to a huge read within its limit', async () => {
    const host = await pluginHost([{ module: toolFs }], { files: { 'big.log': `${'x'.repeat(99)}\n`.repeat(500_000) } })
    expect((await host.call('read_file', { path: 'big.log' })).read.length).toBeLessThan(46_000)
    expect((await host.call('grep', { pattern: 'x' })).read.length).toBeLessThan(46_000)
  })
  it('refuses a config it does not know', async () => {
    await expect(pluginHost([{ module: toolFs, config: { maxLine: 5 } }])).rejects.toThrow('maxLine')
  })
})

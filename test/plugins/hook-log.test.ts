import { describe, expect, it } from 'vitest'
import * as hookLog from '../../plugins/hook-log.js'
import * as permission from '../../plugins/permission/index.js'
import * as toolBash from '../../plugins/tool-bash/index.js'
import * as toolFs from '../../plugins/tool-fs/index.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'

const rows = [{ module: hookLog }, { module: permission }, { module: toolFs }, { module: toolBash }]

describe('hook-log', () => {
  it('prints what passes each hook, as the first seed shows it', async () => {
    const host = await pluginHost(rows, { files: { 'README.md': '# Ferry\n' } })
    const { printed } = await host.run([[{ name: 'read_file', arguments: { path: 'README.md' } }], [{ name: 'bash', arguments: { command: 'echo hi' } }]])
    expect(printed).toEqual([
      `[HOOK] UserPromptSubmit cwd=${host.folder.path}`,
      '> read_file path=README.md', '[HOOK] PreToolUse read_file({"path":"README.md"})', expect.stringMatching(/^\[HOOK\] PostToolUse read_file output_chars=\d+$/),
      '$ echo hi', '[HOOK] PreToolUse bash({"command":"echo hi"})', expect.stringMatching(/^\[HOOK\] PostToolUse bash output_chars=\d+$/),
      '[HOOK] Stop: steps=3, tool_calls=2, blocked=0',
    ])
  })
  it('prints a refused call up to the judge that refused it', async () => {
    const host = await pluginHost(rows)
    expect((await host.call('bash', { command: 'sudo ls /' })).printed.slice(1)).toEqual(['$ sudo ls /', '[HOOK] PreToolUse bash({"command":"sudo ls /"})', "Blocked: 'sudo' is on the deny list", '[HOOK] Stop: steps=2, tool_calls=1, blocked=1'])
  })
  it('prints arguments that could not be parsed as they were sent', async () => {
    const host = await pluginHost(rows)
    expect((await host.call('read_file', '{"path":')).printed).toContain('> read_file {"path":')
  })
  it('prints no escape sequence and no control character, and cuts what is long', async () => {
    const host = await pluginHost([{ module: hookLog }, echoTool(() => 'ok')])
    const { printed } = await host.call('echo', { text: '\u001b[2J\u001b]0;title\u0007a\nb\r\u0000c\u202ed\u009b', long: 'x'.repeat(1000) })
    const line = printed.find(line => line.startsWith('> echo'))!
    expect(line).toMatch(/^> echo text=a b c d  long=x+…$/)
    expect(line.length).toBe(300)
    expect(printed.join('')).not.toMatch(/[\p{Cc}\p{Cf}]/u)
  })
})

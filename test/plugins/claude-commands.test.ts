import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestHost } from 'harnessx/testing'
import * as claudeCommands from '../../plugins/claude-commands/index.js'
import { parseCommand, promptOf } from '../../plugins/claude-commands/markdown.js'
import { folder } from '../support/folder.js'

async function started(files: Readonly<Record<string, string>>, config: object = {}) {
  const project = folder(Object.fromEntries(Object.entries(files).map(([name, text]) => [`.claude/commands/${name}`, text])))
  const host = await createTestHost({ plugins: [{ module: claudeCommands, config: { folders: [project.path], ...config } }], replies: ['done'] })
  onTestFinished(() => host.close())
  return { host, project, offered: () => host.commands().map(({ name, description }) => `/${name} ${description}`), warnings: () => host.log.filter(({ level }) => level === 'warn').map(({ message }) => message) }
}
const FIX = `---
description: Mend an issue
argument-hint: [number] [priority]
allowed-tools: Bash(git:*), Read
---
Mend issue $1 with priority "$2". All that was said: $ARGUMENTS.
Costs $10, and see @README.md.
`

describe('claude-commands', () => {
  it('offers each file as a command, which gives its prompt with the arguments in their places', async () => {
    const { host, offered, warnings } = await started({ 'fix-issue.md': FIX, 'sub/Review_All.md': '# Review everything\n\nBe strict.' })
    expect(offered()).toEqual(['/fix-issue Mend an issue [number] [priority]', '/review-all Review everything'])
    expect((await host.command('fix-issue', '12 "very high"')).prompt).toBe('Mend issue 12 with priority "very high". All that was said: 12 "very high".\nCosts $10, and see @README.md.')
    expect((await host.command('review-all')).prompt).toBe('# Review everything\n\nBe strict.')
    expect((await host.command('review-all', 'src only')).prompt).toBe('# Review everything\n\nBe strict.\n\nARGUMENTS: src only')
    expect(warnings()).toEqual([expect.stringMatching(/^\/fix-issue \(".*fix-issue\.md"\): not supported, so without effect: "allowed-tools", "@README\.md" \(no file is put in its place; the model reads the name\)$/)])
  })
  it('runs nothing that a file holds, and says so', async () => {
    const { host, project, warnings } = await started({ 'status.md': 'Now: !`touch ran`' })
    expect((await host.command('status')).prompt).toBe('Now: !`touch ran`')
    expect(warnings()[0]).toContain('no command runs before a prompt')
    expect(await import('node:fs').then(fs => fs.existsSync(project.at('ran')))).toBe(false)
  })
  it('leaves out what is no command, and offers the rest', async () => {
    const { offered, warnings } = await started({ 'a/x.md': 'First.', 'b/x.md': 'Second.', 'empty.md': '---\ndescription: nothing\n---\n', '9lives.md': 'Nine.', 'notes.txt': 'no', 'big.md': 'x'.repeat(100_001) })
    expect(offered()).toEqual(['/x First.'])
    expect(warnings().map(line => line.replace(/^"[^"]*\/commands\//, ''))).toEqual([
      expect.stringContaining('9lives.md" is no command here: plugin "claude-commands": a command\'s name has'), expect.stringMatching(/^b\/x\.md" is no command here: \/x is ".*a\/x\.md"$/),
      expect.stringContaining('big.md" is no command here: it has more than 100000 bytes'), expect.stringContaining('empty.md" is no command here: it holds no prompt'),
    ])
  })
  it('reads the folder of the config when none is named, once: what is written there later counts after a reload', async () => {
    const project = folder({ '.claude/commands/hello.md': 'Say hello.' })
    const { place } = await import('../support/hx.js')
    const { hx, write } = place({ 'harness.config.yaml': 'plugins: [claude-commands]\n', '.claude/commands/hello.md': 'Say hello.' })
    write('.claude/commands/late.md', 'Too late?')
    const { stdout } = await hx(['plugins', '--trust', '--json'])
    expect(JSON.parse(stdout)).toMatchObject({ plugins: [{ id: 'claude-commands', state: 'active' }] })
    const host = await createTestHost({ plugins: [{ module: claudeCommands, config: { folders: [project.path] } }] })
    onTestFinished(() => host.close())
    project.write('.claude/commands/late.md', 'Late.')
    expect(host.commands().map(({ name }) => name)).toEqual(['hello'])
    await host.reload('claude-commands')
    expect(host.commands().map(({ name }) => name)).toEqual(['hello', 'late'])
    await host.configure([])
    expect(host.commands()).toEqual([])
  })
})

describe('a command in Markdown', () => {
  it.each([['', undefined], ['---\n---\n', undefined], ['just words', 'just words'], ['---\r\ndescription: "Two: words"\r\n---\r\nGo.', 'Two: words'], ['---\nno end', '---']])('is read from %j', (text, description) => {
    expect(parseCommand(text)?.description).toBe(description)
  })
  it('takes arguments for words, never for patterns', () => {
    expect(promptOf('do $1 then $2 then $3', `a "b c" '$1'`)).toBe('do a then b c then $1')
    expect(promptOf('$ARGUMENTS', '$& $1 \\')).toBe('$& $1 \\')
    expect(promptOf('$1', '')).toBe('')
    expect(promptOf('$ARGUMENTS[0] and $ARGUMENTS[1], not $ARGUMENTS[7]', 'a "b c"')).toBe('a and b c, not ')
  })
  it('says what of it has no meaning here, and takes no address or code for a file', () => {
    expect(parseCommand('See @src/a.ts and ${CLAUDE_PLUGIN_ROOT}/x.')?.ignored).toEqual(['"@src/a.ts" (no file is put in its place; the model reads the name)', '"${CLAUDE_PLUGIN_ROOT}"'])
    expect(parseCommand('Write to me@example.com, ask @team, mind `@types/node`.')?.ignored).toEqual([])
    expect(parseCommand('---\ndescription: |\n  Two\n  lines\nmodel: opus\n---\nGo.')).toMatchObject({ description: 'Two lines', ignored: ['"model"'] })
  })
})

import { mkdirSync, symlinkSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createTestHost } from 'harnessx/testing'
import * as instructions from '../../plugins/agent-instructions.js'
import { pluginHost, type PluginHost } from '../support/plugin-host.js'
import { folder } from '../support/folder.js'
import { textOf } from '../../core/agent/vocabulary.js'

const system = (host: PluginHost) => textOf(host.requests.at(-1)!.messages[0]!)
const started = (files: Record<string, string>, config: object = {}) => pluginHost([{ module: instructions, config }], { files })

describe('agent-instructions', () => {
  it('adds AGENTS.md of the folder to the system prompt, and CLAUDE.md where there is none', async () => {
    const both = await started({ 'AGENTS.md': 'Use tabs.\n', 'CLAUDE.md': 'Use spaces.' })
    await both.run([])
    expect(system(both)).toContain(`Instructions of ${both.folder.at('AGENTS.md')}:\n\nUse tabs.`)
    expect(system(both)).not.toContain('Use spaces')
    const one = await started({ 'CLAUDE.md': 'Use spaces.' })
    await one.run([])
    expect(system(one)).toContain('Use spaces.')
  })
  it('reads an edited file anew, and says nothing when it is gone', async () => {
    const host = await started({ 'AGENTS.md': 'one' })
    const { result: { session } } = await host.run([])
    host.folder.write('AGENTS.md', 'and another')
    await host.run([], { session })
    expect(system(host)).toContain('and another')
    host.folder.write('AGENTS.md', '')
    await host.run([], { session })
    expect(system(host)).not.toContain('Instructions of')
  })
  it('goes up as far as the workspace reaches and no further', async () => {
    const host = await started({ 'AGENTS.md': 'OF ABOVE', 'sub/AGENTS.md': 'OF HERE' })
    await host.run([], { cwd: host.folder.at('sub') })
    expect(system(host)).toContain('OF HERE')
    expect(system(host)).not.toContain('OF ABOVE')
    expect(host.lines.filter(({ level }) => level === 'warn')).toEqual([])
  })
  it('cuts what is too long at a whole character, and says so', async () => {
    const host = await started({ 'AGENTS.md': 'ä'.repeat(100) }, { maxBytes: 11 })
    await host.run([])
    expect(system(host)).toContain('\n\näääää\n[cut here: longer than there is room for]')
  })
  it('leaves out a file that leads out of the workspace or is a folder; the first is told once', async () => {
    const outside = folder({ 'secret.md': 'SECRET' })
    const host = await started({})
    symlinkSync(outside.at('secret.md'), host.folder.at('AGENTS.md'))
    mkdirSync(host.folder.at('CLAUDE.md'))
    const { result: { session } } = await host.run([])
    await host.run([], { session })
    expect(system(host)).not.toContain('SECRET')
    expect(host.lines.filter(({ plugin }) => plugin === 'agent-instructions').map(({ message }) => message)).toEqual([expect.stringMatching(/AGENTS\.md" is left out of the system prompt: outside_workspace/)])
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const host = await createTestHost({ plugins: [], files: { 'AGENTS.md': 'HEED THIS' }, replies: ['one', 'two'] })
    await host.configure(['agent-instructions'])
    await host.reload('agent-instructions')
    await host.run('go')
    await host.configure([])
    await host.run('go')
    expect(host.requests.map(request => textOf(request.messages[0]!).includes('HEED THIS'))).toEqual([true, false])
    await host.close()
  })
})

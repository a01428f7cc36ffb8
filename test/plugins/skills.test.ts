import { mkdirSync, symlinkSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { createTestHost } from 'harnessx/testing'
import * as skills from '../../plugins/skills.js'
import { parseSkill } from '../../plugins/skills.js'
import { textOf } from '../../core/agent/vocabulary.js'
import { folder } from '../support/folder.js'
import { pluginHost, type PluginHost } from '../support/plugin-host.js'

const skill = (name: string, description: string, body = 'Do this.') => `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}\n`
const system = (host: PluginHost) => textOf(host.requests.at(-1)!.messages[0]!)

describe('skills', () => {
  it('are listed in the system prompt, and read whole on demand', async () => {
    const host = await pluginHost([{ module: skills }], { files: { '.claude/skills/pdf/SKILL.md': skill('pdf', 'Reads forms', 'Use the script.'), '.claude/skills/pdf/fill.py': '', 'skills/deploy/SKILL.md': skill('deploy', 'Brings it live') } })
    const { read } = await host.call('skill', { name: 'pdf' })
    expect(read).toBe('Use the script.\n\n[its folder is .claude/skills/pdf, with fill.py]')
    expect(system(host)).toContain('- pdf: Reads forms\n- deploy: Brings it live')
    expect(system(host)).not.toContain('Use the script')
    expect((await host.call('skill', { name: 'pfd' })).read).toBe('there is no skill "pfd"; did you mean "pdf"?')
  })
  it('count from the next step on when they are edited, added or gone', async () => {
    const host = await pluginHost([{ module: skills }])
    const { result: { session } } = await host.run([])
    expect(system(host)).not.toContain('Skills are')
    host.folder.write('skills/a/SKILL.md', skill('a', 'first'))
    await host.run([], { session })
    expect(system(host)).toContain('- a: first')
    host.folder.write('skills/a/SKILL.md', skill('a', 'second one'))
    await host.run([], { session })
    expect(system(host)).toContain('- a: second one')
  })
  it('leave out what leads out of the workspace or has no head, and say so once', async () => {
    const outside = folder({ 'x/SKILL.md': skill('outside', 'SECRET') })
    const host = await pluginHost([{ module: skills }], { files: { 'skills/bare/SKILL.md': 'no head', 'skills/README.md': '' } })
    symlinkSync(outside.at('x'), host.folder.at('skills/x'))
    mkdirSync(host.folder.at('skills/empty'))
    const { result: { session } } = await host.run([])
    await host.run([], { session })
    expect(system(host)).not.toContain('SECRET')
    expect(host.lines.filter(({ plugin }) => plugin === 'skills').map(({ message }) => message)).toEqual([expect.stringMatching(/^"skills\/bare\/SKILL\.md" is not among the skills: it must begin/), expect.stringMatching(/^"skills\/x\/SKILL\.md" is not among the skills: outside_workspace/)])
  })
  it('leave out those that only a person may ask for', async () => {
    const host = await pluginHost([{ module: skills }], { files: { '.agents/skills/a/SKILL.md': skill('a', 'first'), 'skills/b/SKILL.md': skill('b', 'second').replace('name: b', 'name: b\ndisable-model-invocation: true') } })
    await host.run([])
    expect(system(host)).toContain('- a: first')
    expect(system(host)).not.toContain('- b: second')
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const host = await createTestHost({ plugins: [], files: { 'skills/a/SKILL.md': skill('a', 'first') }, replies: [{ calls: [{ name: 'skill', arguments: { name: 'a' } }] }, 'done'] })
    await host.configure(['skills'])
    await host.reload('skills')
    expect((await host.run('go')).results[0]).toContain('Do this.')
    await host.configure([])
    expect(host.tools()).toEqual([])
    await host.close()
  })
})

describe('the head of a skill', () => {
  it.each([
    ['---\nname: a\ndescription: b: c\n---\nbody', { name: 'a', description: 'b: c', body: 'body' }],
    ['---\r\nname: "a"\r\ndescription: >-\r\n  one\r\n  two\r\nlicense: x\r\n---\r\nbody', { name: 'a', description: 'one two', body: 'body' }],
    ['\uFEFF---\ndescription: \'q\'\nname: a\n---', { name: 'a', description: 'q', body: '' }],
    ['---\ndescription: "Says \\"hi\\"."\nmetadata:\n  name: other\n---\nx', { name: 'f', description: 'Says "hi".' }],
    ["---\nname: a\ndescription: 'It''s: one'\ndisable-model-invocation: true\n---", { description: "It's: one", hidden: true }],
  ])('reads %j', (text, wanted) => { expect(parseSkill(text, 'skills/f')).toMatchObject(wanted) })
  it.each(['', 'body', '---\nname: a\n---\nbody', '---\nname: a\ndescription: b\n', '--- \nx'])('is none in %j', text => { expect(parseSkill(text, 'f')).toBeUndefined() })
})

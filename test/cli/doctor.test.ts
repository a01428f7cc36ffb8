import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { otherHx } from '../../core/cli/other-hx.js'
import { folder as folderOf } from '../support/folder.js'
import { place } from '../support/hx.js'

interface Answer { readonly ok: boolean; readonly checks: readonly { readonly check: string; readonly state: string; readonly message: string; readonly next?: string }[] }

describe('hx doctor', () => {
  it('finds what is wrong, says what to type for each, and ends with 1', async () => {
    const { hx, env, write } = place({ 'harness.config.yaml': 'plugins: [gone]\nagnt: {}\n' })
    await hx(['sessions'])
    const state = join(env['HX_HOME']!, 'state')
    mkdirSync(join(state, 'sessions'), { recursive: true, mode: 0o700 })
    chmodSync(state, 0o755)
    write('harness.config.yml', '')
    writeFileSync(join(state, 'sessions', '20260101-000000-aaaaaa.jsonl'), '{"seq":1,"ts":"2026-01-01T00:00:00.000Z","type":"session","v":1,"id":"20260101-000000-aaaaaa","cwd":"/","depth":0}\n{"seq":2,\n{"seq":3,"ts":"2026-01-01T00:00:00.000Z","type":"archived"}\n')
    writeFileSync(join(state, 'sessions', '20260101-000000-bbbbbb.jsonl'), '')
    const { code, stdout } = await hx(['doctor', '--trust', '--json'])
    expect(code).toBe(1)
    const { ok, checks } = JSON.parse(stdout) as Answer
    const findings = checks.filter(one => one.state === 'finding')
    expect(ok).toBe(false)
    expect(findings.map(({ check }) => check)).toEqual(expect.arrayContaining(['folders', 'config', 'sessions']))
    expect(findings.find(({ check }) => check === 'folders')!.next).toBe(`chmod 700 ${state}`)
    expect(findings.find(({ message }) => message.includes('"agnt" is not a key'))!.next).toBe('hx config check')
    expect(findings.find(({ message }) => message.includes('"gone" was not found'))).toBeDefined()
    expect(findings.filter(({ check }) => check === 'sessions').map(({ message }) => /bbbbbb\.jsonl" is left out/.test(message))).toEqual([true, false])
    for (const one of findings) expect(one.next).toBeTruthy()
  }, 30_000)
  it('is content with a fresh place, and reads nothing of a folder that nobody trusts', async () => {
    const { hx } = place({ 'harness.config.yaml': '{{{' })
    const { stdout } = await hx(['doctor', '--json'])
    const { checks } = JSON.parse(stdout) as Answer
    expect(checks.filter(one => ['config', 'sessions', 'node', 'folders'].includes(one.check) && one.state === 'finding')).toEqual([])
    expect(checks.find(({ check }) => check === 'config')).toMatchObject({ state: 'note', next: expect.stringContaining('hx trust') as string })
  }, 30_000)
  it('finds that its folders can not be made, before a session is lost for it', async () => {
    const { hx, folder } = place({ 'a-file': '' }), home = join(folder, 'a-file', 'hx')
    const { checks } = JSON.parse((await hx(['doctor', '--json'], { env: { HX_HOME: home } })).stdout) as Answer
    expect(checks.filter(({ check }) => check === 'folders').map(({ message }) => message)).toEqual(['config', 'state', 'run'].map(name => `${home}/${name} can not be made: ${folder}/a-file can not be written`))
  }, 30_000)
  it('tells of another hx that comes first on the PATH, and not of this one', () => {
    const at = folderOf({ 'other/hx': '#!/bin/sh\n', 'mine/dist/hx': '#!/bin/sh\n', 'plain/hx': 'no program' })
    chmodSync(at.at('other/hx'), 0o755)
    chmodSync(at.at('mine/dist/hx'), 0o755)
    expect(otherHx(`${at.at('plain')}:${at.at('other')}:${at.at('mine/dist')}`, at.at('mine'))).toBe(at.at('other/hx'))
    expect(otherHx(`${at.at('mine/dist')}:${at.at('other')}`, at.at('mine'))).toBeUndefined()
    expect(otherHx(undefined, at.at('mine'))).toBeUndefined()
  })
})

describe('hx completion', () => {
  it('offers commands, choices and sessions, and a script for each shell that asks for them', async () => {
    const { hx } = place({ 'a.txt': 'x' })
    await hx(['agent', '--offline', 'Read a.txt'])
    const words = async (...line: string[]) => (await hx(['complete', '--', ...line])).stdout.split('\n').filter(Boolean).map(text => text.split('\t')[0])
    expect(await words('plu')).toEqual(['plugins'])
    expect(await words('plugins', 'new', 'x', '--from', '')).toContain('guard')
    expect(await words('trace', '')).toHaveLength(1)
    expect(await words('agent', '--off')).toEqual(['--offline'])
    for (const shell of ['bash', 'zsh', 'fish']) expect((await hx(['completion', shell])).stdout).toContain('hx complete -- ')
    expect((await hx(['completion', 'tcsh'])).stderr).toContain('<shell> must be one of bash, zsh, fish, received "tcsh"')
  }, 30_000)
})

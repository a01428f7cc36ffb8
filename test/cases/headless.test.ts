import { openSync, closeSync, mkdirSync, rmSync, symlinkSync } from 'node:fs'
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { CLI, place, type Place } from '../support/hx.js'

const agent = (here: Place, args: readonly string[], more: Parameters<Place['hx']>[1] = {}) => here.hx(['agent', '--offline', ...args], more)
const GUARD = `import { block, type Context } from 'harnessx'
import { why } from './why.js'
export const name = 'guard'
export function apply(ctx: Context) { ctx.on('agent/pre-tool-use', () => block(why)) }
`

describe('the folder of a run', () => {
  it('may be given as a relative path, a link or with dots, and is one folder for --continue', async () => {
    const here = place({ 'sub/README.md': '# Sub\n' })
    symlinkSync('sub', join(here.folder, 'link'))
    expect((await agent(here, ['-C', 'sub', 'Read README.md'])).stdout).toContain('Sub')
    for (const dir of ['./sub/', 'link', join(here.folder, 'x/../sub')]) expect(await agent(here, ['-C', dir, '-c', 'hello'])).toMatchObject({ code: 0 })
    const { sessions } = JSON.parse((await here.hx(['sessions', '--json'])).stdout) as { sessions: object[] }
    expect(sessions).toMatchObject([{ cwd: join(here.folder, 'sub'), turns: 4 }])
  })
  it('stays that of its session, and whoever stands elsewhere is told', async () => {
    const here = place({ 'a/README.md': '# Alpha\n', 'b/README.md': '# Beta\n' })
    await agent(here, ['-C', 'a', 'hello'])
    const { sessions: [{ id }] } = JSON.parse((await here.hx(['sessions', '--json'])).stdout) as { sessions: [{ id: string }] }
    const ran = await agent(here, ['-C', 'b', '--session', id, 'Read README.md'])
    expect(ran.stdout).toContain('Alpha')
    expect(ran.stderr).toContain(`hx: session ${id} works in ${join(here.folder, 'a')}`)
    expect(await agent(here, ['--session', '', 'hello'])).toMatchObject({ code: 2, stderr: 'hx: there is no session ""; "hx sessions" lists those there are\n' })
  })
  it('that is a file, or is gone, is a sentence', async () => {
    const here = place({ 'README.md': 'x' })
    expect(await agent(here, ['-C', 'README.md', 'hello'])).toMatchObject({ code: 2, stderr: 'hx: "README.md" is not a folder\n' })
    mkdirSync(join(here.folder, 'gone'))
    const { code, stderr } = await new Promise<{ code: number | null; stderr: string }>(resolve => {
      const child = spawn('/bin/sh', ['-c', 'rmdir "$PWD" && exec "$0" "$@"', process.execPath, CLI, 'agent', '--offline', 'hello'], { cwd: join(here.folder, 'gone'), env: here.env, stdio: ['ignore', 'ignore', 'pipe'] })
      let said = ''
      child.stderr.on('data', text => { said += String(text) })
      child.once('close', exit => { resolve({ code: exit, stderr: said }) })
    })
    expect([code, stderr]).toEqual([2, 'hx: the current folder does not exist\n'])
  })
})

describe('a home that can not be used', () => {
  it('is a sentence for every command that needs it, never a stack', async () => {
    const here = place({ 'a-file': '' })
    const env = { HX_HOME: join(here.folder, 'a-file') }
    const ended = await Promise.all([['agent', '--offline', 'hello'], ['plugins'], ['sessions'], ['status'], ['start', '--foreground']].map(args => here.hx(args, { env })))
    expect(ended.map(({ code }) => code)).toEqual([1, 0, 1, 1, 2])
    expect(ended.filter(({ stderr }) => /\n\s+at |ENOENT.*uv_cwd/.test(stderr))).toEqual([])
    expect((await here.hx(['agent', '--offline', '--ephemeral', '--without', 'audit', 'hello'], { env })).code).toBe(0)
    expect(await here.hx(['start', '--json'], { env })).toMatchObject({ code: 1, stdout: expect.stringContaining('"code":"storage_failed"') })
  })
})

describe('standard streams', () => {
  it('a full disk behind stdout ends with 1 and one line, also with --json', async () => {
    const here = place()
    for (const args of [['agent', '--offline', 'hello'], ['agent', '--offline', '--json', 'hello'], ['plugins', '--json'], ['--help']]) {
      const full = openSync('/dev/full', 'w')
      const { code, stderr } = await new Promise<{ code: number | null; stderr: string }>(resolve => {
        const child = spawn(process.execPath, [CLI, ...args], { cwd: here.folder, env: here.env, stdio: ['ignore', full, 'pipe'] })
        closeSync(full)
        let said = ''
        child.stderr!.on('data', text => { said += String(text) })
        child.once('close', exit => { resolve({ code: exit, stderr: said }) })
      })
      expect([code, stderr.split('\n').filter(line => line.startsWith('hx:')), /\n\s+at /.test(stderr)]).toEqual([1, [expect.stringMatching(/^hx: the answer could not be written: ENOSPC/)], false])
    }
  })
  it('bytes that are no text, NUL bytes and a megabyte reach the model as text', async () => {
    const here = place({ 'README.md': '# Demo\n' })
    expect((await agent(here, [], { input: 'Read README.md\0' })).stdout).toContain('Demo')
    expect((await agent(here, ['hello'], { input: `\ud800\u0007${'x'.repeat(1_000_000)}` })).code).toBe(0)
  })
})

describe('--plugin', () => {
  it('loads a plugin with its helpers from any folder, by its name without an ending, or through a link', async () => {
    const odd = 'my #1 plug?ins 100% é'
    const here = place({ 'README.md': 'x', [`${odd}/guard.ts`]: GUARD, [`${odd}/why.ts`]: `export const why = 'no way'` })
    symlinkSync(join(odd, 'guard.ts'), join(here.folder, 'linked.ts'))
    for (const path of [`${odd}/guard.ts`, `${odd}/guard`, join(here.folder, odd, 'guard.ts'), 'linked.ts']) {
      expect((await agent(here, ['--plugin', path, 'Read README.md'])).stdout).toMatch(/blocked by plugin "(guard|linked)": no way/)
    }
  })
  it('that does not load refuses the run: who names a guard wants none without it', async () => {
    const here = place({ 'README.md': 'x', 'broken.ts': 'export const apply = () => {\n' })
    for (const [path, id] of [['gone.ts', 'gone'], ['broken.ts', 'broken']] as const) {
      const { code, stdout, stderr } = await agent(here, ['--plugin', path, 'Read README.md'])
      expect([code, stdout]).toEqual([3, ''])
      expect(stderr).toContain(`guard_inactive: required plugin "${id}" is not active (it failed to load)`)
    }
  })
  it('brings no trust for a config of the folder it stands in', async () => {
    const here = place({ 'harness.config.yaml': 'plugins: []\n', 'guard.ts': GUARD, 'why.ts': `export const why = 'x'` })
    expect(await agent(here, ['--plugin', 'guard.ts', 'hello'])).toMatchObject({ code: 3, stderr: expect.stringContaining('is not trusted, so nothing of it was read') })
    rmSync(join(here.folder, 'harness.config.yaml'))
    expect((await agent(here, ['--plugin', 'guard.ts', 'hello'])).code).toBe(0)
  })
})

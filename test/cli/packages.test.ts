import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { packageNote, packageProblem, wants, type Manifest } from '../../core/cli/plugin-package.js'
import { VERSION } from '../../core/version.js'
import { folder as folderOf } from '../support/folder.js'
import { place } from '../support/hx.js'

const SOURCE = `import { appendFileSync } from 'node:fs'
export const name = 'shout'
export const inject = ['agents']
export function apply(ctx) { ctx.on('agent/turn-end', () => ctx.logger.warn('DONE')) }
`
/** A package as its author would publish it: packed, with a script that must not run. */
function packed(root: string, version: string, more: object = {}): string {
  const at = join(root, `pkg-${version}`)
  mkdirSync(at, { recursive: true })
  writeFileSync(join(at, 'index.js'), SOURCE)
  writeFileSync(join(at, 'package.json'), JSON.stringify({ name: 'harnessx-plugin-shout', version, type: 'module', exports: './index.js', keywords: ['harnessx-plugin'], peerDependencies: { harnessx: '>=0.1.0' }, scripts: { postinstall: `touch ${join(root, 'SCRIPT')}` }, ...more }))
  return join(at, execFileSync('npm', ['pack', '--silent'], { cwd: at, encoding: 'utf8' }).trim())
}

describe('hx plugins add, update, remove', () => {
  it('installs a packed package without its scripts, shows what it hangs on, and writes nothing while nobody says yes', async () => {
    const { hx, folder } = place({ 'harness.config.yaml': '# mine\nplugins:\n  - audit\n' })
    const config = () => readFileSync(join(folder, 'harness.config.yaml'), 'utf8')
    const file = packed(join(folder, '..'), '1.0.0')
    const asked = await hx(['plugins', 'add', file, '--trust'])
    expect(asked.code).toBe(3)
    expect(asked.stderr).toContain('hooks     agent/turn-end')
    expect(asked.stderr).toContain('waits for agents')
    expect(config()).toBe('# mine\nplugins:\n  - audit\n')
    expect(existsSync(join(folder, 'package.json'))).toBe(false)
    expect(existsSync(join(folder, 'node_modules/harnessx-plugin-shout'))).toBe(false)

    expect((await hx(['plugins', 'add', file, '--trust', '--yes'])).stdout).toContain('added "shout"')
    expect(config()).toBe('# mine\nplugins:\n  - audit\n  - shout\n')
    const { plugins } = JSON.parse((await hx(['plugins', '--trust', '--json'])).stdout) as { plugins: { id: string; state: string }[] }
    expect(plugins).toMatchObject([{}, { id: 'shout', state: 'active', handlers: 1 }])

    writeFileSync(file, readFileSync(packed(join(folder, '..'), '1.1.0')))
    expect((await hx(['plugins', 'update', 'shout', '--trust'])).stdout).toBe('shout: harnessx-plugin-shout 1.0.0 → 1.1.0\n')
    expect((await hx(['plugins', 'remove', 'shout', '--purge', '--trust'])).stdout).toContain('and package harnessx-plugin-shout')
    expect(config()).toBe('# mine\nplugins:\n  - audit\n')
    expect(existsSync(join(folder, 'node_modules/harnessx-plugin-shout'))).toBe(false)
    expect(existsSync(join(folder, '../SCRIPT'))).toBe(false)
  }, 120_000)
  it('takes a file of one\'s own by its path, and never deletes it', async () => {
    const { hx, folder, write } = place({ 'harness.config.yaml': 'plugins: []\n' })
    const file = write('mine/loud.js', SOURCE)
    expect((await hx(['plugins', 'add', 'mine/loud.js', '--trust', '--yes'])).code).toBe(0)
    expect(readFileSync(join(folder, 'harness.config.yaml'), 'utf8')).toContain('from: ./mine/loud.js')
    expect((await hx(['plugins', 'remove', 'loud', '--purge', '--trust'])).stdout).toContain(`${file} stays as it is`)
    expect(existsSync(file)).toBe(true)
    expect((await hx(['plugins', 'add', './nothing.ts', '--trust', '--yes'])).stderr).toContain('there is no file or folder')
  }, 30_000)
  it('runs a file from elsewhere after the yes to it, in a folder that is trusted, and shows what it hangs on also when nobody is asked', async () => {
    const { hx, folder, write } = place()
    expect((await hx(['init'])).code).toBe(0)
    write('../elsewhere/loud.js', SOURCE)
    const { code, stderr } = await hx(['plugins', 'add', '../elsewhere/loud.js', '--yes'])
    expect([code, stderr]).toEqual([0, expect.stringContaining('hooks     agent/turn-end')])
    const { plugins } = JSON.parse((await hx(['plugins', '--json'])).stdout) as { plugins: { id: string; state: string }[] }
    expect(plugins.at(-1)).toMatchObject({ id: 'loud', state: 'active' })
    expect((await hx(['trust', '--list'])).stdout).toContain(join(folder, '../elsewhere'))
  }, 30_000)
})

describe('a package', () => {
  const manifest = (more: Partial<Manifest>): Manifest => ({ name: 'harnessx-plugin-x', version: '1.0.0', keywords: ['harnessx-plugin'], peerDependencies: {}, ...more })
  it('has to be a plugin, for this version of harnessx, or is refused in one sentence', () => {
    expect(packageProblem(manifest({ peerDependencies: { harnessx: `^${VERSION}` } }))).toBeUndefined()
    expect(packageProblem(manifest({}))).toBeUndefined()
    expect(packageProblem(manifest({ keywords: [] }))).toContain('has neither the keyword "harnessx-plugin" nor a peer range')
    expect(packageProblem(manifest({ peerDependencies: { harnessx: '^99.0.0' } }))).toBe(`package "harnessx-plugin-x" 1.0.0 is for harnessx ^99.0.0, and this is ${VERSION}; take another version of one of the two`)
    expect(packageProblem(manifest({ peerDependencies: { harnessx: 'soon' } }))).toContain('can\'t be read')
  })
  it('without the keyword is taken, with a sentence for its author', () => {
    const quiet = manifest({ keywords: [], peerDependencies: { harnessx: `^${VERSION}` } })
    expect([packageProblem(quiet), packageNote(quiet), packageNote(manifest({}))]).toEqual([undefined, 'package "harnessx-plugin-x" is found by nobody who looks for plugins: its package.json lacks the keyword "harnessx-plugin"', undefined])
  })
  it('is read as text: hooks, services and imports that its source names, tests and its own dependencies left out', () => {
    const at = folderOf({ 'index.ts': SOURCE, 'lib/more.ts': 'export const provides: string[] = ["store"]\nctx.on("agent/stop", f)', 'x.test.ts': 'ctx.on("agent/error", f)', 'node_modules/y/index.js': 'ctx.on("agent/delta", f)' })
    expect(wants(at.path)).toEqual({ hooks: ['agent/stop', 'agent/turn-end'], inject: ['agents'], provides: ['store'], imports: ['node:fs'] })
  })
})

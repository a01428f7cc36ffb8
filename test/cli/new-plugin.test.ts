import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { linkHost } from '../../core/cli/link-host.js'
import { KINDS } from '../../core/cli/plugin-kinds.js'
import { TEMPLATES, testFile } from '../../core/cli/plugin-templates.js'
import { place, until } from '../support/hx.js'

const run = promisify(execFile)

describe('hx plugins new', () => {
  it('begins with a plugin of any kind whose test passes', async () => {
    const { folder, env, write } = place()
    linkHost(folder, fileURLToPath(new URL('../..', import.meta.url)).replace(/\/$/, ''))
    for (const kind of KINDS) {
      write(`plugins/my-${kind}.ts`, TEMPLATES[kind](`my-${kind}`).source)
      write(`plugins/my-${kind}.test.mjs`, testFile(`my-${kind}`, kind, 'node'))
    }
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', ...KINDS.map(kind => `plugins/my-${kind}.test.mjs`)], { cwd: folder, env: { ...env, NODE_OPTIONS: '' } })
    expect(stdout).toContain(`# pass ${KINDS.length}`)
    expect(stdout).toContain('# fail 0')
  }, 60_000)
  it('begins with a plugin of any kind that compiles as hx init has set it up', async () => {
    const { hx, folder, write } = place({ 'package.json': '{"type":"module"}' })
    expect((await hx(['init'])).code).toBe(0)
    for (const kind of KINDS) write(`plugins/my-${kind}.ts`, TEMPLATES[kind](`my-${kind}`).source)
    const { stdout } = await run(process.execPath, [fileURLToPath(new URL('../../node_modules/typescript/bin/tsc', import.meta.url)), '-p', join(folder, 'plugins')], { cwd: folder }).catch((error: { stdout: string }) => error)
    expect(stdout).toBe('')
  }, 60_000)
  it('writes plugin, test and row, keeps the comments of the config, and says what to do next', async () => {
    const { hx, folder } = place({ 'harness.config.yaml': '# mine\nplugins:\n  - audit   # first\n' })
    const { code, stdout } = await hx(['plugins', 'new', 'my-tool', '--from', 'tool', '--trust'])
    expect(code).toBe(0)
    expect(stdout).toContain('node --test plugins/my-tool.test.mjs')
    expect(stdout).toContain('hx start')
    expect(readFileSync(join(folder, 'harness.config.yaml'), 'utf8')).toBe('# mine\nplugins:\n  - audit   # first\n  - my-tool\n')
    expect(readFileSync(join(folder, 'plugins/my-tool.ts'), 'utf8')).toBe(TEMPLATES.tool('my-tool').source)
  })
  it('writes over nothing: a plugin of that file, row or shipped name is refused, and the config stays as it is', async () => {
    const config = 'plugins:\n  - { id: taken, name: audit }\n'
    const { hx, folder } = place({ 'harness.config.yaml': config, 'plugins/there.js': 'mine' })
    for (const [name, why] of [['there', 'is there already'], ['taken', 'already; choose another name'], ['audit', 'is a shipped plugin'], ['../x', 'lower case'], ['No', 'lower case']] as const) {
      const { code, stderr } = await hx(['plugins', 'new', name, '--trust'])
      expect(code).toBe(2)
      expect(stderr).toContain(why)
    }
    expect(readFileSync(join(folder, 'harness.config.yaml'), 'utf8')).toBe(config)
    expect(readFileSync(join(folder, 'plugins/there.js'), 'utf8')).toBe('mine')
    expect((await hx(['plugins', 'new', 'x', '--from', 'gard', '--trust'])).stderr).toContain('--from must be one of guard, rewrite')
  })
  it('names hx init where there is no config of one\'s own', async () => {
    expect((await place().hx(['plugins', 'new', 'x'])).stderr).toContain('hx init')
  })
  it('writes a vitest test where the project has vitest', async () => {
    const { hx, folder } = place({ 'harness.config.yaml': 'plugins: []\n', 'package.json': '{"devDependencies":{"vitest":"*"}}' })
    await hx(['plugins', 'new', 'x', '--trust'])
    expect(readFileSync(join(folder, 'plugins/x.test.ts'), 'utf8')).toContain("from 'vitest'")
  })
  it('runs at once in a daemon that serves the config, without trust said again', async () => {
    const { hx, start } = place({ 'harness.config.yaml': 'plugins: []\n' })
    const daemon = start(['start', '--foreground', '--trust'])
    await until(() => daemon.output().stderr.includes('listens on'))
    const { code, stdout } = await hx(['plugins', 'new', 'live'])
    expect(stdout).toContain('the daemon runs it')
    expect(code).toBe(0)
    daemon.child.kill('SIGTERM')
    expect((await daemon.ended).code).toBe(0)
  }, 30_000)
})

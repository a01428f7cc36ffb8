import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'
import { KINDS } from '../../core/cli/plugin-kinds.js'
import { place } from '../support/hx.js'

const run = promisify(execFile)

describe('hx plugins new', () => {
  it('writes a plugin of each kind that loads, and a test of each that passes', async () => {
    const { hx, folder, env } = place({ 'harness.config.yaml': '# mine\nplugins:\n  - audit   # first\n' })
    for (const kind of KINDS) {
      const { code, stdout } = await hx(['plugins', 'new', `my-${kind}`, '--from', kind, '--trust'])
      expect(code).toBe(0)
      expect(stdout).toContain(`node --test plugins/my-${kind}.test.mjs`)
    }
    expect(readFileSync(join(folder, 'harness.config.yaml'), 'utf8')).toBe(`# mine\nplugins:\n  - audit   # first\n${KINDS.map(kind => `  - my-${kind}\n`).join('')}`)
    const { plugins } = JSON.parse((await hx(['plugins', '--trust', '--json'])).stdout) as { plugins: { id: string; state: string }[] }
    expect(plugins.map(({ id, state }) => `${id} ${state}`)).toEqual(['audit active', ...KINDS.map(kind => `my-${kind} active`)])
    const { stdout } = await run(process.execPath, ['--test', 'plugins/'], { cwd: folder, env: { ...env, NODE_OPTIONS: '' } })
    expect(stdout).toContain(`# pass ${KINDS.length}`)
    expect(stdout).toContain('# fail 0')
  }, 60_000)
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
    const { hx } = place({ 'harness.config.yaml': 'plugins: []\n' })
    expect((await hx(['start', '--trust'])).code).toBe(0)
    try {
      const { code, stdout } = await hx(['plugins', 'new', 'live'])
      expect(stdout).toContain('the daemon runs it')
      expect(code).toBe(0)
    } finally { await hx(['stop']) }
  }, 30_000)
})

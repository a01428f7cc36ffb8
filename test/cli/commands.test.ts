import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { VERSION } from '../../core/version.js'
import { CLI, place, until } from '../support/hx.js'
import { hasSandbox } from '../support/sandbox.js'

const GUARD = `import { block, type Context } from 'harnessx'
export const name = 'guard'
export function apply(ctx: Context) {
  ctx.on('agent/pre-tool-use', () => block('no'), { tools: ['bash'] })
}
`
const CONFIG = `# my config
plugins:
  - tool-fs      # files
  - guard
  - name: tool-bash
    enabled: false
`

describe('hx', () => {
  it('shows its help in one screen and its version', async () => {
    const { hx } = place()
    const help = await hx(['--help'])
    expect(help.code).toBe(0)
    expect(help.stdout.trimEnd().split('\n').length).toBeLessThanOrEqual(40)
    for (const command of ['agent', 'demo', 'start', 'status', 'plugins', 'hooks', 'tools', 'models', 'sessions', 'config', 'init']) expect(help.stdout).toContain(`\n  ${command}`)
    expect((await hx([])).stdout).toBe(help.stdout)
    expect((await hx(['--version'])).stdout).toBe(`${VERSION}\n`)
    for (const command of ['agent', 'demo', 'start', 'status', 'plugins', 'hooks', 'tools', 'models', 'sessions', 'config', 'init', 'plugins enable']) expect((await hx([...command.split(' '), '--help'])).code).toBe(0)
  })
  it('answers what it does not know with what was meant, exit 2, also as JSON', async () => {
    const { hx } = place()
    const wrong = await hx(['plugns'])
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('plugins')
    expect((await hx(['plugins', 'lst'])).stderr).toContain('did you mean "list"?')
    const json = await hx(['plugns', '--json'])
    expect(json.code).toBe(2)
    expect(JSON.parse(json.stdout)).toMatchObject({ type: 'error', code: 'usage' })
    expect((await hx(['agent', '--max-steps', 'many', 'hi'])).code).toBe(2)
  })
  it('ends where its home can not be made, however the file system answers', async () => {
    expect((await place().hx(['--version'], { env: { HX_HOME: '/proc/hx-none' } })).code).toBe(0)
  })
  it.runIf(process.platform === 'linux')('says of a folder that is not UTF-8 what is wrong with it, not that it does not exist', async () => {
    const { folder, env } = place()
    const { stderr, status } = spawnSync('sh', ['-c', `mkdir "$(printf 'bad\\377')" && cd "$(printf 'bad\\377')" && exec "$0" "$1" status`, process.execPath, CLI], { cwd: folder, env, encoding: 'utf8' })
    expect({ stderr, status }).toEqual({ stderr: 'hx: the current folder has a path that is not UTF-8, and can not be worked in; rename it\n', status: 2 })
  })
  it('says of a daemon that could not even write why it did not start where it tried to', async () => {
    const { folder, env } = place({ 'harness.config.yaml': 'plugins: []\n' })
    const { stderr, status } = spawnSync('sh', ['-c', 'ulimit -f 0; exec "$0" "$1" start --trust', process.execPath, CLI], { cwd: folder, env, encoding: 'utf8' })
    expect(stderr).toMatch(/^hx: the daemon did not start, and could not write why to ".*\.out"; is the disk full\? see "hx doctor"\n$/)
    expect(status).toBe(1)
  })
  it('says what can not be used where the system refuses it, and what to check', async () => {
    const { hx, folder } = place({ 'harness.config.yaml': 'plugins: []\n', 'a-file': '' })
    const { stderr, code } = await hx(['start', '--trust'], { env: { HX_HOME: join(folder, 'a-file', 'hx') } })
    expect(stderr).toMatch(/^hx: "[^\n]*a-file\/hx[^\n]*" can not be used \(ENOTDIR[^\n]*\); check that the disk has space and the folder can be written\n$/)
    expect(code).toBe(1)
  })
  it('says that too few files may be open, where that is it, and not to look at the disk', () => {
    const { folder, env } = place({ 'harness.config.yaml': 'plugins: [model-offline]\n' })
    const { stderr } = spawnSync('bash', ['-c', 'ulimit -n 20; exec "$0" "$1" agent --trust --offline hi', process.execPath, CLI], { cwd: folder, env, encoding: 'utf8' })
    expect(stderr).toMatch(/^hx: .*\(EMFILE[^\n]*\); allow more open files \(ulimit -n\)$/m)
  })
  it.runIf(hasSandbox)('works where the system shows no processes: a daemon, its status, files and commands of tools', async () => {
    const { folder, env } = place({ 'harness.config.yaml': 'plugins: [tool-fs, tool-bash, model-offline]\n', 'README.md': '# Demo\n' })
    const script = ['start --trust', "agent --offline 'Read README.md and create a file called a.txt with b and run `sleep 0; echo c`'", 'status', 'stop'].map(args => `"$0" "$1" ${args} || exit 9`).join('; ')
    const { stdout, stderr, status } = spawnSync('bwrap', ['--dev-bind', '/', '/', '--tmpfs', '/proc', 'bash', '-c', script, process.execPath, CLI], { cwd: folder, env, encoding: 'utf8' })
    expect([status, stderr]).toEqual([0, expect.stringMatching(/is running \(pid \d+\)[^]*the daemon has stopped\n$/)])
    expect(stdout).toMatch(/its title is "Demo"[^]*Created a\.txt[^]*printed: c[^]*running {2}pid \d+/)
  })
  it('leaves a reader that goes away in peace', async () => {
    const { start } = place()
    const running = start(['config', 'schema'])
    running.child.stdout!.destroy()
    expect(await running.ended).toMatchObject({ code: 0, stderr: '' })
  })
})

describe('hx plugins', () => {
  it('lists state, counts and source of every entry', async () => {
    const { hx, folder } = place({ 'harness.config.yaml': CONFIG, 'plugins/guard.ts': GUARD })
    const { plugins } = JSON.parse((await hx(['plugins', '--trust', '--json'])).stdout) as { plugins: object[] }
    expect(plugins).toMatchObject([
      { id: 'tool-fs', state: 'active', tools: 5 },
      { id: 'guard', state: 'active', handlers: 1, tools: 0, version: 1, reloads: 0, from: join(folder, 'plugins/guard.ts') },
      { id: 'tool-bash', state: 'disabled' },
    ])
    const { stdout } = await hx(['plugins', '--trust'])
    expect(stdout).toMatch(/guard +active +1 +0 +1 +.*plugins\/guard\.ts/)
    expect(stdout, 'not where it stands in the build').toMatch(/tool-fs +active +0 +5 +1 +shipped/)
  })
  it('shows what is wrong with one and loads the others', async () => {
    const { hx } = place({ 'harness.config.yaml': 'plugins: [broken, guard, waits, gone]\n', 'plugins/guard.ts': GUARD, 'plugins/broken.ts': 'export const name = "broken"\nexport const apply = () => {\n', 'plugins/waits.ts': 'export const name = "waits"\nexport const inject = ["store"]\nexport const apply = () => {}\n' })
    const { code, stdout } = await hx(['plugins', '--trust', '--json'])
    expect(code).toBe(0)
    const { plugins } = JSON.parse(stdout) as { plugins: { id: string; state: string; lastError?: string; reason?: string; waiting?: string[] }[] }
    expect(plugins.map(plugin => plugin.state)).toEqual(['failed', 'active', 'waiting', 'failed'])
    expect(plugins[0]!.lastError).toContain('plugins/broken.ts:3')
    expect(plugins[2]!.waiting).toEqual(['store'])
    expect(plugins[2]!.reason).toContain('which no enabled plugin provides')
    expect(plugins[3]!.lastError).toContain('harnessx-plugin-gone')
  })
  it('names who could provide a service that is waited for: a disabled entry, a file without a row', async () => {
    const provider = (name: string) => `export const name = '${name}'\nexport function apply(ctx) { ctx.provide('${name}', {}) }\n`
    const { hx } = place({
      'harness.config.yaml': 'plugins: [waits, { name: store, enabled: false }]\n', 'plugins/store.ts': provider('store'), 'plugins/cache.ts': provider('cache'),
      'plugins/waits.ts': 'export const name = "waits"\nexport const inject = ["store", "cache"]\nexport const apply = () => {}\n',
    })
    expect(JSON.parse((await hx(['plugins', 'info', 'waits', '--trust', '--json'])).stdout)).toMatchObject({ providers: [{ service: 'store', plugin: 'store', state: 'disabled' }, { service: 'cache', plugin: 'cache' }] })
    expect((await hx(['plugins', 'info', 'waits', '--trust'])).stdout).toMatch(/"store" from "store", which is disabled; next: hx plugins enable store\n.*"cache" from "cache", which has no row yet: add "- cache"/)
  })
  it('switches entries in the file and keeps its comments, order and references', async () => {
    const { hx, folder } = place({ 'harness.config.yaml': CONFIG, 'plugins/guard.ts': GUARD })
    const text = () => readFileSync(join(folder, 'harness.config.yaml'), 'utf8')
    expect((await hx(['plugins', 'disable', 'tool-fs', '--trust'])).code).toBe(0)
    expect(text()).toBe(CONFIG.replace('- tool-fs      # files', '- { name: tool-fs, enabled: false }      # files'))
    expect((await hx(['plugins', 'enable', 'tool-bash', '--trust'])).code).toBe(0)
    expect(text()).toContain('  - name: tool-bash\n    enabled: true\n')
    expect((await hx(['plugins', 'enable', 'tool-bash', '--trust'])).stdout).toContain('was enabled already')
    const unknown = await hx(['plugins', 'disable', 'gard', '--trust'])
    expect(unknown.code).toBe(2)
    expect(unknown.stderr).toContain('did you mean "guard"?')
  })
  it('writes nothing while the file has a mistake', async () => {
    const broken = 'plugins:\n  - guard\n\t- oops\n'
    const { hx, folder } = place({ 'harness.config.yaml': broken })
    const { code, stderr } = await hx(['plugins', 'disable', 'guard', '--trust'])
    expect(code).toBe(2)
    expect(stderr).toMatch(/harness\.config\.yaml:3/)
    expect(readFileSync(join(folder, 'harness.config.yaml'), 'utf8')).toBe(broken)
  })
  it('does not touch the shipped config', async () => {
    const { hx } = place()
    const { code, stderr } = await hx(['plugins', 'disable', 'audit'])
    expect(code).toBe(2)
    expect(stderr).toContain('hx init')
  })
  it('tells all about one', async () => {
    const { hx } = place({ 'harness.config.yaml': CONFIG, 'plugins/guard.ts': GUARD })
    const { plugin, hooks } = JSON.parse((await hx(['plugins', 'info', 'guard', '--trust', '--json'])).stdout) as { plugin: { id: string }; hooks: { hook: string; handlers: { file: string; line: number }[] }[] }
    expect(plugin.id).toBe('guard')
    expect(hooks).toMatchObject([{ hook: 'agent/pre-tool-use', kind: 'decide', handlers: [{ line: 4 }] }])
    expect(hooks[0]!.handlers[0]!.file).toMatch(/plugins\/guard\.ts$/)
    expect((await hx(['plugins', 'info', 'gurd', '--trust'])).code).toBe(2)
  })
})

describe('hx hooks, tools, models', () => {
  it('show who is there, in order, as text and as JSON', async () => {
    const { hx } = place()
    const { hooks } = JSON.parse((await hx(['hooks', '--json'])).stdout) as { hooks: { hook: string; kind: string; handlers: { plugin: string }[] }[] }
    const judges = hooks.find(({ hook }) => hook === 'agent/pre-tool-use')!
    expect(judges.kind).toBe('decide')
    expect(judges.handlers.map(({ plugin }) => plugin)).toEqual(['hook-log', 'permission', 'guard-secrets'])
    const { tools } = JSON.parse((await hx(['tools', '--json'])).stdout) as { tools: { name: string; plugin: string; readOnly: boolean; parameters: { type: string } }[] }
    expect(tools.map(({ name }) => name)).toEqual(['read_file', 'write_file', 'edit_file', 'glob', 'grep', 'bash', 'stop_command'])
    expect(tools.every(({ parameters }) => parameters.type === 'object')).toBe(true)
    const models = await hx(['models'])
    expect(models.stdout).toMatch(/deepseek +model-openai +no: set DEEPSEEK_API_KEY/)
    expect(models.stdout).toMatch(/offline +model-offline +yes/)
    expect((await hx(['hooks'])).stdout, 'no lines of what was built').toMatch(/agent\/pre-tool-use +decide +1 +hook-log +row 1, .* shipped +0/)
    expect((await hx(['tools'])).stdout).toContain('read_file')
  })
  it('say why a handler stands where it does: prepend, the row of its plugin, its number among the plugin\'s own', async () => {
    const { hx, folder } = place({
      'harness.config.yaml': 'plugins:\n  - guard\n\n  - two\n', 'plugins/guard.ts': GUARD,
      'plugins/two.ts': `export const name = 'two'\nexport function apply(ctx) {\n  ctx.on('agent/stop', () => {})\n  ctx.on('agent/pre-tool-use', () => {})\n  ctx.on('agent/pre-tool-use', () => {}, { prepend: true })\n}\n`,
    })
    const { hooks } = JSON.parse((await hx(['hooks', '--trust', '--json'])).stdout) as { hooks: { hook: string; handlers: object[] }[] }
    const file = join(folder, 'harness.config.yaml'), of = (name: string) => hooks.find(({ hook }) => hook === name)!.handlers
    expect(of('agent/pre-tool-use')).toMatchObject([
      { plugin: 'two', prepend: true, nth: 3, row: 2, entry: { file, line: 4 } }, { plugin: 'guard', nth: 1, row: 1, entry: { file, line: 2 } }, { plugin: 'two', prepend: false, nth: 2, row: 2, entry: { file, line: 4 } },
    ])
    expect(of('agent/pre-step')[0]).not.toHaveProperty('row')
    expect((await hx(['hooks', '--trust'])).stdout).toMatch(/pre-tool-use +decide +1 +two +prepend, row 2, harness\.config\.yaml:4, #3 [^]* 2 +guard +row 1, harness\.config\.yaml:2, #1 [^]* 3 +two +row 2, harness\.config\.yaml:4, #2 [^]*order: core, then/)
  })
  it('call out handlers that fail or are slow', async () => {
    const { hx, start, write } = place({ 'harness.config.yaml': 'agent: { model: offline }\nplugins: [boom, tool-fs, model-offline]\n', 'README.md': '# x\n' })
    write('plugins/boom.ts', `export const name = 'boom'\nexport function apply(ctx) {\n  ctx.on('agent/pre-step', () => new Promise(done => { setTimeout(done, 150) }))\n  ctx.on('agent/tool-start', () => { throw new Error('no') })\n}\n`)
    const daemon = start(['start', '--foreground', '--trust'])
    await until(() => daemon.output().stderr.includes('listens on'))
    expect((await hx(['agent', 'Read README.md'])).code).toBe(0)
    const { stdout } = await hx(['hooks'])
    expect(stdout).toContain('failing: boom in agent/tool-start (1 of 1); what and where: hx plugins info boom\n')
    expect(stdout).toMatch(/^slow: .*boom in agent\/pre-step \(up to /m)
    expect(JSON.parse((await hx(['hooks', '--json'])).stdout)).toMatchObject({ failing: [{ hook: 'agent/tool-start', plugin: 'boom', nth: 2 }], slow: expect.arrayContaining([{ hook: 'agent/pre-step', plugin: 'boom', nth: 1 }]) })
    daemon.child.kill('SIGTERM')
    await daemon.ended
  })
  it('say so when there is nothing', async () => {
    const { hx } = place({ 'harness.config.yaml': 'plugins: []\n' })
    expect((await hx(['plugins', '--trust'])).stdout).toContain('no plugins')
    expect((await hx(['tools', '--trust'])).stdout).toContain('no tools')
    expect((await hx(['models', '--trust'])).stdout).toContain('no models')
  })
})

describe('hx config', () => {
  it('names every problem with file, line and column, exit 2', async () => {
    const { hx } = place({ 'harness.config.yaml': 'agent: { maxSteps: ten }\nplugns: []\n' })
    const { code, stdout } = await hx(['config', 'check', '--trust', '--json'])
    expect(code).toBe(2)
    const { ok, problems } = JSON.parse(stdout) as { ok: boolean; problems: { line: number; column: number; message: string }[] }
    expect(ok).toBe(false)
    expect(problems).toMatchObject([{ line: 1, column: 20 }, { line: 2, column: 1 }])
    expect(problems[1]!.message).toContain('did you mean "plugins"?')
  })
  it('checks what plugins say of their configs', async () => {
    const { hx } = place({ 'harness.config.yaml': 'plugins:\n  - name: truncate\n    config: { max: ten }\n' })
    const { code, stdout } = await hx(['config', 'check', '--trust'])
    expect(code).toBe(2)
    expect(stdout).toMatch(/harness\.config\.yaml:3:\d+ plugin "truncate": config\.max must be/)
  })
  it('prints a schema that knows the shipped plugins', async () => {
    const schema = JSON.parse((await place().hx(['config', 'schema'])).stdout) as { properties: object }
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(['version', 'agent', 'reload', 'workspace', 'sessions', 'plugins']))
    expect(JSON.stringify(schema)).toContain('"const":"permission"')
  })
})

describe('what is wrong with a config', () => {
  it('is said with its place once, in full, whoever found it', async () => {
    for (const [config, line] of [
      ['plugin: []\n', /^hx: (\S+harness\.config\.yaml):1:1 "plugin" is not a key; did you mean "plugins"\?$/m],
      ['plugins: [{ name: x, frm: 1 }]\n', /^hx: (\S+harness\.config\.yaml):1:22 "plugins\[0\]\.frm" is not a key/m],
    ] as const) {
      const { hx, folder } = place({ 'harness.config.yaml': config })
      const { code, stderr } = await hx(['plugins', '--trust'])
      expect([code, line.exec(stderr)?.[1], stderr.split('harness.config.yaml').length]).toEqual([2, join(folder, 'harness.config.yaml'), 2])
    }
  })
})

describe('hx init', () => {
  it('writes a config that checks, once', async () => {
    const { hx, folder } = place()
    expect((await hx(['init'])).code).toBe(0)
    const text = readFileSync(join(folder, 'harness.config.yaml'), 'utf8')
    expect(text).toMatch(/^# yaml-language-server: \$schema=/)
    expect((await hx(['config', 'check', '--trust'])).code).toBe(0)
    const again = await hx(['init'])
    expect(again.code).toBe(2)
    expect(readFileSync(join(folder, 'harness.config.yaml'), 'utf8')).toBe(text)
  })
})

describe('hx init, and what it makes', () => {
  it('says which config counts no more in the folder, and nothing where there is none above', async () => {
    const { hx, folder, write } = place({ 'harness.config.yaml': 'plugins: []\n' })
    write('sub/deep/a.txt', '')
    expect((await hx(['init'], { cwd: join(folder, 'sub/deep') })).stderr).toContain(`hx: ${join(folder, 'harness.config.yaml')} counts no more in this folder`)
    expect((await place().hx(['init'])).stderr).not.toContain('counts no more')
  })
  it('leaves no torn config on a disk that is full, and says so in a sentence', () => {
    const { folder, env } = place()
    const { stderr, status } = spawnSync('sh', ['-c', 'ulimit -f 0; exec "$0" "$1" init', process.execPath, CLI], { cwd: folder, env, encoding: 'utf8' })
    expect(stderr).toMatch(/^hx: ".*harness\.config\.yaml" could not be written \(EFBIG[^\n]*\); check that the disk has space and the folder can be written\n$/)
    expect([status, existsSync(join(folder, 'harness.config.yaml'))]).toEqual([1, false])
  })
  it('gives editors types, keeps secrets out of git, and leaves lines that are there as they are', async () => {
    const { hx, folder } = place({ '.gitignore': 'dist\n.env' })
    const { stdout } = await hx(['init'])
    expect(stdout).toContain('hx plugins new my-plugin')
    expect(readFileSync(join(folder, '.gitignore'), 'utf8')).toBe('dist\n.env\nnode_modules/\n')
    expect(JSON.parse(readFileSync(join(folder, 'plugins/tsconfig.json'), 'utf8'))).toMatchObject({ compilerOptions: { strict: true } })
    expect(JSON.parse(readFileSync(join(folder, 'node_modules/harnessx/package.json'), 'utf8'))).toMatchObject({ name: 'harnessx' })
  })
})

const GOOD = `import type { Context } from 'harnessx'
export const name = 'guard'
export const inject = ['agents']
export function apply(ctx: Context) {
  ctx.setInterval(() => {}, 60_000)
  ctx.on('agent/tool-end', () => {
    throw new Error('it breaks')
  })
}
`
describe('a plugin that breaks while a daemon runs it', () => {
  it('is called active as before by hx plugins, and hx plugins info says what happened and where, also once its file is gone', async () => {
    const { hx, start, write, folder } = place({ 'harness.config.yaml': 'plugins: [guard, tool-fs, model-offline]\n', 'a.txt': 'x', 'plugins/guard.ts': GOOD })
    const daemon = start(['start', '--foreground', '--trust'])
    await until(() => daemon.output().stderr.includes('listens on'))
    await hx(['agent', '--offline', 'Read a.txt'])
    const before = await hx(['plugins', 'info', 'guard'])
    expect(before.stdout).toContain('injects    agents')
    expect(before.stdout).toContain('timers     1')
    expect(before.stdout).toContain(`it breaks (${join(folder, 'plugins/guard.ts')}:7:11)`)
    write('plugins/guard.ts', 'export const name = (')
    await until(async () => (await hx(['plugins'])).stdout.includes('active, as before'), 50)
    expect((await hx(['plugins'])).stdout).toContain('\n  guard could not be reloaded and keeps running as before: plugins/guard.ts:1:')
    expect((await hx(['status'])).stdout).toContain('\n         as before its last edit: guard; see "hx plugins"\n')
    write('plugins/guard.ts', GOOD)
    await until(async () => !(await hx(['plugins'])).stdout.includes('active, as before'), 50)        // back to the very text that runs is a fix too
    const says = (what: RegExp) => until(async () => what.test((await hx(['plugins', 'info', 'guard'])).stdout), 50)
    write('plugins/guard.ts', `${GOOD}// one\n`)
    await says(/the last in [\d.]+ ms/)
    write('plugins/guard.ts', `${GOOD}// two\n`)
    await says(/the last in [\d.]+ ms, [\d.]+ ms/)
    rmSync(join(folder, 'plugins/guard.ts'))
    await until(async () => (await hx(['plugins', 'info', 'guard'])).stdout.includes('does not exist'), 50)
    expect((await hx(['plugins'])).stdout).toMatch(/guard +active, as before/)
    daemon.child.kill('SIGTERM')
    await daemon.ended
  }, 60_000)
})

describe('hx sessions', () => {
  it('lists and shows what was done, readable and as log lines', async () => {
    const { hx } = place({ 'README.md': '# x\n' })
    await hx(['agent', '--offline', 'Read README.md'])
    const { sessions } = JSON.parse((await hx(['sessions', '--json'])).stdout) as { sessions: { id: string; title: string; turns: number; lastReason: string }[] }
    expect(sessions).toMatchObject([{ title: 'Read README.md', turns: 1, lastReason: 'completed' }])
    const { id } = sessions[0]!
    const shown = await hx(['sessions', 'show', id.slice(0, -2)])
    expect(shown.stdout).toContain('> Read README.md')
    expect(shown.stdout).toContain('read_file({"path":"README.md"})')
    const logged = (await hx(['sessions', 'show', id, '--json'])).stdout.trim().split('\n').map(line => (JSON.parse(line) as { seq: number }).seq)
    expect(logged).toEqual(logged.map((_, i) => i + 1))
    expect((await hx(['sessions', 'show', 'nope'])).code).toBe(2)
  })
  it('says so when there are none', async () => {
    expect((await place().hx(['sessions'])).stdout).toContain('no sessions yet')
  })
})

describe('hx demo', () => {
  it('does a turn, a blocked call, an unanswered ask, a toggle and an edit, and leaves nothing', async () => {
    const { hx, folder } = place()
    const { code, stdout, stderr } = await hx(['demo'])
    expect(stderr).not.toContain('internal')
    expect(code).toBe(0)
    expect(stdout).toContain('Ferry')
    expect(stderr).toContain("Blocked: 'sudo' is on the deny list")
    expect(stderr).toContain('Non-interactive terminal; denied.')
    expect(stderr).toContain('unloaded: stats')
    expect(stderr).toMatch(/reloaded: greeting, in [\d.]+ ms/)
    expect(stderr).toContain('[greeting] good day')
    expect(stderr).toMatch(/could not be reloaded and keeps running as before: plugins\/greeting\.ts:5:\d+/)
    expect(stderr).toContain('test.txt: "still here"')
    expect((await hx(['sessions', '--json'], { cwd: folder })).stdout).toBe('{"sessions":[]}\n')
  })
})

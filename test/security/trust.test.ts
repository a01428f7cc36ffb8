import { spawnSync } from 'node:child_process'
import { chmodSync, cpSync, existsSync, mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { TrustStore, trustStored } from '../../core/loader/trust-store.js'
import { folder } from '../support/folder.js'
import { CLI, place, type Place } from '../support/hx.js'
import { hasTerminal, terminal } from '../support/terminal.js'

const MARKER = (name: string) => `import { writeFileSync } from 'node:fs'\nwriteFileSync(${JSON.stringify('marker')}, 'ran')\nexport const name = '${name}'\nexport const apply = () => {}\n`
/** Everything in it does harm when it is opened, loaded or obeyed. */
const TRAPS: Readonly<Record<string, string>> = {
  'harness.config.yaml': 'agent: { model: offline }\nplugins: [marker, tool-fs, model-offline, { name: notify, config: { command: [touch, marker] } }]\n',
  'plugins/marker.ts': MARKER('marker'),
  'plugins/permission.ts': MARKER('permission'),
  '.env': 'OPENAI_API_KEY=stolen\nOPENAI_BASE_URL=http://127.0.0.1:1/\nNODE_OPTIONS=--require ./evil.cjs\n',
  'package.json': '{"name":"harnessx","type":"module","scripts":{"preinstall":"touch marker"},"main":"evil.cjs","imports":{"#x":"./evil.cjs"}}',
  'evil.cjs': `require('node:fs').writeFileSync('marker', 'ran')\n`,
  'node_modules/.bin/node': '#!/bin/sh\ntouch marker\n',
  'node_modules/harnessx-plugin-marker/package.json': '{"name":"harnessx-plugin-marker","main":"../../evil.cjs"}',
  'node_modules/harnessx/package.json': '{"name":"harnessx","main":"../../evil.cjs"}',
  '.git/commondir': '../evil\n',
  '.git/config': '[core]\n\tfsmonitor = touch marker\n\thooksPath = ../evil\n',
  '.claude/settings.json': '{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"touch marker"}]}]}}',
}
const trapped = (): Place => {
  const here = place(TRAPS)
  chmodSync(join(here.folder, 'node_modules/.bin/node'), 0o755)
  return here
}
const READERS = [['agent', '--offline', 'hi'], ['plugins'], ['plugins', 'disable', 'marker'], ['models'], ['config', 'check'], ['config', 'explain'], ['start'], ['restart'], ['service', 'install', '--print'], ['hooks'], ['tools'], ['plugins', 'info', 'marker'], ['plugins', 'new', 'foo'], ['plugins', 'add', './evil'], ['plugins', 'remove', 'marker'], ['plugins', 'update'], ['plugins', 'reload', '--held'], ['permission', 'test', 'ls']]
const hasStrace = spawnSync('strace', ['-V']).status === 0

describe('a folder that nobody has trusted', () => {
  it('is read by no command: exit 3, one sentence, no effect', async () => {
    const here = trapped()
    const ended = await Promise.all(READERS.map(async args => ({ args, ...await here.hx(args) })))
    for (const { args, code, stdout, stderr } of ended) {
      expect([args, code, stdout, stderr.trim().split('\n').length]).toEqual([args, 3, '', 1])
      expect(stderr).toMatch(/"hx trust" shows what it would run and asks, --trust trusts it for this run/)
    }
    const error = JSON.parse((await here.hx(['agent', '--offline', '--json', 'hi'])).stdout) as object
    expect(error).toMatchObject({ type: 'error', code: 'untrusted', file: join(here.folder, 'harness.config.yaml') })
    expect(existsSync(join(here.folder, 'marker'))).toBe(false)
    expect(readFileSync(join(here.folder, 'harness.config.yaml'), 'utf8')).toBe(TRAPS['harness.config.yaml'])
  }, 120_000)
  it.runIf(hasStrace)('is not even opened, as the kernel sees it', async () => {
    for (const args of [['agent', '--offline', 'hi'], ['start']]) {
      const here = trapped(), trace = join(dirname(here.folder), 'trace')
      const { status } = spawnSync('strace', ['-f', '-qq', '-e', 'trace=%file', '-s', '4096', '-o', trace, process.execPath, CLI, ...args], { cwd: here.folder, env: here.env, stdio: 'ignore' })
      expect(status).toBe(3)
      const touched = readFileSync(trace, 'utf8').split('\n').filter(line => line.includes(here.folder) || Object.keys(TRAPS).some(file => line.includes(`"${file}"`) || line.includes(`"./${file}"`)))
      const names = new RegExp(`^\\d+ +(?:statx|stat|lstat|newfstatat|readlink|access|getcwd|chdir)\\(.*"${here.folder}(?:/harness\\.config\\.ya?ml)?"`)
      expect(touched.filter(line => !names.test(line)), 'only the name of the config is looked for').toEqual([])
      expect(touched.length).toBeGreaterThan(0)
      expect(readFileSync(trace, 'utf8')).toMatch(/openat\(/)
    }
  }, 60_000)
  it('holds up none of the commands that read nothing of it', async () => {
    const here = trapped()
    for (const args of [['trust'], ['trust', '--list'], ['status'], ['stop'], ['init'], ['sessions'], ['agent', '--safe', '--offline', 'hi']]) {
      const { code, stderr } = await here.hx(args)
      expect(stderr, args.join(' ')).not.toContain('is not trusted, so nothing')
      if (args[0] !== 'trust') expect(code, args.join(' ')).not.toBe(3)
    }
    expect(existsSync(join(here.folder, 'marker'))).toBe(false)
  })
  it('runs with --trust, for this run only', async () => {
    const here = trapped()
    expect((await here.hx(['agent', '--trust', '--offline', '--without', 'marker', '--without', 'notify', 'hi'])).code).toBe(0)
    expect((await here.hx(['agent', '--offline', 'hi'])).code).toBe(3)
  })
})

describe('hx trust', () => {
  it('lists what would run without running or opening any of it, and with a yes it runs from then on', async () => {
    const here = trapped()
    const seen = await here.hx(['trust'])
    expect(seen.code).toBe(3)
    for (const word of ['marker  this folder  plugins/marker.ts', 'notify  {"command":["touch","marker"]}', '.env: read for keys', '{"agent":{"model":"offline"}}']) expect(seen.stdout).toContain(word)
    expect(seen.stderr).toContain('nobody could be asked')
    expect(JSON.parse((await here.hx(['trust', '--json'])).stdout)).toMatchObject({ trusted: false, env: join(here.folder, '.env'), plugins: [{ id: 'marker', origin: 'folder', missing: false }, { id: 'tool-fs', origin: 'shipped' }, { id: 'model-offline' }, { id: 'notify', config: { command: ['touch', 'marker'] } }] })
    expect(existsSync(join(here.folder, 'marker'))).toBe(false)
    expect((await here.hx(['trust', '--yes'])).stdout).toContain('trusted: ')
    expect((await here.hx(['agent', '--offline', 'hi'])).code).toBe(0)
    expect(existsSync(join(here.folder, 'marker'))).toBe(true)
    expect((await here.hx(['trust'])).stdout).toContain('trusted since ')
    expect((await here.hx(['trust', '--list'])).stdout).toContain(here.folder)
    expect((await here.hx(['trust', '--revoke'])).code).toBe(0)
    expect((await here.hx(['agent', '--offline', 'hi'])).code).toBe(3)
    expect((await here.hx(['trust', '--revoke'])).code).toBe(2)
  }, 90_000)
  it('keeps what it is told in a file for its owner alone, and relies on no other', async () => {
    const here = trapped(), file = join(here.env['HX_HOME']!, 'config', 'trust.json')
    await here.hx(['trust', '--yes'])
    expect([statSync(file).mode & 0o777, statSync(dirname(file)).mode & 0o777]).toEqual([0o600, 0o700])
    const good = readFileSync(file, 'utf8')
    for (const [text, mode] of [['{', 0o600], ['{"version":1,"trusted":[{"config":1}]}', 0o600], [good, 0o666]] as const) {
      writeFileSync(file, text)
      chmodSync(file, mode)
      expect(await here.hx(['agent', '--offline', 'hi']), text).toMatchObject({ code: 3, stderr: expect.stringContaining('so nothing counts as trusted') as unknown })
    }
  })
  it('names a folder or a file, also one that is gone, and a config with a mistake can not be agreed to', async () => {
    const here = place({ 'a/harness.config.yaml': 'plugins: []\n', 'b/harness.config.yaml': 'plugns: []\n', 'c/x': '' })
    expect((await here.hx(['trust', '--yes', 'a'])).code).toBe(0)
    expect((await here.hx(['trust', '--yes', 'a/harness.config.yaml'])).stdout).toContain('trusted since')
    expect(await here.hx(['trust', '--yes', 'b'])).toMatchObject({ code: 2, stderr: expect.stringContaining('did you mean "plugins"?') as unknown })
    expect((await here.hx(['trust', '--yes', 'c'])).code).toBe(2)
    cpSync(join(here.folder, 'a'), join(here.folder, 'd'), { recursive: true })
    spawnSync('rm', ['-r', join(here.folder, 'a')])
    expect((await here.hx(['trust', '--revoke', 'a'])).code).toBe(0)
    expect(JSON.parse((await here.hx(['trust', '--list', '--json'])).stdout)).toEqual({ trusted: [] })
  })
  it('says of plugins from elsewhere that they are, and trusts their folder with the config', async () => {
    const other = folder({ 'other.ts': `export const name = 'other'\nexport const apply = () => {}\n`, 'later.ts': `export const name = 'later'\nexport const apply = () => {}\n` })
    const here = place({ 'harness.config.yaml': `plugins: [{ name: other, from: ${other.at('other.ts')} }, model-offline]\n` })
    const { stdout } = await here.hx(['trust', '--yes'])
    expect(stdout).toMatch(/other +ELSEWHERE/)
    expect(stdout).toContain(`with it you trust ${other.path}`)
    const states = async () => (JSON.parse((await here.hx(['plugins', '--json'])).stdout) as { plugins: { id: string; state: string; lastError?: string }[] }).plugins
    expect((await states())[0]).toMatchObject({ state: 'active' })
    const third = folder({ 'third.ts': MARKER('third') })
    here.write('harness.config.yaml', `plugins: [{ name: third, from: ${third.at('third.ts')} }, model-offline]\n`)
    expect((await states())[0]).toMatchObject({ state: 'failed', lastError: expect.stringContaining('is not trusted') as unknown })
    expect((await here.hx(['trust', '--yes'])).stdout).toContain(third.path)
    expect((await states())[0]).toMatchObject({ state: 'active' })
  })
})

describe('trust in one config', () => {
  const setup = () => {
    const at = folder({ 'mine/harness.config.yaml': 'plugins: []\n', 'mine/plugins/a.ts': '', 'mine/.env': '', 'theirs/plugins/a.ts': '', 'theirs/.env': '', 'mine-evil/x.ts': '' })
    return { at, store: new TrustStore(at.at('home/trust.json')) }
  }
  it('is not trust in a link to it from a folder with other plugins, nor in a config that takes its place', async () => {
    const { at, store } = setup()
    await store.add(at.at('mine/harness.config.yaml'))
    symlinkSync(at.at('mine/harness.config.yaml'), at.at('theirs/harness.config.yaml'))
    expect(trustStored(store, at.at('theirs/harness.config.yaml')).allows({ kind: 'config', file: at.at('theirs/harness.config.yaml') })).toBe(false)
    symlinkSync(at.at('mine'), at.at('same'))
    expect(trustStored(store, at.at('same/harness.config.yaml')).allows({ kind: 'config', file: at.at('same/harness.config.yaml') })).toBe(true)
    at.write('elsewhere.yaml', 'plugins: []\n')
    spawnSync('ln', ['-sf', at.at('elsewhere.yaml'), at.at('mine/harness.config.yaml')])
    expect(trustStored(store, at.at('mine/harness.config.yaml')).allows({ kind: 'config', file: at.at('mine/harness.config.yaml') })).toBe(false)
  })
  it('covers modules and the .env of its own folder, by their real paths', async () => {
    const { at, store } = setup()
    await store.add(at.at('mine/harness.config.yaml'))
    const { allows } = trustStored(store, at.at('mine/harness.config.yaml'))
    symlinkSync(at.at('theirs/plugins/a.ts'), at.at('mine/plugins/link.ts'))
    symlinkSync(at.at('theirs'), at.at('mine/linked'))
    const plugin = (file: string) => allows({ kind: 'plugin', file: at.at(file) })
    expect(['mine/plugins/a.ts', 'mine/plugins/new/x.ts', 'mine/node_modules/p/index.js'].map(plugin)).toEqual([true, true, true])
    expect(['mine/plugins/link.ts', 'mine/linked/plugins/a.ts', 'mine/linked/new.ts', 'theirs/plugins/a.ts', 'mine-evil/x.ts'].map(plugin)).toEqual([false, false, false, false, false])
    expect([allows({ kind: 'env', file: at.at('mine/.env') }), allows({ kind: 'env', file: at.at('theirs/.env') })]).toEqual([true, false])
  })
  it('is taken back at once, and many changes at the same time are all kept', async () => {
    const { at, store } = setup()
    await Promise.all(Array.from({ length: 10 }, (_, i) => new TrustStore(at.at('home/trust.json')).add(at.at(`p${i}/harness.config.yaml`))))
    expect(store.list()).toHaveLength(10)
    const trust = trustStored(store, at.at('p3/harness.config.yaml')), asks = () => trust.allows({ kind: 'config', file: at.at('p3/harness.config.yaml') })
    expect(asks()).toBe(true)
    expect(await store.revoke(at.at('p3'))).toHaveLength(1)
    expect(asks()).toBe(false)
  })
})

describe('hx init', () => {
  it('is trust in what it wrote, unless something stood there that would run with it', async () => {
    const empty = place()
    expect((await empty.hx(['init'])).code).toBe(0)
    expect((await empty.hx(['agent', '--offline', 'hi'])).code).toBe(0)
    for (const file of ['plugins/permission.ts', '.env']) {
      const here = place({ [file]: TRAPS[file]! })
      expect((await here.hx(['init'])).stdout).toContain('hx trust')
      expect((await here.hx(['agent', '--offline', 'hi'])).code).toBe(3)
      expect(existsSync(join(here.folder, 'marker'))).toBe(false)
    }
  })
})

describe('a daemon', () => {
  it('serves clients that have no trust of their own, and needs none itself once its config is trusted', async () => {
    const here = place({ 'harness.config.yaml': TRAPS['harness.config.yaml']!.replace('marker, ', '').replace(/, { name: notify.*}/, ''), '.env': 'A=b\n' })
    onTestFinished(async () => { await here.hx(['stop']) })
    expect((await here.hx(['start', '--trust'])).code).toBe(0)
    for (const args of [['plugins'], ['plugins', 'disable', 'tool-fs']]) expect((await here.hx(args)).code, args.join(' ')).toBe(0)
    await here.hx(['stop'])
    expect((await here.hx(['start'])).code).toBe(3)
    await here.hx(['trust', '--yes'])
    expect((await here.hx(['start'])).code).toBe(0)
  }, 90_000)
})

describe.runIf(hasTerminal)('a person at a terminal', () => {
  it('is asked once: to look, and with the plugins on the screen, to trust', async () => {
    const here = trapped(), first = terminal(here, ['agent', '--offline', 'hi'])
    await first.shows('is not trusted, and nothing of it was read')
    await first.shows('go on without it > ')
    expect(first.text()).not.toContain('marker')
    first.type('l\r')
    await first.shows('marker  this folder  plugins/marker.ts')
    await first.shows('[y/N] > ')
    expect(existsSync(join(here.folder, 'marker'))).toBe(false)
    first.type('y\r')
    expect(await first.code).toBe(0)
    expect(existsSync(join(here.folder, 'marker'))).toBe(true)
    const second = terminal(here, ['agent', '--offline', 'hi'])
    expect(await second.code).toBe(0)
    expect(second.text()).not.toContain('not trusted')
  })
  it('who says no, at either question or by Ctrl-D, gets the own layer alone, and one line says so', async () => {
    for (const keys of [['n\r'], ['\u0004'], ['\u0003'], ['l\r', '\r']]) {
      const here = trapped()
      mkdirSync(join(here.env['HX_HOME']!, 'config'), { recursive: true, mode: 0o700 })
      writeFileSync(join(here.env['HX_HOME']!, 'config', 'harness.config.yaml'), 'plugins: [tool-fs, model-offline]\n')
      const run = terminal(here, ['agent', '--offline', 'Read README.md'])
      for (const key of keys) {
        await run.shows(' > ')
        run.type(key)
      }
      await run.shows(/harness\.config\.yaml is left out; this run uses .*\/config\/harness\.config\.yaml alone/)
      expect([keys, await run.code]).toEqual([keys, 0])
      expect(existsSync(join(here.folder, 'marker'))).toBe(false)
    }
  }, 60_000)
  it('is asked by hx start before a daemon is started; a no starts none', async () => {
    const here = place({ 'harness.config.yaml': 'plugins: [model-offline]\n' })
    onTestFinished(async () => { await here.hx(['stop']) })
    const no = terminal(here, ['start'])
    await no.shows(' > ')
    no.type('n\r')
    expect(await no.code).toBe(3)
    expect(no.text()).toContain('was not trusted, so nothing was done')
    expect((await here.hx(['status'])).code).toBe(1)
    const yes = terminal(here, ['start'])
    await yes.shows(' > ')
    yes.type('l\r')
    await yes.shows('[y/N] > ')
    yes.type('y\r')
    expect(await yes.code).toBe(0)
    expect((await here.hx(['status'])).code).toBe(0)
  })
})

import { mkdirSync, statSync, symlinkSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { editable, locate } from '../../core/loader/locate.js'
import { checkConfig, readConfig } from '../../core/loader/read-config.js'
import { trustAll, type Trust } from '../../core/loader/trust.js'
import { installationOf, places, type Installation } from '../../core/places.js'
import { folder, type Folder } from '../support/folder.js'

const NAME = 'harness.config.yaml'

/** A world of its own: home, project and installation in one folder. */
function world(files: Record<string, string> = {}) {
  const at = folder({ 'inst/package.json': '{"name":"harnessx"}', [`inst/${NAME}`]: 'plugins: [audit]', 'inst/plugins/audit.ts': '', 'inst/plugins/deep/index.ts': '', 'project/sub/keep': '', ...files })
  const installation: Installation = { root: at.at('inst'), built: false, plugins: at.at('inst/plugins'), config: at.at(`inst/${NAME}`) }
  const env: Record<string, string> = { HX_HOME: at.at('home') }
  const here = places(env, installation)
  const find = (options: { flag?: string; env?: Record<string, string>; cwd?: string } = {}) => locate({ flag: options.flag, env: options.env ?? {}, cwd: options.cwd ?? at.at('project/sub'), places: here })
  const read = (extra: { trust?: Trust; env?: Record<string, string>; without?: string[]; extra?: string[] } = {}) => readConfig({ located: find(), places: here, env: extra.env ?? {}, trust: extra.trust ?? trustAll, without: extra.without ?? [], extra: extra.extra ?? [] })
  return { ...at, places: here, find, read }
}
const user = `home/config/${NAME}`, project = `project/${NAME}`

describe('the config file', () => {
  it('is the shipped one when there is no other, and that one stays as it is', () => {
    const at = world()
    expect(at.find()).toMatchObject({ file: at.at(`inst/${NAME}`), layers: [at.at(`inst/${NAME}`)], kind: 'shipped' })
    expect(() => editable(at.find())).toThrow(/make your own with "hx init"/)
  })
  it('is the user\'s when there is no project', () => {
    const at = world({ [user]: 'plugins: []' })
    expect(at.find()).toMatchObject({ file: at.at(user), layers: [at.at(user)], kind: 'user' })
  })
  it('is the nearest upwards, over the user\'s', () => {
    const at = world({ [user]: 'plugins: []', [project]: 'plugins: []', [NAME]: 'plugins: []' })
    expect(at.find()).toMatchObject({ file: at.at(project), layers: [at.at(user), at.at(project)], kind: 'project' })
    expect(editable(at.find())).toBe(at.at(project))
  })
  it('is the one of HX_CONFIG, and before that of --config', () => {
    const at = world({ [project]: '', 'a.yaml': '', 'b.yaml': '' })
    expect(at.find({ env: { HX_CONFIG: at.at('a.yaml') } })).toMatchObject({ file: at.at('a.yaml'), kind: 'env' })
    expect(at.find({ env: { HX_CONFIG: at.at('a.yaml') }, flag: '../../b.yaml' })).toMatchObject({ file: at.at('b.yaml'), kind: 'flag' })
  })
  it('must be there when it is named', () => {
    const at = world()
    expect(() => at.find({ flag: at.at('gone.yaml') })).toThrow(`the config file "${at.at('gone.yaml')}" does not exist (named by --config)`)
    expect(() => at.find({ env: { HX_CONFIG: '/gone.yaml' } })).toThrow('(named by HX_CONFIG)')
    expect(() => at.find({ flag: at.at('inst') })).toThrow('is not a file (named by --config)')
    expect(() => at.find({ flag: at.at('inst/package.json/x') })).toThrow('does not exist (named by --config)')
  })
  it('is one layer when a link leads to the user\'s own', () => {
    const at = world({ [user]: 'plugins: []' })
    symlinkSync(at.at(user), at.at(project))
    expect(at.find()).toMatchObject({ kind: 'user', layers: [at.at(user)] })
  })
  it('is never passed over because its link is broken or it is no file', () => {
    for (const make of [(path: string) => { symlinkSync('gone', path) }, (path: string) => { symlinkSync(NAME, path) }, (path: string) => { mkdirSync(path) }]) {
      const at = world()
      make(at.at(`project/${NAME}`))
      expect(() => at.find()).toThrow(expect.objectContaining({ code: 'config_missing', message: expect.stringContaining('is not a file, or a link that leads to none') }))
    }
  })
  it('is not called .yml, which is said', () => {
    const at = world({ 'project/harness.config.yml': '' })
    expect(at.find()).toMatchObject({ kind: 'shipped', note: `"${at.at('project/harness.config.yml')}" is not read; rename it to harness.config.yaml` })
  })
  it('in the installation\'s own folder may be edited there', () => {
    const at = world()
    expect(at.find({ cwd: at.at('inst/plugins') })).toMatchObject({ file: at.at(`inst/${NAME}`), kind: 'project' })
  })
})

describe('an entry', () => {
  const rows = (at: ReturnType<typeof world>) => at.read().entries.map(({ id, from, missing }) => [id, from.replace(`${at.path}/`, ''), missing?.message])
  it('is found beside the config, shipped, or as a package, in that order', () => {
    const at = world({
      [project]: 'plugins: [one, two, three, four, audit, deep, five]', 'project/plugins/one.ts': '', 'project/plugins/two.mjs': '', 'project/plugins/three/index.js': '', 'project/plugins/four.ts': '', 'project/plugins/four.js': '',
      'project/node_modules/harnessx-plugin-five/package.json': '{"exports":"./main.js"}', 'project/node_modules/harnessx-plugin-five/main.js': '',
    })
    expect(rows(at)).toEqual([
      ['one', 'project/plugins/one.ts', undefined], ['two', 'project/plugins/two.mjs', undefined], ['three', 'project/plugins/three/index.js', undefined], ['four', 'project/plugins/four.ts', undefined],
      ['audit', 'inst/plugins/audit.ts', undefined], ['deep', 'inst/plugins/deep/index.ts', undefined], ['five', 'project/node_modules/harnessx-plugin-five/main.js', undefined],
    ])
  })
  it('is found where "from" says: a path from the file it stands in, or a package', () => {
    const at = world({
      [user]: 'plugins: [{ name: mine, from: ./lib/mine }]', 'home/config/lib/mine.ts': '',
      [project]: 'plugins: [{ name: a, from: ../shared/a.ts }, { name: b, from: "@s/pack/sub" }]', 'shared/a.ts': '', 'project/node_modules/@s/pack/package.json': '{"exports":{"./sub":"./s.js"}}', 'project/node_modules/@s/pack/s.js': '',
    })
    expect(rows(at)).toEqual([['mine', 'home/config/lib/mine.ts', undefined], ['a', 'shared/a.ts', undefined], ['b', 'project/node_modules/@s/pack/s.js', undefined]])
  })
  it('that is not found says where it was looked for, and does not keep the others out', () => {
    const at = world({ [project]: 'plugins:\n  - gone\n  - audit' })
    const { entries, looked } = at.read()
    const [gone, audit] = entries
    expect(gone!.missing).toMatchObject({ code: 'module_not_found', place: { file: at.at(project), line: 2 } })
    expect(gone!.missing!.message).toContain(`plugin "gone" was not found; looked for ${at.at('project/plugins/gone')}{.ts,.js,.mts,.mjs,/index.ts`)
    expect(gone!.missing!.message).toMatch(/}, a shipped plugin, the package "harnessx-plugin-gone" in node_modules$/)
    expect(audit!.missing).toBeUndefined()
    expect(looked).toContain(at.at('project/plugins/gone/index.ts'))
  })
  it('that is misspelt is told the name that is meant, of the files beside the config too', () => {
    const at = world({ [project]: 'plugins: [my-gaurd, audti]', 'project/plugins/my-guard.ts': '', 'project/plugins/my-guard.test.mjs': '' })
    expect(at.read().entries.map(({ missing }) => /did you mean "(.*)"/.exec(missing!.message)?.[1])).toEqual(['my-guard', 'audit'])
  })
  it('is not told to be itself when what stands there is a folder without an index, or a link to nothing', () => {
    const at = world({ [project]: 'plugins: [box, lost]', 'project/plugins/box/read.me': '' })
    symlinkSync('nowhere', at.at('project/plugins/lost.ts'))
    for (const { missing, id } of at.read().entries) expect(missing!.message).toMatch(new RegExp(`in node_modules; what is called "${id}" in .*/project/plugins is no file, and no folder with an index file$`))
  })
  it('that is nearly named like a shipped one is told so', () => {
    const at = world({ [project]: 'plugins: [audti]', 'inst/plugins/audit.ts': '' })
    expect(at.read().entries[0]!.missing!.message).toMatch(/; did you mean "audit"\?$/)
  })
  it('that hides a shipped plugin is named', () => {
    const at = world({ [project]: 'plugins: [audit]', 'project/plugins/audit.ts': '' })
    expect(at.read().notes).toMatchObject([{ message: `plugin "audit" is ${at.at('project/plugins/audit.ts')}, which hides the shipped plugin "audit"` }])
  })
  it('has references resolved from the environment over .env, and keeps them as written', () => {
    const at = world({ [project]: 'plugins:\n  - name: audit\n    config: { a: "${env:ONE}", b: "${env:TWO}" }', 'project/.env': 'ONE=file\nTWO=file' })
    const { entries: [entry], env } = at.read({ env: { ONE: 'real' } })
    expect(entry!.config).toEqual({ a: 'real', b: 'file' })
    expect(entry!.written).toEqual({ a: '${env:ONE}', b: '${env:TWO}' })
    expect(Object.isFrozen(entry!.config)).toBe(true)
    expect(env).toMatchObject({ ONE: 'real', TWO: 'file' })
    expect(process.env['TWO']).toBeUndefined()
  })
  it('with a reference to nothing is a problem with its place, unless it is disabled', () => {
    const at = world({ [project]: 'plugins:\n  - name: audit\n    config:\n      token: "${env:NONE_SUCH}"\n  - { name: deep, enabled: false, config: { a: "${env:NONE_SUCH}" } }' })
    expect(() => at.read()).toThrow(`harness.config.yaml:4:14 plugin "audit": \${env:NONE_SUCH}: the environment variable "NONE_SUCH" is not set`)
    expect(checkConfig({ located: at.find(), places: at.places, env: {}, trust: trustAll }).problems).toHaveLength(1)
  })
  it('may be left out or added for one run', () => {
    const at = world({ [project]: 'plugins: [audit, deep]', 'x/own.ts': '' })
    expect(at.read({ without: ['deep'], extra: [at.at('x/own.ts')] }).entries.map(({ id, enabled, from }) => [id, enabled, from.replace(`${at.path}/`, '')])).toEqual([
      ['audit', true, 'inst/plugins/audit.ts'], ['deep', false, 'inst/plugins/deep/index.ts'], ['own', true, 'x/own.ts'],
    ])
    expect(() => at.read({ without: ['gone'] })).toThrow('--without "gone"')
    expect(() => at.read({ extra: [at.at('y/audit.ts')] })).toThrow('there is an entry "audit" already')
  })
})

describe('reading', () => {
  it('takes the text that was judged, whatever stands on the disk by now', () => {
    const at = world({ [project]: 'plugins:\n  - ' })
    const { config, texts } = readConfig({ located: at.find(), places: at.places, env: {}, trust: trustAll, read: new Map([[at.at(project), 'plugins: [audit]']]) })
    expect(config.plugins.map(({ id }) => id)).toEqual(['audit'])
    expect(texts.get(at.at(project))).toBe('plugins: [audit]')
  })
  it('asks for trust before it opens a file', () => {
    const at = world({ [project]: 'plugins: [audit]', 'project/.env': 'A=1' })
    const asked: string[] = []
    expect(at.read({ trust: { allows: ({ kind }) => { asked.push(kind); return kind !== 'env' } } }).env).not.toHaveProperty('A')
    expect(asked).toContain('env')
    expect(() => at.read({ trust: { allows: () => false } })).toThrow(expect.objectContaining({ code: 'untrusted' }))
  })
  it('says what is wrong with the file as a file', () => {
    const at = world({ [`project/${NAME}`]: 'plugins: [audit]' })
    const read = (file: string) => readConfig({ located: { file, layers: [file], kind: 'flag' }, places: at.places, env: {}, trust: trustAll })
    expect(() => read(at.at('gone.yaml'))).toThrow('gone.yaml does not exist')
    expect(() => read(at.at('project'))).toThrow('project is not a file')
    at.write('big.yaml', 'x'.repeat(300_000))
    expect(() => read(at.at('big.yaml'))).toThrow('must not be larger than 256 KB')
  })
})

describe('places', () => {
  it('follow XDG, and HX_HOME before all', () => {
    const installation = installationOf(new URL('../../core/places.ts', import.meta.url).pathname)
    expect(places({ HOME: '/h' }, installation)).toMatchObject({ userConfig: `/h/.config/hx/${NAME}`, sessions: '/h/.local/state/hx/sessions', run: '/h/.local/state/hx/run' })
    expect(places({ HOME: '/h', XDG_CONFIG_HOME: '/c', XDG_STATE_HOME: '/s', XDG_RUNTIME_DIR: '/r' }, installation)).toMatchObject({ config: '/c/hx', state: '/s/hx', run: '/r/hx' })
    expect(places({ HOME: '/h', XDG_CONFIG_HOME: 'relative' }, installation).config).toBe('/h/.config/hx')
    expect(places({ HOME: '/h', HX_HOME: '/x', XDG_CONFIG_HOME: '/c' }, installation)).toMatchObject({ userConfig: `/x/config/${NAME}`, state: '/x/state', run: '/x/run' })
    expect(() => places({ HX_HOME: 'x' }, installation)).toThrow('HX_HOME must be an absolute path')
  })
  it('know the installation, in source and built', () => {
    const at: Folder = folder({ 'package.json': '{"name":"harnessx"}' })
    expect(installationOf(at.at('core/places.ts'))).toMatchObject({ root: at.path, built: false, plugins: at.at('plugins') })
    expect(installationOf(at.at('dist/chunks/app-x.js'))).toMatchObject({ root: at.path, built: true, plugins: at.at('dist/plugins') })
  })
})

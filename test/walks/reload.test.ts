/** Edits of plugins while an agent works with them: the whole app, real files that another process saves, and a scripted model. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, renameSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { until } from '../support/hx.js'
import { startApp, type AppFiles, type RunningApp, type ScriptedReply } from '../support/app.js'
import { SAVES, startSaver } from '../support/saver.js'

const shared = globalThis as unknown as { walk: Record<string, any> }
async function app(files: AppFiles): Promise<RunningApp> {
  shared.walk = { seen: [] }
  const running = await startApp(files)
  onTestFinished(() => running.close())
  return running
}
const saver = () => {
  const made = startSaver()
  onTestFinished(() => { made.close() })
  return made
}
const reloaded = (running: RunningApp, id: string) => running.next(event => event.type === 'reloaded' && event.id === id)

/** A tool and a judge that say their version when they begin and when they end, and wait for the test in between when it asks for that. */
const worker = (version: number | string, more = '') => `import { type Context } from 'harnessx'
const walk = (globalThis as any).walk
${more}
export function apply(ctx: Context) {
  const wait = async (what: string) => { walk.seen.push(what + ' ${version} begins'); await walk[what]?.(); walk.seen.push(what + ' ${version} ends') }
  ctx.on('agent/pre-tool-use', async (_, next) => { const decision = await next(); await wait('judge'); return decision }, { timeout: 60_000 })
  ctx.tools.register({ name: 'work', description: 'Works.', parameters: { type: 'object' }, execute: async () => { await wait('tool'); return 'done by ${version}' } })
}
`
/** Calls the tool so many times, then says done. */
const calls = (times: number) => {
  let left = times
  return (): ScriptedReply => left-- > 0 ? { calls: [{ name: 'work' }] } : 'done'
}

describe('a plugin that is saved in the middle of a turn', () => {
  it.each(['judge', 'tool'])('ends its running call on the old version, however long, and the next call is the new one\'s: %s', async what => {
    const running = await app({ files: { 'plugins/w.ts': worker(1) }, config: 'reload: { drainMs: 100 }\nplugins: [w]\n', script: calls(2) })
    let go = () => {}
    shared.walk[what] = () => new Promise<void>(resolve => { go = resolve })
    const turn = running.run({ prompt: 'work twice' })
    await until(() => shared.walk['seen'].includes(`${what} 1 begins`))
    const done = reloaded(running, 'w')
    running.write('plugins/w.ts', worker(2))
    await done
    await until(() => running.complaints().length > 0)                  // three times its time to drain
    expect(running.complaints()).toEqual([expect.stringMatching(/^plugin "w": version 1 was replaced and still has 1 call running after 100 ms; it stays until they end$/)])
    shared.walk[what] = undefined
    go()
    const { result, events } = await turn
    expect(result).toMatchObject({ reason: 'completed', stats: { toolCalls: 2, blocked: 0 } })
    const answers = events.flatMap(event => event.type === 'tool-result' ? [event.content] : [])
    expect(answers).toEqual([what === 'tool' ? 'done by 1' : 'done by 2', 'done by 2'])
    expect(shared.walk['seen'].filter((line: string) => line.startsWith(what))).toEqual([`${what} 1 begins`, `${what} 1 ends`, `${what} 2 begins`, `${what} 2 ends`])
  })

  it('waits its turn when it can not run beside itself: an exclusive one is reloaded when its call has ended', async () => {
    const exclusive = `export const reload = 'exclusive'`
    const running = await app({ files: { 'plugins/w.ts': worker(1, exclusive) }, config: 'reload: { drainMs: 5000 }\nplugins: [w]\n', script: calls(2) })
    shared.walk['tool'] = () => sleep(60)
    const turn = running.run({ prompt: 'work twice' })
    await until(() => shared.walk['seen'].includes('tool 1 begins'))
    running.write('plugins/w.ts', worker(2, exclusive))
    const { result, events } = await turn
    expect(result.reason).toBe('completed')
    expect(events.flatMap(event => event.type === 'tool-result' ? [event.content] : [])).toEqual(['done by 1', 'done by 2'])
    expect(running.complaints()).toEqual([])
  })

  it('and can not be loaded changes nothing for the turn, and the fix is used by its next step', async () => {
    let step = 0
    const running = await app({
      files: { 'plugins/w.ts': worker(1) }, config: 'plugins: [w]\n',
      script: async () => {
        step++
        if (step === 2) {
          const failed = running.next(event => event.type === 'failed')
          running.write('plugins/w.ts', worker(2).replace('export function', 'export fun ction'))
          await failed
        }
        if (step === 3) {
          const done = reloaded(running, 'w')
          running.write('plugins/w.ts', worker(3))
          await done
        }
        return step < 4 ? { calls: [{ name: 'work' }] } : 'done'
      },
    })
    const { result, events } = await running.run({ prompt: 'work' })
    expect(result.reason).toBe('completed')
    expect(events.flatMap(event => event.type === 'tool-result' ? [event.content] : [])).toEqual(['done by 1', 'done by 1', 'done by 3'])
    expect(running.complaints()).toEqual([expect.stringMatching(/^plugin "w" could not be reloaded and keeps running as before: plugins\/w\.ts:4:8 /)])
  })
})

/** Ten sessions at once, each with calls one after the other, while the plugin is saved again and again. */
async function under(kind: string, { reloads, disable = false }: { reloads: number; disable?: boolean }) {
  const source = (version: number) => `import { type Context } from 'harnessx'
const walk = (globalThis as any).walk
${kind}
export function apply(ctx: Context) {
  const work = async (id: string) => {
    walk.runs[id] = (walk.runs[id] ?? 0) + 1
    await new Promise<void>(done => { ctx.setTimeout(done, 1 + Math.random() * 6) })
    if (ctx.signal.aborted) walk.disposed++
    return 'done by ${version}'
  }
  ctx.on('agent/pre-tool-use', async ({ call }) => { walk.judged[String(call.arguments.id)] = (walk.judged[String(call.arguments.id)] ?? 0) + 1; await new Promise<void>(done => { setTimeout(done, Math.random() * 2) }) })
  ctx.tools.register({ name: 'work', description: 'Works.', parameters: { type: 'object' }, execute: (args: { id: string }) => work(args.id) })
}
`
  const always = `export function apply(ctx) { ctx.tools.register({ name: 'other', description: 'Works.', parameters: { type: 'object' }, execute: async ({ id }) => { const { runs } = globalThis.walk; runs[id] = (runs[id] ?? 0) + 1; return 'done' } }) }\n`
  let asked = 0, stopped = false
  const config = (enabled: boolean) => `reload: { drainMs: 5000 }\nplugins:\n  - always\n  - { name: w, enabled: ${enabled} }\n`
  const running = await app({
    files: { 'plugins/w.ts': source(0), 'plugins/always.ts': always }, config: config(true),
    script: () => stopped ? 'done' : { calls: Array.from({ length: 5 }, () => ({ name: disable ? 'other' : 'work', arguments: { id: `call ${++asked}` } })) },
  })
  Object.assign(shared.walk, { runs: {}, judged: {}, disposed: 0 })
  const turns = Array.from({ length: 10 }, () => running.run({ prompt: 'work', ephemeral: true, maxSteps: 500 }))
  const edits = saver()
  let version = 0
  while (version < reloads || (!disable && asked < 500)) {
    version++
    if (disable) {
      for (const enabled of [false, true]) {
        const applied = running.next(event => event.type === 'config-applied')
        await edits.save('by rename', running.config, config(enabled))
        await applied
      }
      continue
    }
    const done = reloaded(running, 'w')
    await edits.save(SAVES[version % 3]!, running.at('plugins/w.ts'), source(version))
    await done
  }
  stopped = true
  const ended = await Promise.all(turns)
  const results = ended.flatMap(({ events }) => events.flatMap(event => event.type === 'tool-result' ? [event] : []))
  const { runs, judged, disposed } = shared.walk as { runs: Record<string, number>; judged: Record<string, number>; disposed: number }
  return {
    running, asked, disposed, reloads: version,
    failed: [...results.filter(({ kind }) => kind !== 'ok').map(({ content }) => content), ...ended.flatMap(({ result }) => result.reason === 'completed' ? [] : [result.message])],
    twice: Object.values(runs).filter(times => times > 1).length,
    never: asked - Object.keys(runs).length,
    unjudged: asked - Object.keys(judged).length,
    judgedTwice: Object.values(judged).filter(times => times > 1).length,
    versions: new Set(results.map(({ content }) => content)).size,
  }
}

describe('tool calls of ten sessions over fifty saves', () => {
  it.each([['staged', ''], ['exclusive', `export const reload = 'exclusive'`]])('all succeed: none fails, runs twice, runs on a disposed version or passes unjudged (%s)', { timeout: 60_000 }, async (_, kind) => {
    const { running, asked, versions, reloads, ...found } = await under(kind, { reloads: 50 })
    expect(found).toEqual({ failed: [], twice: 0, never: 0, unjudged: 0, judgedTwice: 0, disposed: 0 })
    expect(asked).toBeGreaterThanOrEqual(500)
    expect(versions).toBeGreaterThan(10)
    expect(running.app.plugins().find(({ id }) => id === 'w')).toMatchObject({ state: 'active', version: reloads + 1, reloads })
    expect(running.complaints()).toEqual([])
  })
  it('would be seen otherwise: with the judge switched off and on, calls pass unjudged', async () => {
    const { unjudged } = await under('', { reloads: 5, disable: true })
    expect(unjudged).toBeGreaterThan(0)
  })
})

describe('files of plugins', () => {
  const says = (what: string) => `export function apply() { globalThis.walk.now = '${what}' }\n`
  const now = () => shared.walk['now']

  it('load when they appear, go on when they are deleted, come back, and follow a rename in the config', async () => {
    const running = await app({ files: {}, config: 'plugins: [late]\n' })
    expect(running.state('late')).toBe('failed')
    running.write('plugins/late.ts', says('one'))
    await until(() => now() === 'one' && running.state('late') === 'active')
    unlinkSync(running.at('plugins/late.ts'))
    await until(() => running.complaints().some(line => /"late" could not be reloaded and keeps running as before: .*late\.ts does not exist/.test(line)))
    expect(running.state('late')).toBe('active')
    running.write('plugins/late.ts', says('two'))
    await until(() => now() === 'two')
    renameSync(running.at('plugins/late.ts'), running.at('plugins/later.ts'))
    writeFileSync(running.config, 'plugins:\n  - { name: late, from: ./plugins/later.ts }\n')
    running.write('plugins/later.ts', says('three'))
    await until(() => now() === 'three')
    expect(running.app.plugins()).toMatchObject([{ id: 'late', from: running.at('plugins/later.ts'), state: 'active' }])
  })

  it('are followed through linked folders and linked files', async () => {
    const running = await app({
      files: { 'elsewhere/folder/index.ts': says('folder 1'), 'elsewhere/file.ts': says('file 1') }, config: 'plugins: [linked, single]\n',
      prepare: at => {
        mkdirSync(at('plugins'))
        symlinkSync(at('elsewhere/folder'), at('plugins/linked'))
        symlinkSync(at('elsewhere/file.ts'), at('plugins/single.ts'))
      },
    })
    for (let version = 2; version < 5; version++) {
      running.write('elsewhere/folder/index.ts', says(`folder ${version}`))
      await until(() => now() === `folder ${version}`)
      running.write('elsewhere/file.ts', says(`file ${version}`))
      await until(() => now() === `file ${version}`)
    }
  })

  const git = (cwd: string, ...args: string[]) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@t', '-c', 'init.defaultBranch=main', '-c', 'commit.gpgsign=false', ...args], { cwd, stdio: 'pipe', env: { PATH: process.env['PATH'], HOME: cwd } })

  it('that a checkout changes by the hundred are one reload, and back', async () => {
    const names = Array.from({ length: 200 }, (_, index) => `n${index}`)
    const sum = (version: number) => Object.fromEntries(names.map((name, index) => [`plugins/lib/${name}.ts`, `export const ${name} = ${version * 1000 + index}\n`]))
    const entry = `${names.map(name => `import { ${name} } from './lib/${name}.ts'`).join('\n')}\nexport function apply() { globalThis.walk.now = new Set([${names.join(', ')}].map(n => Math.floor(n / 1000))); globalThis.walk.seen.push([...globalThis.walk.now]) }\n`
    const running = await app({
      files: { ...sum(1), 'plugins/all.ts': entry }, config: 'plugins: [all]\n',
      prepare: at => {
        git(at('.'), 'init', '-q')
        git(at('.'), 'add', '-A')
        git(at('.'), 'commit', '-qm', 'one')
        git(at('.'), 'checkout', '-qb', 'two')
        for (const [name, text] of Object.entries(sum(2))) writeFileSync(at(name), text)
        git(at('.'), 'commit', '-qam', 'two')
        git(at('.'), 'checkout', '-q', 'main')
      },
    })
    for (const [branch, version] of [['two', 2], ['main', 1]] as const) {
      git(running.folder, 'checkout', '-q', branch)
      await until(() => now().size === 1 && now().has(version))
    }
    await sleep(250)                                                    // the last look has passed
    expect(shared.walk['seen']).toEqual([[1], [2], [1]])
    expect(running.complaints()).toEqual([])
  })

  it('of a package linked with npm are taken in by a pull, helpers and all', async () => {
    const running = await app({
      files: {
        'origin/package.json': '{"name":"harnessx-plugin-far","type":"module","exports":"./index.ts"}',
        'origin/index.ts': `import { word } from './word.ts'\nexport const apply = () => { globalThis.walk.now = 'pulled ' + word }\n`, 'origin/word.ts': `export const word = 'one'\n`,
      },
      config: 'plugins: [far]\n',
      prepare: at => {
        git(at('origin'), 'init', '-q')
        git(at('origin'), 'add', '-A')
        git(at('origin'), 'commit', '-qm', 'one')
        git(at('.'), 'clone', '-q', at('origin'), at('clone'))
        mkdirSync(at('node_modules'))
        symlinkSync(at('clone'), at('node_modules/harnessx-plugin-far'))
      },
    })
    expect(now()).toBe('pulled one')
    running.write('origin/index.ts', `import { more } from './more.ts'\nimport { word } from './word.ts'\nexport const apply = () => { globalThis.walk.now = 'pulled ' + word + more }\n`)
    running.write('origin/word.ts', `export const word = 'two'\n`)
    running.write('origin/more.ts', `export const more = ' and more'\n`)
    git(running.at('origin'), 'add', '-A')
    git(running.at('origin'), 'commit', '-qm', 'two')
    git(running.at('clone'), 'pull', '-q')
    await until(() => now() === 'pulled two and more')
    expect(running.complaints()).toEqual([])
  })

  it('with a mistake are told of within 200 ms with file, line and column, and once', async () => {
    const running = await app({ files: { 'plugins/a.ts': says('one') }, config: 'plugins: [a]\n' })
    const edits = saver()
    for (let round = 0; round < 5; round++) {
      const failed = running.next(event => event.type === 'failed')
      const begin = await edits.save('in place', running.at('plugins/a.ts'), `const round = ${round}\n${says('broken')}export const x = {{\n`)
      const { event, at } = await failed
      expect(event).toMatchObject({ id: 'a', active: true, message: expect.stringMatching(/plugins\/a\.ts:\d+:\d+ /) })
      expect(Number(at - begin) / 1e6).toBeLessThan(400)                // 200 on a machine that has nothing else to do
      await sleep(220)
      expect(running.events.filter(({ type }) => type === 'failed')).toHaveLength(round + 1)
      const back = reloaded(running, 'a')
      await edits.save('by rename', running.at('plugins/a.ts'), says(`fixed ${round}`))
      await back
      expect(now()).toBe(`fixed ${round}`)
    }
  })
})

describe('the config of a running app', () => {
  const plugin = (id: string) => `export function apply(ctx) { ctx.on('agent/pre-tool-use', () => {}); ctx.logger.debug('${id} runs') }\n`
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
  const files = Object.fromEntries(names.map(name => [`plugins/${name}.ts`, plugin(name)]))
  const good = `# my plugins\nplugins:\n${names.map(name => `  - name: ${name}\n    config: { size: 3 }\n`).join('')}`

  it.each<[string, string | undefined, RegExp]>([
    ['torn', good.slice(0, -12), /harness\.config\.yaml:\d+/],
    ['empty', '', /the file is empty/],
    ['missing', undefined, /does not exist/],
    ['with a key twice', good.replace('    config: { size: 3 }', '    config: { size: 3 }\n    config: { size: 4 }'), /5:5 the key "config" stands here and in line 4/],
    ['with an id twice', good.replace('name: b', 'name: a'), /the id "a" stands here and in line 3/],
    ['with tabs', good.replace('    config', '\tconfig'), /4:1 tabs are not allowed/],
    ['with wrong types', good.replace('  - name: a\n', '  - name: a\n    enabled: often\n'), /4:14 .*enabled.*"often"/],
    ['with an unknown key', good.replace('  - name: a\n', '  - name: a\n    enable: true\n'), /4:5 .*enable" is not a key; did you mean "enabled"\?/],
  ])('stays as it was when the file is %s, says why, and takes the fix', async (_, text, why) => {
    const running = await app({ files, config: good })
    const rejected = running.next(event => event.type === 'config-rejected')
    if (text === undefined) rmSync(running.config)
    else writeFileSync(running.config, text)
    await rejected
    expect(running.app.status().config).toMatchObject({ state: 'rejected', problem: expect.stringMatching(why) })
    expect(running.app.status().config.problem).toMatch(/the last good config stays in force$/)
    expect(running.app.status().plugins).toBe(names.length)
    expect(running.events.filter(({ type }) => type === 'unloaded')).toEqual([])

    const applied = running.next(event => event.type === 'config-applied')
    writeFileSync(running.config, good.replace('  - name: h\n    config: { size: 3 }\n', ''))
    await applied
    expect(running.app.status()).toMatchObject({ plugins: names.length - 1, config: { state: 'in force' } })
  })

  it('stops no plugin while it is written byte by byte, whatever is changed', { timeout: 60_000 }, async () => {
    const running = await app({ files: { ...files, 'plugins/i.ts': plugin('i') }, config: good })
    const edits = saver()
    const texts = [`# a longer first line than before\n${good}`, `${good}  - i\n`, good.replace('size: 3', 'size: 30'), good.replaceAll('{ size: 3 }', '{ size: 4, more: [1, 2] }')]
    for (const text of texts) {
      await edits.save('byte by byte', running.config, text)
      await until(() => running.app.status().plugins === (text.includes('- i') ? 9 : 8) && running.events.at(-1)?.type === 'config-applied')
      await sleep(220)
    }
    const stopped = running.events.flatMap(event => event.type === 'unloaded' ? [event.id] : [])
    expect(stopped).toEqual(['i'])                                      // which the third text lacks on purpose
    expect(running.complaints()).toEqual([])
    await edits.save('byte by byte', running.config, good.replace(/ {2}- name: h\n.*\n/, ''))
    await until(() => running.state('h') === undefined)
    expect(running.events.flatMap(event => event.type === 'unloaded' ? [event.id] : [])).toEqual(['i', 'h'])
  })
})

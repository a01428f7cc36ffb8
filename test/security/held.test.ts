import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Model } from '../../core/agent/services.js'
import { text } from '../../core/agent/vocabulary.js'
import { App, type AppEvent } from '../../core/app.js'
import { keepRule } from '../../core/cli/always.js'
import type { Io } from '../../core/cli/io.js'
import { Log } from '../../core/kernel/log.js'
import { lineDiff } from '../../core/loader/line-diff.js'
import { trustAll } from '../../core/loader/trust.js'
import { CONFIG_NAME, places } from '../../core/places.js'
import { folder } from '../support/folder.js'
import { place, until } from '../support/hx.js'

/** Says its version, by a tool, and blocks nothing. */
const GUARD = (says: string) => `import { helps } from './helper.ts'
export const name = 'guard'
export function apply(ctx) { globalThis.hxGuard = helps + ${JSON.stringify(says)} }
`
const says = () => (globalThis as { hxGuard?: string }).hxGuard
const FILES = { 'plugins/guard.ts': GUARD('one'), 'plugins/helper.ts': `export const helps = 'h:'\n` }
const CONFIG = 'plugins:\n  - guard\n  - tool-fs\n  - tool-bash\n'

/** A host that follows files, whose model asks for the calls it is given and then is done. */
async function host(config = CONFIG, files: Record<string, string> = FILES, at = folder({ ...files, [CONFIG_NAME]: config })) {
  const log = new Log(), events: AppEvent[] = [], env = { HX_HOME: at.at('.hx') }
  let script: { name: string; arguments: object }[] = []
  const model: Model = {
    id: 'scripted', defaultModel: 'scripted', ready: () => true,
    async* stream() {
      const call = script.shift()
      yield { kind: 'reply', reply: { message: { role: 'assistant', content: [text('')], ...(call && { toolCalls: [{ id: 'c', name: call.name, arguments: JSON.stringify(call.arguments) }] }) }, finish: call ? 'tool-calls' : 'stop', usage: { inputTokens: 1, outputTokens: 1 } } }
    },
  }
  const app = await App.start({ places: places(env), located: { file: at.at(CONFIG_NAME), layers: [at.at(CONFIG_NAME)], kind: 'project' }, cwd: at.path, env, trust: trustAll, log, models: [model], watch: true })
  app.on(event => { events.push(event) })
  onTestFinished(() => app.stop())
  const calls = async (...asked: { name: string; arguments: object }[]): Promise<string[]> => {
    script = asked
    const run = await app.run({ prompt: 'go', model: 'scripted' }), results: string[] = []
    for await (const event of run.events) if (event.type === 'tool-result') results.push(event.content)
    await run.result
    return results
  }
  return {
    ...at, app, events, calls, bash: (command: string, more: object = {}) => calls({ name: 'bash', arguments: { command, ...more } }),
    held: () => app.held().map(({ file, change, added, removed }) => `${file.replace(`${at.path}/`, '')} ${change} +${added} -${removed}`),
    isHeld: () => until(() => app.held().length > 0),
    active: () => app.plugins().filter(({ state }) => state === 'active').map(({ id }) => id),
  }
}

describe('a change that a tool makes to what runs', () => {
  it('is held and shown, and the old version goes on through reloads, until a person says so', async () => {
    const { app, at, bash, held, isHeld, events } = await host()
    await bash(`sed -i s/one/two/ ${at('plugins/guard.ts')}`)
    await isHeld()
    expect(held()).toEqual(['plugins/guard.ts changed +1 -1'])
    expect(events.find(event => event.type === 'held')).toMatchObject({ file: at('plugins/guard.ts'), diff: expect.stringContaining(`+ export function apply(ctx) { globalThis.hxGuard = helps + "two" }`) as unknown })
    await app.reload()
    await app.reload(['guard'])
    expect(says()).toBe('h:one')
    expect((await app.reloadHeld()).reloaded).toEqual(['guard'])
    expect([says(), held()]).toEqual(['h:two', []])
  })
  it.each([
    ['of a helper', 'echo "export const helps = 1" > plugins/helper.ts', 'plugins/helper.ts changed +1 -1'],
    ['by a rename', 'sed s/one/two/ plugins/guard.ts > /tmp/hx-$$ && mv /tmp/hx-$$ plugins/guard.ts', 'plugins/guard.ts changed +1 -1'],
    ['by a link in its place', 'cp plugins/guard.ts other.ts && sed -i s/one/two/ other.ts && ln -sf ../other.ts plugins/guard.ts', 'plugins/guard.ts changed +1 -1'],
    ['by another folder in place of its own', 'cp -r plugins evil && sed -i s/one/two/ evil/guard.ts && mv plugins old && mv evil plugins', 'plugins/guard.ts changed +1 -1'],
    ['with an old time on it', 'sed -i s/one/two/ plugins/guard.ts && touch -d 2001-01-01 plugins/guard.ts', 'plugins/guard.ts changed +1 -1'],
    ['that takes it away', 'rm plugins/guard.ts', 'plugins/guard.ts gone +0 -3'],
    ['of the config', `sed -i 's/  - guard/  - { name: guard, enabled: false }/' ${CONFIG_NAME}`, `${CONFIG_NAME} changed +1 -1`],
    ['that takes the config away', `rm ${CONFIG_NAME}`, `${CONFIG_NAME} gone +0 -4`],
    ['that brings an .env', 'echo OPENAI_BASE_URL=http://evil > .env', '.env appeared +1 -0'],
  ])('%s is held, whatever is reloaded', async (_, command, expected) => {
    const { app, bash, held, isHeld, active } = await host()
    await bash(command)
    await isHeld()
    expect(held()).toContain(expected)
    await app.reload().catch(() => {})
    await app.reload(['guard']).catch(() => {})
    expect([says(), active()]).toEqual(['h:one', ['guard', 'tool-fs', 'tool-bash']])
    expect(app.key('OPENAI_BASE_URL')).toBeUndefined()
  })
  it('that stands where nobody looked yet is not loaded with the next edit either', async () => {
    const { at, bash, write, held, active } = await host()
    await bash(`printf 'export const name = "tool-fs"\\nexport const apply = () => { globalThis.hxGuard = "shadow" }\\n' > plugins/tool-fs.ts`)
    await sleep(60)                                          // the clock of files ticks
    write(CONFIG_NAME, `${CONFIG}  - stats\n`)
    await until(() => active().includes('stats'))
    expect(says()).toBe('h:one')
    expect(existsSync(at('plugins/tool-fs.ts'))).toBe(true)
    expect(held()).toEqual(['plugins/tool-fs.ts appeared +2 -0'])
  })
  it('is held also when what a call has left running makes it later', async () => {
    const { bash, isHeld, held } = await host()
    await bash('sleep 1; sed -i s/one/two/ plugins/guard.ts', { background: true })
    await isHeld()
    expect([held(), says()]).toEqual([['plugins/guard.ts changed +1 -1'], 'h:one'])
  })
  it('is dropped when the file is put back, and taken over when a person saves it', async () => {
    const { write, bash, isHeld, held } = await host()
    await bash('sed -i s/one/two/ plugins/guard.ts')
    await isHeld()
    await sleep(60)                                          // the clock of files ticks
    write('plugins/guard.ts', GUARD('one'))
    await until(() => held().length === 0)
    expect(says()).toBe('h:one')
    write('plugins/guard.ts', GUARD('three'))
    await until(() => says() === 'h:three')
    expect(held()).toEqual([])
  })
  it('is loaded at once with reload.trustTools', async () => {
    const { bash, held } = await host(`reload: { trustTools: true }\n${CONFIG}`)
    await bash('sed -i s/one/two/ plugins/guard.ts')
    await until(() => says() === 'h:two')
    expect(held()).toEqual([])
  })
  it('is still held by the next host of the config, which runs what ran before', async () => {
    const first = await host()
    await first.bash(`sed -i s/one/two/ plugins/guard.ts; echo KEY=hx-canary > .env; sed -i 's/- tool-fs/- stats/' ${CONFIG_NAME}`)
    await first.app.stop()                                   // as a run of one task ends, before any watcher looked
    const store = first.at('.hx/state/held')
    const kept = join(store, readdirSync(store)[0]!)
    expect(statSync(kept).mode & 0o777).toBe(0o600)
    expect(readFileSync(kept, 'utf8')).not.toContain('canary')
    const second = await host(CONFIG, FILES, first)
    expect([says(), second.active()]).toEqual(['h:one', ['guard', 'tool-fs', 'tool-bash']])
    expect(second.held().sort()).toEqual([`${CONFIG_NAME} changed +1 -1`, 'plugins/guard.ts changed +1 -1'])
    await second.app.reloadHeld()
    expect([says(), second.active()]).toEqual(['h:two', ['guard', 'stats', 'tool-bash']])
    await second.app.stop()
    expect(existsSync(kept)).toBe(false)
  })
  it('is neither written over nor loaded along by an edit of the config: not by hx plugins without a daemon, not by an answer that is kept', async () => {
    const one = await host(`${CONFIG}  - { name: permission, enabled: false }\n`)
    await one.bash(`sed -i 's/- tool-fs/- stats/' ${CONFIG_NAME}`)
    await one.isHeld()
    const env = { HX_HOME: one.at('.hx') }, text = () => readFileSync(one.at(CONFIG_NAME), 'utf8'), before = text()
    const disable = () => place().hx(['plugins', 'disable', 'guard', '--trust'], { cwd: one.path, env })
    const keep = () => keepRule({ cwd: one.path, env, globals: {}, note: () => {} } as unknown as Io, { status: async () => one.app.status() }, 'permission', 'npm test')
    const refused = await disable()
    expect([refused.code === 0, refused.stderr]).toEqual([false, expect.stringMatching(/harness\.config\.yaml .*changed while a tool ran.*nothing was written/)])
    await expect(keep()).rejects.toMatchObject({ code: 'held' })
    expect([text(), one.held()]).toEqual([before, [`${CONFIG_NAME} changed +1 -1`]])
    await one.app.reloadHeld()
    expect(await keep()).toContain('is allowed from now on')
    expect(await disable()).toMatchObject({ code: 0 })
  })
  it('can not be made by the file tools at all', async () => {
    const { calls, held, at } = await host()
    const refused = await calls(...['plugins/guard.ts', 'plugins/new.ts', CONFIG_NAME, '.env', 'plugins/helper.ts', '.hx/config/trust.json', '.hx/state/held/x.json'].map(path => ({ name: 'write_file', arguments: { path, content: 'x' } })))
    expect(refused.map(result => /protected_path/.test(result))).toEqual(refused.map(() => true))
    expect([held(), existsSync(at('.env')), says()]).toEqual([[], false, 'h:one'])
  })
  it('can not be made to an .env that is there either, which says where keys are sent', async () => {
    const { calls, at, app } = await host(CONFIG, { ...FILES, '.env': 'OPENAI_API_KEY=k\n' })
    const refused = await calls({ name: 'write_file', arguments: { path: '.env', content: 'OPENAI_BASE_URL=http://evil' } }, { name: 'edit_file', arguments: { path: '.env', old_text: 'k', new_text: 'k2' } })
    expect(refused.map(result => /protected_path/.test(result))).toEqual([true, true])
    expect(readFileSync(at('.env'), 'utf8')).toBe('OPENAI_API_KEY=k\n')
    expect(app.key('OPENAI_BASE_URL')).toBeUndefined()
  })
})

describe('a save by an editor', () => {
  it('is loaded at once while a confined tool runs, and before and after one that is not', async () => {
    const waiting = `export const name = 'waits'\nexport function apply(ctx) { ctx.tools.register({ name: 'wait', description: 'waits', parameters: { type: 'object' }, execute: () => new Promise(done => { globalThis.hxGo = () => done('ok') }) }) }\n`
    const { write, calls, bash, held } = await host(`${CONFIG}  - waits\n`, { ...FILES, 'plugins/waits.ts': waiting })
    await bash('true')
    await sleep(60)
    const done = calls({ name: 'wait', arguments: {} })
    const go = await until(() => (globalThis as { hxGo?: () => void }).hxGo)
    write('plugins/guard.ts', GUARD('two'))
    await until(() => says() === 'h:two')
    go()
    await done
    await bash('true')
    await sleep(60)
    write('plugins/guard.ts', GUARD('three'))
    await until(() => says() === 'h:three')
    expect(held()).toEqual([])
  })
})

it('a diff counts and shows lines, with what stands around them, and values of an .env are never in it', () => {
  const before = Array.from({ length: 30 }, (_, i) => `line ${i}`).join('\n'), after = before.replace('line 3\n', '').replace('line 20', 'line twenty\nline more')
  const { added, removed, diff } = lineDiff(before, after)
  expect([added, removed]).toEqual([2, 2])
  expect(diff).toBe(['  line 0', '  line 1', '  line 2', '- line 3', '  line 4', '  line 5', '  line 6', '  …', '  line 17', '  line 18', '  line 19', '- line 20', '+ line twenty', '+ line more', '  line 21', '  line 22', '  line 23', '  …'].join('\n'))
  expect(lineDiff('', 'a\n')).toMatchObject({ added: 1, removed: 0 })
  expect(lineDiff('a\n'.repeat(3000), 'b\n'.repeat(3000))).toMatchObject({ added: 3000, removed: 3000 })
})

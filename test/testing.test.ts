import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ask, block, duration, ModelError, proceed, z, type Context } from 'harnessx'
import { createTestHost, type TestHostOptions } from 'harnessx/testing'
import { folder } from './support/folder.js'

async function hosted(options: Partial<TestHostOptions> & { apply?: (ctx: Context) => unknown } = {}) {
  const { apply, ...more } = options
  const host = await createTestHost({ plugins: apply ? [{ module: { name: 'mine', apply } }] : [], ...more })
  onTestFinished(() => host.close().catch(() => {}))
  return host
}

describe('every shipped plugin', () => {
  it('is tested with the kit that authors have', () => {
    const root = fileURLToPath(new URL('..', import.meta.url)), read = (file: string) => readFileSync(`${root}/${file}`, 'utf8')
    const tests = readdirSync(`${root}/test/plugins`, { recursive: true, encoding: 'utf8' }).filter(file => file.endsWith('.test.ts')).map(file => read(`test/plugins/${file}`)).filter(text => /createTestHost|pluginHost/.test(text))
    const shipped = readdirSync(`${root}/plugins`).filter(file => !file.endsWith('.md')).map(file => file.replace(/\.ts$/, ''))
      .filter(name => name !== 'openai-server')                        // hangs on the routes of a daemon, and is tested in one
    expect(shipped.length).toBeGreaterThan(20)
    expect(shipped.filter(name => !tests.some(text => new RegExp(`plugins/${name}(?:/index)?\\.js'|['"]${name}['"]`).test(text)))).toEqual([])
  })
})

describe('a test host', () => {
  it('takes a plugin as a module that the test imported, with its schema, and another version of it at a reload', async () => {
    const plugin = (word: string) => ({ name: 'mine', Config: z.strictObject({ every: duration.prefault('1s') }), apply: (ctx: Context, { every }: { every: number }) => { ctx.on('agent/pre-tool-use', () => block(`${word} ${every}`)) } })
    const host = await hosted({ plugins: [{ module: plugin('first'), config: { every: '2s' } }] })
    expect((await host.fire('agent/pre-tool-use')).value).toEqual({ kind: 'block', reason: 'first 2000' })
    expect((await host.reload('mine', plugin('second'))).reloaded).toEqual(['mine'])
    expect((await host.fire('agent/pre-tool-use')).value).toEqual({ kind: 'block', reason: 'second 2000' })
    await host.close()
  })
  it('fails with the sentence of a plugin that can not be loaded, unless the test says that it may', async () => {
    const broken = [{ module: { name: 'mine', apply: () => { throw new Error('no such port') } } }]
    await expect(createTestHost({ plugins: broken })).rejects.toThrow('plugin "mine" could not be loaded: threw while it was loaded: no such port')
    await expect(createTestHost({ plugins: [{ module: { name: 'mine', Config: z.strictObject({ n: z.int() }), apply: () => {} }, config: { n: 'ten' } }] })).rejects.toThrow(/plugin "mine" .*config\.n must be/)
    const host = await hosted({ plugins: broken, mayFail: true })
    expect(host.plugins()[0]).toMatchObject({ state: 'failed' })
  })
  it('fires one hook by itself, with what is left out filled in as the loop would have it', async () => {
    const seen: unknown[] = []
    const host = await hosted({ apply: ctx => {
      ctx.on('agent/pre-tool-use', ({ call, session }) => { seen.push(call, session.cwd); return call.name === 'bash' ? ask('a shell') : undefined })
      ctx.on('agent/system-prompt', async (_, next) => [...await next(), { id: 'tone', text: 'Be brief.' }])
      ctx.on('agent/tool-use', async (_, next) => `<${(await next()).content}>`)
      ctx.on('agent/post-tool-use', ({ result }) => ({ ...result, context: ['a note'] }))
      ctx.on('agent/stop', ({ stopHookActive }) => { if (!stopHookActive) return proceed('go on') })
      ctx.on('agent/user-prompt-submit', ({ prompt, messages }) => { seen.push(prompt, messages.length) })
    } })
    expect(await host.fire('agent/pre-tool-use', { call: { name: 'bash', arguments: { command: 'ls' } } })).toMatchObject({ value: { kind: 'ask', reason: 'a shell' }, plugin: 'mine', trace: [{ plugin: 'mine', kind: 'ask' }] })
    expect(seen.splice(0)).toEqual([{ id: 'call_1', name: 'bash', arguments: { command: 'ls' } }, host.folder])
    expect((await host.fire('agent/system-prompt', { sections: [{ id: 'a', text: 'A' }] })).value).toEqual([{ id: 'a', text: 'A' }, { id: 'tone', text: 'Be brief.' }])
    expect((await host.fire('agent/tool-use')).value).toEqual({ content: '<the result>', isError: false })
    expect((await host.fire('agent/tool-use', {}, () => ({ content: 'mine', isError: false }))).value.content).toBe('<mine>')
    expect((await host.fire('agent/post-tool-use')).context).toMatchObject([{ source: { kind: 'plugin', id: 'mine' } }])
    expect((await host.fire('agent/stop')).value.kind).toBe('continue')
    expect((await host.fire('agent/stop', { stopHookActive: true })).value.kind).toBe('stop')
    await host.fire('agent/user-prompt-submit', { prompt: 'hello' })
    expect(seen).toEqual(['hello', 1])
  })
  it('shows a handler that fails as the loop would see it', async () => {
    const host = await hosted({ apply: ctx => { ctx.on('agent/pre-tool-use', () => { throw new Error('broken') }) } })
    expect(await host.fire('agent/pre-tool-use')).toMatchObject({ failure: 'hook_failed', plugin: 'mine', value: { kind: 'block' } })
  })
  it('plays replies, failures and silence of a model, and gives what was printed and read', async () => {
    const host = await hosted({ apply: ctx => {
      ctx.tools.register({ name: 'look', description: 'Looks.', parameters: { type: 'object' }, execute: () => { process.stderr.write('looked\n'); return 'seen' } })
      ctx.commands.register({ name: 'hello', description: 'Greets.', run: args => `hello ${args}` })
    }, replies: [{ calls: [{ name: 'look', arguments: {} }] }, 'done'] })
    expect(await host.run('go')).toMatchObject({ result: { reason: 'completed', text: 'done' }, results: ['seen'], printed: ['looked'] })
    host.says({ error: new ModelError('auth', 'who are you') })
    expect((await host.run('go')).result).toMatchObject({ reason: 'failed', message: 'who are you' })
    host.says({ hang: true })
    expect((await host.run('go', { signal: AbortSignal.timeout(50) })).result.reason).toBe('aborted')
    expect((await host.run('go')).result.message).toContain('the script has no reply for request')
    expect(await host.command('hello', 'you')).toMatchObject({ text: 'hello you' })
    expect(host.requests).toHaveLength(5)
  })
  it('throws at its end with the name of a plugin that left something behind', async () => {
    const timers: NodeJS.Timeout[] = []                        // several: they are counted for the whole process, where those of earlier tests end meanwhile
    const host = await hosted({ apply: () => { for (let i = 0; i < 5; i++) timers.push(setInterval(() => {}, 1000)) } })
    onTestFinished(() => { timers.forEach(clearInterval) })
    await expect(host.close()).rejects.toThrow(/^plugin "mine" left [1-5] timer/)
    expect(existsSync(host.folder)).toBe(false)
  })
  it('runs under node:test from the built package, with plugins as files and as modules, and is disposed by itself', async () => {
    const root = fileURLToPath(new URL('..', import.meta.url))
    const place = folder({
      'guard.mjs': "import { block } from 'harnessx'\nexport const name = 'guard'\nexport function apply(ctx) { ctx.on('agent/pre-tool-use', () => block('no')) }\n",
      'guard.ts': "import { block, type Context } from 'harnessx'\nexport const name = 'guard'\nexport function apply(ctx: Context): void { ctx.on('agent/pre-tool-use', () => block('no')) }\n",
      'guard.test.mjs': `
import { test } from 'node:test'
import assert from 'node:assert/strict'
import { createTestHost } from 'harnessx/testing'
import * as guard from './guard.mjs'
for (const plugin of ['./guard.ts', { module: guard }]) test('refuses ' + typeof plugin, async t => {
  const host = await createTestHost({ plugins: [plugin, 'tool-fs'], files: { 'a.txt': 'a' }, replies: [{ calls: [{ name: 'read_file', arguments: { path: 'a.txt' } }] }, 'done'] })
  t.after(() => host[Symbol.asyncDispose]())
  const { results, result } = await host.run('read it')
  assert.match(results[0], /blocked by plugin "guard": no/)
  assert.equal(result.text, 'done')
  assert.equal((await host.fire('agent/pre-tool-use')).value.kind, 'block')
  await host.reload('guard')
})
` })
    mkdirSync(dirname(place.at('node_modules/harnessx')), { recursive: true })
    symlinkSync(root, place.at('node_modules/harnessx'))
    const { NODE_OPTIONS: _, ...env } = process.env
    const { code, stdout } = await new Promise<{ code: number | null; stdout: string }>(resolve => {
      execFile(process.execPath, ['--test', '--test-reporter=tap', 'guard.test.mjs'], { cwd: place.path, env: { ...env, NODE_TEST_CONTEXT: undefined } }, (error, stdout, stderr) => { resolve({ code: error ? Number(error.code) : 0, stdout: stdout + stderr }) })
    })
    expect({ code, stdout }).toMatchObject({ code: 0, stdout: expect.stringContaining('# pass 2') })
  })
})

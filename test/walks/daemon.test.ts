/** The daemon as a service manager runs it: in the foreground, switched by commands, killed, started twice, and stopped while everything hangs. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { PluginInfo } from '../../core/loader/host.js'
import { place, until, type Place, type Running } from '../support/hx.js'

const CONFIG = 'plugins:\n  - hook-log\n  - first\n  - second\n  - model-offline\n'
const plugin = (name: string) => `export const name = '${name}'\nexport function apply(ctx) { ctx.on('agent/turn-end', () => {}) }\n`
const FILES = { 'harness.config.yaml': CONFIG, 'plugins/first.ts': plugin('first'), 'plugins/second.ts': plugin('second') }

async function daemon(here: Place): Promise<Running> {
  const running = here.start(['start', '--foreground', '--trust', '--verbose'])
  await until(() => running.output().stderr.includes('listens on') || (running.child.exitCode !== null && Promise.reject(new Error(running.output().stderr))))
  return running
}
const plugins = async (here: Place) => (JSON.parse((await here.hx(['plugins', '--json', '--trust'])).stdout) as { plugins: PluginInfo[] }).plugins
const times = (running: Running, line: RegExp) => running.output().stderr.split('\n').filter(one => line.test(one)).length
const sockets = ({ env }: Place) => { try { return readdirSync(join(env['HX_HOME']!, 'run')).filter(file => file.endsWith('.sock')).map(file => join(env['HX_HOME']!, 'run', file)) } catch { return [] } }

describe('a running daemon', () => {
  it('does what hx plugins says at once, and once: its own write is no second edit', async () => {
    const here = place(FILES), running = await daemon(here)
    expect(statSync(sockets(here)[0]!).mode & 0o777).toBe(0o600)
    const off = await here.hx(['plugins', 'disable', 'first', '--json', '--trust'])
    expect(JSON.parse(off.stdout)).toMatchObject({ id: 'first', changed: true, state: 'disabled' })
    const on = await here.hx(['plugins', 'enable', 'first', '--json', '--trust'])
    expect(JSON.parse(on.stdout)).toMatchObject({ id: 'first', changed: true, state: 'active' })
    expect(JSON.parse((await here.hx(['plugins', 'reload', 'second', '--json', '--trust'])).stdout)).toMatchObject({ reloaded: ['second'], failed: [] })
    here.write('plugins/second.ts', `${plugin('second')}// saved\n`)
    await until(async () => (await plugins(here)).some(({ id, version }) => id === 'second' && version === 3))
    expect((await plugins(here)).map(({ id, state, reloads }) => [id, state, reloads])).toEqual([['hook-log', 'active', 0], ['first', 'active', 0], ['second', 'active', 2], ['model-offline', 'active', 0]])
    expect([times(running, /plugin "first" loaded/), times(running, /plugin "second" reloaded/), times(running, /warn|error/i)]).toEqual([2, 2, 0])
    running.child.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0 })
    expect(sockets(here)).toEqual([])
  })

  it('that was killed with -9 is followed by one that starts at the first try', async () => {
    const here = place(FILES)
    for (let round = 0; round < 2; round++) {
      const running = await daemon(here)
      running.child.kill('SIGKILL')
      await running.ended
      expect(sockets(here)).toHaveLength(1)                             // what a crash leaves means nothing
    }
    const running = await daemon(here)
    expect((await plugins(here)).filter(({ state }) => state === 'active')).toHaveLength(4)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(0)
  })

  it('is one, when two are started at the same time', { timeout: 60_000 }, async () => {
    const here = place(FILES)
    for (let round = 0; round < 3; round++) {                           // a hundred: npm run soak -- rivals
      const both = [0, 1].map(() => here.start(['start', '--foreground', '--trust']))
      await until(() => both.some(({ child }) => child.exitCode !== null) && both.some(({ output }) => output().stderr.includes('listens on')))
      const [winner, loser] = both[0]!.child.exitCode === null ? both : [both[1]!, both[0]!]
      expect(await loser!.ended).toMatchObject({ code: 0, stderr: expect.stringContaining('a daemon runs already for this config') })
      expect((await here.hx(['status', '--trust'])).code).toBe(0)
      winner!.child.kill('SIGTERM')
      expect((await winner!.ended).code).toBe(0)
    }
  })
})

describe('a daemon in which everything hangs', () => {
  const hanging = `
export const name = 'hanging'
export function apply(ctx) {
  ctx.models.register({ id: 'asks', defaultModel: 'asks', ready: () => true, async *stream() {
    yield { kind: 'reply', reply: { message: { role: 'assistant', content: [], toolCalls: [{ id: 'c1', name: 'hang', arguments: '{}' }] }, finish: 'tool-calls' } }
  } })
  ctx.tools.register({ name: 'hang', description: 'Never ends.', parameters: { type: 'object' }, execute: () => { console.error('the tool hangs'); return new Promise(() => { setInterval(() => {}, 1000) }) } })
  ctx.effect(() => () => new Promise(() => {}), 'a door')
}
`
  const start = async () => {
    const here = place({ 'harness.config.yaml': 'plugins: [hanging]\n', 'plugins/hanging.ts': hanging })
    const running = await daemon(here)
    const agent = here.start(['agent', 'go', '--trust'])
    await until(() => running.output().stderr.includes('the tool hangs'))
    return { here, running, agent }
  }
  it('is gone within ten seconds of SIGTERM: tools first, then plugins, and the client is told', { timeout: 60_000 }, async () => {
    const { here, running, agent } = await start()
    const begin = performance.now()
    running.child.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0, signal: null })
    expect(performance.now() - begin).toBeLessThan(10_000)
    expect(running.output().stderr).toMatch(/"hanging": a door could not be taken back: it did not end within \d+ ms/)
    expect((await agent.ended).code).not.toBe(0)
    expect(sockets(here)).toEqual([])
  })
  it('ends at once with a second SIGTERM', async () => {
    const { running } = await start()
    running.child.kill('SIGTERM')
    await until(() => running.child.exitCode === null)
    await new Promise(done => { setTimeout(done, 100) })
    expect(running.child.exitCode).toBe(null)
    const begin = performance.now()
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(143)
    expect(performance.now() - begin).toBeLessThan(1000)
  })
})

/** tool-bash as a plugin: on the real kernel and the real loop. */
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import type { Context } from 'harnessx'
import * as toolBash from '../../plugins/tool-bash/index.js'
import { pluginHost, type PluginHost } from '../support/plugin-host.js'

const onLinux = process.platform === 'linux'
const alive = (pid: number): boolean => {
  try {
    return onLinux ? !/\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'latin1')) : process.kill(pid, 0)
  } catch { return false }                                              // there is no such process
}
async function until(condition: () => boolean, ms = 10_000): Promise<void> {
  for (const end = performance.now() + ms; !condition();) {
    if (performance.now() > end) throw new Error(`not so within ${ms} ms: ${condition.toString()}`)
    await delay(10)
  }
}
const pidIn = (host: PluginHost, file: string): number => existsSync(host.folder.at(file)) ? Number(readFileSync(host.folder.at(file), 'utf8')) : 0
/** Gives the service to the test. */
const peek = (use: (ctx: Context) => void) => ({ id: 'peek', module: { name: 'peek', apply: use } })

describe('tool-bash on the host', () => {
  it('runs a command in the workspace and tells how it went', async () => {
    const host = await pluginHost([{ module: toolBash }])
    const { read, events } = await host.call('bash', { command: 'pwd; exit 2' })
    expect(read).toBe(`${host.folder.path}\n[exit code 2]`)
    expect(events.find(event => event.type === 'tool-result')).toMatchObject({ kind: 'failed', isError: true })
  })
  it('is offered with its limits, and refuses arguments that do not fit', async () => {
    const host = await pluginHost([{ module: toolBash, config: { maxTimeout: '30s' } }])
    const { read } = await host.call('bash', { command: 'true', timeout: 60_000 })
    expect(host.requests[0]!.tools[0]).toMatchObject({ name: 'bash', parameters: { required: ['command'], properties: { timeout: { maximum: 30 } } } })
    expect(read).toMatch(/^invalid arguments for tool "bash": timeout: .*<=30/)
  })
  it('tells clients how far it is', async () => {
    const host = await pluginHost([{ module: toolBash }])
    const { events } = await host.call('bash', { command: 'echo working; sleep 1.5' })
    expect(events).toContainEqual(expect.objectContaining({ type: 'progress', name: 'bash', message: 'working' }))
  })
  it('keeps a long output readable through the output folder of the session', async () => {
    const host = await pluginHost([{ module: toolBash, config: { maxCharacters: 2000 } }])
    const { read } = await host.call('bash', { command: 'yes line | head -c 20000000' })
    expect(read.length).toBeLessThan(2500)
    expect(readFileSync(/"([^"]+)"/.exec(read)![1]!)).toHaveLength(20_000_000)
  })
  it('leaves no process when the turn is stopped, wherever it went', async () => {
    const host = await pluginHost([{ module: toolBash }])
    const stop = new AbortController()
    const running = host.call('bash', { command: "(sleep 300 & echo $! > inside; setsid sh -c 'echo $$ > outside; sleep 300' & wait)" }, { signal: stop.signal })
    await until(() => pidIn(host, 'inside') > 0 && pidIn(host, 'outside') > 0)
    stop.abort(new Error('enough'))
    await running
    await until(() => !alive(pidIn(host, 'inside')) && (!onLinux || !alive(pidIn(host, 'outside'))))
  })
  it('takes its commands with it when it is unloaded, also one that ignores SIGTERM', async () => {
    const host = await pluginHost([{ module: toolBash }])
    const before = host.lines.length
    await host.call('bash', { command: "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done", background: true })
    await until(() => pidIn(host, 'pid') > 0)
    await host.unload('tool-bash')
    await until(() => !alive(pidIn(host, 'pid')))
    expect(host.lines.slice(before).filter(({ level }) => level === 'error')).toEqual([])
  })
  it('lets a background command outlive its turn, and stops it when the session is archived', async () => {
    let ctx!: Context
    const host = await pluginHost([{ module: toolBash }, peek(own => { ctx = own })])
    const { result } = await host.call('bash', { command: 'echo $$ > pid; sleep 300', background: true })
    expect(alive(pidIn(host, 'pid'))).toBe(true)
    await ctx.agents.archive(result.session)
    await until(() => !alive(pidIn(host, 'pid')))
  })
  it('serves on after a reload, with one tool', async () => {
    const host = await pluginHost([{ module: toolBash }])
    for (let i = 0; i < 5; i++) await host.reload('tool-bash', { module: toolBash })
    expect((await host.call('bash', { command: 'echo still here' })).read).toContain('still here')
    expect(host.requests.at(-1)!.tools.map(tool => tool.name)).toEqual(['bash', 'stop_command'])
  })
  it.runIf(onLinux)('reports processes that an earlier host left behind, and lets them live', async () => {
    const left = spawn('sleep', ['300'], { env: { PATH: process.env['PATH'], HX_BASH: '4194304-1-dead.s1.1.' }, stdio: 'ignore' })
    try {
      await until(() => readFileSync(`/proc/${left.pid}/environ`, 'latin1').includes('HX_BASH'))
      const host = await pluginHost([{ module: toolBash }])
      const warnings = () => host.lines.filter(({ level }) => level === 'warn').map(({ message }) => message).join('\n')
      await until(() => warnings() !== '')
      expect(warnings()).toMatch(new RegExp(`run on, whose host ended without stopping them: .*\\b${left.pid}\\b`))
      expect(alive(left.pid!)).toBe(true)
    } finally { left.kill('SIGKILL') }
  })
  it('refuses a config it does not know', async () => {
    await expect(pluginHost([{ module: toolBash, config: { timout: '5s' } }])).rejects.toThrow('timout')
    await expect(pluginHost([{ module: toolBash, config: { env: ['OPENAI_API_KEY'] } }])).rejects.toThrow('which commands never get')
  })
})

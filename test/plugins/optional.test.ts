import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { z } from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import { conversation } from '../support/agent.js'
import { folder } from '../support/folder.js'
import { echoTool, pluginHost } from '../support/plugin-host.js'
import type { PluginModule } from '../../core/kernel/hooks.js'

const root = join(import.meta.dirname, '../..')
/** Those that the shipped config leaves out, with the least config each. */
const OPTIONAL: Readonly<Record<string, (path: string) => object>> = {
  timeout: () => ({}), fallback: () => ({ models: ['scripted/two'] }), 'prune-tool-results': () => ({}), compaction: () => ({}), 'agent-instructions': () => ({}),
  notify: () => ({ command: ['true'] }), todo: () => ({}), subagent: () => ({}), skills: () => ({}), 'claude-hooks': path => ({ folders: [path] }), 'claude-commands': path => ({ folders: [path] }), mcp: () => ({ servers: {} }),
}
const names = Object.keys(OPTIONAL)
const load = (name: string): Promise<PluginModule> => import(join(root, [`plugins/${name}.ts`, `plugins/${name}/index.ts`].find(file => existsSync(join(root, file)))!))

describe('the plugins that the shipped config leaves out', () => {
  it.each(names)('%s has its name, a schema that editors read, and its part in the catalogue', async name => {
    const module = await load(name)
    expect(module.name).toBe(name)
    expect(z.toJSONSchema(module.Config as unknown as z.ZodType, { io: 'input' })).toMatchObject({ type: 'object', additionalProperties: false })
    expect(readFileSync(join(root, 'plugins/README.md'), 'utf8')).toContain(`\n## ${name}\n`)
  })
  it('work beside each other, and leave nothing when they are reloaded ten times and unloaded', async () => {
    const here = folder({ '.claude/settings.json': JSON.stringify({ hooks: { PreToolUse: [{ hooks: [{ type: 'command', command: 'exit 0' }] }] } }) })
    const rows = await Promise.all(names.map(async name => ({ module: await load(name), config: OPTIONAL[name]!(here.path) })))
    const host = await pluginHost([...rows, echoTool(() => 'said')])
    const before = host.registered()
    for (const row of rows) for (let i = 0; i < 10; i++) await host.reload(row.module.name, row)
    expect(host.registered()).toEqual(before)
    const { read, result } = await host.call('echo', {}, { cwd: here.path })
    expect([read, result.reason]).toEqual(['said', 'completed'])
    for (const { module } of rows.reverse()) await host.unload(module.name)
    expect(host.registered()).toEqual(['agent/pre-step core', 'echo tool-echo'])
    expect(host.lines.filter(({ level }) => level === 'warn' || level === 'error').map(({ message }) => message)).toEqual([])
  })
  it('are each loaded anew, switched off and on again by their rows while a turn runs, which goes on; nothing is left', async () => {
    const here = folder({ '.claude/settings.json': JSON.stringify({ hooks: {} }) })
    const changed = names.filter(name => name !== 'timeout')          // which stands around the very call that edits: below
    const rows = changed.map(name => ({ name, config: OPTIONAL[name]!(here.path) }))
    const edited: string[] = []
    const edit = echoTool(async () => {
      for (const row of rows) {
        const reports = [await host.reload(row.name), await host.configure([...rows.filter(other => other !== row), edit]), await host.configure([...rows, edit])]
        if (reports.every(({ failed }) => failed.length === 0)) edited.push(row.name)
      }
      return 'edited'
    }, { name: 'edit' })
    const host = await createTestHost({ plugins: [...rows, edit], replies: [{ calls: [{ name: 'edit', arguments: {} }] }, 'done'] })
    const before = host.hooks().map(({ hook, handlers }) => [hook, handlers.map(({ plugin }) => plugin)])
    const { result, results } = await host.run('go')
    expect([result.reason, results, edited]).toEqual(['completed', ['edited'], changed])
    expect(host.hooks().map(({ hook, handlers }) => [hook, handlers.map(({ plugin }) => plugin)])).toEqual(before)      // each is back at its place
    await host.close()                                       // throws with what was left
  })
  it('timeout, loaded anew and changed inside a call that it stands around, serves that call to its end; switched off there, the call is given up and the turn goes on', async () => {
    const row = (tool: string) => ({ name: 'timeout', config: { tool } })
    const done: string[] = []
    const edit = echoTool(async ({ what }) => {
      if (what === 'reload') await host.reload('timeout')
      else await host.configure(what === 'off' ? [edit] : [row(what as string), edit])
      done.push(what as string)
      return 'edited'
    }, { name: 'edit' })
    const call = (what: string) => ({ calls: [{ name: 'edit', arguments: { what } }] })
    const host = await createTestHost({ plugins: [row('1m'), edit], replies: [call('reload'), call('2m'), call('off'), call('3m'), 'done'] })
    const { result, results } = await host.run('go')
    expect(results).toEqual(['edited', 'edited', 'plugin "timeout" failed in "agent/tool-use": its plugin was unloaded', 'edited'])
    expect([result.reason, done]).toEqual(['completed', ['reload', '2m', 'off', '3m']])
    expect(host.hooks().flatMap(({ hook, handlers }) => handlers.some(({ plugin }) => plugin === 'timeout') ? [hook] : []).sort()).toEqual(['agent/request', 'agent/tool-use'])
    await host.close()
  })
  it('make room cheaply first: where results were pruned in a step, no summary is asked for in it', async () => {
    const host = await pluginHost([{ module: await load('compaction'), config: { above: 1000, keep: 0 } }, { module: await load('prune-tool-results'), config: { keep: 0, atLeast: 500 } }, echoTool(() => 'x'.repeat(8000))])
    const { result: { session } } = await host.call('echo', {})
    expect(host.requests).toHaveLength(2)
    expect(conversation(host.requests[1]!).at(-1)).toMatch(/\[a result of 8000 characters was left out/)
    await host.run([], { session })
    expect(host.requests).toHaveLength(3)
  })
})

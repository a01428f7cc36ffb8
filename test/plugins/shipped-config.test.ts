import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { parse } from 'yaml'
import { pluginHost } from '../support/plugin-host.js'

const root = join(import.meta.dirname, '../..')
const rows: { name: string; required: boolean }[] = parse(readFileSync(join(root, 'harness.config.yaml'), 'utf8')).plugins.map((row: string | { name: string; required?: boolean }) => typeof row === 'string' ? { name: row, required: false } : { required: false, ...row })

const load = (name: string) => import(join(root, [`plugins/${name}.ts`, `plugins/${name}/index.ts`].find(file => existsSync(join(root, file)))!))

describe('the shipped config', () => {
  it('names the plugins in the order that is policy', () => {
    expect(rows.map(({ name }) => name)).toEqual(['hook-log', 'audit', 'permission', 'guard-secrets', 'sandbox', 'normalize-arguments', 'tool-errors', 'large-output', 'truncate', 'stats', 'time-context', 'retry', 'tool-fs', 'tool-bash', 'model-openai', 'model-offline'])
    expect(rows.filter(({ required }) => required).map(({ name }) => name)).toEqual(['permission', 'guard-secrets'])
  })
  it.each(rows.map(({ name }) => name))('finds %s, whose export says the same name and takes an empty config', async name => {
    const module = await load(name)
    expect([module.name, typeof module.apply]).toEqual([name, 'function'])
    expect((await module.Config?.['~standard'].validate({}))?.issues).toBeUndefined()
  })
  it('leaves nothing behind of a plugin that is unloaded, also after ten reloads', async () => {
    const modules = await Promise.all(rows.filter(({ name }) => !name.startsWith('model-')).map(async ({ name }) => ({ module: await load(name) })))
    const host = await pluginHost(modules)
    const before = host.registered()
    for (const { module } of modules) for (let i = 0; i < 10; i++) await host.reload(module.name, { module })
    expect(host.registered()).toEqual(before)
    const { results } = await host.run([[{ name: 'bash', arguments: { command: 'echo hello' } }]])
    expect(results[0]).toContain('hello')
    for (const { module } of [...modules].reverse()) await host.unload(module.name)
    expect(host.registered()).toEqual(['agent/pre-step core'])
  })
  it('stands in the catalogue, every row of it', () => {
    const catalogue = readFileSync(join(root, 'plugins/README.md'), 'utf8')
    for (const { name } of rows) expect(catalogue).toContain(`\n## ${name}\n`)
  })
})

/** `hx plugins info ID`: all that is known of one plugin: its state and why, what it registered, its versions and what went wrong. */
import { existsSync, readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { at, didYouMean, HarnessError } from '../errors.js'
import type { HandlerInfo } from '../kernel/dispatch.js'
import type { PluginInfo } from '../loader/host.js'
import { isShipped, places, type Installation } from '../places.js'
import type { Client } from './client.js'
import { find, withClient } from './connect.js'
import type { Io } from './io.js'
import { wants } from './plugin-package.js'
import { counted, elapsed, oneLine, type Paint } from './terminal.js'

export const TONES = { active: 'green', waiting: 'yellow', failed: 'red', disabled: 'dim', quarantined: 'red' } as const
/** One that runs although its file is gone or broken runs as it was before. */
export const stateOf = (plugin: PluginInfo, paint: Paint): string => plugin.state === 'active' && plugin.lastError !== undefined ? paint('yellow', 'active, as before') : paint(TONES[plugin.state], plugin.state)

export const info = (io: Io, id: string): Promise<number> => withClient(io, {}, async client => {
  const plugin = await pluginOf(client, id)
  const hooks = (await client.hooks()).map(hook => ({ hook: hook.hook, kind: hook.kind, handlers: hook.handlers.filter(handler => handler.plugin === id) })).filter(hook => hook.handlers.length > 0)
  const tools = (await client.tools()).filter(tool => tool.plugin === id).map(tool => tool.name)
  const models = (await client.models()).filter(model => model.plugin === id).map(model => model.id)
  const providers = (plugin.waiting ?? []).length === 0 ? undefined : providersOf(plugin.waiting!, await client.plugins(), pluginFolders(io))
  if (io.json) { io.line({ plugin, hooks, tools, models, ...(providers && { providers }) }); return 0 }
  const row = (name: string, value: string | undefined): readonly [string, string][] => value === undefined || value === '' ? [] : [[name, value]]
  const rows = [
    ...row('state', stateOf(plugin, io.paint)), ...row('reason', plugin.reason),
    ...row('waits for', plugin.waiting?.join(', ')),
    ...(providers ?? []).flatMap(one => row('could come', `"${one.service}" from ${sentence(one)}`)),
    ...row('last error', plugin.lastError), ...row('strikes', plugin.strikes === undefined ? undefined : `${plugin.strikes} (errors outside of any call; the third within five minutes stops it)`),
    ...row('module', plugin.name), ...row('from', plugin.from),
    ...row('version', `${plugin.version} (${counted(plugin.reloads, 'reload')}${plugin.reloadMs === undefined ? '' : `, the last in ${[...plugin.reloadMs].reverse().map(elapsed).join(', ')}`})`),
    ...row('injects', plugin.inject?.join(', ')), ...row('provides', plugin.provides?.join(', ')), ...row('timers', plugin.timers?.toString()),
    ...row('tools', tools.join(', ') || 'none'), ...row('models', models.join(', ')),
  ]
  io.say(`${io.paint('bold', plugin.id)}\n${rows.map(([name, value]) => `  ${name.padEnd(11)}${value}`).join('\n')}`)
  const { installation } = places(io.env)
  for (const { hook, kind, handlers } of hooks) for (const handler of handlers) io.say(`  ${'handler'.padEnd(11)}${hook} (${kind})${figures(handler, installation)}`)
  for (const { ts, level, message, times } of plugin.errors ?? []) io.say(`  ${io.paint(level === 'error' ? 'red' : 'yellow', level.padEnd(11))}${ts.slice(11, 19)} ${oneLine(message, 400)}${times > 1 ? ` (${times} times)` : ''}`)
  return 0
})
const figures = ({ file, line, calls, errors, blocks, timeouts, p95 }: HandlerInfo, installation: Installation): string =>
  `${file === undefined || isShipped(file, installation) ? '' : ` ${at({ file, line })}`}: ${counted(calls, 'call')}, ${counted(errors, 'error')}, ${counted(blocks, 'block')}, ${counted(timeouts, 'timeout')}, p95 ${elapsed(p95)}`

export async function pluginOf(client: Client, id: string): Promise<PluginInfo> {
  const all = await client.plugins()
  const plugin = all.find(one => one.id === id)
  if (plugin) return plugin
  throw new HarnessError('unknown_id', `there is no plugin "${id}"${didYouMean(id, all.map(one => one.id))}; see "hx plugins"`)
}

/** Who could provide a service that is waited for; `state` is absent for a plugin without a row. */
export interface Provider { readonly service: string; readonly plugin: string; readonly state?: PluginInfo['state'] | undefined }
/** Those that run say what they provide; of the others the source is read as text, nothing of it runs. */
export function providersOf(services: readonly string[], plugins: readonly PluginInfo[], folders: readonly string[]): readonly Provider[] {
  const known = plugins.map(({ id, state, from, provides }) => ({ plugin: id, state, provides: provides ?? named(from) }))
  const others = folders.flatMap(filesIn).filter(file => !plugins.some(({ from }) => from === file || from.startsWith(`${file}/`))).map(file => ({ plugin: basename(file).replace(/\.[cm]?[jt]s$/, ''), state: undefined, provides: named(file) }))
  return services.flatMap(service => [...known, ...others].filter(({ provides }) => provides.includes(service)).map(({ plugin, state }) => ({ service, plugin, ...(state && { state }) })))
}
function named(path: string): readonly string[] {
  try { return wants(path).provides } catch { return [] }      // not there, or not to be read: it can provide nothing
}
/** Beside the config, and shipped: whatever stands there can be named by a row. */
function pluginFolders(io: Io): readonly string[] {
  const { located, places } = find(io)
  return [...new Set([join(dirname(located.file), 'plugins'), places.installation.plugins])]
}
const filesIn = (folder: string): readonly string[] =>
  existsSync(folder) ? readdirSync(folder).filter(name => /^[^.]+(?:\.[cm]?[jt]s)?$/.test(name)).map(name => join(folder, name)) : []
const sentence = ({ plugin, state }: Provider): string =>
  state === undefined ? `"${plugin}", which has no row yet: add "- ${plugin}" to the config` : state === 'disabled' ? `"${plugin}", which is disabled; next: hx plugins enable ${plugin}` : `"${plugin}", which is ${state}; see: hx plugins info ${plugin}`

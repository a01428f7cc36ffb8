/** `hx plugins`: entries of the config, their state, and the switch that edits the file. */
import { HarnessError } from '../errors.js'
import { Quarantine } from '../kernel/quarantine.js'
import { isShipped, places } from '../places.js'
import type { Client } from './client.js'
import { setEnabled, taken } from './edit.js'
import { find as found, runningDaemon, withClient } from './connect.js'
import { heldLines, HOW, shownDiff, tellReport } from './held.js'
import type { Io } from './io.js'
import { pluginOf, stateOf, TONES } from './plugin-info.js'
import { elapsed, oneLine, table } from './terminal.js'

export const list = (io: Io): Promise<number> => withClient(io, {}, async client => {
  const all = await client.plugins(), { held } = await client.status()
  if (io.json) { io.line({ plugins: all, ...(held.length > 0 && { held }) }); return 0 }
  for (const line of heldLines(held)) io.say(io.paint('yellow', `held: ${line}: ${HOW}`))
  const { installation } = places(io.env)
  if (all.length === 0) { io.say('no plugins: the config has no rows under "plugins:"'); return 0 }
  io.say(table([['PLUGIN', 'STATE', 'HANDLERS', 'TOOLS', 'VERSION', 'RELOAD', 'FROM'], ...all.map(plugin => [
    plugin.id, stateOf(plugin, io.paint), String(plugin.handlers), String(plugin.tools), String(plugin.version),
    plugin.lastReloadMs === undefined ? '' : elapsed(plugin.lastReloadMs), isShipped(plugin.from, installation) ? 'shipped' : tail(plugin.from, 60),
  ])], io.paint))
  for (const plugin of all) {
    const why = plugin.lastError ?? plugin.reason
    if (why !== undefined) io.say(`  ${io.paint(plugin.state === 'active' ? 'yellow' : TONES[plugin.state], plugin.id)}${about(plugin.id, oneLine(why, 400))}`)
  }
  return 0
})

/** A sentence behind the name it begins with. */
const about = (id: string, sentence: string): string => sentence.startsWith(`plugin "${id}"`) ? sentence.slice(`plugin "${id}"`.length) : `: ${sentence}`
/** The end of a path tells more than its beginning. */
const tail = (path: string, width: number): string => path.length > width ? `…${oneLine(path.slice(1 - width), width)}` : oneLine(path, width)

export const enable = (io: Io, id: string): Promise<number> => toggle(io, id, true)
export const disable = (io: Io, id: string): Promise<number> => toggle(io, id, false)

async function toggle(io: Io, id: string, enabled: boolean): Promise<number> {
  const { file, changed } = await setEnabled(io, id, enabled)
  const { plugin } = await taken(io, id)
  const now = plugin === undefined ? '' : plugin.state === (enabled ? 'active' : 'disabled') ? `; the daemon ${enabled ? 'runs it' : 'does not run it'}` : `; in the daemon it is ${plugin.state}${plugin.reason ? `: ${plugin.reason}` : ''}`
  if (io.json) io.line({ id, enabled, file, changed, ...(plugin && { state: plugin.state }) })
  else io.say(changed ? `"${id}" is ${enabled ? 'enabled' : 'disabled'} in ${file}${now}` : `"${id}" was ${enabled ? 'enabled' : 'disabled'} already in ${file}${now}`)
  return plugin?.state === 'failed' ? 1 : 0
}

export async function reload(io: Io, id: string | undefined, options: { held?: boolean; diff?: boolean } = {}): Promise<number> {
  if (options.held || options.diff) {
    if (id !== undefined) throw new HarnessError('usage', '--held is about all that is held; leave out the id')
    return withClient(io, {}, client => held(io, client, options.diff === true))
  }
  const daemon = await runningDaemon(io)
  if (!daemon && id !== undefined && new Quarantine(quarantineOf(io)).forget(id)) {
    if (io.json) io.line({ id, message: 'is quarantined no more' })
    else io.say(`"${id}" is quarantined no more; no daemon is running, so the next command loads it`)
    return 0
  }
  if (!daemon) throw new HarnessError('daemon_missing', 'no daemon is running for this config, so there is nothing to reload; start one with "hx start"')
  try {
    if (id !== undefined) await pluginOf(daemon, id)
    const report = await daemon.reload(id === undefined ? undefined : [id])
    if (io.json) io.line(report)
    else {
      io.say(report.reloaded.length ? `reloaded: ${report.reloaded.join(', ')}` : id !== undefined && report.failed.length === 0 ? `loaded: ${id}` : 'nothing changed')
      for (const { id, message } of report.failed) io.say(`${io.paint('red', 'failed')} ${id}: ${message}`)
    }
    return report.failed.length ? 1 : 0
  } finally { await daemon.close() }
}
/** What a tool may have changed, shown and, unless `only` that is asked for, loaded. In process it is agreed to for the next host. */
async function held(io: Io, client: Client, only: boolean): Promise<number> {
  const { held } = await client.status()
  if (only && io.json) { io.line({ held }); return 0 }
  if (!io.json) io.say(held.length === 0 ? 'nothing is held' : shownDiff(held))
  if (only || held.length === 0) return 0
  const report = await client.reloadHeld()
  if (io.json) io.line(report)
  else return tellReport(io, report) ? 0 : 1
  return report.failed.length > 0 ? 1 : 0
}

function quarantineOf(io: Io): string {
  const { places, located } = found(io)
  return places.quarantineOf(located.file)
}

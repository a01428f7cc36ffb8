/** Plugins of a daemon that do not run as its config and files say: whoever only talks to it would hear of them nowhere. Knows no client; loads nothing. */
import type { PluginInfo } from '../loader/host.js'
import type { Io } from './io.js'

/** To whoever starts a daemon or gives it a task. What waits may do so on purpose. */
export function tellTroubles(io: Io, plugins: readonly PluginInfo[]): void {
  for (const { what, ids } of troubles(plugins)) if (what !== 'waiting') io.note(io.paintNote('yellow', `hx: ${what}: ${ids.join(', ')}; see "hx plugins"`))
}
/** What does not run as the config and its files say. */
export function troubles(plugins: readonly PluginInfo[]): { what: string; ids: string[] }[] {
  const of = (what: string, is: (plugin: PluginInfo) => boolean) => ({ what, ids: plugins.filter(is).map(({ id }) => id) })
  return [
    of('quarantined', ({ state }) => state === 'quarantined'), of('failed', ({ state }) => state === 'failed'), of('waiting', ({ state }) => state === 'waiting'),
    of('as before its last edit', ({ state, lastError }) => state === 'active' && lastError !== undefined),
  ].filter(({ ids }) => ids.length > 0)
}

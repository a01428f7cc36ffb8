/**
 * mcp: tools of MCP servers, on the official SDK. Shows tools that come and go while the plugin runs, and things outside that are connected again and gone after an unload.
 * Loading waits a while for the servers, so that a new version takes over with its tools; one that needs longer, or fails, is gone on with behind it and never fails the plugin.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import type { Context } from 'harnessx'
import { Config } from './config.js'
import { loadSdk, type Sdk } from './sdk.js'
import { Server } from './server.js'

export const name = 'mcp'
export { Config }
/** Servers of the old version are its own: they serve until the new ones do. */
export const reload = 'staged'

/** How long loading waits for servers; the host gives up on a plugin after 10 s. */
const WAIT_MS = 6000

interface Fleet { readonly sdk: Sdk; readonly servers: Map<string, Server>; config: Config }
const fleets = new WeakMap<Context, Fleet>()

export async function apply(ctx: Context, config: Config): Promise<void> {
  const fleet: Fleet = { sdk: await loadSdk(), servers: new Map(), config }
  fleets.set(ctx, fleet)
  ctx.effect(() => async () => { await Promise.all([...fleet.servers.values()].map(server => server.stop())) }, 'MCP servers')
  ctx.commands.register({ name: 'mcp', description: 'MCP servers, their states and tools', run: () => describe(fleet) })
  await start(ctx, fleet, Object.keys(config.servers))
}

/** Only the servers that the change concerns are stopped and started. */
export async function reconfigure(ctx: Context, config: Config): Promise<boolean> {
  const fleet = fleets.get(ctx)
  if (!fleet || fleet.config.maxCharacters !== config.maxCharacters) return false
  const before = fleet.config.servers
  const left = Object.keys(before).filter(one => !isDeepStrictEqual(before[one], config.servers[one]))
  fleet.config = config
  await Promise.all(left.map(async one => {
    await fleet.servers.get(one)?.stop()
    fleet.servers.delete(one)
  }))
  await start(ctx, fleet, Object.keys(config.servers).filter(one => !fleet.servers.has(one)))
  return true
}

async function start(ctx: Context, { sdk, servers, config }: Fleet, names: readonly string[]): Promise<void> {
  const all = Promise.all(names.map(async one => {
    const server = new Server(one, config.servers[one]!, config.maxCharacters, ctx, sdk)
    servers.set(one, server)
    await server.ready().catch(() => {})                    // it has told why, and goes on trying
  }))
  const limit = new AbortController()
  try { await Promise.race([all, sleep(WAIT_MS, undefined, { signal: limit.signal })]) } finally { limit.abort() }
  const late = names.filter(one => servers.get(one)?.state === 'connecting')
  if (late.length > 0) ctx.logger.info(`${late.map(one => `"${one}"`).join(', ')} needs longer to start; its tools come when it is there`)
}

function describe({ servers }: Fleet): string {
  if (servers.size === 0) return 'no MCP servers in the config'
  return [...servers.values()].map(({ name, state, tools, problem }) => `${name}: ${state}${problem === undefined ? '' : ` (${problem})`}, ${tools.length} tools${tools.length === 0 ? '' : `: ${tools.join(', ')}`}`).join('\n')
}

/** `hx hooks`, `hx tools`, `hx models`: what is registered, by whom, in order. */
import { basename } from 'node:path'
import { at } from '../errors.js'
import type { HandlerInfo } from '../kernel/dispatch.js'
import { isShipped, places } from '../places.js'
import type { Io } from './io.js'
import { withClient } from './connect.js'
import { elapsed, oneLine, table } from './terminal.js'
import { SLOW_MS } from './trace-tree.js'

export const hooks = (io: Io): Promise<number> => withClient(io, {}, async client => {
  const list = await client.hooks()
  const all = list.flatMap(({ hook, handlers }) => handlers.map(handler => ({ hook, ...handler })))
  const failing = all.filter(({ errors, timeouts }) => errors + timeouts > 0), slow = all.filter(({ max }) => max > SLOW_MS)
  if (io.json) {
    const named = (found: typeof all) => found.map(({ hook, plugin, nth }) => ({ hook, plugin, nth }))
    io.line({ hooks: list, failing: named(failing), slow: named(slow) })
    return 0
  }
  const { installation } = places(io.env)
  const rows = list.flatMap(({ hook, kind, handlers }) => handlers.map((handler, i) => [
    i === 0 ? hook : '', i === 0 ? kind : '', String(i + 1), handler.plugin, because(handler), handler.file === undefined ? '' : isShipped(handler.file, installation) ? 'shipped' : `${basename(handler.file)}:${handler.line}`,
    String(handler.calls), String(handler.errors), String(handler.blocks), String(handler.timeouts), elapsed(handler.p50), elapsed(handler.p95),
  ]))
  const head = ['HOOK', 'KIND', '', 'PLUGIN', 'BECAUSE', 'WHERE', 'CALLS', 'ERRORS', 'BLOCKS', 'TIMEOUTS', 'P50', 'P95']
  if (rows.length === 0) { io.say('no handlers: no active plugin hangs on a hook; see "hx plugins"'); return 0 }
  io.say(table([head, ...rows], io.paint))
  io.say(io.paint('dim', ORDER))
  if (failing.length > 0) io.say(io.paint('red', `failing: ${failing.map(({ plugin, hook, errors, timeouts, calls }) => `${plugin} in ${hook} (${errors + timeouts} of ${calls})`).join(', ')}; what and where: hx plugins info ${failing[0]!.plugin}`))
  if (slow.length > 0) io.say(io.paint('yellow', `slow: ${slow.map(({ plugin, hook, max }) => `${plugin} in ${hook} (up to ${elapsed(max)})`).join(', ')}`))
  return 0
})

const ORDER = 'order: core, then handlers with prepend, then the others; each by the row of its plugin in the config, then as the plugin registered them (#). The first stands outermost.'
/** What puts a handler where it is. */
function because({ prepend, row, entry, nth }: HandlerInfo): string {
  const place = row === undefined ? 'core' : `row ${row}${entry === undefined ? '' : `, ${at({ file: basename(entry.file), line: entry.line })}`}, #${nth}`
  return prepend ? `prepend, ${place}` : place
}

export const tools = (io: Io): Promise<number> => withClient(io, {}, async client => {
  const list = await client.tools()
  if (io.json) { io.line({ tools: list.map(({ name, plugin, parameters, readOnly }) => ({ name, plugin, parameters, readOnly })) }); return 0 }
  const rows = list.map(tool => [tool.name, tool.plugin, tool.readOnly ? 'yes' : 'no', oneLine(tool.description, 90)])
  io.say(rows.length ? table([['TOOL', 'PLUGIN', 'READ-ONLY', 'DOES'], ...rows], io.paint) : 'no tools: no active plugin registers one; see "hx plugins"')
  return 0
})

export const models = (io: Io): Promise<number> => withClient(io, {}, async client => {
  const list = await client.models()
  if (io.json) { io.line({ models: list }); return 0 }
  const rows = list.map(model => [model.id, model.plugin, model.ready ? 'yes' : oneLine(`no: ${model.reason}`, 80), model.defaultModel ?? ''])
  io.say(rows.length ? table([['MODEL', 'PLUGIN', 'READY', 'DEFAULT'], ...rows], io.paint) : 'no models: no active plugin registers one; see "hx plugins"')
  return 0
})

/** `hx hooks`, `hx tools`, `hx models`: what is registered, by whom, in order. */
import { basename } from 'node:path'
import type { Io } from './io.js'
import { withClient } from './connect.js'
import { elapsed, oneLine, table } from './terminal.js'

export const hooks = (io: Io): Promise<number> => withClient(io, {}, async client => {
  const list = await client.hooks()
  if (io.json) { io.line({ hooks: list }); return 0 }
  const rows = list.flatMap(({ hook, kind, handlers }) => handlers.map((handler, i) => [
    i === 0 ? hook : '', i === 0 ? kind : '', `${handler.plugin}${handler.prepend ? ' (first)' : ''}`, handler.file ? `${basename(handler.file)}:${handler.line}` : '',
    String(handler.calls), String(handler.errors), String(handler.blocks), String(handler.timeouts), elapsed(handler.p50), elapsed(handler.p95),
  ]))
  const head = ['HOOK', 'KIND', 'PLUGIN', 'WHERE', 'CALLS', 'ERRORS', 'BLOCKS', 'TIMEOUTS', 'P50', 'P95']
  io.say(rows.length ? table([head, ...rows], io.paint) : 'no handlers: no active plugin hangs on a hook; see "hx plugins"')
  return 0
})

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

/** The config file that commands may edit: what stands in it, and whether a daemon follows it. Its comments, order and references stay. */
import { HarnessError, didYouMean } from '../errors.js'
import type { ConfigRow } from '../loader/config.js'
import { editConfig, setEnabled as setEnabledEdit } from '../loader/config-edit.js'
import type { EntrySpec } from '../loader/entry.js'
import { heldStore, keptChanges } from '../loader/held-changes.js'
import { editable } from '../loader/locate.js'
import { checkConfig } from '../loader/read-config.js'
import { trustAll } from '../loader/trust.js'
import type { PluginInfo } from '../loader/host.js'
import { admit } from './admission.js'
import { daemonOf, find, runningDaemon, type Found } from './connect.js'
import { refuseHeld } from './held.js'
import type { Io } from './io.js'

export interface Editable extends Found {
  readonly file: string
  /** Rows of all layers. */
  readonly rows: readonly ConfigRow[]
  readonly entries: readonly EntrySpec[]
}

/** Throws `config_missing` where there is only the shipped one, `untrusted`, and `config_invalid` while it has a mistake: nothing is written then. */
export async function editableConfig(io: Io): Promise<Editable> {
  const found = find(io), { located, places } = found
  const file = editable(located)
  const daemon = await daemonOf(io, found)
  const held = daemon ? (await daemon.status()).held : keptChanges(heldStore(places.state, located.file))       // of a host that has ended, or is another command's
  await daemon?.close()
  refuseHeld(held, file)
  const trust = daemon ? trustAll : (await admit(io, found)).trust      // a daemon serves this config: it was trusted when that began
  const { config, entries, problems } = checkConfig({ located, places, env: io.env, trust })
  if (!config) {
    const [first] = problems
    throw new HarnessError('config_invalid', `${first?.message ?? 'the config can not be read'}; nothing was written`, { place: first })
  }
  return { ...found, file, rows: config.plugins, entries }
}
/** The row of `id`, or `unknown_id`. */
export function rowOf({ file, rows }: Editable, id: string): ConfigRow {
  const row = rows.find(one => one.id === id)
  if (row) return row
  throw new HarnessError('unknown_id', `there is no plugin "${id}" in ${file}${didYouMean(id, rows.map(one => one.id))}`)
}

/** `changed` is false when the file said so already. */
export async function setEnabled(io: Io, id: string, enabled: boolean): Promise<{ file: string; changed: boolean }> {
  const config = await editableConfig(io)
  rowOf(config, id)
  return { file: config.file, changed: await editConfig(config.file, setEnabledEdit(id, enabled, config.rows.map(row => row.id))) }
}

/** Makes a running daemon look at the file now. Its word on one plugin; undefined without a daemon, or when it has no such plugin. */
export async function taken(io: Io, id: string): Promise<{ readonly daemon: boolean; readonly plugin: PluginInfo | undefined }> {
  const daemon = await runningDaemon(io)
  if (!daemon) return { daemon: false, plugin: undefined }
  try {
    await daemon.reload()
    return { daemon: true, plugin: (await daemon.plugins()).find(one => one.id === id) }
  } finally { await daemon.close() }
}

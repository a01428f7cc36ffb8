/** Switches an entry in the config file that commands may edit; its comments, order and references stay. */
import { HarnessError, didYouMean } from '../errors.js'
import { editConfig, setEnabled as setEnabledEdit } from '../loader/config-edit.js'
import { editable } from '../loader/locate.js'
import { checkConfig } from '../loader/read-config.js'
import { trustAll } from '../loader/trust.js'
import { admit } from './admission.js'
import { daemonOf, find } from './connect.js'
import type { Io } from './io.js'

/** `changed` is false when the file said so already. */
export async function setEnabled(io: Io, id: string, enabled: boolean): Promise<{ file: string; changed: boolean }> {
  const found = find(io), { located, places } = found
  const file = editable(located)
  const daemon = await daemonOf(io, found)
  await daemon?.close()
  const trust = daemon ? trustAll : (await admit(io, found)).trust      // a daemon serves this config: it was trusted when that began
  const { config, problems } = checkConfig({ located, places, env: io.env, trust })
  if (!config) {
    const [first] = problems
    throw new HarnessError('config_invalid', `${first?.message ?? 'the config can not be read'}; nothing was written`, { place: first })
  }
  const ids = config.plugins.map(row => row.id)
  if (!ids.includes(id)) throw new HarnessError('unknown_id', `there is no plugin "${id}" in ${file}${didYouMean(id, ids)}`)
  return { file, changed: await editConfig(file, setEnabledEdit(id, enabled, ids)) }
}

/**
 * `[a] always`: an allow rule for one exact command, written into the config file where the policy's rules stand; comments and order stay.
 * Only what a rule says to the letter: one bash command in plain words. A rule of the deny or ask list stands before every allow rule, so there it is not offered.
 */
import type { ApprovalRequest } from '../agent/services.js'
import { HarnessError } from '../errors.js'
import type { Client } from './client.js'
import type { Io } from './io.js'

/** Nothing that a shell or the rule language reads as more than itself. */
const PLAIN = /^[\w./@:+,-]+(?: [\w./@:+,=-]+)*$/

/** The rule that allows this call and no other, or undefined when none does. */
export function exactRule({ call, reason }: Pick<ApprovalRequest, 'call' | 'reason'>): string | undefined {
  const { command } = call.arguments
  if (call.name !== 'bash' || typeof command !== 'string' || /is on the (?:ask|deny) list/.test(reason)) return undefined
  return PLAIN.test(command) ? command : undefined
}

/** Writes the rule for the entry that asked; what was done, as a sentence. Refused while a change of that file waits for a yes: writing would load it too. */
export async function keepRule(io: Io, host: Pick<Client, 'status'>, id: string, rule: string): Promise<string> {
  const [{ addToConfigList, editConfig, rowIn }, { editable }, { find }, { refuseHeld }] = await Promise.all([import('../loader/config-edit.js'), import('../loader/locate.js'), import('./connect.js'), import('./held.js')])
  const { located } = find(io)
  editable(located)                                          // the shipped file stays as it is
  const rows = located.layers.map(file => ({ file, row: rowIn(file, id) })).filter(({ row }) => row !== undefined)
  // The config of a row counts as a whole: one more in a file above would hide the rules of the file below.
  const { file, row } = rows.find(({ row }) => row!.locked) ?? rows.findLast(({ row }) => row!.config !== undefined) ?? rows.at(-1) ?? {}
  if (file === undefined || (row!.name ?? row!.id) !== 'permission' || row!.from !== undefined) throw new HarnessError('usage', `"${id}" is no entry of the plugin "permission" in your config, so no allow rule can be written for it`)
  refuseHeld((await host.status()).held, file)
  const changed = await editConfig(file, addToConfigList(id, 'allow', rule))
  return changed ? `"${rule}" is allowed from now on: ${file}, config.allow of "${id}"` : `"${rule}" was allowed already in ${file}`
}

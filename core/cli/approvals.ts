/** `hx approvals`: the asks that wait in the daemon, and the answer to one. An answer is for the call that is shown, once. */
import { HarnessError } from '../errors.js'
import { exactRule, keepRule } from './always.js'
import type { ApprovalAnswer } from '../agent/services.js'
import type { Ask, DaemonClient } from './client.js'
import { runningDaemon } from './connect.js'
import type { Io } from './io.js'
import { elapsed, oneLine, printable } from './terminal.js'

export const list = (io: Io): Promise<number> => withDaemon(io, async daemon => {
  const asks = await daemon.approvals()
  if (io.json) { io.line({ approvals: asks }); return 0 }
  if (asks.length === 0) io.say('nothing waits for an answer')
  for (const { id, session, since, call, plugin, reason } of asks) {
    io.say(`${io.paint('bold', id.slice(0, 8))}  ${io.paint('yellow', `${plugin} asks:`)} ${oneLine(reason, 200)}\n          ${shownCall(call)}\n          ${io.paint('dim', `session ${session}, for ${elapsed(Math.max(0, Date.now() - Date.parse(since)))}`)}`)
  }
  return 0
})

export const allow = async (io: Io, id: string, options: { session?: boolean; always?: boolean }): Promise<number> => {
  if (options.session && options.always) throw new HarnessError('usage', '--session and --always exclude each other')
  if (options.always) return settle(io, id, { answer: 'always' }, 'allowed', async (ask, daemon) => {
    const rule = exactRule(ask)
    if (rule === undefined) throw new HarnessError('usage', 'no allow rule says exactly this: --always is for one bash command in plain words that no deny or ask rule concerns; leave it out, or use --session')
    io.note(`hx: ${await keepRule(io, daemon, ask.plugin, rule)}`)
  })
  return settle(io, id, { answer: options.session ? 'session' : 'once' }, options.session ? 'allowed, and the very same call for the rest of the session' : 'allowed')
}
export const deny = (io: Io, id: string, why: readonly string[]): Promise<number> =>
  settle(io, id, { answer: 'denied', ...(why.length > 0 && { note: why.join(' ') }) }, 'denied')

/** The whole call: a yes is for what was read. */
const shownCall = ({ name, arguments: args }: Ask['call']): string =>
  name === 'bash' && typeof args['command'] === 'string' ? `bash ${printable(args['command'])}` : `${name} ${printable(JSON.stringify(args))}`

const settle = (io: Io, given: string, answer: ApprovalAnswer, said: string, before?: (ask: Ask, daemon: DaemonClient) => Promise<void>): Promise<number> => withDaemon(io, async daemon => {
  const ask = theOne(await daemon.approvals(), given)
  await before?.(ask, daemon)
  await daemon.answer(ask.id, answer)
  if (io.json) io.line({ id: ask.id, session: ask.session, ...answer })
  else io.say(`${said}: ${shownCall(ask.call)}`)
  return 0
})

function theOne(asks: readonly Ask[], given: string): Ask {
  const found = given === '' ? [] : asks.filter(({ id }) => id.startsWith(given))
  if (found.length === 1) return found[0]!
  throw new HarnessError('unknown_id', found.length === 0 ? `no ask "${given}" waits for an answer: it is answered, or was withdrawn; see "hx approvals"` : `"${given}" fits ${found.length} asks; give more of the id`)
}

async function withDaemon(io: Io, work: (daemon: DaemonClient) => Promise<number>): Promise<number> {
  const daemon = await runningDaemon(io)
  if (!daemon) throw new HarnessError('daemon_missing', 'no daemon is running for this config, so nothing waits for an answer; start one with "hx start"')
  try { return await work(daemon) } finally { await daemon.close() }
}

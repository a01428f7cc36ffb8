/** `hx attach SESSION`: what the turn of a session does, from its begin, and its asks. Leaving, by Ctrl-C too, leaves the turn alone. */
import { HarnessError } from '../errors.js'
import { exitOf, printLines, printText } from './agent.js'
import { runningDaemon } from './connect.js'
import type { Io } from './io.js'
import { terminalApprover } from './prompt.js'
import { sessionId } from './sessions.js'
import { onSignals } from './signals.js'

export async function attach(io: Io, given: string, options: { after?: number; follow?: boolean }): Promise<number> {
  const daemon = await runningDaemon(io)
  if (!daemon) throw new HarnessError('daemon_missing', `no daemon is running for this config, so no turn runs; what was said is in: hx sessions show ${given}`)
  const signals = onSignals()
  try {
    const session = await sessionId(await daemon.sessions(), given, id => daemon.session(id))
    const handle = await daemon.attach(session, { after: options.after ?? 'turn', forever: options.follow }, io.interactive ? terminalApprover(io, daemon) : undefined)
    const left = new Promise<number>(resolve => { signals.first = () => { resolve(signals.code!) } })
    const code = await Promise.race([left, (io.json ? printLines(handle, io) : printText(handle, io, true)).then(exitOf)])
    if (signals.code !== undefined) io.note(`hx: left session ${session}; its turn goes on (hx sessions abort ${session} stops it)`)
    return code
  } finally {
    await daemon.close()
    signals.off()
  }
}

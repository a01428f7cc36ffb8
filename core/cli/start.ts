/** `hx start`: the daemon of this config. In the foreground it is this process, for a service manager: stopped by SIGTERM or Ctrl-C, exit 0. */
import { HarnessError, messageOf } from '../errors.js'
import { App } from '../app.js'
import { startDaemon } from '../daemon/daemon.js'
import { appOptions, find } from './connect.js'
import type { Io } from './io.js'
import { onSignals } from './signals.js'

export async function start(io: Io): Promise<number> {
  const found = find(io)
  const options = await appOptions(io, found)
  const signals = onSignals()
  const stopped = new Promise<void>(resolve => { signals.first = () => { resolve() } })
  try {
    const daemon = await startDaemon(found.endpoint, () => App.start({ ...options, watch: true }))
    io.note(`hx: the daemon of ${found.located.file} listens on ${found.endpoint.socket} (pid ${process.pid})`)
    if (signals.code === undefined) await stopped
    await daemon.stop()
    return 0
  } catch (error) {
    if (!(error instanceof HarnessError) || error.code !== 'daemon_running') throw error
    io.note(`hx: ${messageOf(error)}`)
    return 0
  } finally { signals.off() }
}

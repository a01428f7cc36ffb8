/** `hx status`: the daemon of this config, or that there is none (exit 1). */
import { HarnessError } from '../errors.js'
import { find, runningDaemon } from './connect.js'
import { heldLines, HOW } from './held.js'
import type { Io } from './io.js'
import { counted, elapsed } from './terminal.js'
import { troubles } from './troubles.js'

export async function status(io: Io): Promise<number> {
  const daemon = await runningDaemon(io)
  if (!daemon) {
    const { endpoint } = find(io), crashed = await (await import('../daemon/run-mark.js')).readMark(endpoint)
    if (crashed && !await (await import('./launch.js')).isFree(endpoint.lock)) throw new HarnessError('daemon_missing', `a daemon of this config begins, or runs and can not be met; try again in a moment, and if that lasts, see "hx logs"`)
    throw new HarnessError('daemon_missing', crashed ? `no daemon is running for this config: the last one (pid ${crashed.pid}) ended without being stopped; see "hx logs", start it with "hx start"` : 'no daemon is running for this config; start one with "hx start"')
  }
  const [now, plugins] = await Promise.all([daemon.status(), daemon.plugins()]).finally(() => daemon.close())
  if (io.json) { io.line(now); return 0 }
  const megabytes = (bytes: number) => `${(bytes / 1024 / 1024).toFixed(0)} MB`
  io.say([
    `${io.paint('green', 'running')}  pid ${now.pid}, version ${now.version}, for ${elapsed(now.uptimeMs)}`,
    `config   ${now.config.path}: ${now.config.state === 'in force' ? 'in force' : io.paint('red', `the last edit was rejected: ${now.config.problem}`)}`,
    `plugins  ${now.plugins} active, ${counted(now.reloads, 'reload')}`,
    ...troubles(plugins).map(({ what, ids }) => `         ${io.paint(what === 'failed' || what === 'quarantined' ? 'red' : 'yellow', `${what}: ${ids.join(', ')}`)}; see "hx plugins"`),
    `turns    ${now.sessions} running, ${now.queued} waiting; ${counted(now.asks, 'open ask')}; ${counted(now.connections, 'connection')}`,
    `memory   ${megabytes(now.rssBytes)} resident, ${megabytes(now.heapBytes)} heap; event loop p99 ${elapsed(now.loopDelayP99Ms)}`,
    ...now.restarts > 0 ? [io.paint('yellow', `crashes  started again ${counted(now.restarts, 'time')} of late; see "hx logs"`)] : [],
    ...heldLines(now.held).map(line => io.paint('yellow', `held     ${line}: ${HOW}`)),
    ...now.tcp === undefined ? [] : [`tcp      ${now.tcp}`],
  ].join('\n'))
  return 0
}

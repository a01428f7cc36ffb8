/** `hx start`, `hx stop` and `hx restart`: the daemon of this config, a process of its own (launch.ts), or this one (foreground.ts). */
import { setTimeout as sleep } from 'node:timers/promises'
import { turnsAre } from '../daemon/protocol.js'
import { clearMark, readMark } from '../daemon/run-mark.js'
import { HarnessError } from '../errors.js'
import { admit } from './admission.js'
import { daemonOf, find, runningDaemon, type Found } from './connect.js'
import type { Io } from './io.js'
import { isFree, launch, LOOK_MS } from './launch.js'
import { onSignals } from './signals.js'
import { tellTroubles } from './troubles.js'

/** How long a daemon may take to stop: its own deadline is ten seconds. */
const GONE_MS = 15_000
const RUNS = 'a daemon runs already for this config'

export async function start(io: Io, options: { foreground?: boolean }): Promise<number> {
  const found = find(io)
  if (options.foreground) return await (await import('./foreground.js')).foreground(io, found) ?? told(io, found, RUNS)
  const running = await runningDaemon(io)
  if (running) {
    await running.close()
    return told(io, found, RUNS)
  }
  return background(io, found)
}

async function background(io: Io, found: Found, trust = io.globals.trust === true): Promise<number> {
  if (!trust) await admit(io, found)                         // here, where a person can be asked; the daemon finds the answer in the trust store
  if (await isFree(found.endpoint.lock)) await clearMark(found.endpoint)      // whoever says "start" forgets the crashes before
  const { daemon, pid } = await launch(io, found, trust)
  const plugins = await daemon.plugins().finally(() => daemon.close())
  if (!io.json) tellTroubles(io, plugins)
  return told(io, found, `the daemon of ${found.located.file} is running${pid === undefined ? '' : ` (pid ${pid})`}; its log: hx logs`)
}

export async function stop(io: Io): Promise<number> {
  const found = find(io)
  const daemon = await daemonOf(io, found, { anyVersion: true })
  if (!daemon) return told(io, found, 'no daemon is running for this config')
  await daemon.stop()
  for (const deadline = performance.now() + GONE_MS; !await isFree(found.endpoint.lock);) {
    if (performance.now() > deadline) throw new HarnessError('internal', `the daemon did not stop within ${GONE_MS / 1000} s; see "hx status"`)
    await sleep(LOOK_MS)
  }
  return told(io, found, 'the daemon has stopped')
}

/** Ends the daemon once its turns have ended, and starts it anew: with this version of hx, this shell's environment, the trust that it had. */
export async function restart(io: Io, options: { now?: boolean }): Promise<number> {
  const found = find(io)
  const daemon = await daemonOf(io, found, { anyVersion: true })
  if (!daemon) return background(io, found)
  const mark = await readMark(found.endpoint)
  const turns = await daemon.stop(!options.now)
  if (turns > 0) io.note(`hx: ${turnsAre(turns)} running; ${options.now ? 'stopped by --now' : 'the daemon takes no new one and waits for the end ("hx restart --now" does not)'}`)
  const signals = onSignals()
  try {
    for (const deadline = performance.now() + GONE_MS; !await isFree(found.endpoint.lock); await sleep(LOOK_MS)) {
      if (signals.code !== undefined) {
        io.note('hx: not waited for; the daemon stops when its turns have ended, and "hx start" starts it anew')
        return signals.code
      }
      if (options.now && performance.now() > deadline) throw new HarnessError('internal', `the daemon did not stop within ${GONE_MS / 1000} s; see "hx logs"`)
    }
  } finally { signals.off() }
  if (mark?.foreground) return told(io, found, 'the daemon has stopped; it ran in the foreground, so whoever started it starts it anew')
  return background(io, found, mark?.trust === true || io.globals.trust === true)
}

function told(io: Io, { located, endpoint }: Found, message: string): number {
  if (io.json) io.line({ config: located.file, socket: endpoint.socket, message })
  else io.note(`hx: ${message}`)
  return 0
}

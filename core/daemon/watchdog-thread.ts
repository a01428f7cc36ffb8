/**
 * The thread beside the one that runs everything. When that one stops beating, this one asks it who runs (by the inspector: an evaluation interrupts loops, regular expressions and waits), twice, a moment apart.
 * A plugin that is named both times is put into quarantine, a crash report is written, and the process is ended by a signal: nothing else ends it, and no state of it can be relied on.
 *
 *   beating ──no beat──▶ silent ──ask, named──▶ suspected ──ask, named again──▶ report, quarantine, end          any ──a beat──▶ beating
 *
 * Invariants: only time in which this thread itself was awake counts, so that a stopped or starved machine is nobody's fault; a process that is debugged is left alone; the running thread is never made to throw.
 */
import { appendFileSync, writeSync } from 'node:fs'
import inspector from 'node:inspector'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { Quarantine } from '../kernel/quarantine.js'
import { Secrets } from '../kernel/secrets.js'
import { writeCrashReport } from './crash-report.js'
import { lineOf } from './log-line.js'
import type { Start, Watched, Who } from './watchdog.js'

/** Silent for this long at least: asked for the first time; and, after the answer, for the second time. */
const SILENT_MS = 1750, AGAIN_MS = 250
/** While it is silent it is looked at this often. */
const LOOK_MS = 100
/** It used less of a core than this: it waits, and is not starved of time by others only if that goes on for longer. */
const IDLE_SHARE = 0.2, IDLE_MS = 5_000
/** No answer comes from inside native code. Who was called last is to blame when it waits (a synchronous child process); when it works it may be collecting garbage, and gets longer. Without anybody to blame it gets longest: `nobodyMs`. */
const MUTE_MS = 2_500, MUTE_BUSY_MS = 10_000

const { beat, debugged, seat, beatMs, nobodyMs, who, quarantine, logs, daemon } = workerData as Start
let plugins: readonly Watched[] = []
parentPort!.on('message', (told: readonly Watched[]) => { plugins = told })

let session: inspector.Session | undefined
let suspected: { readonly plugin: Watched; readonly at: number } | undefined
let lastAnswer: Who | undefined
let awake = now(), counted = awake, asking = false, seen = 0n, cpu = process.cpuUsage(), cpuSince = awake

look()

function look(): void {
  const at = now(), late = at - awake > 2 * beatMs
  awake = at
  const beaten = Atomics.load(beat, 0)
  if (beaten !== seen || late || Atomics.load(debugged, 0) === 1 || lastAnswer?.debugged) calm(at, beaten)
  const silent = at - Math.max(counted, Number(beaten) / 1e6 + beatMs)
  if (silent > SILENT_MS) judge(at, silent)
  setTimeout(look, silent > beatMs ? LOOK_MS : beatMs)
}
function calm(at: number, beaten: bigint): void {
  seen = beaten
  counted = at
  suspected = lastAnswer = undefined
  cpu = process.cpuUsage()
  cpuSince = at
  session?.disconnect()
  session = undefined
  asking = false
}
function judge(at: number, silent: number): void {
  const { user, system } = process.cpuUsage(cpu), idle = (user + system) / 1000 / (at - cpuSince) < IDLE_SHARE
  if (asking) {
    const plugin = plugins.find(one => one.seat === Atomics.load(seat, 0))
    if (plugin && silent > (idle ? MUTE_MS : MUTE_BUSY_MS)) end(plugin, undefined, silent)
    else if (silent > nobodyMs) end(undefined, undefined, silent)
  } else if (suspected === undefined || at - suspected.at > AGAIN_MS) ask(idle)
}
/** An answer says who runs and where. One about nobody is asked again, as long as the silence lasts. */
function ask(idle: boolean): void {
  const asked = session ??= connect()
  asking = true
  asked.post('Runtime.evaluate', { expression: `globalThis[Symbol.for(${JSON.stringify(who)})]?.()`, returnByValue: true }, (error, answer?: { result?: { value?: unknown } }) => {
    if (asked !== session) return                              // it beats again
    asking = false
    const value = answer?.result?.value
    if (error || typeof value !== 'string') return
    const at = now(), beaten = Atomics.load(beat, 0)
    if (beaten !== seen) return
    lastAnswer = JSON.parse(value) as Who
    if (lastAnswer.debugged) return
    const { plugin: id, stack } = lastAnswer
    const plugin = plugins.find(one => one.id === id) ?? plugins.find(({ files }) => files.some(file => stack.includes(file)))
    const silent = at - Math.max(counted, Number(beaten) / 1e6 + beatMs)
    if (plugin === undefined) {
      suspected = undefined
      if (silent > nobodyMs) end(undefined, lastAnswer, silent)
    } else if (suspected?.plugin.id !== plugin.id) suspected = { plugin, at }
    else if (!idle || silent > IDLE_MS || /Atomics\.wait|Sync \(node:/.test(stack)) end(plugin, lastAnswer, silent)
  })
}
function connect(): inspector.Session {
  const made = new inspector.Session()
  made.connectToMainThread()
  return made
}

function end(plugin: Watched | undefined, answer: Who | undefined, silent: number): never {
  const place = plugin && answer ? placeOf(answer.stack, plugin.files) : undefined
  const seconds = `${((silent + beatMs) / 1000).toFixed(1)} s`
  const cause = `it held the whole process up for ${seconds}${place === undefined ? '' : ` at ${place}`}`
  const sentence = plugin
    ? `plugin "${plugin.id}" is quarantined: ${cause}; mend it, or load it again as it is with "hx plugins reload ${plugin.id}". This process ends; the next command starts it again`
    : `the whole process was held up for ${seconds}, and no plugin could be named; this process ends, the next command starts it again`
  attempt(() => { if (plugin) new Quarantine(quarantine).keepDigest(plugin, cause) })
  attempt(() => { writeCrashReport(logs, { daemon, error: Object.assign(new Error(cause), { stack: answer?.stack ?? '' }), facts: { plugin: plugin?.id, place, heldMs: Math.round(silent + beatMs) } }, new Secrets()) })
  attempt(() => { appendFileSync(join(logs, `${daemon}.log`), lineOf({ ts: new Date().toISOString(), level: 'error', message: sentence, plugin: plugin?.id, part: 'daemon' }), { mode: 0o600 }) })
  attempt(() => { writeSync(2, `hx: ${sentence}\n`) })
  process.kill(process.pid, 'SIGKILL')
  throw new Error('unreachable')
}
/** A full disk must not keep a stuck process alive. */
function attempt(work: () => void): void {
  try { work() } catch (error) {
    try { writeSync(2, `hx: watchdog: ${String(error)}\n`) } catch { /* nobody reads stderr: the end comes all the same */ }
  }
}
/** The innermost frame that stands in a file of the plugin, as file:line:column. */
function placeOf(stack: string, files: readonly string[]): string | undefined {
  for (const line of stack.split('\n')) {
    const file = files.find(one => line.includes(one))
    if (file !== undefined) return file + (/^(?::\d+){1,2}/.exec(line.slice(line.indexOf(file) + file.length))?.[0] ?? '')
  }
  return undefined
}
function now(): number { return Number(process.hrtime.bigint()) / 1e6 }

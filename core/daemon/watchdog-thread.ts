/**
 * The thread beside the one that runs everything. When that one stops beating, this one asks it who runs (by the inspector: an evaluation interrupts loops, regular expressions and waits), twice, a moment apart.
 * A plugin that is named both times is put into quarantine, a crash report is written, and the process is ended by a signal: nothing else ends it, and no state of it can be relied on.
 *
 *   beating ──no beat──▶ silent ──ask, named──▶ suspected ──ask, named again──▶ report, quarantine, end          any ──a beat──▶ beating
 * Native code answers nothing: who is at work there stands in memory that both threads see. A child process that the thread waits for is ended, so that it comes back and can say where it was.
 *
 * Invariants: only time counts in which this thread itself was awake, and in which that one could have run (Linux says how long it stood in line for a processor), so that a stopped or starved machine is nobody's fault; a process that is debugged is left alone; the running thread is never made to throw.
 */
import { appendFileSync, readFileSync, writeSync } from 'node:fs'
import inspector from 'node:inspector'
import { join } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import { pluginSeat } from '../kernel/async-context.js'
import { Quarantine } from '../kernel/quarantine.js'
import { Secrets } from '../kernel/secrets.js'
import { writeCrashReport } from './crash-report.js'
import { newestWithin } from './descendants.js'
import { lineOf } from './log-line.js'
import type { Start, Told, Watched, Who } from './watchdog.js'

/** Silent for this long at least: asked for the first time; and, after the answer, for the second time. */
const SILENT_MS = 1750, AGAIN_MS = 250
/** While it is silent it is looked at this often. */
const LOOK_MS = 100
/** It used less of a core than this: it waits, and is not starved of time by others only if that goes on for longer. More than this: it works, and nobody starves it. */
const IDLE_SHARE = 0.2, IDLE_MS = 5_000, WORK_SHARE = 0.5
/** No answer for so long: native code. Who is at work there is to blame when it waits or works; starved of time it gets longer; and longest with nobody to blame: `nobodyMs`. */
const MUTE_MS = 2_250, MUTE_STARVED_MS = 10_000
/** After the child process that it waited for is ended, the answer comes within this time or not at all. */
const FREED_MS = 250

const { beat, debugged, seat, beatMs, nobodyMs, who, quarantine, logs, daemon } = workerData as Start
let told: Told = { plugins: [], labels: new Map() }
parentPort!.on('message', (news: Told) => { told = news })

let session: inspector.Session | undefined
let suspected: { readonly plugin: Watched; readonly at: number } | undefined
let lastAnswer: Who | undefined
/** What it waited for is ended: since when, and who was at work. */
let freed: { readonly at: number; readonly plugin: Watched | undefined; readonly silent: number } | undefined
let awake = now(), counted = awake, asking = false, seen = 0n, cpu = process.cpuUsage(), cpuSince = awake, lined = inLineMs()

look()

function look(): void {
  const at = now(), late = at - awake > 2 * beatMs
  awake = at
  const beaten = Atomics.load(beat, 0)
  if (freed) {
    if (at - freed.at > FREED_MS) answeredAfter(freed, undefined)
  } else if (beaten !== seen || late || Atomics.load(debugged, 0) === 1 || lastAnswer?.debugged) calm(at, beaten)
  const silent = silentAt(at, beaten)
  if (silent > SILENT_MS) judge(at, silent)
  setTimeout(look, silent > beatMs ? LOOK_MS : beatMs)
}
/** How long it has not beaten although it could. */
function silentAt(at: number, beaten: bigint): number {
  const silent = at - Math.max(counted, Number(beaten) / 1e6 + beatMs)
  return silent > SILENT_MS ? silent - (inLineMs() - lined) : silent
}
/** How long the other thread has stood in line for a processor since it began; 0 where the system does not say. */
function inLineMs(): number {
  try { return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, 'latin1').split(' ')[1]) / 1e6 || 0 } catch { return 0 }
}
function calm(at: number, beaten: bigint): void {
  seen = beaten
  lined = inLineMs()
  counted = at
  suspected = lastAnswer = freed = undefined
  cpu = process.cpuUsage()
  cpuSince = at
  session?.disconnect()
  session = undefined
  asking = false
}
function judge(at: number, silent: number): void {
  const { user, system } = process.cpuUsage(cpu), share = (user + system) / 1000 / (at - cpuSince), idle = share < IDLE_SHARE
  if (!asking) {
    if (suspected === undefined || at - suspected.at > AGAIN_MS) ask(idle)
    return
  }
  if (freed || silent < (idle || share > WORK_SHARE ? MUTE_MS : MUTE_STARVED_MS)) return
  const number = Atomics.load(seat, 0), plugin = told.plugins.find(one => one.seat === pluginSeat(number))
  const waitsFor = idle ? newestWithin(at - Number(seen) / 1e6) : []
  if (waitsFor.length > 0) {
    freed = { at, plugin, silent }
    for (const pid of waitsFor) attempt(() => { process.kill(pid, 'SIGKILL') })
  } else if (plugin) end(plugin, { label: told.labels.get(number) ?? plugin.files[0] }, silent)
  else if (silent > nobodyMs) end(undefined, {}, silent)
}
/** The thread is back, or not: it was held up all the same. With nobody to blame it may go on. */
function answeredAfter({ plugin, silent }: NonNullable<typeof freed>, answer: Who | undefined): void {
  const blamed = answer && blamedFor(answer) || plugin
  if (blamed) end(blamed, { stack: answer?.stack }, silent)
  calm(now(), Atomics.load(beat, 0))
}
/** Whose code runs: the innermost that is a plugin's. Where a file is shared, and where there is none, the async context decides. */
function blamedFor({ plugin: id, stack }: Who): Watched | undefined {
  const account = told.plugins.find(one => one.id === id), file = innermost(stack, told.plugins.flatMap(({ files }) => files))?.file
  return file === undefined || account?.files.includes(file) ? account : told.plugins.find(({ files }) => files.includes(file))
}
/** An answer says who runs and where. One about nobody is asked again, as long as the silence lasts. */
function ask(idle: boolean): void {
  const asked = session ??= connect()
  asking = true
  asked.post('Runtime.evaluate', { expression: `globalThis[Symbol.for(${JSON.stringify(who)})]?.()`, returnByValue: true }, (error, reply?: { result?: { value?: unknown } }) => {
    if (asked !== session) return                              // it beats again
    asking = false
    const value = reply?.result?.value
    if (error || typeof value !== 'string') return
    const answer = JSON.parse(value) as Who
    if (freed) { answeredAfter(freed, answer); return }
    const at = now(), beaten = Atomics.load(beat, 0)
    if (beaten !== seen) return
    lastAnswer = answer
    if (answer.debugged) return
    const plugin = blamedFor(answer)
    const silent = silentAt(at, beaten)
    if (plugin === undefined) {
      suspected = undefined
      if (silent > nobodyMs) end(undefined, answer, silent)
    } else if (suspected?.plugin.id !== plugin.id) suspected = { plugin, at }
    else if (!idle || silent > IDLE_MS || /Atomics\.wait|Sync \(node:/.test(answer.stack)) end(plugin, answer, silent)
  })
}
function connect(): inspector.Session {
  const made = new inspector.Session()
  made.connectToMainThread()
  return made
}

/** `stack`: where it is. `label`: what of the plugin it is in, when native code does not say where. */
function end(plugin: Watched | undefined, { stack = '', label }: { readonly stack?: string | undefined; readonly label?: string | undefined }, silent: number): never {
  const place = plugin && (innermost(stack, plugin.files)?.place ?? label)
  const seconds = `${((silent + beatMs) / 1000).toFixed(1)} s`
  const where = stack !== '' ? place === undefined ? '' : ` at ${place}` : ` in native code${place === undefined ? '' : `, in ${place}`}`
  const cause = `it held the whole process up for ${seconds}${where}`
  const sentence = plugin
    ? `plugin "${plugin.id}" is quarantined: ${cause}; mend it, or load it again as it is with "hx plugins reload ${plugin.id}". This process ends; the next command starts it again`
    : `the whole process was held up for ${seconds}, and no plugin could be named; this process ends, the next command starts it again`
  attempt(() => { if (plugin) new Quarantine(quarantine).keepDigest(plugin, cause) })
  attempt(() => { writeCrashReport(logs, { daemon, error: Object.assign(new Error(cause), { stack }), facts: { plugin: plugin?.id, place, heldMs: Math.round(silent + beatMs) } }, new Secrets()) })
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
/** The innermost frame that stands in one of these files, as file:line:column. */
function innermost(stack: string, files: readonly string[]): { readonly file: string; readonly place: string } | undefined {
  for (const line of stack.split('\n')) {
    const file = files.find(one => line.includes(one))
    if (file !== undefined) return { file, place: file + (/^(?::\d+){1,2}/.exec(line.slice(line.indexOf(file) + file.length))?.[0] ?? '') }
  }
  return undefined
}
function now(): number { return Number(process.hrtime.bigint()) / 1e6 }

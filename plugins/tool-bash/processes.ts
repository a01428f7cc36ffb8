/**
 * Finds and stops the processes of a command. Those of its group, and on Linux also those that left the group (setsid), which still carry the mark in their environment.
 * A group is only named while its first process is not reaped, so that a number that was given out again is never hit. What drops its environment and leaves the group escapes;
 * where there is no /proc, all that leaves the group does.
 */
import { existsSync, readFileSync } from 'node:fs'
import { readFile, readdir } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

export const MARK = 'HX_BASH'

export interface Target {
  /** What the value of the mark begins with. */
  readonly mark: string
  /** The process group, while it is certain to be ours. */
  readonly group?: number | undefined
}

const hasProc = process.platform === 'linux' && existsSync('/proc/self/stat')
const POLL_MS = 25
/** Between the last signal and giving up: a process in an uninterruptible wait can not be waited for. */
const LAST_WAIT_MS = 1000

/** Sends SIGTERM, and after `graceMs` SIGKILL, until nobody is left. `target` is asked anew each time. Tells how it went. */
export async function stopAll(target: () => Target, graceMs: number): Promise<'none' | 'terminated' | 'killed' | 'left'> {
  if (!await signalAll(target(), 'SIGTERM')) return 'none'
  if (await untilGone(target, graceMs, 0)) return 'terminated'
  return await untilGone(target, LAST_WAIT_MS, 'SIGKILL') ? 'killed' : 'left'
}

async function untilGone(target: () => Target, ms: number, signal: 'SIGKILL' | 0): Promise<boolean> {
  for (const end = performance.now() + ms; performance.now() < end;) {
    if (!await signalAll(target(), signal)) return true                 // each time anew: one that was just being forked is found in the next round
    await delay(POLL_MS)
  }
  return false
}

/** False when there was nobody to get it. */
async function signalAll(target: Target, signal: NodeJS.Signals | 0): Promise<boolean> {
  if (!hasProc) return target.group !== undefined && send(-target.group, signal)
  const pids = await find(target)
  return pids.map(pid => send(pid, signal)).includes(true)
}

export function send(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'             // it is there, but another user's (sudo)
  }
}

/** Pids, zombies left out. Empty where there is no /proc. */
export async function find({ mark, group }: Target): Promise<number[]> {
  const found = await everyProcess(async process => {
    if (process.group === group) return process.pid
    return (await markOf(process.pid))?.startsWith(mark) ? process.pid : undefined
  })
  return found.filter(pid => pid !== undefined)
}

/** A mark that names this process, told from an earlier one with the same pid by its start time: `<pid>-<start>-…`. */
export function ownMark(): string {
  return `${process.pid}-${hasProc ? statIn(process.pid, readFileSync('/proc/self/stat', 'latin1'))?.start ?? 0 : 0}`        // at once: a start waits for it
}
/** Processes whose host has ended without stopping them. */
export async function leftovers(): Promise<number[]> {
  const found = await everyProcess(async ({ pid }) => {
    const [host, start] = (await markOf(pid))?.split('-') ?? []
    if (host === undefined || start === undefined) return undefined
    return (await statOf(Number(host)))?.start === start ? undefined : pid
  })
  return found.filter(pid => pid !== undefined)
}

interface Stat { readonly pid: number; readonly group: number; readonly start: string }

async function everyProcess<T>(look: (process: Stat) => Promise<T>): Promise<(T | undefined)[]> {
  if (!hasProc) return []
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
  return Promise.all(pids.map(async pid => {
    const stat = await statOf(pid)
    return stat && look(stat)
  }))
}

async function statOf(pid: number): Promise<Stat | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'latin1').catch(() => undefined)   // it has ended
  return stat === undefined ? undefined : statIn(pid, stat)
}
function statIn(pid: number, stat: string): Stat | undefined {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')                     // behind the name, which may hold anything: state, ppid, pgrp, … starttime is the 20th
  return fields[0] === 'Z' || fields[0] === 'X' ? undefined : { pid, group: Number(fields[2]), start: fields[19] ?? '' }
}
async function markOf(pid: number): Promise<string | undefined> {
  const environment = await readFile(`/proc/${pid}/environ`, 'latin1').catch(() => '')  // it has ended, or is another user's
  return environment.split('\0').find(line => line.startsWith(`${MARK}=`))?.slice(MARK.length + 1)
}

/**
 * The processes that the main thread of this process has started and that still run, and those that they have started: as Linux tells it in /proc. Elsewhere, and where /proc hides it, none are known.
 * A thread that waits for a process synchronously can have started no other one since, so one that is as old as the wait is the one it waits for.
 */
import { readFileSync } from 'node:fs'

/** Of all Linux systems that Node runs on. */
const TICKS_PER_SECOND = 100

/** The newest that was started within the last `ms`, and all below it, children first; empty when there is none. */
export function newestWithin(ms: number): number[] {
  try {
    const newest = childrenOf(process.pid, process.pid).at(-1)
    return newest !== undefined && ageMs(newest) <= ms ? below(newest) : []
  } catch { return [] }                                                        // it has ended meanwhile, or there is no /proc
}

function below(pid: number): number[] {
  let children: number[] = []
  try { children = childrenOf(pid, pid) } catch { /* it has ended meanwhile */ }
  return [...children.flatMap(below), pid]
}
const childrenOf = (pid: number, thread: number): number[] => read(`/proc/${pid}/task/${thread}/children`).split(' ').filter(Boolean).map(Number)
function ageMs(pid: number): number {
  const stat = read(`/proc/${pid}/stat`), started = Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19])      // the name before it may hold anything
  return (Number(read('/proc/uptime').split(' ')[0]) - started / TICKS_PER_SECOND) * 1000
}
const read = (file: string): string => readFileSync(file, 'utf8').trim()

/**
 * What is kept of a daemon that ends by a mistake: one JSON file for the owner alone, secrets hidden, with neither environment nor command line. The newest few are kept.
 */
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { memoryUse } from '../kernel/memory-use.js'
import type { Secrets } from '../kernel/secrets.js'
import { VERSION } from '../version.js'

const KEPT = 5

export interface CrashReport {
  /** The daemon that crashed: the name of its log. */
  readonly daemon: string
  readonly error: unknown
  /** What else is known: counts and names. */
  readonly facts?: Readonly<Record<string, unknown>>
}

/** The file's path. Throws when it can not be written. */
export function writeCrashReport(folder: string, { daemon, error, facts }: CrashReport, secrets: Secrets, now = new Date()): string {
  const prefix = `${daemon}.crash-`, name = `${prefix}${now.toISOString().replace(/[:.]/g, '-')}.json`
  const shown = secrets.hideIn(error instanceof Error ? error : { name: typeof error, message: String(error) })
  const report = { ts: now.toISOString(), version: VERSION, node: process.version, platform: `${process.platform} ${process.arch}`, pid: process.pid, uptimeMs: Math.round(process.uptime() * 1000), ...memoryUse(), error: shown, ...facts && secrets.hideIn(facts) as object }
  writeFileSync(join(folder, name), `${JSON.stringify(report, null, 2)}\n`, { mode: 0o600 })
  const others = readdirSync(folder).filter(file => file.startsWith(prefix) && file !== name).sort()      // this one stays, also when the clock was put back and its name sorts first
  for (const old of others.slice(0, 1 - KEPT)) rmSync(join(folder, old), { force: true })
  return join(folder, name)
}

/**
 * Edits of harness.config.yaml that leave everything else as it is: comments, order, references, file mode, links.
 * One edit is a function from text to text; writing happens under a lock against a second writer, to a temporary file, synced and renamed. A file with a mistake in it is never written.
 */
import { realpathSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { didYouMean, HarnessError } from '../errors.js'
import { acquireLock, type Lock } from '../kernel/lock.js'
import { invalid, parseConfig } from './config.js'
import type { Row } from './config-schema.js'
import { appendAt, removeAt, setAt } from './config-splice.js'
import { parseConfigText } from './config-text.js'
import { readText } from './text-file.js'

/** How long another writer may take. */
const LOCK_MS = 5000

export type Edit = (text: string, file: string) => string

/** Switches an entry on or off. A row of a lower layer gets a row of its own here that names the change alone. */
export const setEnabled = (id: string, enabled: boolean, others: readonly string[] = []): Edit => (text, file) => {
  const { rows, index } = findRow(text, file, id)
  if (index >= 0) {
    const row = rows[index]!
    if (typeof row !== 'string' && (row.enabled ?? true) === enabled) return text
    if (typeof row === 'string') return enabled ? text : setAt(text, ['plugins', index], { name: row, enabled })
    return setAt(text, ['plugins', index, 'enabled'], enabled)
  }
  if (others.includes(id)) return appendAt(text, ['plugins'], { id, enabled })
  throw new HarnessError('unknown_id', `there is no entry "${id}" in ${file}${didYouMean(id, [...rows.map(idOf), ...others])}`, { place: { file } })
}
/** Sets a key of a section, such as `agent.model`, or of a row. */
export const setValue = (path: readonly (string | number)[], value: unknown): Edit => text => setAt(text, path, value)
/** Adds a row at the end, which is the last place in the order of handlers. */
export const addRow = (row: Row): Edit => (text, file) => {
  if (findRow(text, file, row.id ?? row.name ?? '').index >= 0) throw new HarnessError('usage', `there is an entry "${row.id ?? row.name}" in ${file} already`, { place: { file } })
  return appendAt(text, ['plugins'], Object.keys(row).length === 1 && row.name !== undefined ? row.name : row)
}
export const removeRow = (id: string): Edit => (text, file) => {
  const { rows, index } = findRow(text, file, id)
  if (index < 0) throw new HarnessError('unknown_id', `there is no entry "${id}" in ${file}${didYouMean(id, rows.map(idOf))}`, { place: { file } })
  return removeAt(text, ['plugins', index])
}

/** Adds an item to a list in the config of a row. */
export const addToConfigList = (id: string, key: string, item: string): Edit => (text, file) => {
  const { rows, index } = findRow(text, file, id), row = rows[index]
  if (row === undefined) throw new HarnessError('unknown_id', `there is no entry "${id}" in ${file}${didYouMean(id, rows.map(idOf))}`, { place: { file } })
  if (typeof row === 'string') return setAt(text, ['plugins', index], { name: row, config: { [key]: [item] } })
  const list = row.config?.[key]
  if (list !== undefined && !Array.isArray(list)) throw new HarnessError('config_invalid', `config.${key} of "${id}" in ${file} is no list; nothing was written`, { place: { file } })
  return list?.includes(item) ? text : appendAt(text, ['plugins', index, 'config', key], item)
}
/** The row of `id` as it stands in a file, the short form spelled out. */
export function rowIn(file: string, id: string): Row | undefined {
  const { rows, index } = findRow(readText(file), file, id), row = rows[index]
  return typeof row === 'string' ? { name: row } : row
}

/** Reads, edits and writes. Resolves to false when there was nothing to change. Rejects with `config_invalid`, the file untouched, when it has a mistake before the edit or would have one after it. */
export async function editConfig(file: string, edit: Edit): Promise<boolean> {
  const target = realpathSync(file)                          // a link stays a link
  const lock = await locked(target)
  try {
    const before = readText(target)
    check(before, file)
    const after = edit(before, file)
    if (after === before) return false
    check(after, file)
    const { default: writeFileAtomic } = await import('write-file-atomic')      // hosts that edit nothing are the rule
    await writeFileAtomic(target, after)                     // keeps the mode; temporary file, fsync, rename
    await syncFolder(dirname(target))
    return true
  } finally { await lock.release() }
}

/** A row without a name may belong to a lower layer, so only what one file can tell counts here. */
function check(text: string, file: string): void {
  const problems = parseConfig(text, file).problems.filter(({ message }) => !/needs a name/.test(message))
  if (problems.length > 0) throw invalid(problems)
}
function findRow(text: string, file: string, id: string): { rows: readonly (string | Row)[]; index: number } {
  const { plugins: rows = [] } = parseConfigText(text, file).value as { plugins?: readonly (string | Row)[] }
  return { rows, index: rows.findIndex(row => idOf(row) === id) }
}
const idOf = (row: string | Row): string => typeof row === 'string' ? row : row.id ?? row.name ?? ''

async function locked(file: string): Promise<Lock> {
  for (const end = performance.now() + LOCK_MS; ;) {
    const lock = await acquireLock(`config:${file}`)
    if (lock) return lock
    if (performance.now() > end) throw new HarnessError('config_missing', `${file} is being written by another process for more than ${LOCK_MS} ms; try again`, { place: { file } })
    await sleep(5 + Math.random() * 20)
  }
}
/** The rename itself survives a power cut only then. */
async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try { await handle.sync() } finally { await handle.close() }
}

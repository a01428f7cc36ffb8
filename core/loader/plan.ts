/**
 * What has to happen so that what runs becomes what the file wants. A pure function from two lists to an ordered list of operations; nothing to do is an empty list.
 * Order: unload in reverse, reorder, change what runs, load what doesn't, in order. Names that leave are free before others come.
 */
import { isDeepStrictEqual } from 'node:util'
import type { EntrySpec, EntryState } from './entry.js'

/** An entry as it stands. */
export interface Actual extends Pick<EntrySpec, 'id' | 'from' | 'config' | 'row'> {
  readonly state: EntryState
  /** Its module takes config changes in place. */
  readonly reconfigures: boolean
}
export type Op =
  | { readonly op: 'unload'; readonly id: string; readonly why: 'removed' | 'disabled' }
  | { readonly op: 'reorder'; readonly rows: ReadonlyMap<string, number> }
  /** Another file under the same id. */
  | { readonly op: 'replace'; readonly id: string }
  | { readonly op: 'reconfigure'; readonly id: string }
  /** The same code with another config. */
  | { readonly op: 'restart'; readonly id: string }
  | { readonly op: 'load'; readonly id: string }

export function plan(desired: readonly EntrySpec[], actual: readonly Actual[]): Op[] {
  const wanted = new Map(desired.map(spec => [spec.id, spec]))
  const present = new Map(actual.map(entry => [entry.id, entry]))
  const inOrder = [...desired].sort((a, b) => a.row - b.row)
  return [
    ...[...actual].sort((a, b) => b.row - a.row).flatMap(entry => unload(entry, wanted.get(entry.id))),
    ...reorder(desired, present),
    ...inOrder.flatMap(spec => change(spec, present.get(spec.id))),
    ...inOrder.flatMap(spec => load(spec, present.get(spec.id))),
  ]
}

function unload(entry: Actual, spec: EntrySpec | undefined): Op[] {
  if (!spec) return [{ op: 'unload', id: entry.id, why: 'removed' }]
  return spec.enabled || entry.state === 'disabled' ? [] : [{ op: 'unload', id: entry.id, why: 'disabled' }]
}
function reorder(desired: readonly EntrySpec[], present: ReadonlyMap<string, Actual>): Op[] {
  const moved = desired.filter(spec => present.has(spec.id) && present.get(spec.id)!.row !== spec.row)
  return moved.length === 0 ? [] : [{ op: 'reorder', rows: new Map(moved.map(spec => [spec.id, spec.row])) }]
}
function change(spec: EntrySpec, entry: Actual | undefined): Op[] {
  if (!spec.enabled || entry?.state !== 'active') return []
  if (entry.from !== spec.from) return [{ op: 'replace', id: spec.id }]
  if (isDeepStrictEqual(entry.config, spec.config)) return []
  return [{ op: entry.reconfigures ? 'reconfigure' : 'restart', id: spec.id }]
}
/** One that waits or failed is loaded again only when its row says something else than before: an unchanged file is an empty plan. */
function load(spec: EntrySpec, entry: Actual | undefined): Op[] {
  if (!spec.enabled || entry?.state === 'active') return []
  const again = !entry || entry.state === 'disabled' || entry.from !== spec.from || !isDeepStrictEqual(entry.config, spec.config)
  return again ? [{ op: 'load', id: spec.id }] : []
}

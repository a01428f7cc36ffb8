import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { EntrySpec, EntryState } from '../../core/loader/entry.js'
import { plan, type Actual, type Op } from '../../core/loader/plan.js'

const spec = (id: string, row: number, more: Partial<EntrySpec> = {}): EntrySpec => ({ id, name: id, from: `/p/${id}.ts`, config: {}, enabled: true, required: false, row, place: () => ({ file: 'c' }), ...more })
const actual = (id: string, row: number, more: Partial<Actual> = {}): Actual => ({ id, from: `/p/${id}.ts`, config: {}, row, state: 'active', reconfigures: false, ...more })
const short = (ops: readonly Op[]) => ops.map(op => op.op === 'reorder' ? `reorder ${[...op.rows].map(([id, row]) => `${id}=${row}`).join()}` : `${op.op} ${op.id}`)

describe('the plan', () => {
  it('is empty when nothing has changed', () => {
    expect(plan([spec('a', 0, { config: { x: [1, { y: 2 }] } })], [actual('a', 0, { config: { x: [1, { y: 2 }] } })])).toEqual([])
  })
  it('unloads in reverse, reorders, changes, then loads in order', () => {
    const desired = [spec('new1', 0), spec('c', 1, { config: { v: 2 } }), spec('new2', 2), spec('d', 3, { enabled: false })]
    const running = [actual('a', 0), actual('b', 1), actual('c', 2, { config: { v: 1 } }), actual('d', 3)]
    expect(short(plan(desired, running))).toEqual(['unload d', 'unload b', 'unload a', 'reorder c=1', 'restart c', 'load new1', 'load new2'])
  })
  it('reconfigures what takes a config in place, restarts what does not, and replaces what comes from another file', () => {
    const desired = [spec('a', 0, { config: { v: 2 } }), spec('b', 1, { config: { v: 2 } }), spec('c', 2, { from: '/p/other.ts' })]
    const running = [actual('a', 0, { reconfigures: true }), actual('b', 1), actual('c', 2)]
    expect(short(plan(desired, running))).toEqual(['reconfigure a', 'restart b', 'replace c'])
  })
  it.each<[EntryState, boolean, string[]]>([['failed', false, []], ['failed', true, ['load a']], ['waiting', false, []], ['waiting', true, ['load a']], ['quarantined', false, []], ['quarantined', true, ['load a']], ['disabled', false, ['load a']]])('of one that is %s (config changed: %s) is %j', (state, changed, ops) => {
    expect(short(plan([spec('a', 0, { config: changed ? { v: 2 } : {} })], [actual('a', 0, { state })]))).toEqual(ops)
  })
  it('leaves what is disabled alone', () => {
    expect(plan([spec('a', 0, { enabled: false, config: { v: 2 } })], [actual('a', 0, { state: 'disabled' })])).toEqual([])
    expect(plan([spec('a', 0, { enabled: false })], [])).toEqual([])
  })
  it('comes to nothing once it has been carried out, whatever the two lists were', () => {
    const entry = fc.record({ id: fc.constantFrom('a', 'b', 'c', 'd', 'e'), from: fc.constantFrom('/p/x.ts', '/p/y.ts'), config: fc.constantFrom({ v: 1 }, { v: 2 }), enabled: fc.boolean() })
    const list = fc.uniqueArray(entry, { selector: ({ id }) => id })
    fc.assert(fc.property(list, list, (before, after) => {
      const specs = (entries: typeof before) => entries.map(({ id, ...more }, row) => spec(id, row, more))
      const desired = specs(after)
      const running = new Map(specs(before).map(one => [one.id, actual(one.id, one.row, { from: one.from, config: one.config, state: one.enabled ? 'active' : 'disabled' })]))
      const byId = new Map(desired.map(one => [one.id, one]))
      for (const op of plan(desired, [...running.values()])) {
        if (op.op === 'reorder') { for (const [id, row] of op.rows) running.set(id, { ...running.get(id)!, row }); continue }
        const want = byId.get(op.id)
        if (op.op === 'unload') { if (op.why === 'removed') running.delete(op.id); else running.set(op.id, { ...running.get(op.id)!, state: 'disabled' }) }
        else running.set(op.id, actual(op.id, want!.row, { from: want!.from, config: want!.config }))
      }
      const active = [...running.values()].filter(({ state }) => state === 'active').map(({ id, from, config, row }) => ({ id, from, config, row })).sort((a, b) => a.row - b.row)
      expect(active).toEqual(desired.filter(({ enabled }) => enabled).map(({ id, from, config, row }) => ({ id, from, config, row })))
    }))
  })
})

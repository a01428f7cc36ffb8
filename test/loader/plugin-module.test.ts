import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { checkModule } from '../../core/loader/plugin-module.js'
import { failure } from '../support/kernel.js'

const entry = { id: 'guard', name: 'guard', from: 'plugins/guard.ts' }
const apply = () => {}

describe('a module', () => {
  it('is a plugin with apply alone, named after its entry', () => {
    const { module, notes } = checkModule({ apply }, entry)
    expect(module).toEqual({ name: 'guard', apply })
    expect(notes).toEqual([])
  })
  it('keeps its exports, its own name and a Standard Schema of any kind', () => {
    const Config = z.object({}), callable = Object.assign(() => {}, { '~standard': { version: 1, vendor: 'x', validate: (value: unknown) => ({ value }) } })
    const reconfigure = () => true
    expect(checkModule({ name: 'mine', apply, inject: ['store'], provides: ['x'], Config, reload: 'staged', reconfigure }, entry).module).toEqual({ name: 'mine', apply, inject: ['store'], provides: ['x'], Config, reload: 'staged', reconfigure })
    expect(checkModule({ apply, Config: callable }, entry).module.Config).toBe(callable)
  })
  it.each<[Record<string, unknown>, string]>([
    [{ default: apply }, 'plugins/guard.ts has a default export alone, and a plugin has named ones; write: export function apply(ctx, config) { … }'],
    [{}, 'plugins/guard.ts does not export apply; write: export function apply(ctx) { … }'],
    [{ aply: apply }, 'plugins/guard.ts does not export apply; write: export function apply(ctx) { … } (it exports "aply")'],
    [{ apply: {} }, 'apply must be a function, received {}; write: export function apply(ctx) { … }'],
    [{ apply, name: 7 }, `name must be a string, received 7; write: export const name = 'guard'`],
    [{ apply, inject: 'store' }, `inject must be a list of service names, received "store"; write: export const inject = ['store']`],
    [{ apply, inject: { required: ['a'], optional: ['b'] } }, `inject must be a list of service names, received {"required":["a"],"optional":["b"]}; write: export const inject = ['store'], and for an optional one, in apply: ctx.inject(['store'], ctx => { … })`],
    [{ apply, provides: [1] }, `provides must be a list of service names, received [1]; write: export const provides = ['store']`],
    [{ apply, Config: () => ({}) }, `Config must be a Standard Schema, received a function (Config); write: export const Config = z.object({ … }), with z from 'harnessx'`],
    [{ apply, reload: 'hot' }, `reload must be 'staged' or 'exclusive', received "hot"`],
    [{ apply, reconfigure: true }, 'reconfigure must be a function, received true; write: export function reconfigure(ctx, config) { … }'],
  ])('that is wrong is refused with the fix: %j', async (namespace, message) => {
    const error = await failure(() => checkModule(namespace, entry))
    expect(error.code).toBe('plugin_invalid')
    expect(error.message).toBe(`plugin "guard": ${message}`)
    expect(error.place).toEqual({ file: 'plugins/guard.ts' })
  })
  it('gets a note for a default beside named ones, and for what people write instead of a name', () => {
    expect(checkModule({ apply, default: 1, provide: ['x'], helper: 1, constructor: apply, toString: apply }, entry).notes).toEqual([
      'plugin "guard": export "provide" means nothing to the host; did you mean "provides"?',
      'plugin "guard": the default export is ignored, because there are named ones',
    ])
  })
})

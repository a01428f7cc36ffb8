/**
 * Is this namespace a plugin? Each refusal is one sentence with the fix in it. Reads exports only, runs nothing of them.
 */
import { HarnessError, nearest, show } from '../errors.js'
import type { PluginModule } from '../kernel/hooks.js'

export interface CheckedModule { readonly module: PluginModule; readonly notes: readonly string[] }
type Namespace = Readonly<Record<string, unknown>>

const EXPORTS = ['name', 'apply', 'inject', 'provides', 'Config', 'reload', 'reconfigure']
/** What people write for them. Anything else a module exports is its own business. */
const MEANT: Readonly<Record<string, string>> = { provide: 'provides', injects: 'inject', using: 'inject', config: 'Config', schema: 'Config', Schema: 'Config', configure: 'reconfigure' }

/** The plugin in a module, or `plugin_invalid`. */
export function checkModule(namespace: Namespace, { id, name, from }: { id: string; name: string; from: string }): CheckedModule {
  const refuse = (what: string): never => { throw new HarnessError('plugin_invalid', `plugin "${id}": ${what}`, { place: { file: from } }) }

  const { apply, inject, provides, Config, reload, reconfigure } = namespace
  if (apply === undefined) refuse(withoutApply(namespace, from))
  if (typeof apply !== 'function') refuse(`apply must be a function, received ${show(apply)}; write: export function apply(ctx) { … }`)
  if (namespace['name'] !== undefined && (typeof namespace['name'] !== 'string' || namespace['name'] === '')) refuse(`name must be a string, received ${show(namespace['name'])}; write: export const name = '${name}'`)
  if (inject !== undefined && !isNames(inject)) refuse(wrongInject(inject))
  if (provides !== undefined && !isNames(provides)) refuse(`provides must be a list of service names, received ${show(provides)}; write: export const provides = ['store']`)
  if (Config !== undefined && !isSchema(Config)) refuse(`Config must be a Standard Schema, received ${show(Config)}; write: export const Config = z.object({ … }), with z from 'harnessx'`)
  if (reload !== undefined && reload !== 'staged' && reload !== 'exclusive') refuse(`reload must be 'staged' or 'exclusive', received ${show(reload)}`)
  if (reconfigure !== undefined && typeof reconfigure !== 'function') refuse(`reconfigure must be a function, received ${show(reconfigure)}; write: export function reconfigure(ctx, config) { … }`)

  // A copy, because exports are getters into the module: what was checked is what is used.
  const module = { name: namespace['name'] ?? name, apply, ...defined({ inject, provides, Config, reload, reconfigure }) } as unknown as PluginModule
  return { module, notes: notes(namespace, id) }
}

function notes(namespace: Namespace, id: string): string[] {
  const found = Object.keys(namespace).filter(key => Object.hasOwn(MEANT, key) && namespace[MEANT[key]!] === undefined)
    .map(key => `plugin "${id}": export "${key}" means nothing to the host; did you mean "${MEANT[key]}"?`)
  if (namespace['default'] !== undefined) found.push(`plugin "${id}": the default export is ignored, because there are named ones`)
  return found
}
function withoutApply(namespace: Namespace, from: string): string {
  if (namespace['default'] !== undefined) return `${from} has a default export alone, and a plugin has named ones; write: export function apply(ctx, config) { … }`
  const close = Object.keys(namespace).find(key => !EXPORTS.includes(key) && nearest(key, ['apply']))
  return `${from} does not export apply; write: export function apply(ctx) { … }${close ? ` (it exports "${close}")` : ''}`
}
function wrongInject(inject: unknown): string {
  const optional = typeof inject === 'object' && inject !== null && 'optional' in inject
  return `inject must be a list of service names, received ${show(inject)}; write: export const inject = ['store']${optional ? ", and for an optional one, in apply: ctx.inject(['store'], ctx => { … })" : ''}`
}

const isNames = (value: unknown): value is string[] => Array.isArray(value) && value.every(name => typeof name === 'string' && name !== '')
function isSchema(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false
  const standard = (value as { '~standard'?: { validate?: unknown } })['~standard']
  return typeof standard?.validate === 'function'
}
const defined = (fields: Record<string, unknown>): Record<string, unknown> => Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined))

import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { folder } from '../support/folder.js'
import { publicTypes } from '../support/public-types.js'

const root = fileURLToPath(new URL('../..', import.meta.url))
/** The compiler over a project of a user, who has the built package in node_modules. Gives its complaints. */
function compiled(files: Readonly<Record<string, string>>, options: object): Promise<string> {
  const place = folder({ 'package.json': '{"type":"module"}', 'tsconfig.json': JSON.stringify({ compilerOptions: { strict: true, noEmit: true, skipLibCheck: false, target: 'es2023', lib: ['es2023', 'esnext.disposable'], types: ['node'], typeRoots: [join(root, 'node_modules/@types')], ...options } }), ...files })
  mkdirSync(place.at('node_modules'))
  symlinkSync(root, place.at('node_modules/harnessx'))
  return new Promise(resolve => { execFile(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '-p', place.path], { cwd: place.path }, (_, stdout, stderr) => { resolve((stdout + stderr).trim()) }) })
}
const PLUGIN = `
import { block, type Context, type Decide, type Fire, type Judged, type Watch } from 'harnessx'
import { createTestHost } from 'harnessx/testing'
interface Store { get(key: string): string | undefined }
declare module 'harnessx' {
  interface Services { store: Store }
  interface Hooks { 'notes/saved': Watch<{ readonly path: string }>; 'notes/may-save': Decide<{ readonly path: string }, Judged> }
}
export const name = 'notes'
export const inject = ['store'] as const
export function apply(ctx: Context) {
  const known: string | undefined = ctx.store.get('a')
  const maybe: Store | undefined = ctx.get('store')
  ctx.inject(['store'], child => { child.store.get('b') })
  ctx.on('notes/saved', ({ path }) => { path.trim() })
  ctx.on('notes/may-save', ({ path }) => path === known ? block('no') : undefined)
  const fire: Fire = ctx.hooks.define('notes/saved', { kind: 'watch' })
  ctx.provide('store', { get: key => key })
  // @ts-expect-error not a store
  ctx.provide('store', { get: 1 })
  // @ts-expect-error a service that nobody declared
  ctx.shop
  // @ts-expect-error a hook that nobody declared
  ctx.on('notes/gone', () => {})
  void maybe, fire
}
export async function test() {
  await using host = await createTestHost({ plugins: [{ module: { name, inject, apply } }] })
  const { value } = await host.fire('agent/pre-tool-use', { call: { name: 'bash', arguments: { command: 'ls' } } })
  // @ts-expect-error no decision of this hook
  value.kind === 'reject'
  // @ts-expect-error a part that the payload hasn't
  await host.fire('agent/stop', { prompt: 'x' })
}
`

describe('the public types', () => {
  it('are these; a change of them is a change for every plugin', async () => {
    await expect(publicTypes('api.d.ts')).toMatchFileSnapshot('./api.snapshot.txt')
    await expect(publicTypes('testing.d.ts', 'api.d.ts')).toMatchFileSnapshot('./testing.snapshot.txt')
  })
  it('show nothing of cordis, and nothing of the classes inside', () => {
    for (const door of ['api.d.ts', 'testing.d.ts']) expect(publicTypes(door)).not.toMatch(/cordis|class (?:App|Kernel|Dispatcher|PluginHost)\b/)
  })
  it.each([['a bundler', { module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true }], ['Node', { module: 'nodenext', exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, verbatimModuleSyntax: true, erasableSyntaxOnly: true }]])('give a plugin its services and hooks, resolved as %s does', async (_, options) => {
    expect(await compiled({ 'notes.ts': PLUGIN }, options)).toBe('')
  })
})

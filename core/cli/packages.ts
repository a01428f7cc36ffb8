/**
 * `hx plugins add|remove|update`: plugins that come as packages, installed by npm into the folder of the config, without their scripts. What a package would hang on is read from its source and shown before its row is written; nothing of it runs before that.
 * Invariants: whoever says no is left with what was there; a package that another row uses is never taken away; code of one's own is never deleted.
 */
import { existsSync, lstatSync, readdirSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join, relative, resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { HarnessError } from '../errors.js'
import { addRow, editConfig, removeRow } from '../loader/config-edit.js'
import { TrustStore, trustStored } from '../loader/trust-store.js'
import { editableConfig, rowOf, taken, type Editable } from './edit.js'
import type { Io } from './io.js'
import { linkHost } from './link-host.js'
import { runNpm } from './npm.js'
import { packageNote, packageProblem, readManifest, wants, type Manifest, type Wants } from './plugin-package.js'
import { oneLine } from './terminal.js'

interface Row { readonly name: string; readonly id?: string; readonly from?: string }

export async function add(io: Io, given: string, options: { id?: string; yes?: boolean }): Promise<number> {
  const config = await editableConfig(io), folder = dirname(config.file)
  const path = resolve(io.cwd, given), found = existsSync(path) ? statSync(path) : undefined
  const own = found?.isFile() && /\.[mc]?[jt]sx?$/.test(path)
  if (!found && /^[./~]|\.(?:tgz|[mc]?[jt]s)$/.test(given)) throw new HarnessError('usage', `there is no file or folder "${path}"`)
  const before = own ? undefined : packagesOf(folder), bare = !existsSync(join(folder, 'package.json'))
  if (!own) await npm(io, config, ['install', '--save', found ? path : given])
  const back = async () => {
    if (!before || name === undefined) return
    const saved = before.get(name)
    await npm(io, config, saved === undefined ? ['uninstall', name] : ['install', '--save', specOf(folder, name, saved)])
    if (bare) for (const made of ['package.json', 'package-lock.json', join('node_modules', '.package-lock.json')]) rmSync(join(folder, made), { force: true })
  }
  const name = own ? undefined : installed(folder, before!, found ? path : given)
  try {
    const manifest = name === undefined ? undefined : readManifest(join(folder, 'node_modules', name))
    const problem = manifest && packageProblem(manifest)
    if (problem !== undefined) throw new HarnessError('plugin_invalid', problem)
    const remark = manifest && packageNote(manifest)
    if (remark !== undefined) io.note(io.paintNote('yellow', `hx: ${remark}`))
    const row = own ? fileRow(path, folder, options.id) : packageRow(name!, config, options.id)
    const id = row.id ?? row.name
    if (config.rows.some(other => other.id === id)) throw new HarnessError('usage', `there is a plugin "${id}" in ${config.file} already; ${name !== undefined && packageOf(config, id) === name ? `"hx plugins update ${id}" takes a newer version` : 'give this one another id with --id'}`)
    const wanted = wants(own ? path : join(folder, 'node_modules', name!))
    if (!io.json || !options.yes) show(io, own ? path : `${manifest!.name}@${manifest!.version}`, manifest, wanted)
    if (!options.yes && !await agreed(io, id, given)) {
      await back()
      io.note('hx: nothing was changed')
      return 3
    }
    if (own) await trustToo(config, dirname(path))
    await editConfig(config.file, addRow(row))
    const { daemon, plugin } = await taken(io, id)
    if (io.json) io.line({ id, ...(manifest && { package: manifest.name, version: manifest.version }), file: config.file, ...wanted, ...(plugin && { state: plugin.state }) })
    else io.say(`added "${id}" to ${config.file}${daemon ? `, now ${plugin?.state ?? 'unknown to the daemon'}${plugin?.reason ? `: ${plugin.reason}` : ''}` : '; next: hx plugins info ' + id}`)
    return plugin !== undefined && plugin.state === 'failed' ? 1 : 0
  } catch (error) {
    await back()
    throw error
  }
}

export async function remove(io: Io, id: string, options: { purge?: boolean }): Promise<number> {
  const config = await editableConfig(io), { file, places } = config, folder = dirname(file)
  rowOf(config, id)
  const name = packageOf(config, id)
  await editConfig(file, removeRow(id))
  await taken(io, id)
  const gone: string[] = []
  if (options.purge) {
    const shared = name !== undefined && config.rows.some(row => row.id !== id && packageOf(config, row.id) === name)
    if (name !== undefined && !shared) {
      await npm(io, config, ['uninstall', name])
      gone.push(`package ${name}`)
    }
    const data = join(places.data, id)
    if (existsSync(data)) {
      rmSync(data, { recursive: true })
      gone.push(data)
    }
  }
  const entry = config.entries.find(one => one.id === id)
  const stays = name === undefined && entry && !entry.missing && !entry.from.startsWith(places.installation.root) ? entry.from : undefined
  if (io.json) io.line({ id, file, removed: gone, ...(name !== undefined && { package: name }), ...(stays !== undefined && { stays }) })
  else {
    io.say(`removed "${id}" from ${file}${gone.length > 0 ? `, and ${gone.join(' and ')}` : ''}`)
    if (stays !== undefined) io.say(`${stays} stays as it is`)
    else if (name !== undefined && !options.purge) io.say(`the package ${name} stays installed; --purge takes it away`)
  }
  return 0
}

export async function update(io: Io, id: string | undefined): Promise<number> {
  const config = await editableConfig(io), folder = dirname(config.file)
  if (id !== undefined && packageOf(config, rowOf(config, id).id) === undefined) throw new HarnessError('usage', `plugin "${id}" is no package, so there is nothing to update; a file of yours is taken when it is saved`)
  const named = new Map(config.rows.flatMap(row => id === undefined || row.id === id ? [[row.id, packageOf(config, row.id)] as const] : []))
  const updates: { id: string; package: string; from: string; to: string }[] = []
  for (const [row, name] of named) {
    if (name === undefined) continue
    const before = readManifest(join(folder, 'node_modules', name)), saved = packagesOf(folder).get(name) ?? ''
    await npm(io, config, ['install', '--save', saved.startsWith('file:') ? specOf(folder, name, saved) : `${name}@latest`])
    const after = readManifest(join(folder, 'node_modules', name)), problem = packageProblem(after)
    if (problem !== undefined) {
      await npm(io, config, ['install', '--save', `${name}@${before.version}`])
      throw new HarnessError('plugin_invalid', `${problem}; ${name}@${before.version} stays`)
    }
    updates.push({ id: row, package: name, from: before.version, to: after.version })
    await taken(io, row)
  }
  if (io.json) io.line({ updates })
  else io.say(updates.length === 0 ? 'no plugin of the config is a package of its folder' : updates.map(one => `${one.id}: ${one.package} ${one.from === one.to ? `is at ${one.to} already` : `${one.from} → ${one.to}`}`).join('\n'))
  return 0
}

/** npm takes away what it did not put there, the link to this installation too. */
async function npm(io: Io, { file, places }: Editable, args: readonly string[]): Promise<void> {
  const folder = dirname(file), linked = lstatSync(join(folder, 'node_modules', 'harnessx'), { throwIfNoEntry: false })?.isSymbolicLink()
  await runNpm(io, folder, args)
  if (linked) linkHost(folder, places.installation.root)
}

function show(io: Io, what: string, manifest: Manifest | undefined, wanted: Wants): void {
  const list = (names: readonly string[]) => names.length === 0 ? 'none that its source names' : names.join(', ')
  io.note(`${io.paintNote('bold', what)}${manifest?.description ? `: ${oneLine(manifest.description, 200)}` : ''}`)
  io.note(`  hooks     ${list(wanted.hooks)}\n  services  ${wanted.inject.length > 0 ? `waits for ${wanted.inject.join(', ')}; ` : ''}provides ${list(wanted.provides)}\n  imports   ${list(wanted.imports)}`)
  io.note('  it runs with your rights, like all plugins of this config')
}
async function agreed(io: Io, id: string, given: string): Promise<boolean> {
  if (!io.interactive) throw new HarnessError('untrusted', `nobody can be asked here; look at the above, and add it with --yes: hx plugins add ${given} --yes`)
  const lines = createInterface({ input: io.stdin, output: io.stderr })
  try { return /^y(es)?$/i.test((await lines.question(`add "${id}"? [y/N] `)).trim()) } finally { lines.close() }
}
/** A yes to a file elsewhere is a yes to its folder, as with "hx trust"; only where the config itself is trusted for good. */
async function trustToo({ located, places }: Editable, folder: string): Promise<void> {
  const store = new TrustStore(places.trust), kept = store.find(located.file), real = realpathSync(folder)
  if (!kept || trustStored(store, located.file).allows({ kind: 'plugin', file: join(real, 'x') })) return
  await store.add(located.file, [...kept.also, real])
}

function fileRow(path: string, folder: string, id: string | undefined): Row {
  const name = id ?? basename(path).replace(/\.[mc]?[jt]sx?$/, '')
  const from = relative(folder, path)
  return { name, from: from.startsWith('.') ? from : `./${from}` }
}
/** The short name where it leads to the package; else with `from`. */
function packageRow(name: string, { file, places }: Editable, id: string | undefined): Row {
  const short = name.replace(/^@[^/]+\//, '').replace(/^harnessx-plugin-/, '')
  const hidden = [join(dirname(file), 'plugins'), places.installation.plugins].some(folder => existsSync(folder) && readdirSync(folder).some(entry => entry.replace(/\.[mc]?[jt]s$/, '') === short))
  return { name: short, ...(id !== undefined && id !== short && { id }), ...((name !== `harnessx-plugin-${short}` || hidden) && { from: name }) }
}
/** The package of the config's folder that an entry is. */
function packageOf({ entries, file }: Editable, id: string): string | undefined {
  const row = entries.find(one => one.id === id)
  if (!row || row.missing) return undefined
  for (const name of packagesOf(dirname(file)).keys()) {
    const root = join(dirname(file), 'node_modules', name)
    if (existsSync(root) && (row.from.startsWith(`${root}/`) || row.from.startsWith(`${resolve(root)}/`))) return name
  }
  return undefined
}
const packagesOf = (folder: string): ReadonlyMap<string, string> => {
  const file = join(folder, 'package.json')
  return new Map(existsSync(file) ? Object.entries((JSON.parse(readFileSync(file, 'utf8')) as { dependencies?: Record<string, string> }).dependencies ?? {}) : [])
}
/** What npm is to be told to have again what package.json says. */
const specOf = (folder: string, name: string, saved: string): string => saved.startsWith('file:') ? resolve(folder, saved.slice(5)) : `${name}@${saved}`
/** What npm has just put there: the new dependency, or the one that was named again. */
function installed(folder: string, before: ReadonlyMap<string, string>, given: string): string {
  const now = packagesOf(folder)
  const name = [...now.keys()].find(one => !before.has(one)) ?? [...now].find(([one, spec]) => given === one || given.startsWith(`${one}@`) || (spec.startsWith('file:') && resolve(folder, spec.slice(5)) === given))?.[0]
  if (name === undefined) throw new HarnessError('internal', `npm installed "${given}", but package.json of ${folder} does not name it`)
  return name
}

/** `hx plugins new NAME`: a plugin to begin with, its test, and its row in the config; a running daemon takes it at once. Writes over nothing. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { HarnessError } from '../errors.js'
import { makeFolder, SHARED } from '../kernel/folder.js'
import { addRow, editConfig } from '../loader/config-edit.js'
import { editableConfig, taken } from './edit.js'
import type { Io } from './io.js'
import { linkHost } from './link-host.js'
import type { Kind } from './plugin-kinds.js'
import { TEMPLATES, testFile } from './plugin-templates.js'

const NAME = /^[a-z][a-z0-9]*(-[a-z0-9]+)*$/

export async function create(io: Io, name: string, { from }: { from: Kind }): Promise<number> {
  if (!NAME.test(name) || name.length > 64) throw new HarnessError('usage', `a plugin's name is lower case, with digits and single "-" between words, such as "no-secrets"; received "${name}"`)
  const { file: config, rows, places } = await editableConfig(io)
  const folder = dirname(config), plugins = join(folder, 'plugins')
  if (rows.some(row => row.id === name)) throw new HarnessError('usage', `there is a plugin "${name}" in ${config} already; choose another name`)
  if (['.ts', '.cjs', ''].some(ending => existsSync(join(places.installation.plugins, name + ending)))) throw new HarnessError('usage', `"${name}" is a shipped plugin, which yours would hide; choose another name`)
  const present = ['', '.ts', '.js', '.mts', '.mjs'].map(ending => join(plugins, name + ending)).find(path => existsSync(path))
  if (present !== undefined) throw new HarnessError('usage', `"${present}" is there already and stays as it is; choose another name, or add the row "- ${name}" to ${config}`, { place: { file: present } })

  const runner = usesVitest(folder) ? 'vitest' : 'node'
  const { about, source } = TEMPLATES[from](name)
  const file = join(plugins, `${name}.ts`), test = join(plugins, `${name}.test.${runner === 'vitest' ? 'ts' : 'mjs'}`)
  makeFolder(plugins, SHARED)
  const written: string[] = []
  try {
    for (const [path, text] of [[file, source], [test, testFile(name, from, runner)]] as const) {
      writeFileSync(path, text, { flag: 'wx' })
      written.push(path)
    }
    await editConfig(config, addRow({ name }))
  } catch (error) {
    for (const path of written) rmSync(path)
    throw error
  }
  const linked = linkHost(folder, places.installation.root) === 'linked'
  const { daemon, plugin } = await taken(io, name)
  if (io.json) { io.line({ id: name, file, test, config, ...(plugin && { state: plugin.state }) }); return 0 }
  io.say([
    `wrote ${file}: ${about}`,
    `wrote ${test}: ${runner === 'vitest' ? `npx vitest run ${basename(test)}` : `node --test plugins/${basename(test)}`}`,
    `added "- ${name}" to ${config}, the last row: behind all others`,
    ...(linked ? ['linked node_modules/harnessx to this installation, for types and tests; npm install harnessx puts one of the project\'s own there'] : []),
    daemon ? `the daemon ${plugin?.state === 'active' ? 'runs it; a save is in force at once' : `does not run it: ${plugin?.reason ?? 'see "hx plugins"'}`}`
      : 'next: hx start   (then each save of it is in force at once)',
  ].join('\n'))
  return plugin !== undefined && plugin.state !== 'active' ? 1 : 0
}

function usesVitest(folder: string): boolean {
  const manifest = join(folder, 'package.json')
  if (!existsSync(manifest)) return false
  try {
    const { dependencies = {}, devDependencies = {} } = JSON.parse(readFileSync(manifest, 'utf8')) as { dependencies?: object; devDependencies?: object }
    return 'vitest' in dependencies || 'vitest' in devDependencies
  } catch { return false }                                   // not JSON: npm will say so
}

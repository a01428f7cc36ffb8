/** `hx config check|schema`: the file against its schema, plugins against theirs; nothing is started. */
import { readdirSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { z } from '../z.js'
import { importerFor } from '../app.js'
import { at, HarnessError, messageOf } from '../errors.js'
import { Log } from '../kernel/log.js'
import { flatten, placeIn } from '../kernel/report.js'
import type { Problem } from '../loader/config.js'
import { configJsonSchema } from '../loader/config-schema.js'
import type { ModuleImporter } from '../loader/importer.js'
import type { EntrySpec } from '../loader/entry.js'
import { validateConfig } from '../loader/plugin-config.js'
import { checkModule } from '../loader/plugin-module.js'
import { checkConfig } from '../loader/read-config.js'
import { trustFolders, type Trust } from '../loader/trust.js'
import { places } from '../places.js'
import { appOptions, find } from './connect.js'
import type { Io } from './io.js'

export async function check(io: Io): Promise<number> {
  const found = find(io)
  const { located, trust, env, log } = await appOptions(io, found)
  const { entries, problems, notes } = checkConfig({ located, places: found.places, env, trust })
  const importer = importerFor(found.places.installation, trust, dirname(located.file), log)
  const wrong = [...problems]
  for (const entry of entries) if (entry.enabled) wrong.push(...await problemsOf(entry, importer))
  if (io.json) io.line({ ok: wrong.length === 0, problems: wrong.map(({ file, line, column, message }) => ({ file, line, column, message })) })
  else {
    for (const problem of wrong) io.say(`${io.paint('red', at(problem))} ${problem.message}`)
    for (const note of notes) io.note(io.paintNote('dim', `${at(note)} ${note.message}`))
    if (wrong.length === 0) io.say(`${located.file}: no problems; ${entries.filter(entry => entry.enabled).length} of ${entries.length} plugins are enabled`)
  }
  return wrong.length === 0 ? 0 : 2
}

export async function schema(io: Io, { api = false }: { api?: boolean }): Promise<number> {
  io.say(JSON.stringify(api ? (await import('../daemon/openapi.js')).openApi() : configJsonSchema(await shippedSchemas()), null, 2))
  return 0
}

/** What mounting would refuse, found without mounting. */
async function problemsOf(entry: EntrySpec, importer: ModuleImporter): Promise<Problem[]> {
  try {
    if (entry.missing) throw entry.missing
    const loaded = await importer.load([entry.from])
    loaded.commit()
    const { module } = checkModule(loaded.modules.get(entry.from)!, entry)
    await validateConfig(entry.id, module.Config, entry.config, path => entry.place(path), entry.written)
    return []
  } catch (error) {
    const place = error instanceof HarnessError ? error.place : placeIn(flatten(error).stack, entry.from)
    return [withoutPlace({ ...place ?? entry.place([]), message: messageOf(error) })]
  }
}
/** Where it is stands before the message here, so the message need not say it again. */
function withoutPlace(problem: Problem): Problem {
  const { file, line, message } = problem, name = escaped(basename(file))
  const said = new RegExp(line === undefined ? `^\\S*${name}(?::\\d+)* ` : `^\\S*${name}:${line}(?::\\d+)? | \\(\\S*${name}:${line}(?::\\d+)?\\)`)
  return { ...problem, message: message.replace(said, '') }
}
const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
/** The config schemas of the plugins that the installation ships, by name. */
async function shippedSchemas(): Promise<Record<string, object>> {
  const { installation } = places()
  const importer = importerFor(installation, trustFolders([installation.root]), installation.root, new Log())
  const names = [...new Set(readdirSync(installation.plugins, { withFileTypes: true }).filter(entry => entry.isDirectory() || /\.(ts|cjs)$/.test(entry.name)).map(entry => basename(entry.name).replace(/\.(ts|cjs)$/, '')))].sort()
  const schemas: Record<string, object> = {}
  for (const name of names) {
    const file = [`${name}.cjs`, `${name}.ts`, `${name}/index.ts`].map(path => join(installation.plugins, path)).find(path => readdirSync(dirname(path)).includes(basename(path)))
    if (file === undefined) continue
    const loaded = await importer.load([file])
    const { Config } = loaded.modules.get(file)!
    if (Config instanceof z.ZodType) schemas[name] = z.toJSONSchema(Config, { io: 'input', unrepresentable: 'any' })
  }
  return schemas
}

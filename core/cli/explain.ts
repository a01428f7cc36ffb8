/** `hx config explain [KEY]`: the config in force and where each value comes from. Defaults of plugins are asked of their own `Config`; what a reference leads to is never shown. */
import { dirname } from 'node:path'
import { importerFor } from '../app.js'
import { at, didYouMean, HarnessError } from '../errors.js'
import { invalid } from '../loader/config.js'
import { explain as explained } from '../loader/config-explain.js'
import { validateConfig } from '../loader/plugin-config.js'
import { checkModule } from '../loader/plugin-module.js'
import { checkConfig } from '../loader/read-config.js'
import { appOptions, find } from './connect.js'
import { Secrets } from '../kernel/secrets.js'
import type { Io } from './io.js'
import { oneLine, table } from './terminal.js'

/** A key that is written out stays in its file; a reference to one is shown. */
function withoutSecrets(key: string, value: unknown): unknown {
  if (typeof value === 'string' && value.includes('${')) return value
  const name = key.slice(key.lastIndexOf('.') + 1)
  return (new Secrets().hideIn({ [name]: value }) as Record<string, unknown>)[name]
}

export async function explain(io: Io, key: string | undefined): Promise<number> {
  const found = find(io)
  const { located, places, trust, env, log } = await appOptions(io, found)
  const { config, entries, problems, texts, secrets } = checkConfig({ located, places, env, trust })
  if (!config) throw invalid(problems)
  const rows = config.plugins
  const importer = importerFor(places.installation, trust, dirname(located.file), log), defaults = new Map<string, unknown>()
  for (const entry of entries) {
    if (!entry.enabled || entry.missing) continue
    try {
      const loaded = await importer.load([entry.from])
      loaded.commit()
      defaults.set(entry.id, await validateConfig(entry.id, checkModule(loaded.modules.get(entry.from)!, entry).module.Config, entry.config, path => entry.place(path), entry.written))
    } catch { continue }                                      // "hx config check" says what is wrong with it
  }
  const isSecret = (value: unknown) => { const text = JSON.stringify(value) ?? ''; return secrets.some(secret => secret !== '' && text.includes(JSON.stringify(secret).slice(1, -1))) }
  const layers = located.layers.map(file => ({ file, text: texts.get(file)! }))
  const all = explained(layers, rows, defaults).map(one => one.place === undefined && isSecret(one.value) ? { ...one, value: '(from a reference)' } : { ...one, value: withoutSecrets(one.key, one.value) })
  const shown = key === undefined ? all : all.filter(one => one.key === key || one.key.startsWith(`${key}.`) || one.key.startsWith(`plugins.${key}.`))
  if (shown.length === 0) throw new HarnessError('unknown_id', `there is no "${key}" in the config${didYouMean(key!, all.flatMap(one => one.key.split('.').map((_, end, parts) => parts.slice(0, end + 1).join('.'))))}; "hx config explain" lists all`)
  const layerOf = (file: string | undefined) => file === undefined ? 'default' : file === places.userConfig && located.kind !== 'user' ? 'user' : located.kind
  if (io.json) io.line({ config: located.file, layers: located.layers, values: shown.map(({ key, value, place }) => ({ key, value, layer: layerOf(place?.file), ...place })) })
  else io.say(table([['KEY', 'VALUE', 'FROM'], ...shown.map(({ key, value, place }) => [key, oneLine(JSON.stringify(value) ?? '', 60), place === undefined ? io.paint('dim', 'default') : at({ file: place.file, line: place.line })])], io.paint))
  return 0
}

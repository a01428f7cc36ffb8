/**
 * `hx trust`: shows what the config of a folder would run, and asks whether it may; `--list` and `--revoke` for what was trusted before.
 * The one command that reads a config nobody has trusted: its text, as a person asked for that. No plugin is opened and no `.env`.
 */
import { realpathSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'
import { HarnessError } from '../errors.js'
import type { Located } from '../loader/locate.js'
import { preview, type Preview, type PreviewRow } from '../loader/preview.js'
import { trustFolders } from '../loader/trust.js'
import { TrustStore, type Trusted } from '../loader/trust-store.js'
import { CONFIG_NAME, places } from '../places.js'
import { find, type Found } from './connect.js'
import type { Io } from './io.js'
import { question } from './question.js'
import { oneLine, table } from './terminal.js'

export async function trust(io: Io, path: string | undefined, options: { list?: boolean; revoke?: boolean; yes?: boolean }): Promise<number> {
  if (options.list && (options.revoke || options.yes || path !== undefined)) throw new HarnessError('usage', '--list takes no other option and no path')
  if (options.revoke && options.yes) throw new HarnessError('usage', '--revoke and --yes exclude each other')
  if (options.list) return list(io)
  if (options.revoke) return revoke(io, path)
  const found = find(io, false, path === undefined ? undefined : configAt(io, path)), { located, places } = found
  if (trustFolders([places.installation.root, places.config]).allows({ kind: 'config', file: located.file })) {
    if (io.json) io.line({ config: located.file, trusted: true })
    else io.say(`${located.file} is ${located.kind === 'shipped' ? 'the shipped config' : 'your own'} and needs no trust`)
    return 0
  }
  const store = new TrustStore(places.trust), before = store.find(located.file), seen = preview(located, places)
  // Trusted again when a plugin has come from elsewhere: that folder is new.
  const known = before !== undefined && seen.also.every(folder => before.also.includes(folder))
  if (!io.json) io.say(told(io, seen, located))
  const now = known ? before : options.yes ? await store.add(located.file, seen.also) : io.interactive ? await asked(io, store, seen) : undefined
  if (io.json) io.line({ ...seen, trusted: now !== undefined, ...(now && { since: now.since }) })
  else if (known) io.say(`trusted since ${now!.since}; hx trust --revoke takes it back`)
  else if (now) io.say(`trusted: ${located.file}`)
  else if (!io.interactive) io.note('hx: nobody could be asked; "hx trust --yes" trusts it')
  return now ? 0 : 3
}

/** Shows what would run, asks, and keeps a yes. */
export async function shown(io: Io, { located, places }: Found): Promise<boolean> {
  const seen = preview(located, places)
  io.stderr.write(`${told(io, seen, located)}\n`)
  return await asked(io, new TrustStore(places.trust), seen) !== undefined
}
async function asked(io: Io, store: TrustStore, seen: Preview): Promise<Trusted | undefined> {
  return /^y(es)?$/i.test(await question(io, '  trust it from now on? [y/N] > ')) ? store.add(seen.config, seen.also) : undefined
}

function list(io: Io): number {
  const all = new TrustStore(places(io.env).trust).list()
  if (io.json) { io.line({ trusted: all }); return 0 }
  io.say(all.length === 0 ? 'nothing is trusted but your own config and the shipped one' : table([['CONFIG', 'SINCE', 'AND PLUGINS IN'], ...all.map(({ config, folder, also, since }) => [
    oneLine(dirname(config) === folder ? config : `${config} (as found in ${folder})`, 200), since.slice(0, 10), also.map(one => oneLine(one)).join(', '),
  ])], io.paint))
  return 0
}
async function revoke(io: Io, path: string | undefined): Promise<number> {
  const store = new TrustStore(places(io.env).trust)
  const gone = await store.revoke(path === undefined ? find(io).located.file : resolve(io.cwd, path))
  if (gone.length === 0) throw new HarnessError('unknown_id', `${path === undefined ? 'the config of this folder' : `"${path}"`} was not trusted; see "hx trust --list"`)
  if (io.json) io.line({ revoked: gone.map(({ config }) => config) })
  else for (const { config } of gone) io.say(`not trusted any more: ${config}; a daemon that runs goes on with what it has loaded, "hx stop" ends it`)
  return 0
}

/** `path` is a folder with a config in it, or a config file. */
function configAt({ cwd }: Io, path: string): string {
  const real = resolve(cwd, path), at = statSync(real, { throwIfNoEntry: false })
  if (!at) throw new HarnessError('usage', `"${path}" does not exist`)
  if (!at.isDirectory()) return real
  const file = join(real, CONFIG_NAME)
  if (!statSync(file, { throwIfNoEntry: false })) throw new HarnessError('config_missing', `there is no ${CONFIG_NAME} in "${path}", so there is nothing to trust`)
  return file
}

const WHERE: Readonly<Record<PreviewRow['origin'], string>> = { shipped: 'shipped', user: 'your own', folder: 'this folder', outside: 'ELSEWHERE' }

function told(io: Io, { config, plugins, settings, env, also, disabled }: Preview, { layers }: Located): string {
  const folder = realpathSync(dirname(config)), short = (file: string) => { const path = relative(folder, file); return path.startsWith('..') ? file : path }
  const code = plugins.filter(({ origin }) => origin === 'folder' || origin === 'outside'), rest = plugins.filter(({ origin }) => origin === 'shipped' || origin === 'user')
  const configured = rest.filter(row => Object.keys(row.config).length > 0)
  const rows = (all: readonly PreviewRow[]) => table(all.map(row => ['   ', oneLine(row.id), WHERE[row.origin], `${oneLine(short(row.from), 200)}${row.missing ? ' (not there)' : ''}${asWritten(row.config)}`]))
  const paint = io.paintNote
  return [
    `${paint('bold', oneLine(config, 400))} would run`,
    code.length > 0 ? `  ${paint('yellow', 'code that did not come with hx, with your rights:')}\n${rows(code)}` : '  no code but what came with hx or is your own',
    ...configured.length > 0 ? [`  plugins of hx, set up by it:\n${table(configured.map(row => ['   ', oneLine(row.id), asWritten(row.config).trim()]))}`] : [],
    `  in all ${plugins.length} plugins, in this order: ${plugins.map(({ id }) => oneLine(id)).join(', ') || 'none'}${disabled.length > 0 ? `; switched off: ${disabled.map(id => oneLine(id)).join(', ')}` : ''}`,
    ...Object.keys(settings).length > 0 ? [`  its settings:${asWritten(settings)}`] : [],
    ...env === undefined ? [] : [`  ${oneLine(short(env))}: read for keys and endpoints; no tool gets it`],
    ...also.length > 0 ? [`  ${paint('yellow', 'with it you trust')} ${also.map(one => oneLine(one, 400)).join(', ')}`] : [],
    ...layers.length > 1 ? [`  over your own ${oneLine(layers[0]!, 400)}`] : [],
    '  Edits of these files are loaded without a further question; what a tool changes meanwhile is held.',
  ].join('\n')
}
const asWritten = (value: object): string => Object.keys(value).length === 0 ? '' : ` ${oneLine(JSON.stringify(value), 2000)}`

/**
 * Where things stand: the user's folders (XDG, or all under HX_HOME) and this installation's own files. Knows no content of any of them.
 * Computes; folders are made when they are needed (kernel/folder.ts).
 */
import { existsSync, readFileSync } from 'node:fs'
import { homedir, userInfo } from 'node:os'
import { dirname, isAbsolute, join, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import { HarnessError } from './errors.js'
import { nameDigest } from './kernel/name-digest.js'

/** The name of the config file, everywhere. */
export const CONFIG_NAME = 'harness.config.yaml'

export interface Installation {
  /** The folder of package.json. */
  readonly root: string
  /** Runs from `dist/`: shipped plugins are JavaScript and never change. */
  readonly built: boolean
  readonly plugins: string
  readonly config: string
}
export interface Places {
  /** Config and trust. */
  readonly config: string
  readonly userConfig: string
  readonly trust: string
  /** Sessions, logs and data of plugins. */
  readonly state: string
  readonly sessions: string
  readonly logs: string
  readonly data: string
  /** Where plugins of this config that were stopped are remembered. */
  quarantineOf(config: string): string
  /** Socket, lock and token. */
  readonly run: string
  readonly installation: Installation
}

type Env = Readonly<Record<string, string | undefined>>

export function places(env: Env = process.env, installation: Installation = installationOf(fileURLToPath(import.meta.url))): Places {
  const home = env['HX_HOME']
  if (home !== undefined && home !== '' && !isAbsolute(home)) throw new HarnessError('usage', `HX_HOME must be an absolute path, received "${home}"`)
  const user = env['HOME'] || homedir() || userInfo().homedir
  // The XDG specification: a relative path in one of its variables is to be ignored.
  const xdg = (name: string, otherwise: string): string => { const value = env[name]; return join(value && isAbsolute(value) ? value : otherwise, 'hx') }
  const config = home ? join(home, 'config') : xdg('XDG_CONFIG_HOME', join(user, '.config'))
  const state = home ? join(home, 'state') : xdg('XDG_STATE_HOME', join(user, '.local', 'state'))
  const runtime = env['XDG_RUNTIME_DIR']
  const run = home ? join(home, 'run') : runtime && isAbsolute(runtime) ? join(runtime, 'hx') : join(state, 'run')
  return {
    config, userConfig: join(config, CONFIG_NAME), trust: join(config, 'trust.json'),
    state, sessions: join(state, 'sessions'), logs: join(state, 'logs'), data: join(state, 'data'),
    quarantineOf: file => join(state, 'quarantine', `${nameDigest(file).slice(0, 16)}.json`),
    run, installation,
  }
}

/** The installation that `file` (a module of core, in source or built) belongs to. */
export function installationOf(file: string): Installation {
  const root = rootAbove(dirname(file))
  const built = file.startsWith(join(root, 'dist') + sep)
  return { root, built, plugins: built ? join(root, 'dist', 'plugins') : join(root, 'plugins'), config: join(root, CONFIG_NAME) }
}

/** A file that came built with `installation`: its lines say nothing to a person. */
export const isShipped = (file: string, { root, built }: Installation): boolean => built && file.startsWith(join(root, 'dist') + sep)

function rootAbove(start: string): string {
  for (let folder = start; ; folder = dirname(folder)) {
    if (isOurs(join(folder, 'package.json'))) return folder
    if (folder === dirname(folder)) throw new HarnessError('internal', `no package.json of harnessx stands above "${start}"`)
  }
}
function isOurs(manifest: string): boolean {
  if (!existsSync(manifest)) return false
  const { name } = JSON.parse(readFileSync(manifest, 'utf8')) as { name?: unknown }
  return name === 'harnessx'
}

/** `hx service install`: a systemd user unit for the daemon of this config. Writes the unit and says what to run; switches nothing on by itself. */
import { execFileSync } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join } from 'node:path'
import writeFileAtomic from 'write-file-atomic'
import { HarnessError } from '../errors.js'
import { admit } from './admission.js'
import { find } from './connect.js'
import type { Io } from './io.js'

export interface Unit {
  readonly node: string
  readonly cli: string
  readonly config: string
  readonly trust: boolean
  /** Variables for the daemon, such as model keys, when there is such a file. */
  readonly environmentFile: string
  /** The daemon's places, where they are not the usual ones. */
  readonly environment: Readonly<Record<string, string>>
  /** It can tell systemd that it is ready. */
  readonly notify: boolean
}

export async function install(io: Io, options: { print?: boolean }): Promise<number> {
  const found = find(io), { located, places } = found
  await admit(io, found)                                     // a unit that may not read it would only fail later
  const environmentFile = join(places.config, 'daemon.env')
  const text = unitText({
    node: process.execPath, cli: process.argv[1]!, config: located.file, trust: io.globals.trust === true, environmentFile,
    environment: io.env['HX_HOME'] ? { HX_HOME: io.env['HX_HOME'] } : {}, notify: canNotify(),
  })
  if (options.print) {
    io.say(text)
    return 0
  }
  if (process.platform !== 'linux') throw new HarnessError('usage', 'user units are a thing of systemd, which this system does not have; run "hx start --foreground" under your own service manager')
  const name = `hx-${basename(found.endpoint.socket, '.sock')}.service`
  const base = io.env['XDG_CONFIG_HOME'], file = join(base && isAbsolute(base) ? base : join(io.env['HOME'] ?? '', '.config'), 'systemd', 'user', name)
  const before = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => { if (error.code === 'ENOENT') return undefined; throw error })
  if (before !== text) {
    await mkdir(dirname(file), { recursive: true })
    await writeFileAtomic(file, text, { mode: 0o600 })
  }
  if (io.json) io.line({ unit: name, file, changed: before !== text })
  else {
    io.say(`${file} ${before === text ? 'is there already, as it should be' : before === undefined ? 'is written' : 'is written anew'}`)
    io.say(`  model keys   ${environmentFile}, one NAME=value a line, mode 0600\n  switch on    systemctl --user daemon-reload && systemctl --user enable --now ${name}\n  at boot too  loginctl enable-linger\n  log          journalctl --user -u ${name} -f`)
  }
  return 0
}

/** Pure. Stopping may take the daemon its own ten seconds. */
export function unitText({ node, cli, config, trust, environmentFile, environment, notify }: Unit): string {
  const words = [node, cli, '--config', config, ...(trust ? ['--trust'] : []), 'start', '--foreground']
  return `[Unit]
Description=hx daemon of ${percent(config)}
StartLimitIntervalSec=300
StartLimitBurst=5

[Service]
Type=${notify ? 'notify' : 'exec'}
${notify ? 'NotifyAccess=all\n' : ''}ExecStart=${words.map(quoted).join(' ')}
WorkingDirectory=${percent(dirname(config))}
${Object.entries(environment).map(([name, value]) => `Environment=${assigned(name, value)}\n`).join('')}EnvironmentFile=-${percent(environmentFile)}
Restart=on-failure
RestartSec=1
TimeoutStartSec=60
TimeoutStopSec=15

[Install]
WantedBy=default.target
`
}
/** What systemd expands: specifiers everywhere, variables in commands alone. */
const percent = (text: string): string => text.replaceAll('%', '%%')
const escaped = (text: string): string => percent(text).replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')
const quoted = (text: string): string => `"${escaped(text).replaceAll('$', '$$$$')}"`
const assigned = (name: string, value: string): string => `"${name}=${escaped(value)}"`

function canNotify(): boolean {
  try {
    execFileSync('systemd-notify', ['--version'], { stdio: 'ignore', timeout: 2000 })
    return true
  } catch { return false }                                   // not there, or of no use
}

/**
 * Who may read the config that was found: asked once, before the first byte, by every command that would read it. Knows no host.
 * The installation's own files and the user's own folder are admitted, so is what was trusted with `hx trust`; the rest with a person's yes, or `--trust`, for this run only.
 * At a terminal two questions stand between a folder and its code: whether to read its config at all, and, with what it would run on the screen, whether to trust it. Elsewhere nobody is asked.
 */
import { existsSync, realpathSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { endpointOf } from '../daemon/endpoint.js'
import { HarnessError } from '../errors.js'
import { withoutProject } from '../loader/locate.js'
import { ask, either, trustAll, trustFolders, type Trust } from '../loader/trust.js'
import { TrustStore, trustStored } from '../loader/trust-store.js'
import type { Found, HostChanges } from './connect.js'
import type { Io } from './io.js'
import { question } from './question.js'
import { printable } from './terminal.js'

export interface Admitted { readonly found: Found; readonly trust: Trust }

/** With `orOwn`, a person who says no gets the user's own layer instead; otherwise, and where nobody can be asked, it rejects with `untrusted`. */
export async function admit(io: Io, found: Found, { plugins = [], orOwn = false, unasked = false }: HostChanges = {}): Promise<Admitted> {
  if (io.globals.trust) return { found, trust: trustAll }
  const { located, places } = found
  const base = either(trustFolders([places.installation.root, places.config]), trustNamed(plugins.map(file => resolve(found.cwd, file))))
  const request = { kind: 'config', file: located.file } as const
  if (base.allows(request)) return { found, trust: base }
  const trust = either(base, trustStored(new TrustStore(places.trust), located.file))
  const person = io.interactive && !unasked
  if (trust.allows(request) || (person && await agreed(io, found))) return { found, trust }
  if (!person) ask(trust, request)
  if (!orOwn) throw new HarnessError('untrusted', `"${located.file}" was not trusted, so nothing was done`, { place: { file: located.file } })
  const own = withoutProject(places)
  io.note(io.paintNote('yellow', `hx: ${printable(located.file)} is left out; this run uses ${own.kind === 'user' ? `${own.file} alone` : 'the shipped config alone'}`))
  return { found: { ...found, located: own, endpoint: endpointOf(places.run, realpathSync(own.file)) }, trust: base }
}

async function agreed(io: Io, found: Found): Promise<boolean> {
  io.stderr.write(`${io.paintNote('yellow', 'hx:')} ${printable(found.located.file)} is not trusted, and nothing of it was read. What it names would run as you.\n`)
  if (!/^(l|look|y|yes)$/i.test(await question(io, '  [l] look at what it would run  [n] go on without it > '))) return false
  const { shown } = await import('./trust.js')
  return shown(io, found)
}

/** These plugins, what a link among them leads to, and the code beside them; no config and no .env. */
function trustNamed(plugins: readonly string[]): Trust {
  const { allows } = trustFolders(plugins.flatMap(file => [file, ...existsSync(file) ? [realpathSync(file)] : []].map(path => dirname(path))))
  return { allows: request => request.kind === 'plugin' && allows(request) }
}

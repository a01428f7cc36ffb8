/**
 * The command line of bubblewrap for one call. Mounts are done in order and a later one covers an earlier: system, empty home and /tmp, what may be read, what may be written,
 * then inside that what is protected, then what is secret. The file system is only asked what stands where; nothing but mount points is made, where nothing stood.
 * Invariant: no folder above a protected path can be renamed away, since each is a mount of its own.
 */
import { mkdirSync } from 'node:fs'
import { dirname, sep } from 'node:path'
import type { Bounds } from 'harnessx'
import type { Look } from './files.js'
import type { GitFolders } from './git.js'
import { isInside, outermost } from './inside.js'
import type { SystemPaths } from './system.js'

export interface Plan {
  readonly program: string
  readonly bounds: Bounds
  readonly home: string
  readonly network: boolean
  readonly system: SystemPaths
  readonly git: GitFolders
}

/** All but the network. The last two: no way to the terminal, and as root none of root's powers. */
export const ISOLATION = ['--die-with-parent', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try', '--new-session', '--cap-drop', 'ALL'] as const
/** Of each empty folder, which is memory. */
const MAX_BYTES = 2 ** 31
/** In a home folder that is itself the workspace. */
const PRIVATE = ['.ssh', '.gnupg', '.aws', '.azure', '.kube', '.docker', '.netrc', '.npmrc', '.pypirc', '.git-credentials', '.config/gcloud', '.config/gh', '.config/git/credentials', '.password-store', '.mozilla', '.config/google-chrome', '.config/chromium', '.local/share/keyrings', '.cargo/credentials', '.cargo/credentials.toml']

/** `made` are the mount points that were made, to be taken away some day. */
export function commandLine({ program, bounds, home, network, system, git }: Plan, look: Look): { readonly argv: readonly string[]; readonly made: readonly string[] } {
  const [cwd = '/'] = bounds.writable
  const asked = outermost([...bounds.writable, ...git.writable].map(path => existing(path, look)[0]!))               // what is to be made is made in the folder above it
  const writable = asked.filter(root => !bounds.protected.some(path => isInside(path, root))), closed = asked.filter(root => !writable.includes(root))
  const whole = asked.find(root => ['/', '/proc', '/dev', '/sys'].includes(root))
  if (whole !== undefined) throw new Error(`the sandbox can not hold commands to "${whole}"; work in a folder of your own, or switch plugin "sandbox" off`)
  const made: string[] = []
  const guarded = outermost([...bounds.protected, ...git.protected]).filter(path => writable.some(root => path !== root && isInside(root, path)))
  const shut = [...bounds.secret, ...PRIVATE.map(name => `${home}/${name}`)].filter(path => look(path) !== undefined && [...writable, ...bounds.readable, ...git.readable].some(root => isInside(root, path)))
  const argv = [
    program, ...ISOLATION, ...network ? [] : ['--unshare-net'],
    ...system.roots.flatMap(readOnly), ...system.links.flatMap(([target, path]) => ['--symlink', target, path]),
    ...system.hidden.flatMap(path => hide(path, look)),
    '--proc', '/proc', '--dev', '/dev',
    ...[...new Set(['/tmp', '/var/tmp', '/run', ...home === '/' ? [] : [home]])].flatMap(empty),
    ...system.more.flatMap(readOnly),
    ...[...git.readable, ...closed, ...bounds.readable].filter(path => look(path) !== undefined).flatMap(readOnly),
    ...writable.flatMap(path => ['--bind', path, path]),
    ...bounds.readable.filter(path => look(path) !== undefined && writable.some(root => isInside(root, path))).flatMap(readOnly),
    ...guard(guarded, writable, home, look, made),
    ...shut.flatMap(path => hide(path, look)),
    '--remount-ro', '/', '--unsetenv', 'TMPDIR', '--chdir', cwd, '--',
  ]
  return { argv, made }
}

const readOnly = (path: string): string[] => ['--ro-bind', path, path]
const empty = (path: string): string[] => ['--size', String(MAX_BYTES), '--tmpfs', path]
const hide = (path: string, look: Look): string[] => look(path) === 'folder' ? ['--perms', '0500', '--size', '4096', '--tmpfs', path, '--remount-ro', path] : ['--ro-bind', '/dev/null', path]

/** Read-only, and with every folder above it held in its place. One that isn't there is held by an empty folder, but not in a home folder, where that would be in the way of others. */
function guard(paths: readonly string[], writable: readonly string[], home: string, look: Look, made: string[]): string[] {
  const held = new Set<string>(), args: string[] = []
  for (const path of paths) {
    const root = writable.find(root => isInside(root, path))!
    const [target, ...missing] = existing(path, look)
    if (missing.length > 0 && isInside(root, home) || look(target!) === 'link') continue
    for (const folder of between(root, missing.length > 0 ? `${target}/x` : target!)) if (!held.has(folder)) { held.add(folder); args.push('--bind', folder, folder) }
    const place = missing.length > 0 ? `${target === '/' ? '' : target}/${missing[0]}` : target!
    if (missing.length > 0 && look(place) === undefined && !make(place, made)) continue
    args.push(...readOnly(place))
  }
  return args
}
function make(folder: string, made: string[]): boolean {
  try { mkdirSync(folder, { mode: 0o755 }) } catch { return false }        // what we can't make, a command can't either
  made.push(folder)
  return true
}
/** The deepest part of it that is there, then the names of the rest. */
function existing(path: string, look: Look): readonly string[] {
  const missing: string[] = []
  let at = path
  while (look(at) === undefined && at !== dirname(at)) { missing.unshift(at.slice(at.lastIndexOf(sep) + 1)); at = dirname(at) }
  return [at, ...missing]
}
/** The folders strictly between, from the top down. */
function between(root: string, path: string): readonly string[] {
  const found: string[] = []
  for (let folder = dirname(path); folder !== root && isInside(root, folder); folder = dirname(folder)) found.unshift(folder)
  return found
}

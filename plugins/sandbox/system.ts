/**
 * What of the machine programs see beside the workspace: the system, the tools on PATH, and tool chains that live in the home folder; never that folder itself.
 * An allow-list: what nobody named is not there.
 */
import { dirname, join, sep } from 'node:path'
import { isInside, outermost } from './inside.js'
import { isOurs, linkOf, realOf, type Look } from './files.js'

export interface SystemPaths {
  /** Shown read-only: folders at the root. */
  readonly roots: readonly string[]
  /** Shown read-only: what stands elsewhere. */
  readonly more: readonly string[]
  /** Links at the root, such as `/bin` to `usr/bin`. */
  readonly links: readonly (readonly [target: string, path: string])[]
  /** Files and folders below `roots` that hold secrets, and that this user could read: each is a mount, which takes time. */
  readonly hidden: readonly string[]
}

const ROOT = ['/usr', '/etc', '/opt', '/nix', '/gnu', '/snap', '/sys', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/home']
const SECRETS = ['/etc/shadow', '/etc/shadow-', '/etc/gshadow', '/etc/gshadow-', '/etc/ssl/private', '/etc/krb5.keytab', '/etc/sudoers', '/etc/sudoers.d', '/etc/NetworkManager', '/etc/wireguard', '/etc/wpa_supplicant']
/** In the home folder. Package caches that a tool writes to are left out: they would fail read-only. */
const TOOLCHAINS = [
  '.nvm', '.volta', '.fnm', '.local/share/fnm', '.bun/bin', '.deno/bin', '.local/share/pnpm', '.pyenv', '.rbenv', '.asdf', '.sdkman', '.rustup', '.cargo/bin', '.cargo/registry', '.cargo/git', 'go/bin', 'go/pkg',
  '.local/bin', '.local/lib', '.local/share/mise', '.local/share/uv', '.gitconfig', '.config/git/config', '.config/git/ignore', '.config/git/attributes',
]

export function systemPaths(home: string, path: string, more: readonly string[], look: Look): SystemPaths {
  const links = ROOT.flatMap(root => look(root) === 'link' ? [[linkOf(root) ?? '', root] as const] : [])
  const roots = ROOT.filter(root => root !== '/home' && look(root) === 'folder')
  const isShown = (file: string) => [...roots, ...links.map(([, link]) => link)].some(root => isInside(root, file))
  const extra = [
    ...TOOLCHAINS.map(name => join(home, name)),
    ...path.split(':').filter(folder => folder.startsWith('/') && !isShown(folder)).flatMap(folder => withPrefix(folder, home)),
    ...more.map(name => name.replace(/^~(?=\/)/, home)),
    realOf('/etc/resolv.conf') ?? '',                         // often a link into /run
  ]
  return { roots, more: outermost(extra.filter(file => file !== '' && !isShown(file) && look(file) !== undefined)), links, hidden: SECRETS.filter(isOurs) }
}

/** A folder of programs outside the home folder comes with what stands beside it (`lib`, `share`); of one inside, only itself is shown. */
function withPrefix(folder: string, home: string): readonly string[] {
  const prefix = dirname(folder)
  const isOwn = folder === home || folder.startsWith(home + sep) || home.startsWith(folder + sep)
  return isOwn || prefix === '/' || home === prefix || home.startsWith(prefix + sep) ? [folder].filter(one => one !== home && !home.startsWith(one + sep)) : [prefix]
}

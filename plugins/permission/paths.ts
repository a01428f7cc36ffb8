/**
 * Which files a simple command names. Pure; whether a path lies inside is asked outside.
 * Errs on the side of naming too many, but words that are text (a search pattern, a separator, a URL) are left out, or every `grep /api` would ask.
 */
import { normalize } from 'node:path'
import type { SimpleCommand } from './shell.js'
import { wordMatches } from './rules.js'
import { basename, HOLE, isOpen, listed } from './word.js'

export interface NamedPath { readonly path: string; readonly mode: 'read' | 'write' }

/** Words are text, not files. */
const TEXT = new Set(['echo', 'printf', 'tr', 'expr', 'basename', 'dirname', 'seq', 'true', 'false', ':', 'let', 'sleep', 'kill', 'date', 'return', 'exit', 'which', 'type', 'hash'])
/** Words are files that change. */
const WRITERS = new Set(['rm', 'mv', 'cp', 'tee', 'touch', 'mkdir', 'rmdir', 'ln', 'chmod', 'chown', 'chgrp', 'dd', 'install', 'truncate', 'rsync', 'unlink', 'shred', 'patch', 'mkfifo', 'mknod'])
/** The first operand is a pattern or program, unless one of these options gives it; `-d /` and the like take text. */
const PATTERN_FIRST: Readonly<Record<string, RegExp>> = { grep: /^-[A-Za-z]*[ef]$|^--(?:regexp|file)\b/, egrep: /^-[ef]/, fgrep: /^-[ef]/, rg: /^-[ef]/, ag: /^$/, ack: /^--match/, sed: /^-[A-Za-z]*[ef]$|^--(?:expression|file)\b/, awk: /^-[ef]/, gawk: /^-[ef]/, jq: /^-f|^--from-file/, yq: /^$/ }
const TEXT_OPTION: Readonly<Record<string, RegExp>> = { grep: /^-[A-Za-z]*e$/, egrep: /^-e$/, fgrep: /^-e$/, rg: /^-[ge]$/, sed: /^-[A-Za-z]*e$/, awk: /^-[Fv]$/, gawk: /^-[Fv]$/, cut: /^-d$/, sort: /^-t$/, paste: /^-d$/, column: /^-s$/, xargs: /^-[dI]$/, git: /^-[SGm]$/, docker: /^(?:-w|--workdir)$/, podman: /^(?:-w|--workdir)$/, find: /^-i?(?:path|wholename|regex|name)$/, curl: /^-[HXAeu]$/, wget: /^-[U]$/ }
const CONTAINERS = /^(?:docker|podman|nerdctl)$/
const DEVICES = /^\/dev\/(?:null|zero|stdin|stdout|stderr|tty|u?random|fd\/\d+)$/
/** Where programs of the system stand: naming one to run it is no reach outside. */
const PROGRAMS = /^\/(?:usr\/)?(?:local\/)?s?bin\/|^\/(?:usr\/local|opt|usr\/lib|nix\/store)\//

export function pathsOf({ words, assignments, cwds }: SimpleCommand): readonly NamedPath[] {
  const [name = '', ...rest] = words
  const found = new Map<string, NamedPath>()
  const add = (text: string, mode: NamedPath['mode'] = 'read') => {
    for (const path of placesOf(text, cwds)) if (!DEVICES.test(path)) found.set(`${mode} ${path}`, { path, mode })
  }
  for (const { name, value } of assignments) for (const part of name.endsWith('PATH') ? value.split(':') : /^(?:NODE_OPTIONS|PERL5OPT|RUBYOPT|JAVA_TOOL_OPTIONS)$/.test(name) ? value.split(/[\s=:]+/) : [value]) if (/^[/~]|(?:^|\/)\.\.(?:\/|$)/.test(part) && !PROGRAMS.test(`${part}/`)) add(part)
  if (name === '>' || name === '<') { add(rest[0] ?? '', name === '>' ? 'write' : 'read'); return [...found.values()] }
  if (name.includes('/') && !PROGRAMS.test(name)) add(name)
  const command = basename(name)
  if (TEXT.has(command)) return [...found.values()]
  const mode = WRITERS.has(command) || (command === 'sed' && rest.some(word => /^-[A-Za-z]*i|^--in-place/.test(word))) ? 'write' : 'read'
  const own = listed(PATTERN_FIRST, command), textOption = listed(TEXT_OPTION, command)
  let pattern = own !== undefined && !rest.some(word => own.test(word))
  for (const [i, word] of rest.entries()) {
    if (textOption?.test(rest[i - 1] ?? '')) continue
    if (/^-./.test(word)) { for (const value of valuesOf(word)) add(value, mode); continue }
    if (pattern) { pattern = false; continue }
    for (const value of operandsOf(CONTAINERS.test(command) ? word.replace(/(?<=.):.*$/s, '') : word)) add(value, mode)               // what stands behind the colon is a path in the container
  }
  return [...found.values()]
}

/** `--out=/x`, `-I/x`; a lone `/` there is a separator (`-F/`). */
function valuesOf(flag: string): readonly string[] {
  const value = flag.includes('=') ? flag.slice(flag.indexOf('=') + 1) : /^-[A-Za-z]([/~.].*)$/s.exec(flag)?.[1]
  return value === undefined || (value === '/' && !/^--(?:work-tree|git-dir|root|prefix|directory|dir|target|chdir|cwd)=/.test(flag)) ? [] : operandsOf(value)
}
/** A path, or the paths in `if=/x`, `@/x`, `/host:/container`; nothing for a URL or a sentence. */
function operandsOf(word: string): readonly string[] {
  if (/^file:\/\//.test(word)) return [word.replace(/^file:\/\/[^/]*/, '')]
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(word) || word.length > 4096) return []
  if (/\s/.test(word) && !/^[/~]/.test(word)) return []
  const mounts = [...word.matchAll(/(?:^|,)(?:source|src)=([^,]+)/g)].map(([, path]) => path!)
  if (mounts.length > 0) return mounts
  const bare = word.replace(/^(?:[\w.-]+=)?@?/, '')
  if (bare !== word && PROGRAMS.test(bare)) return []                                                           // CC=/usr/bin/gcc
  return /^[/~.]/.test(bare) ? bare.split(':') : [bare]
}

/** The path in every folder it may be meant from, up to the first hole; one that begins with a hole could lead anywhere and is left alone. */
function placesOf(text: string, cwds: readonly string[]): readonly string[] {
  if (text === '' || text.startsWith(HOLE)) return []
  const absolute = /^[/~]/.test(text)
  return (absolute ? [''] : cwds).flatMap(cwd => {
    if (cwd.startsWith(HOLE)) return /(?:^|\/)\.\.(?:\/|$)/.test(text) ? ['..'] : []
    const parts = normalize(cwd === '' ? text : `${cwd}/${text}`).split('/')
    const open = parts.findIndex(isOpen)
    const known = open < 0 ? parts : parts.slice(0, open)
    return open === 0 ? [] : [ofProcess(parts) ?? (known.join('/') || '/')]
  })
}
/** Whichever process a hole means: what may be its environment or memory is named as that of one. */
function ofProcess(parts: readonly string[]): string | undefined {
  const last = parts.at(-1) ?? ''
  if (parts[1] !== 'proc' || parts[0] !== '' || parts.length < 4 || !parts.some(isOpen)) return undefined
  return ['environ', 'mem'].flatMap(name => wordMatches(name, last) === 'no' ? [] : [`/proc/self/${name}`])[0]
}

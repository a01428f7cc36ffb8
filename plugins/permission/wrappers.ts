/**
 * Which command a command starts: `env X=1 rm` starts `rm`, `sh -c "…"` a script, `find -exec` what follows. Pure; knows words only.
 * Where an option may or may not take a value, both readings are given: judging one command too many is harmless, one too few is not.
 * No list of programs that can start others is ever complete: this is the seat belt, only a sandbox is a boundary.
 */
import { INTERPRETERS, interpreted } from './interpreters.js'
import { basename, HOLE, isOpen } from './word.js'

export type Inner =
  | { readonly kind: 'words'; readonly words: readonly string[] }
  | { readonly kind: 'script'; readonly source: string }
  | { readonly kind: 'unclear'; readonly reason: string }

const SHELLS = /^(?:ba|da|z|k|mk|pdk|a|fi|c|tc|rba|pw)?sh$/
/** Programs that run the command in their words, and how many words of their own stand before it. */
const WRAPPERS: Readonly<Record<string, number>> = {
  env: 0, xargs: 0, parallel: 0, nohup: 0, nice: 0, ionice: 0, setsid: 0, stdbuf: 0, command: 0, builtin: 0, exec: 0, time: 0, watch: 0, entr: 0, busybox: 0, toybox: 0,
  sudo: 0, doas: 0, pkexec: 0, su: 0, runuser: 0, gosu: 1, chroot: 1, unshare: 0, nsenter: 0, bwrap: 0, firejail: 0, proot: 0, fakeroot: 0, 'systemd-run': 0, 'start-stop-daemon': 0,
  timeout: 1, flock: 1, taskset: 1, chrt: 1, setarch: 1, strace: 0, ltrace: 0, valgrind: 0, caffeinate: 0, eatmydata: 0, setpriv: 0, chpst: 0, unbuffer: 0, script: 0, 'xvfb-run': 0, 'dbus-run-session': 0,
  ssh: 1, tmux: 1, screen: 0, npx: 0, bunx: 0, pnpx: 0, uvx: 0,
}
/** Those of them that hand their words to a shell, and those whose words go on with what comes from their input. */
const SPOKEN = new Set(['watch', 'parallel', 'ssh', 'tmux']), FED = new Set(['xargs', 'parallel'])
/** Programs that run the command behind one of these words: `npm exec hx`. */
const RUNNERS: Readonly<Record<string, RegExp>> = { npm: /^(?:exec|x)$/, pnpm: /^(?:exec|dlx)$/, yarn: /^(?:exec|dlx)$/, bun: /^x$/, uv: /^run$/, pipx: /^run$/, poetry: /^run$/, bundle: /^exec$/ }
/** Options whose value a shell runs: of any program, and of some. */
const SCRIPT_OPTION = /^--(?:to-command|checkpoint-action=exec|rsh|use-compress-program|exec|pager|upload-pack|receive-pack|split-string|open-files-in-pager|extcmd|script-shell|(?:tree|msg|index|commit|parent|env|tag-name)-filter)(?:=|$)/
const SCRIPT_OPTIONS: Readonly<Record<string, RegExp>> = { env: /^-[a-z0i]*S/, su: /^(?:-c|--command)/, runuser: /^(?:-c|--command)/, script: /^(?:-[a-z]*c|--command)/, flock: /^(?:-c|--command)/, git: /^-[xO]/, mapfile: /^-C/, readarray: /^-C/, compgen: /^-[a-zA-Z]*C/, complete: /^-C/, bind: /^-x/,
  npm: /^(?:-c|--call)/, npx: /^(?:-c|--call)/, scp: /^-S/, sftp: /^-S/, rsync: /^-e/, tar: /^-I/, zip: /^-TT/, man: /^-P/,
}
/** Everything that `words` may start. `stdin` is what a here-document feeds it. */
export function innerOf(words: readonly string[], stdin: string | undefined): readonly Inner[] {
  const name = basename(words[0] ?? ''), rest = words.slice(1)
  if (name === 'capsh') return shell(name, rest.slice(rest.indexOf('--') + 1), stdin)
  if (SHELLS.test(name)) return shell(name, rest, stdin)
  if (name === 'source' || name === '.') return sourced(rest, stdin)
  if (name === 'eval') return script(rest.filter((word, i) => i > 0 || word !== '--').join(' '))
  if (name === 'trap') return script(rest.find(word => !word.startsWith('-')) ?? '')
  if (name === 'alias') return rest.flatMap(word => script(word.slice(word.indexOf('=') + 1)))
  if (name === 'hash') return starts(rest, 0)                                                                   // `hash -p /usr/bin/sudo ls`
  if (name === 'command' && /^-p?[vV]/.test(rest[0] ?? '')) return []                                          // only tells what it would run
  if (name === 'find' || name === 'fd' || name === 'fdfind') return executed(rest)
  const inner = rest.flatMap((word, i) => SCRIPT_OPTION.test(word) || SCRIPT_OPTIONS[name]?.test(word) ? script(spaced(name, valueOf(word, rest[i + 1], SCRIPT_OPTIONS[name]))) : [])
  if (name === 'sed') return [...inner, ...sedRuns(rest)]
  if (attaches(name, rest)) inner.push({ kind: 'words', words: ['<', '/proc/self/mem'] })
  if (name === 'make' || name === 'gmake') return [...inner, ...makeRuns(rest)]
  if (/^(?:ssh|scp|sftp)$/.test(name)) inner.push(...rest.flatMap(word => script(/^(?:-o)?\s*(?:Proxy|Local|KnownHosts|Remote)Command[= ](.*)$/is.exec(word)?.[1] ?? '')))
  if (name === 'tar') inner.push(...rest.flatMap(word => script(/^exec=(.*)$/s.exec(word)?.[1] ?? '')))
  if (/^(?:pnpm|yarn|bun|corepack)$/.test(name)) inner.push(...rest.flatMap((word, i) => /^(?:hx|harnessx)$/.test(word) ? [{ kind: 'words', words: rest.slice(i) } as const] : []))
  if (name === 'git') return [...inner, ...gitRuns(rest)]
  if (INTERPRETERS.test(name)) inner.push(...interpreted(name, rest, stdin))
  const runner = RUNNERS[name], at = runner ? rest.findIndex(word => runner.test(word)) : -1
  const found = at >= 0 ? starts(rest.slice(at + 1), 0) : Object.hasOwn(WRAPPERS, name) ? starts(rest, WRAPPERS[name]!) : []
  for (const start of found) {
    if (start.kind !== 'words') inner.push(start)
    else if (SPOKEN.has(name)) inner.push(...script(start.words.join(' ')))
    else inner.push(FED.has(name) ? { kind: 'words', words: [...start.words.map(word => word.replaceAll('{}', HOLE)), HOLE] } : start)
  }
  return inner
}

/** Every place at which the command may start: behind options (with or without a value), assignments and `skip` words. */
function starts(words: readonly string[], skip: number): readonly Inner[] {
  const found: Inner[] = []
  let left = skip, value = false
  for (const [i, word] of words.entries()) {
    if (/^-./.test(word)) { value = word !== '--' && !word.includes('=') && !/^-[A-Za-z][^A-Za-z-]/.test(word); continue }       // `-I{}` has its value
    if (/^[A-Za-z_]\w*=/.test(word)) { value = false; continue }
    if (left === 0) found.push(isOpen(word) ? { kind: 'unclear', reason: 'the command itself is only known when it runs' } : { kind: 'words', words: words.slice(i) })
    else if (value) found.push(...starts(words.slice(i + 1), left - 1))                                      // as a word of its own; below as a value
    if (!value && left-- === 0) break
    value = false
  }
  return found
}

function shell(name: string, rest: readonly string[], stdin: string | undefined): readonly Inner[] {
  const fed = stdin === undefined ? [] : script(stdin)
  for (let i = 0; i < rest.length; i++) {
    const word = rest[i]!
    if (word === '--version' || word === '--help') return fed
    if (/^-[a-zA-Z]*c/.test(word)) return [...fed, ...script(rest.slice(i + 1).find(next => !/^[-+]/.test(next)) ?? '')]
    if (/^[-+][oO]$|^--(?:rcfile|init-file)$/.test(word)) i++                                                 // the next word is its value
    else if (/^-[a-zA-Z]*s/.test(word)) break
    else if (!/^[-+]/.test(word)) return [...fed, ...file(name, rest.slice(i))]
  }
  return stdin === undefined ? [{ kind: 'unclear', reason: `${name} takes its commands from its input` }] : fed
}
function sourced(rest: readonly string[], stdin: string | undefined): readonly Inner[] {
  return [...stdin === undefined ? [] : script(stdin), ...file('source', rest.filter((word, i) => i > 0 || word !== '--'))]
}
/** The commands `e` and `w` of sed, and the flag `e` of `s`. */
function sedRuns(rest: readonly string[]): readonly Inner[] {
  const program = rest.filter(word => !/^-[a-zA-Z]*$/.test(word)).map(word => word.replace(/^--expression=/, '')).filter(word => !word.startsWith('-'))
  return program.flatMap((text): readonly Inner[] => {
    const runs = /(?:^|[;\n{}!])\s*(?:\d+|\$|\/[^/]*\/)?\s*e(?:\s+\S|$)/.test(text) || /s([^\w\s\\])(?:\\.|(?!\1).)*\1(?:\\.|(?!\1).)*\1[gpiIm\d]*e/s.test(text)
    return [
      ...runs && /[\s/]|^e$/.test(text) ? [{ kind: 'unclear', reason: 'sed is told to run a command' } as const] : [],
      ...[...text.matchAll(/(?:^|[;\n{}/\d$gpI])\s*w\s+(\/\S+|~\S*|\.\.\S+|\S*\.(?:git|config)\S*)/g)].map(([, path]) => ({ kind: 'words', words: ['>', path!] } as const)),
    ]
  })
}
function makeRuns(rest: readonly string[]): readonly Inner[] {
  return rest.flatMap((word, i): readonly Inner[] => {
    if (/^(?:--eval(?:=|$)|-E)/.test(word) || (word === '-' && /^(?:-f|--file|--makefile)$/.test(rest[i - 1] ?? '')) || word === '-f-') return [{ kind: 'unclear', reason: 'make is given rules that can not be read' }]
    return script(/^(?:SHELL|CC|CXX|LD|AR)=(.*)$/s.exec(word)?.[1] ?? '')
  })
}
/** Debuggers and tracers look into a process that runs already, by its number. Of what they start themselves no option is theirs. */
function attaches(name: string, rest: readonly string[]): boolean {
  if (/^(?:gcore|reptyr)$/.test(name)) return rest.some(word => !word.startsWith('-'))
  if (!/^(?:gdb|lldb|[sl]trace|perf|py-spy|rbspy)$/.test(name)) return false
  const end = rest.findIndex((word, i) => /^(?:--|--args)$/.test(word) || (/^[sl]trace$/.test(name) && !word.startsWith('-') && !/^-[oesEuPSaXIbO]$/.test(rest[i - 1] ?? '')))
  const own = end < 0 ? rest : rest.slice(0, end)
  return own.some(word => /^(?:-p\d*|--?pid\b.*|--attach-pid.*|--attach\b.*)$/.test(word) || (/^[gl]l?db$/.test(name) && /^(?:attach|process attach)\b/.test(word))) || (name === 'gdb' && own.filter(word => !word.startsWith('-')).slice(1).some(word => /^\d+$/.test(word)))
}
/** A script in a file is judged by its name, not read: what a file holds is not what it will hold when it runs. One that is no plain file is asked about. */
function file(name: string, words: readonly string[]): readonly Inner[] {
  const [word = ''] = words
  return isOpen(word) || /^\/(?:dev|proc)\//.test(word) ? [{ kind: 'unclear', reason: `what ${name} runs is only known when it runs` }] : [{ kind: 'words', words }]
}

/** `find … -exec CMD {} \;`, `fd -x CMD`, and files that find writes. */
function executed(words: readonly string[]): readonly Inner[] {
  return words.flatMap((word, i): readonly Inner[] => {
    if (/^-(?:fls|fprint[0f]?)$/.test(word)) return [{ kind: 'words', words: ['>', words[i + 1] ?? ''] }]
    if (!/^-(?:exec(?:dir)?|ok(?:dir)?|x|X)$|^--exec(?:-batch)?$/.test(word)) return []
    const end = words.findIndex((next, at) => at > i && (next === ';' || (next === '+' && words[at - 1] === '{}')))
    const roots = words.slice(0, i).filter(root => !/^[-(!]/.test(root))
    return (roots.length > 0 ? roots : ['.']).map(root => ({ kind: 'words', words: words.slice(i + 1, end < 0 ? undefined : end).map(next => next.replaceAll('{}', `${root}/${HOLE}`)) }))     // what `{}` stands for lies below a root
  })
}

/** `git bisect run CMD`, `git submodule foreach CMD`, and settings that name a program. */
function gitRuns(rest: readonly string[]): readonly Inner[] {
  const at = rest.findIndex((word, i) => (word === 'run' && rest[i - 1] === 'bisect') || word === 'foreach')
  const runs = at < 0 ? [] : script(rest.slice(at + 1).filter(word => !word.startsWith('--')).join(' '))
  const transports = rest.flatMap(word => script(/^ext::(.*)$/s.exec(word)?.[1] ?? '')), packs = rest.includes('clone') ? rest.flatMap((word, i) => word === '-u' ? script(rest[i + 1] ?? '') : []) : []
  const key = rest[0] === 'config' || rest.includes('config') ? rest.slice(rest.indexOf('config') + 1).map((word, i, all) => i < all.length - 1 ? `${word}=${all[i + 1]}` : word) : []
  const setting = [...rest.map(word => word.replace(/^--config(?:-env)?=/, '')), ...key].some(word => /^(?:--exec-path=|alias\.[^=]*=!|(?:core\.(?:pager|editor|sshcommand|fsmonitor|hookspath)|sequence\.editor|diff\.external|[^=]*\.(?:command|cmd|textconv|clean|smudge|driver|helper|program))=)/i.test(word))
  return [...runs, ...transports, ...packs, ...setting ? [{ kind: 'unclear', reason: 'a setting of git names a program to run' } as const] : []]
}

const script = (source: string): readonly Inner[] => isOpen(source) ? [{ kind: 'unclear', reason: 'part of a script is only known when it runs' }] : source.trim() === '' ? [] : [{ kind: 'script', source }]
/** The value of an option in its three spellings: `-c V`, `-cV`, `--command=V`. */
const valueOf = (option: string, next = '', short?: RegExp): string => option.startsWith('--') ? (option.includes('=') ? option.slice(option.lastIndexOf('=', option.startsWith('--checkpoint') ? undefined : option.indexOf('=')) + 1) : next) : (short && option.replace(short, '')) || next
/** In what `env -S` splits, `\_` is a blank. */
const spaced = (name: string, value: string): string => name === 'env' ? value.replaceAll('\\_', ' ') : value

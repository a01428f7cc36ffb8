/**
 * Which command a command starts: `env X=1 rm` starts `rm`, `sh -c "…"` a script, `find -exec` what follows. Pure; knows words only.
 * Where an option may or may not take a value, both readings are given: judging one command too many is harmless, one too few is not.
 * No list of programs that can start others is ever complete: this is the seat belt, only a sandbox is a boundary.
 */
import { attaches } from './attach.js'
import { gitRuns } from './git.js'
import { script, unclear, valueOf, type Inner } from './inner.js'
import { INTERPRETERS, interpreted } from './interpreters.js'
import { basename, HOLE, isOpen, listed } from './word.js'

const SHELLS = /^(?:ba|da|z|k|mk|pdk|a|fi|c|tc|rba|pw)?sh$/
/** Programs that run the command in their words, and how many words of their own stand before it. */
const WRAPPERS: Readonly<Record<string, number>> = {
  env: 0, xargs: 0, parallel: 0, nohup: 0, nice: 0, ionice: 0, setsid: 0, stdbuf: 0, command: 0, builtin: 0, exec: 0, time: 0, watch: 0, entr: 0, busybox: 0, toybox: 0,
  sudo: 0, doas: 0, pkexec: 0, su: 0, runuser: 0, gosu: 1, chroot: 1, unshare: 0, nsenter: 0, bwrap: 0, firejail: 0, proot: 0, fakeroot: 0, 'systemd-run': 0, 'start-stop-daemon': 0,
  timeout: 1, flock: 1, taskset: 1, chrt: 1, setarch: 1, strace: 0, ltrace: 0, valgrind: 0, caffeinate: 0, eatmydata: 0, setpriv: 0, chpst: 0, unbuffer: 0, script: 0, 'xvfb-run': 0, 'dbus-run-session': 0,
  ssh: 1, tmux: 1, screen: 0, npx: 0, bunx: 0, pnpx: 0, uvx: 0, chronic: 0, hyperfine: 0, sem: 0, concurrently: 0, watchexec: 0, 'dbus-launch': 0, 'ssh-agent': 0, runcon: 1, numactl: 0, prlimit: 0, cpulimit: 0, faketime: 1,
  torsocks: 0, torify: 0, proxychains: 0, proxychains4: 0, catchsegv: 0, linux32: 0, linux64: 0, i386: 0, x86_64: 0, softlimit: 0, envdir: 1, setuidgid: 1, sg: 1, dotenv: 0, perf: 1, trickle: 0, wine: 0,
}
/** Those of them that hand their words to a shell. */
const SPOKEN = new Set(['watch', 'ssh', 'tmux', 'hyperfine', 'concurrently', 'watchexec', 'sg'])
/** Programs that run the command behind one of these words: `npm exec hx`. */
const RUNNERS: Readonly<Record<string, RegExp>> = { npm: /^(?:exec|x)$/, pnpm: /^(?:exec|dlx)$/, yarn: /^(?:exec|dlx)$/, bun: /^x$/, uv: /^run$/, pipx: /^run$/, poetry: /^run$/, bundle: /^exec$/, direnv: /^exec$/, mise: /^(?:x|exec)$/, asdf: /^exec$/, rbenv: /^exec$/, pyenv: /^exec$/, nvm: /^exec$/, fnm: /^exec$/, volta: /^run$/, conda: /^run$/, mamba: /^run$/, pipenv: /^run$/, rye: /^run$/, hatch: /^run$/, pdm: /^run$/, nix: /^(?:-c|--command)$/, guix: /^--$/, gdb: /^--args$/ }
/** Options whose value a shell runs: of any program, and of some. */
const SCRIPT_OPTION = /^--(?:to-command|checkpoint-action=exec|rsh|use-compress-program|exec|pager|upload-pack|receive-pack|split-string|open-files-in-pager|extcmd|script-shell|unzip-command|rsync-path|rsh-command|info-script|new-volume-script|use-askpass|(?:tree|msg|index|commit|parent|env|tag-name)-filter)(?:=|$)/
const SCRIPT_OPTIONS: Readonly<Record<string, RegExp>> = { env: /^-[a-z0i]*S/, su: /^(?:-c|--command)/, runuser: /^(?:-c|--command)/, script: /^(?:-[a-z]*c|--command)/, flock: /^(?:-c|--command)/, git: /^-[xO]|^--(?:to-cmd|cc-cmd|header-cmd|sendmail-cmd|httpd|access-hook)(?:=|$)/, go: /^--?(?:exec|toolexec|vettool)(?:=|$)/, mapfile: /^-C/, readarray: /^-C/, compgen: /^-[a-zA-Z]*C/, complete: /^-C/, bind: /^-x/,
  npm: /^(?:-c|--call)/, npx: /^(?:-c|--call)/, nodemon: /^-x/, entr: /^-[a-z]*s$/, cargo: /^-s$/, sg: /^-c$/, 'nix-shell': /^--(?:run|command)/, scp: /^-S/, sftp: /^-S/, rsync: /^-[a-zA-Z]*?e/, tar: /^-[IF]/, zip: /^-TT/, man: /^-[PH]|^--html(?:=|$)/,
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
  const option = listed(SCRIPT_OPTIONS, name)
  const inner = rest.flatMap((word, i) => SCRIPT_OPTION.test(word) || option?.test(word) ? script(spaced(name, valueOf(word, rest[i + 1], option))) : [])
  if (name === 'sed') return [...inner, ...sedRuns(stdin !== undefined && /^(?:-|\/dev\/(?:stdin|fd\/0))$/.test(rest[rest.findIndex(word => /^(?:-[a-z]*f|--file)$/.test(word)) + 1] ?? '') ? [...rest, stdin] : rest)]
  if (attaches(name, rest)) inner.push({ kind: 'words', words: ['<', '/proc/self/mem'] })
  if (name === 'make' || name === 'gmake') return [...inner, ...makeRuns(rest)]
  if (/^(?:ssh|scp|sftp)$/.test(name)) inner.push(...rest.flatMap(word => script(/^(?:-o)?\s*(?:Proxy|Local|KnownHosts|Remote)Command[= ](.*)$/is.exec(word)?.[1] ?? '')))
  if (/^(?:ssh|scp|sftp)$/.test(name) && rest.some((word, i) => /^-F./.test(word) || (word === '-F' && !/^(?:none|\/dev\/null)$/.test(rest[i + 1] ?? '')))) inner.push(unclear(`${name} takes programs to run from a file`))
  if (name === 'tar' && rest.some((word, i) => word === '--absolute-names' || (/^-?[a-zA-Z]+$/.test(word) && (i === 0 || word.startsWith('-')) && word.includes('x') && word.includes('P')))) inner.push(unclear('tar writes wherever its archive says'))
  if (name === 'socat') inner.push(...rest.flatMap(word => script(/^(?:EXEC|SYSTEM|SHELL):([^,]*)/is.exec(word)?.[1]?.replace(/^["']|["']$/g, '') ?? '')))
  if (/^(?:nc|ncat|netcat)$/.test(name)) inner.push(...rest.flatMap((word, i) => /^(?:-[a-z]*[ce]|--(?:sh-)?exec)$/.test(word) ? script(rest[i + 1] ?? '') : []))
  if (/^(?:npm|pnpm|yarn)$/.test(name)) inner.push(...rest.flatMap((word, i) => /^script-shell$/.test(word) ? script(rest[i + 1] ?? '') : script(/^(?:scripts\.[\w:.-]+|script-shell)=(.*)$/s.exec(word)?.[1] ?? '')))
  if (name === 'kill' && rest.slice(1).includes('-1')) inner.push(unclear('kill reaches every process'))
  if (name === 'tar') inner.push(...rest.flatMap(word => script(/^exec=(.*)$/s.exec(word)?.[1] ?? '')))
  if (name === 'parallel' || name === 'sem') return [...inner, ...spread(rest)]
  if (name === 'enable' && rest.some(word => /^-[a-z]*f/.test(word))) inner.push(unclear('a builtin comes from a file'))
  if (name === 'deno') inner.push(...rest.flatMap((word, i) => /^npm:/.test(word) ? [{ kind: 'words', words: [packaged(word.slice(4)), ...rest.slice(i + 1)] } as const] : []))
  if (/^(?:pnpm|yarn|bun|corepack)$/.test(name)) inner.push(...rest.flatMap((word, i) => /^(?:hx|harnessx)$/.test(word) ? [{ kind: 'words', words: rest.slice(i) } as const] : []))
  if (name === 'git') return [...inner, ...gitRuns(rest)]
  if (INTERPRETERS.test(name)) inner.push(...interpreted(name, rest, stdin))
  const runner = listed(RUNNERS, name), wrapper = listed(WRAPPERS, name), at = runner ? rest.findIndex(word => runner.test(word)) : -1
  const found = at >= 0 ? runBy(name, rest.slice(at + 1)) : wrapper !== undefined ? starts(rest, wrapper) : []
  for (const start of found) {
    if (start.kind !== 'words') inner.push(start)
    else if (SPOKEN.has(name)) inner.push(...script(start.words.join(' ')))
    else if (name === 'xargs') inner.push({ kind: 'words', words: [...start.words.map(word => placesIn(rest).reduce((text, place) => text.replaceAll(place, HOLE), word)), HOLE] })
    else inner.push(PACKAGE_RUNNERS.test(name) ? { kind: 'words', words: [packaged(start.words[0]!), ...start.words.slice(1)] } : start)
  }
  return inner
}

/** Some name a version or a folder first; behind `--` stands the command in any case. */
function runBy(name: string, words: readonly string[]): readonly Inner[] {
  const dashes = words.indexOf('--')
  return [...starts(words, /^(?:nvm|direnv)$/.test(name) ? 1 : 0), ...dashes > 0 ? starts(words.slice(dashes + 1), 0) : []]
}
const PACKAGE_RUNNERS = /^(?:npx|bunx|pnpx|uvx|npm|pnpm|yarn|bun|pipx)$/
/** `name@1.2` runs what is called `name`. */
const packaged = (word: string): string => word.replace(/(?<=.)@[^/]*$/, '')
/** What xargs puts its input in for. */
const placesIn = (options: readonly string[]): readonly string[] => ['{}', ...options.flatMap((word, i) => /^-[IJ]$/.test(word) ? [options[i + 1] ?? ''] : /^(?:-[Ii]|--replace=)(.+)$/s.exec(word)?.slice(1) ?? [])].filter(place => place !== '')
/** `parallel CMD ::: a b` runs CMD with each; without one, each is a command itself. */
function spread(rest: readonly string[]): readonly Inner[] {
  const at = rest.findIndex(word => /^:::/.test(word)), own = at < 0 ? rest : rest.slice(0, at), given = at < 0 ? [] : rest.slice(at + 1)
  const commands = starts(own, 0).flatMap(start => start.kind === 'words' ? [start.words] : [])
  if (commands.length > 0) return commands.flatMap(words => spoken([...words.map(word => word.replaceAll(/\{[^}]*\}/g, HOLE)), HOLE]))
  return at < 0 || rest[at] !== ':::' ? [unclear('parallel takes its commands from its input')] : given.flatMap(word => word === ':::' ? [] : script(word))
}
/** Words that a shell reads again, some of them only known when it runs. */
const spoken = (words: readonly string[]): readonly Inner[] => [...words[0] === HOLE ? [unclear('the command itself is only known when it runs')] : [{ kind: 'words', words } as const], ...words.flatMap(word => /\s/.test(word) ? script(word.replaceAll(HOLE, 'x')) : [])]

/** Every place at which the command may start: behind options (with or without a value), assignments and `skip` words. */
function starts(words: readonly string[], skip: number): readonly Inner[] {
  const found: Inner[] = []
  let left = skip, value = false
  for (const [i, word] of words.entries()) {
    if (/^-./.test(word)) { value = word !== '--' && !word.includes('=') && !/^-[A-Za-z][^A-Za-z-]/.test(word); continue }       // `-I{}` has its value
    if (/^[A-Za-z_]\w*=/.test(word)) { value = false; continue }
    if (left === 0) found.push(isOpen(word) ? unclear('the command itself is only known when it runs') : { kind: 'words', words: words.slice(i) })
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
  return stdin === undefined ? [unclear(`${name} takes its commands from its input`)] : fed
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
      ...runs && /[\s/]|^e$/.test(text) ? [unclear('sed is told to run a command')] : [],
      ...[...text.matchAll(/(?:^|[;\n{}/\d$gpI])\s*w\s+(\/\S+|~\S*|\.\.\S+|\S*\.(?:git|config)\S*)/g)].map(([, path]) => ({ kind: 'words', words: ['>', path!] } as const)),
    ]
  })
}
function makeRuns(rest: readonly string[]): readonly Inner[] {
  return rest.flatMap((word, i): readonly Inner[] => {
    if (/^(?:--eval(?:=|$)|-E)/.test(word) || (/^(?:-$|\/(?:dev|proc)\/)/.test(word) && /^(?:-f|--file|--makefile)$/.test(rest[i - 1] ?? '')) || /^(?:-f|--(?:make)?file=)(?:-$|\/(?:dev|proc)\/)/.test(word) || /^(?:GNU)?MAKEFLAGS=.*(?:eval|-E)/.test(word)) return [unclear('make is given rules that can not be read')]
    return script(/^(?:SHELL|CC|CXX|LD|AR)=(.*)$/s.exec(word)?.[1] ?? '')
  })
}
/** A script in a file is judged by its name, not read: what a file holds is not what it will hold when it runs. One that is no plain file is asked about. */
function file(name: string, words: readonly string[]): readonly Inner[] {
  const [word = ''] = words
  return isOpen(word) || /^\/(?:dev|proc)\//.test(word) ? [unclear(`what ${name} runs is only known when it runs`)] : [{ kind: 'words', words }]
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

/** In what `env -S` splits, `\_` is a blank. */
const spaced = (name: string, value: string): string => name === 'env' ? value.replaceAll('\\_', ' ') : value

/**
 * What is given to an interpreter: a file, which is judged by its name; code in the words or on its input, of which only the plainest is seen. Pure.
 * Code can always hide what it does. What stands in it in so many words (a program started, a path of the system) is asked about; the rest is for a sandbox.
 */
import { unclear, written, type Inner } from './inner.js'
import { HOLE, isOpen } from './word.js'

export const INTERPRETERS = /^(?:python[\d.]*|pypy\d*|node|nodejs|deno|bun|perl[\d.]*|ruby[\d.]*|php[\d.]*|lua[\d.]*|[gmn]?awk|tclsh|expect|osascript|gdb|lldb|n?vim?|g?view|ex|ed|less|more|emacs(?:client)?|ipython\d*|Rscript|R|julia|groovy|scala|jshell|elixir|erl|octave|gnuplot|ghci?|runghc|sqlite3|psql|mysql|mariadb)$/
const RUN_FILES = /^(?:python|pypy|node|nodejs|deno|bun|perl|ruby|php|lua|tclsh)/
/** Code that starts other programs; a name alone (`src/system.js`) is none. */
const STARTS_PROGRAMS = /\b(?:system|popen\d?|subprocess|child_process|execSync|spawn(?:Sync)?|exec[lv]p?e?|exec|os\.execute|shell_exec|passthru|proc_open|getline|do shell script|__import__|create_subprocess\w*|spawn_sync|Open3|capture[23]e?|shell-command\w*|call-process|start-process|callCommand|callProcess|readProcess|os:cmd|System\.cmd|getRuntime|ProcessBuilder|(?:TO|FROM)\s+PROGRAM|Deno\.Command|Bun\.\$)\b|\.execute\(\)|["']\s*\.!|\$`|\\!|\brun\(`|:!|%x|\bqx\b|^\+?!|^\.?shell\s/m
/** Pipes to programs; of awk with its texts left out. */
const PIPES: readonly (readonly [RegExp, RegExp])[] = [[/^(?:perl|ruby|php)/, /`/], [/^perl/, /\|\s*["']|["']\s*\|/], [/awk$/, /(?<!\|)\|&?\s*""/], [/^(?:ed|ex|n?vim?|g?view|less|more)$/, /(?:^|[:|\s])!\s*[\w"'/$]/m]]
const CODE = /[\s("'`!]/
const CODE_OPTION = /^(?:-[A-Za-z]*[cerp]$|-[cerpEm]|--eval|--print|--command)/
/** Where nobody's project is; in quotes, so that routes of a web server are not meant. */
const SYSTEM_PATH = /["'`]((?:~|\/(?:etc|root|home|proc|sys|dev|var|usr|boot|opt|mnt|srv|run|Users|private))(?:\/[^"'`\n]*)?)["'`]/g
const STEERING_PATH = /["'`]((?:[^"'`\s]*\/)?(?:harness\.config\.yaml|\.git\/[^"'`\n]+))["'`]/g
const WRITES = /["'`](?:[wax]b?\+?|r\+)["'`]|[wW]rite|append|unlink|rename|remove|rmtree|copy|\brm/
const REMOVES_ALL = /(?:rmtree|rmSync|rm_rf|rm_r|remove_tree|rimraf)\W[^;\n]*["'`](?:\/|~)["'`]/

export function interpreted(name: string, rest: readonly string[], stdin: string | undefined): readonly Inner[] {
  const code = [...rest.filter(word => CODE.test(word)), ...stdin === undefined ? [] : [stdin]]
  const found: Inner[] = code.flatMap(text => inCode(name, text))
  if (rest.some((word, i) => word === HOLE && CODE_OPTION.test(rest[i - 1] ?? '')) || (name.startsWith('python') && rest.some((word, i) => word === 'pty' && rest[i - 1] === '-m'))) found.push(unclear(`what ${name} runs is only known when it runs`))
  if (!RUN_FILES.test(name)) return found
  const at = rest.findIndex(word => !word.startsWith('-') && word !== 'run')
  if (at >= 0 && !rest.slice(0, at).some(word => CODE_OPTION.test(word)) && !CODE.test(rest[at]!)) if (/^\/(?:dev|proc)\//.test(rest[at]!)) found.push(unclear(`what ${name} runs is only known when it runs`)); else for (let i = at; i < rest.length && i <= at + 1; i++) if (!rest[i]!.startsWith('-') && !isOpen(rest[i]!)) found.push({ kind: 'words', words: rest.slice(i) })      // the second may be the file when the first is an option's value
  if (stdin === undefined && rest.every(word => word === '-')) found.push(unclear(`${name} takes its code from its input`))
  return found
}

function inCode(name: string, text: string): readonly Inner[] {
  const found: Inner[] = []
  if (STARTS_PROGRAMS.test(text) || PIPES.some(([who, what]) => who.test(name) && what.test(name.endsWith('awk') ? text.replace(/"(?:\\.|[^"\\])*"/g, '""') : text))) found.push(unclear(`the code given to ${name} starts other programs`))
  if (REMOVES_ALL.test(text)) found.push(unclear(`the code given to ${name} removes everything`))
  for (const [, path] of text.matchAll(SYSTEM_PATH)) found.push({ kind: 'words', words: [WRITES.test(text) ? '>' : '<', path!] })
  if (WRITES.test(text)) for (const [, path] of text.matchAll(STEERING_PATH)) found.push(written(path!))
  return found
}

/**
 * `hx completion bash|zsh|fish`: a small script that asks this `hx` for what may come next, so that ids of plugins and sessions are those of now. `hx complete` is what it asks.
 * Knows the shape of the parser's commands, none of their work; reads no folder that is not served by a daemon already.
 */
import { readdirSync } from 'node:fs'
import type { Command } from 'commander'
import { places } from '../places.js'
import type { Io } from './io.js'

const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `# hx completion bash >> ~/.bashrc
_hx() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(hx complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o default -F _hx hx harnessx
`,
  zsh: `#compdef hx harnessx
# hx completion zsh > a folder of $fpath/_hx, or: source <(hx completion zsh)
_hx() {
  local -a found
  local line
  for line in "\${(@f)$(hx complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n $line ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( $#found )); then _describe 'hx' found; else _files; fi
}
if [[ $funcstack[1] == _hx ]]; then _hx "$@"; else compdef _hx hx harnessx; fi
`,
  fish: `# hx completion fish > ~/.config/fish/completions/hx.fish
function __hx_complete
  set -l words (commandline -opc) (commandline -ct)
  hx complete -- $words[2..-1] 2>/dev/null
end
complete -c hx -f -a '(__hx_complete)'
complete -c harnessx -f -a '(__hx_complete)'
`,
}
export const SHELLS = ['bash', 'zsh', 'fish'] as const

export async function completion(io: Io, shell: (typeof SHELLS)[number]): Promise<number> {
  io.say(SCRIPTS[shell]!)
  return 0
}

/** One candidate a line, with a tab before what it is. `words` are those behind `hx`, the last one unfinished. */
export async function complete(io: Io, program: Command, words: readonly string[]): Promise<number> {
  for (const [word, about] of await candidates(io, program, words)) io.say(about === '' ? word : `${word}\t${about}`)
  return 0
}
type Candidate = readonly [word: string, about: string]

async function candidates(io: Io, program: Command, words: readonly string[]): Promise<readonly Candidate[]> {
  const last = words.at(-1) ?? '', before = words.slice(0, -1)
  let command = program, given = 0
  for (let i = 0; i < before.length; i++) {
    const word = before[i]!
    if (word.startsWith('-')) {
      const option = [...command.options, ...program.options].find(one => one.long === word || one.short === word)
      if (option && (option.required || option.optional)) {
        if (i === before.length - 1) return (option.argChoices ?? (option.long === '--session' ? await sessionIds(io) : [])).map(choice => typeof choice === 'string' ? [choice, ''] : choice)
        i++
      }
      continue
    }
    const inner = command.commands.find(one => one.name() === word || one.aliases().includes(word))
    if (inner) { command = inner; given = 0 } else given++
  }
  const all: Candidate[] = last.startsWith('-')
    ? [...command.options, ...(command === program ? [] : program.options)].filter(option => option.long && !option.hidden).map(option => [option.long!, option.description])
    : [...command.createHelp().visibleCommands(command).filter(one => one.name() !== 'help').map((one): Candidate => [one.name(), one.summary() || one.description()]), ...await argument(io, command, given)]
  return all.filter(([word]) => word.startsWith(last)).map(([word, about]) => [word, about.split('\n')[0]!])
}

async function argument(io: Io, command: Command, index: number): Promise<readonly Candidate[]> {
  const declared = command.registeredArguments[index] ?? command.registeredArguments.at(-1)
  if (!declared || (index >= command.registeredArguments.length && !declared.variadic)) return []
  if (declared.argChoices) return declared.argChoices.map(choice => [choice, ''])
  const group = command.parent?.name()
  if (group === 'sessions' || declared.name() === 'session') return sessionIds(io)
  if (group === 'plugins' && declared.name() === 'id') return pluginIds(io)
  return []
}
/** By their file names, newest first: titles would mean to read them. */
async function sessionIds(io: Io): Promise<readonly Candidate[]> {
  try {
    return readdirSync(places(io.env).sessions).filter(file => file.endsWith('.jsonl')).map((file): Candidate => [file.slice(0, -6), '']).sort().reverse().slice(0, 50)
  } catch { return [] }                                       // there are none yet
}
/** Of a running daemon: what a folder's config says is read by nobody who was not trusted to. */
async function pluginIds(io: Io): Promise<readonly Candidate[]> {
  const { runningDaemon } = await import('./connect.js')
  const daemon = await runningDaemon(io).catch(() => undefined)                // no config, or one that can't be: nothing to offer
  try { return (await daemon?.plugins() ?? []).map(({ id, state }): Candidate => [id, state]) } finally { await daemon?.close() }
}

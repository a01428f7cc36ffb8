/**
 * Reads a shell command into the simple commands that would run, at any depth: lists, pipes, subshells, substitutions, functions, here-documents,
 * and what wrappers such as `env`, `xargs` or `sh -c` start. Knows no rule and no file.
 * Invariants: nothing that runs is left out; what can't be known before it runs is a hole in a word, or a sentence in `unclear`.
 */
import { forEachChild, parse, type Assignment, type Command, type ParsedScript, type Redirection, type Script, type SyntaxNode, type Word, type WordPart } from 'unbash'
import { obeys } from './obeyed.js'
import { GLOB, HOLE, isOpen, readable } from './word.js'
import { innerOf } from './wrappers.js'

export interface SimpleCommand {
  /** Quotes and backslashes resolved. A redirection is a command of its own: `['>', 'file']` or `['<', 'file']`. */
  readonly words: readonly string[]
  /** `NAME=value` before the words. */
  readonly assignments: readonly { readonly name: string; readonly value: string }[]
  /** As a person reads it. */
  readonly source: string
  /** Every folder in which it may run, relative to where the whole command starts. A hole when that isn't known. */
  readonly cwds: readonly string[]
  /** Another of the commands starts it. */
  readonly inner: boolean
}
export interface Reading { readonly commands: readonly SimpleCommand[]; readonly unclear: readonly string[] }

const MAX_LENGTH = 65_536, MAX_COMMANDS = 50, MAX_DEPTH = 8, MAX_CWDS = 8, MAX_CHOICES = 64
/** Builtins that evaluate words as arithmetic or as a variable's subscript, where a quoted `$(…)` runs after all; the second only with `-v`. */
const EVALUATING = new Set(['let', 'read', 'declare', 'typeset', 'local', 'export', 'readonly', 'unset', 'mapfile', 'readarray', 'wait']), EVALUATING_V = new Set(['test', '[', 'printf'])

/** Variables whose value some program runs. */
const RUN_VARIABLES = /^(?:GIT_(?:SSH|SSH_COMMAND|EDITOR|SEQUENCE_EDITOR|PAGER|EXTERNAL_DIFF|ASKPASS|PROXY_COMMAND)|(?:MAN|SYSTEMD_)?PAGER|LESSOPEN|LESSCLOSE|EDITOR|VISUAL|FCEDIT|BROWSER|PROMPT_COMMAND|PS[0-4]|RSYNC_RSH|CVS_RSH|CC|CXX|LD|AR|RUSTC|RUSTC_(?:WORKSPACE_)?WRAPPER|CARGO_TARGET_\w+_RUNNER|SUDO_ASKPASS|SSH_ASKPASS|npm_config_script_shell)$/

export function readCommand(source: string): Reading {
  const reader = new Reader()
  reader.script(source, 0)
  return { commands: reader.commands, unclear: [...reader.unclear] }
}

class Reader {
  readonly commands: SimpleCommand[] = []
  readonly unclear = new Set<string>()
  #cwds: readonly string[] = ['']
  #depth = 0
  #inner = false

  script(source: string, depth: number): void {
    if (source.length > MAX_LENGTH) return void this.unclear.add(`it is longer than ${MAX_LENGTH} characters`)
    if (source.includes(HOLE) || source.includes(GLOB)) return void this.unclear.add('part of a script is only known when it runs')
    if (depth > MAX_DEPTH) return void this.unclear.add('scripts are nested too deeply')
    const outer = this.#depth
    this.#depth = depth
    this.#node(parse(source))
    this.#depth = outer
  }

  #node(node: SyntaxNode): void {
    switch (node.type) {
      case 'Script': return this.#nested(node)
      case 'Command': return this.#command(node)
      // After `cd x;` the folder is x or, when that failed, still the old one; after `cd x &&` it is x. What runs beside the shell doesn't move it.
      case 'Statement': return this.#beside(() => { this.#node(node.command) }, node.background ? 'forgotten' : 'either')
      case 'AndOr': return this.#beside(start => {
        node.commands.forEach((command, i) => {
          if (node.operators[i - 1] === '||') this.#cwds = either(start, this.#cwds)
          this.#node(command)
        })
      }, 'kept')
      case 'Pipeline': return node.commands.forEach(command => { this.#beside(() => { this.#node(command) }, node.commands.length > 1 ? 'forgotten' : 'kept') })
      case 'Subshell': case 'Coproc': return this.#beside(() => { this.#children(node) }, 'forgotten')
      case 'If': case 'While': case 'For': case 'ArithmeticFor': case 'Select': case 'Case': return this.#beside(() => { this.#children(node) }, 'either')
      case 'Function': return this.#beside(() => { this.#function(node) }, 'either')
      case 'Assignment':
        if (node.name === 'BASH_ALIASES' || node.name === 'BASH_CMDS') this.unclear.add(`${node.name} makes a name mean another command`)
        this.#literal((node.value.type === 'Word' ? [node.value] : node.value.elements).map(spell))
        return this.#children(node)
      case 'CommandExpansion': case 'ProcessSubstitution': case 'ArithmeticCommandExpansion':
        if (node.script) return this.#beside(() => { this.#nested(node.script!) }, 'forgotten')
        return void this.unclear.add('a substitution can not be read')
      case 'ArithmeticExpansion':
        if (node.expression === undefined) this.#literal([node.text])
        return this.#children(node)
      case 'ArithmeticCommand':                                // other shells read `((reboot))` as two subshells
        return this.#beside(() => { this.#children(parse(node.body)) }, 'forgotten')
      case 'TestUnary': case 'TestBinary': this.#literal((node.type === 'TestUnary' ? [node.operand] : [node.left, node.right]).map(spell))
        return this.#children(node)
      case 'Unknown': return void this.unclear.add(`an expansion with "${node.operator}" can not be read`)
      case 'Transform': if (node.operand.value === 'P') this.unclear.add('an expansion is evaluated again')
        return this.#children(node)
      case 'Redirect': return this.#redirect(node)
      default: return this.#children(node)
    }
  }
  #children(node: SyntaxNode): void { forEachChild(node, child => { this.#node(child) }) }
  #nested(script: Script & Pick<ParsedScript, 'errors'>): void {
    for (const error of script.errors ?? []) this.unclear.add(`it can not be parsed (${error.message})`)
    this.#children(script)
  }
  #beside(run: (before: readonly string[]) => void, after: 'kept' | 'forgotten' | 'either'): void {
    const before = this.#cwds
    run(before)
    if (after === 'forgotten') this.#cwds = before
    else if (after === 'either') this.#cwds = either(before, this.#cwds)
  }
  /** One that starts itself beside itself never ends: `:(){ :|:& };:`. */
  #function(node: Extract<SyntaxNode, { type: 'Function' }>): void {
    const before = this.commands.length, name = spell(node.name)
    this.#children(node)
    if (this.commands.slice(before).filter(({ words }) => words[0] === name).length > 1) this.unclear.add('a function starts itself more than once')
  }
  /** Arithmetic and subscripts evaluate a value once more, so that a quoted `$(…)` in it runs after all. */
  #literal(texts: readonly string[]): void { if (texts.some(text => /\$\(|`/.test(text))) this.unclear.add('quoted text may be evaluated again') }

  #command(node: Command): void {
    const words = [...node.name ? [node.name] : [], ...node.args].flatMap(expanded)
    const assignments = node.prefix.filter(item => item.type === 'Assignment').map(assigned)
    this.#children(node)                                     // substitutions and redirections, which come first
    if (words.length > 0 || assignments.length > 0) this.#simple(words, assignments, stdinOf(node.redirects))
  }

  #simple(words: readonly string[], assignments: SimpleCommand['assignments'], stdin: string | undefined): void {
    if (!this.#add({ words, assignments, source: [...assignments.map(({ name, value }) => `${name}=${value}`), ...words].map(readable).join(' ') })) return
    const [name] = words
    for (const { name: variable, value } of assignedIn(name ?? '', words, assignments)) {
      const reason = obeys(variable, value)
      if (reason !== undefined) this.unclear.add(reason)
    }
    if (name === undefined) return
    if (isOpen(name) || name.startsWith('/dev/fd/')) return void this.unclear.add(`the command itself is only known when it runs (${readable(name)})`)
    if (EVALUATING.has(name) || (EVALUATING_V.has(name) && words.includes('-v'))) this.#literal(words)
    if (words.some(word => /^BASH_FUNC_.+=/s.test(word))) this.unclear.add('a function comes through the environment')
    for (const { name: variable, value } of assignedIn(name, words, assignments)) if (RUN_VARIABLES.test(variable)) this.#beside(() => { this.script(value, this.#depth + 1) }, 'forgotten')
    this.#move(words)
    const outer = this.#inner
    this.#inner = true
    for (const inner of innerOf(words, stdin)) {
      if (inner.kind === 'words') this.#within(() => { this.#simple(inner.words, [], undefined) })
      else if (inner.kind === 'script') this.#beside(() => { this.script(inner.source, this.#depth + 1) }, name === 'eval' ? 'either' : 'forgotten')
      else this.unclear.add(inner.reason)
    }
    this.#inner = outer
  }
  #within(run: () => void): void {
    if (this.#depth >= MAX_DEPTH) return void this.unclear.add('commands are nested too deeply')
    this.#depth++
    run()
    this.#depth--
  }
  /** False when there are too many, which ends the reading. */
  #add(command: Omit<SimpleCommand, 'cwds' | 'inner'>): boolean {
    if (this.commands.length >= MAX_COMMANDS) { this.unclear.add(`it holds more than ${MAX_COMMANDS} commands`); return false }
    this.commands.push({ ...command, cwds: this.#cwds, inner: this.#inner })
    return true
  }
  #move([name, ...rest]: readonly string[]): void {
    if (name === 'popd') this.#cwds = [HOLE]
    if (name !== 'cd' && name !== 'pushd') return
    const to = rest.find(word => !/^-[LPe@]+$|^--$/.test(word)) ?? '~'
    this.#cwds = /^[/~]/.test(to) ? [to] : isOpen(to) || to === '-' ? [HOLE] : this.#cwds.map(cwd => cwd === '' ? to : `${cwd}/${to}`)
  }
  #redirect(node: Extract<Redirection, { type: 'Redirect' }>): void {
    const target = node.target && spell(node.target)
    this.#children(node)
    if (target === undefined || (node.operator.endsWith('&') && /^\d+-?$|^-$/.test(target))) return    // a descriptor, no file
    const source = `${node.operator} ${readable(target)}`
    if (node.operator !== '<' && node.operator !== '<&') this.#add({ words: ['>', target], assignments: [], source })
    if (node.operator.startsWith('<')) this.#add({ words: ['<', target], assignments: [], source })
  }
}

/** `NAME=value` before a command, and as a word of those that set variables. */
function assignedIn(name: string, words: readonly string[], assignments: SimpleCommand['assignments']): SimpleCommand['assignments'] {
  if (!/^(?:.*\/)?(?:env|export|declare|typeset|readonly|local)$/.test(name)) return assignments
  return [...assignments, ...words.flatMap(word => { const [, key, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(word) ?? []; return key === undefined ? [] : [{ name: key, value: value! }] })]
}

const either = (some: readonly string[], others: readonly string[]): readonly string[] => {
  const all = [...new Set([...some, ...others])]
  return all.length > MAX_CWDS ? [HOLE] : all
}

const assigned = (node: Assignment): { name: string; value: string } => ({ name: node.name, value: node.value.type === 'Word' ? spell(node.value) : HOLE })

/** The text of a word after the shell has taken off quotes and backslashes. */
function spell(word: Word | Assignment): string {
  if (word.type === 'Assignment') { const { name, value } = assigned(word); return `${name}${word.append ? '+' : ''}=${value}` }
  return word.parts ? word.parts.map((part, i) => spellPart(part, i === 0)).join('') : word.value
}
/** The words that braces make of one: `{a,b}` two. More than a few are a hole. */
function expanded(word: Word | Assignment): readonly string[] {
  if (word.type === 'Assignment' || !word.parts?.some(part => part.type === 'BraceExpansion')) return [spell(word)]
  const words = word.parts.reduce<readonly string[]>((all, part, i) => {
    const choices = part.type === 'BraceExpansion' ? choicesIn(part.text) : [spellPart(part, i === 0)]
    return all.length * choices.length > MAX_CHOICES ? [HOLE] : all.flatMap(text => choices.map(choice => text + choice))
  }, [''])
  return words.filter(text => text !== '')
}
function choicesIn(text: string): readonly string[] {
  const found: string[] = []
  let depth = 0, begin = 1
  for (let i = 1; i < text.length; i++) {
    const char = text[i]
    if (char === '\\') i++
    else if (char === '"' || char === "'") { const end = text.indexOf(char, i + 1); i = end < 0 ? i : end }
    else if (char === '{' || char === '(') depth++
    else if ((char === '}' || char === ')') && i < text.length - 1) depth--
    else if ((char === ',' && depth === 0) || i === text.length - 1) { found.push(text.slice(begin, i)); begin = i + 1 }
  }
  if (found.length < 2) return [HOLE]                         // a range
  return found.flatMap(piece => {
    if (/^[\w./~+@%:=-]*$/.test(piece)) return [piece]
    const command = parse(`x ${piece}`).commands[0]
    const node = command?.type === 'Statement' ? command.command : command
    return node?.type === 'Command' && node.args.length === 1 ? expanded(node.args[0]!) : [HOLE]
  })
}
function spellPart(part: WordPart, first: boolean): string {
  switch (part.type) {
    case 'Literal': case 'SingleQuoted': case 'AnsiCQuoted': return part.value
    case 'DoubleQuoted': case 'LocaleString': return part.parts.map((inner, i) => spellPart(inner, first && i === 0)).join('')
    case 'Glob': return GLOB
    case 'ProcessSubstitution': return '/dev/fd/63'
    case 'SimpleExpansion': case 'ParameterExpansion': return first ? known(part.text) : HOLE
    default: return HOLE
  }
}
/** Two variables whose value is known. */
const known = (text: string): string => text === '$HOME' || text === '${HOME}' ? '~' : text === '$PWD' || text === '${PWD}' ? '.' : HOLE

/** What a here-document or here-string feeds to a command; with a hole when it isn't fixed. */
function stdinOf(redirects: readonly Redirection[]): string | undefined {
  for (const redirect of [...redirects].reverse()) {
    if (redirect.type === 'HereString') return redirect.target ? spell(redirect.target) : HOLE
    if (redirect.type === 'HereDoc') return redirect.body.parts ? redirect.body.parts.map(part => spellPart(part, false)).join('') : redirect.body.text
  }
  return undefined
}

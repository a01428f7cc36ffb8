/**
 * What a policy says to a shell command: deny, ask or allow, and why. Everything the command would run is judged by itself and the strictest stands.
 * Pure but for `where`, which knows the workspace. What can't be read is asked about, never allowed.
 */
import { homedir } from 'node:os'
import { isInert } from './inert.js'
import { pathsOf, type NamedPath } from './paths.js'
import { concerns, covers, type Rule } from './rules.js'
import { readCommand, type SimpleCommand } from './shell.js'
import { basename, isOpen, readable } from './word.js'

export interface Policy {
  readonly deny: readonly Rule[]
  readonly ask: readonly Rule[]
  readonly allow: readonly Rule[]
  /** For a command that no rule concerns. */
  readonly otherwise: 'allow' | 'ask' | 'deny'
}
export type Where = (path: string, mode: 'read' | 'write') => Promise<'inside' | 'outside' | 'protected'>
export interface Judgement {
  readonly kind: 'allow' | 'ask' | 'deny'
  /** One clause: `'sudo' is on the deny list`. */
  readonly reason: string
  readonly rule?: string | undefined
  /** The simple command that it is about. */
  readonly command?: string | undefined
  /** Of an ask: everything it names outside the workspace, which a yes opens. */
  readonly outside?: readonly NamedPath[] | undefined
}
const ALLOWED: Judgement = { kind: 'allow', reason: 'no rule concerns it' }
/** Of a word that may hold a script. */
const MAX_READ = 4096
const RANK = { allow: 0, ask: 1, deny: 2 }

export async function judgeCommand(source: string, policy: Policy, where: Where): Promise<Judgement> {
  const { commands, unclear } = readCommand(source)
  const judged = [...await Promise.all(commands.map(command => judgeSimple(command, policy, where))), ...unclear.map((reason): Judgement => ({ kind: 'ask', reason }))]
  const outside = judged.flatMap(one => one.outside ?? [])
  const { outside: _ofOne, ...judgement } = strictest(judged)
  return judgement.kind === 'ask' && outside.length > 0 ? { ...judgement, outside } : judgement
}

async function judgeSimple(command: SimpleCommand, policy: Policy, where: Where): Promise<Judgement> {
  const about = { command: command.source }
  const isRedirection = command.words[0] === '>' || command.words[0] === '<'
  const nameless = isOpen(command.words[0] ?? '')                                                              // asked about as such
  const listed = nameless ? ALLOWED : strictest([
    ...policy.deny.map((rule): Judgement => {
      const match = concerns(rule, command.words)
      if (match === 'yes') return { kind: 'deny', reason: `'${rule.text}' is on the deny list`, rule: rule.text, ...about }
      return match === 'maybe' ? { kind: 'ask', reason: `'${rule.text}' is on the deny list, and this may turn out to be it: ${command.source}`, rule: rule.text, ...about } : ALLOWED
    }),
    mentioned(command, policy),
    ...policy.ask.map((rule): Judgement => concerns(rule, command.words) === 'no' ? ALLOWED : { kind: 'ask', reason: `'${rule.text}' is on the ask list: ${command.source}`, rule: rule.text, ...about }),
  ])
  const paths = await Promise.all(pathsOf(command).map(named => judgePath(named, where, about)))
  const outside = paths.flatMap(one => one.outside ?? [])
  const covered = policy.allow.find(rule => covers(rule, command.words))
  if (covered) return strictest([listed, ...paths.filter(({ kind }) => kind === 'deny'), { kind: 'allow', reason: `'${covered.text}' is on the allow list`, rule: covered.text, ...about }])
  const rest: Judgement = command.inner || isRedirection || command.words.length === 0 || policy.otherwise === 'allow' ? ALLOWED : { kind: policy.otherwise, reason: `no rule allows it: ${command.source}`, ...about }
  return outside.length === 0 ? strictest([listed, ...paths, rest]) : { ...strictest([listed, ...paths, rest]), outside }
}

/** Names of commands that are parts of others too: `vagrant halt`, `manage.py shutdown`. */
const SUBCOMMANDS = /^(?:reboot|shutdown|halt|poweroff|init|batch|at)$/
/** A program that nobody listed may run its words, one by one or as a script: what is denied there is asked about. */
function mentioned({ words: [name = '', ...rest], assignments, source }: SimpleCommand, policy: Policy): Judgement {
  if (/^[<>]$/.test(name) || isInert(basename(name))) return ALLOWED
  const denied = policy.deny.filter(({ words: [first = ''] }) => !/^[<>*]/.test(first))
  for (const candidates of [...rest.map((word, i) => [[word, ...rest.slice(i + 1)], ...scriptsIn(word, denied)]), assignments.map(({ value }) => value.trim().split(/\s+/))]) {
    const rule = denied.find(rule => candidates.some((words, n) => (n > 0 || !SUBCOMMANDS.test(words[0]!)) && concerns(rule, words) === 'yes'))
    if (rule) return { kind: 'ask', reason: `'${rule.text}' is on the deny list, and ${readable(name)} may run it: ${source}`, rule: rule.text, command: source }
  }
  return ALLOWED
}

/** Where a text goes on with a name of the list, as in `system("sudo ls")` or `--with=sudo`: what a shell would read from there on. */
function scriptsIn(text: string, rules: readonly Rule[]): readonly (readonly string[])[] {
  if (!/[^\w./@-]/.test(text) || text.length > MAX_READ) return []                                                   // a plain word
  return rules.flatMap(({ words: [name = ''] }) => {
    const at = text.search(new RegExp(`${SUBCOMMANDS.test(name) ? '(?<=["\'`(!;|&=:]\\s*)' : ''}(?<![\\w./-])(?:/[\\w./-]*/)?${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\w./=-])`, 'i'))
    return at < 0 ? [] : [text.slice(at).split(/["'`;|&)\]\n]/, 1)[0]!.split(/[\s,]+/).filter(word => word !== '')]
  })
}

async function judgePath({ path, mode }: NamedPath, where: Where, about: { command: string }): Promise<Judgement> {
  switch (await where(path, mode)) {
    case 'inside': return ALLOWED
    case 'outside': return { kind: 'ask', reason: `${readable(path)} is outside the workspace`, ...(path !== '/' && !/^~[^/]/.test(path) && { outside: [{ path: path.replace(/^~/, homedir()), mode }] }), ...about }
    case 'protected': return { kind: 'deny', reason: `${readable(path)} is protected`, ...about }
  }
}

/** The first of the strictest. */
const strictest = (judged: readonly Judgement[]): Judgement => judged.reduce((high, one) => RANK[one.kind] > RANK[high.kind] || (high === ALLOWED && one.kind === 'allow') ? one : high, ALLOWED)

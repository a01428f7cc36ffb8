/** A command line that can't be read, in our words instead of the parser's. Pure; knows the parser's sentences, runs nothing. */
import type { CommanderError } from 'commander'

/** `command` as it is typed: `hx plugins info`. */
export function usageSentence({ code, message }: Pick<CommanderError, 'code' | 'message'>, command: string): string {
  const [, said = '', , meant] = /^(?:error: )?([^\n]*)(?:\n\(Did you mean (one of )?(.*)\?\))?/.exec(message) ?? []
  const hint = meant === undefined ? '' : `; did you mean ${meant.split(', ').map(name => `"${name}"`).join(' or ')}?`
  return `${sentence(code, said, command)}${hint}; see "${command} --help"`
}

function sentence(code: string, said: string, command: string): string {
  const quoted = said.replace(/'([^']*)'/g, '"$1"').replace(/\.\s*$/, '')
  const option = /^option '([^']*)' argument (?:missing|'([\s\S]*)' is invalid\. (.*))$/.exec(said)
  if (option) {
    const [, flags = '', given, rule] = option, flag = /--[\w-]+/.exec(flags)?.[0] ?? flags
    return given === undefined ? `${flag} needs a value: ${flags.replace(/^-\w, /, '')}` : `${flag} ${expected(rule)}, received "${given}"`
  }
  const argument = /^command-argument value '([\s\S]*)' is invalid for argument '([^']*)'\. (.*)$/.exec(said)
  if (argument) return `<${argument[2]}> ${expected(argument[3])}, received "${argument[1]}"`
  if (code === 'commander.missingArgument') return `"${command}" needs ${quoted.replace(/^missing required argument "(.*)"$/, '<$1>')}`
  return quoted
}
const expected = (rule = ''): string => rule.replace(/^Allowed choices are (.*?)\.?$/, 'must be one of $1')

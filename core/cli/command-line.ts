/**
 * The line of `hx`: the program with its global options, and how a command is declared and bound to the function of its file, which is loaded only when it runs. Knows no command.
 * A mistake in the line is thrown as `usage`, in one sentence with what was meant.
 */
import { Command, CommanderError, Help, InvalidArgumentError, Option } from 'commander'
import { didYouMean, HarnessError } from '../errors.js'
import { VERSION } from '../version.js'
import { Io, type Globals } from './io.js'
import { usageSentence } from './usage.js'

type Work = (io: Io, ...args: any[]) => Promise<number>   // commander hands over whatever the command declared
export const io = new Io()
/** What the command of this line came to. */
export const outcome = { code: 0 }

/** Binds a command to the function of its file; the file is imported when the command runs. */
export function does(command: Command, work: () => Promise<Work>): Command {
  return command.allowExcessArguments().action(async (...given: unknown[]) => {
    const [extra] = command.args.slice(command.registeredArguments.length)
    if (extra !== undefined && !command.registeredArguments.at(-1)?.variadic) {
      throw new HarnessError('usage', command.commands.length > 0 ? `unknown command "${extra}"${didYouMean(extra, command.commands.map(one => one.name()))}; see "${nameOf(command)} --help"` : `"${nameOf(command)}" takes no "${extra}"; see "${nameOf(command)} --help"`)
    }
    io.globals = command.optsWithGlobals<Globals>()
    outcome.code = await (await work())(io, ...given.slice(0, -1))
  })
}
/** As it is typed: `hx plugins list`. */
const nameOf = (command: Command): string => command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
export const count = (text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number from 1')
  return value
}
export const position = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('must be a seq of the log, or 0')
  return value
}
const collect = (value: string, all: readonly string[]): string[] => [...all, value]
export const modeOption = (about: string): Option => new Option('--mode <mode>', about).choices(['default', 'accept-edits', 'plan', 'yes'])
/** What changes the host that a command runs in. */
export const hostOptions = (command: Command): Command => command
  .option('--plugin <path>', 'load this plugin as well (repeatable)', collect, [])
  .option('--without <id>', 'leave this plugin out (repeatable)', collect, [])
  .option('--safe', 'the shipped config alone, whatever stands here')

const standard = new Help()
export const program: Command = new Command('hx')
  .description('A long-running plugin host for LLM agents. "hx COMMAND --help" says more of one.')
  .version(VERSION, '-V, --version')
  .option('--config <file>', 'use this config file')
  .option('-C, --dir <dir>', 'work in this folder instead of the current one')
  .option('--json', 'print JSON, for programs')
  .option('--trust', 'trust the folder, for this run only')
  .option('-q, --quiet', 'errors of the host only')
  .option('-v, --verbose', 'everything the host logs')
  .showSuggestionAfterError()
  .configureHelp({
    showGlobalOptions: false, sortSubcommands: false,
    // One screen: the first help names commands, theirs say what they take.
    subcommandTerm: command => command.parent === program ? command.name() : standard.subcommandTerm(command),
    visibleCommands: command => standard.visibleCommands(command).filter(one => one.name() !== 'help'),
    formatHelp: (command, helper) => Help.prototype.formatHelp.call(helper, command, helper).replace(command === program ? /\n(?=\n[A-Z][\w ]*:\n)/g : /$^/, ''),
  })
  .configureOutput({ outputError: () => {} })             // said by io.fail, in one place and in JSON when asked

program.exitOverride(error => { throw misused(error, program) })

export function addCommand(parent: Command, name: string, about: string, { hidden = false } = {}): Command {
  const command = parent.command(name, { hidden }).description(about).configureOutput({ outputError: () => {} }).showSuggestionAfterError()
  return command.exitOverride(error => { throw misused(error, command) })
}
/** Help and version are no mistake; a group without its command has had its help as the answer. */
const misused = (error: CommanderError, command: Command): Error =>
  error.exitCode === 0 || error.code === 'commander.help' ? error : new HarnessError('usage', usageSentence(error, nameOf(command)), { cause: error })

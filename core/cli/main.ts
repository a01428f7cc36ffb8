/**
 * `hx`: reads the command line and hands over to the file of the command, which is loaded only then. Knows names and options; no command's work.
 * One way out: what a command returns is the exit code, what it throws is said once.
 */
import { Argument, Command, CommanderError, Help, InvalidArgumentError, Option } from 'commander'
import { didYouMean, HarnessError, messageOf } from '../errors.js'
import { VERSION } from '../version.js'
import { Io, type Globals } from './io.js'
import { KINDS } from './plugin-kinds.js'
import { usageSentence } from './usage.js'

type Work = (io: Io, ...args: any[]) => Promise<number>   // commander hands over whatever the command declared
const io = new Io()
let exitCode = 0

/** Binds a command to the function of its file; the file is imported when the command runs. */
function does(command: Command, work: () => Promise<Work>): Command {
  return command.allowExcessArguments().action(async (...given: unknown[]) => {
    const [extra] = command.args.slice(command.registeredArguments.length)
    if (extra !== undefined && !command.registeredArguments.at(-1)?.variadic) {
      throw new HarnessError('usage', command.commands.length > 0 ? `unknown command "${extra}"${didYouMean(extra, command.commands.map(one => one.name()))}; see "${nameOf(command)} --help"` : `"${nameOf(command)}" takes no "${extra}"; see "${nameOf(command)} --help"`)
    }
    io.globals = command.optsWithGlobals<Globals>()
    exitCode = await (await work())(io, ...given.slice(0, -1))
  })
}
/** As it is typed: `hx plugins list`. */
const nameOf = (command: Command): string => command.parent ? `${nameOf(command.parent)} ${command.name()}` : command.name()
const count = (text: string): number => {
  const value = Number(text)
  if (!Number.isInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number from 1')
  return value
}
const position = (text: string): number => {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 0) throw new InvalidArgumentError('must be a seq of the log, or 0')
  return value
}
const collect = (value: string, all: readonly string[]): string[] => [...all, value]

const standard = new Help()
const program: Command = new Command('hx')
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

function addCommand(parent: Command, name: string, about: string, { hidden = false } = {}): Command {
  const command = parent.command(name, { hidden }).description(about).configureOutput({ outputError: () => {} }).showSuggestionAfterError()
  return command.exitOverride(error => { throw misused(error, command) })
}
/** Help and version are no mistake; a group without its command has had its help as the answer. */
const misused = (error: CommanderError, command: Command): Error =>
  error.exitCode === 0 || error.code === 'commander.help' ? error : new HarnessError('usage', usageSentence(error, nameOf(command)), { cause: error })

program.commandsGroup('Work:')
does(addCommand(program, 'agent [task...]', 'do one task and end; standard input is added when it is not a terminal')
  .summary('do one task and end')
  .option('--session <id>', 'continue this session')
  .option('-c, --continue', 'continue the last session of this folder')
  .option('--model <model>', '<id> or <id>/<model>, see "hx models"')
  .option('--max-steps <n>', 'end the turn after so many steps', count)
  .addOption(new Option('--mode <mode>', 'what needs no asking').choices(['default', 'accept-edits', 'plan', 'yes']))
  .option('--yes', 'short for --mode yes')
  .option('--offline', 'use the embedded offline model')
  .option('--ephemeral', 'keep nothing of this session')
  .option('--detach', 'print the session and leave; the daemon goes on')
  .option('--if-idle', 'fail when a turn of the session runs, instead of waiting for its end')
  .option('--steer', 'hand it to the turn of the session that runs, for its next step')
  .option('--plugin <path>', 'load this plugin as well (repeatable)', collect, [])
  .option('--without <id>', 'leave this plugin out (repeatable)', collect, [])
  .option('--safe', 'the shipped config alone, whatever stands here'), async () => (await import('./agent.js')).agent)

does(addCommand(program, 'chat', 'talk to it on the terminal')
  .option('--session <id>', 'continue this session')
  .option('-c, --continue', 'continue the last session of this folder')
  .option('--model <model>', '<id> or <id>/<model>, see "hx models"')
  .addOption(new Option('--mode <mode>', 'what needs no asking').choices(['default', 'accept-edits', 'plan', 'yes']))
  .option('--offline', 'use the embedded offline model')
  .option('--plugin <path>', 'load this plugin as well (repeatable)', collect, [])
  .option('--without <id>', 'leave this plugin out (repeatable)', collect, [])
  .option('--safe', 'the shipped config alone, whatever stands here'), async () => (await import('./chat.js')).chat)

does(addCommand(program, 'attach <session>', 'follow the turn that runs in a session of the daemon, and answer its asks; Ctrl-C leaves it alone')
  .summary('follow a turn of the daemon, answer its asks')
  .option('--after <seq>', 'show what is behind this line of the log', position)
  .option('--follow', 'stay when the turn has ended'), async () => (await import('./attach.js')).attach)

const approvals = does(addCommand(program, 'approvals', 'asks that wait: list, allow or deny them'), async () => (await import('./approvals.js')).list)
does(addCommand(approvals, 'list', 'asks of all sessions of the daemon'), async () => (await import('./approvals.js')).list)
does(addCommand(approvals, 'allow <id>', 'let this one call run').option('--session', 'and the very same call for the rest of its session').option('--always', 'and write an allow rule for this very command into the config'), async () => (await import('./approvals.js')).allow)
does(addCommand(approvals, 'deny <id> [why...]', 'refuse it, and tell the model why'), async () => (await import('./approvals.js')).deny)

does(addCommand(program, 'acp', 'an editor drives the agent over stdin and stdout (Agent Client Protocol)')
  .summary('for editors: the Agent Client Protocol')
  .option('--model <model>', '<id> or <id>/<model>, see "hx models"')
  .option('--offline', 'use the embedded offline model')
  .addOption(new Option('--mode <mode>', 'the mode that sessions begin in').choices(['default', 'accept-edits', 'plan', 'yes']))
  .option('--plugin <path>', 'load this plugin as well (repeatable)', collect, [])
  .option('--without <id>', 'leave this plugin out (repeatable)', collect, [])
  .option('--safe', 'the shipped config alone, whatever stands here'), async () => (await import('./acp.js')).acp)

does(addCommand(program, 'demo', 'see it work: no key, no network, nothing of yours is touched').summary('see it work; nothing of yours is touched'), async () => (await import('./demo.js')).demo)

program.commandsGroup('Daemon:')
does(addCommand(program, 'start', 'start the daemon of this config').option('--foreground', 'stay in this terminal, for a service manager'), async () => (await import('./start.js')).start)
does(addCommand(program, 'stop', 'stop it: turns end, plugins are unloaded'), async () => (await import('./start.js')).stop)
does(addCommand(program, 'restart', 'stop it when its turns have ended, and start it anew: with this hx, and the keys of this shell').summary('stop it once its turns have ended, start anew').option('--now', 'don\'t wait for turns, end them'), async () => (await import('./start.js')).restart)
does(addCommand(program, 'logs', 'what the daemon wrote').option('-f, --follow', 'go on with what it writes').option('-n, --lines <n>', 'so many lines (50)', count)
  .addOption(new Option('--level <level>', 'this level and worse').choices(['debug', 'info', 'warn', 'error'])).option('--plugin <id>', 'of this plugin alone'), async () => (await import('./logs.js')).logs)
does(addCommand(program, 'status', 'is the daemon running, and how is it'), async () => (await import('./status.js')).status)

const service = addCommand(program, 'service', 'the daemon under a service manager').helpCommand(false)
does(addCommand(service, 'install', 'write a systemd user unit for the daemon of this config, and say how to switch it on').option('--print', 'print the unit and write nothing'), async () => (await import('./service.js')).install)

program.commandsGroup('Look and change:')
const plugins = does(addCommand(program, 'plugins', 'plugins: list, switch, write, add, look into them'), async () => (await import('./plugins.js')).list)
does(addCommand(plugins, 'list', 'every entry of the config and its state'), async () => (await import('./plugins.js')).list)
does(addCommand(plugins, 'enable <id>', 'switch an entry on, in the config file'), async () => (await import('./plugins.js')).enable)
does(addCommand(plugins, 'disable <id>', 'switch an entry off, in the config file'), async () => (await import('./plugins.js')).disable)
does(addCommand(plugins, 'reload [id]', 'load a plugin anew in the daemon; without an id, read the config again').option('--held', 'load what was held because a tool may have changed it').option('--diff', 'show what is held, and load nothing'), async () => (await import('./plugins.js')).reload)
does(addCommand(plugins, 'new <name>', 'write a plugin to begin with, its test, and its row; a running daemon takes it at once')
  .addOption(new Option('--from <kind>', 'what it begins as').choices(KINDS).default('guard')), async () => (await import('./new-plugin.js')).create)
does(addCommand(plugins, 'add <package>', 'install a plugin (a package, a folder, a .tgz, or a file of yours), show what it hangs on, ask, and write its row')
  .option('--id <id>', 'the id of its row').option('-y, --yes', 'don\'t ask'), async () => (await import('./packages.js')).add)
does(addCommand(plugins, 'remove <id>', 'take its row out').option('--purge', 'and uninstall its package, and delete its data'), async () => (await import('./packages.js')).remove)
does(addCommand(plugins, 'update [id]', 'the newest version of its package; without an id, of all'), async () => (await import('./packages.js')).update)
does(addCommand(plugins, 'info <id>', 'one plugin: state, what it registered, what it waits for'), async () => (await import('./plugin-info.js')).info)

does(addCommand(program, 'hooks', 'hooks and their handlers, in order, with figures'), async () => (await import('./lists.js')).hooks)
does(addCommand(program, 'tools', 'tools that the model is offered'), async () => (await import('./lists.js')).tools)
does(addCommand(program, 'models', 'models, and what those that are not ready miss'), async () => (await import('./lists.js')).models)

const sessions = does(addCommand(program, 'sessions', 'sessions: list, read, archive, fork, export'), async () => (await import('./sessions.js')).list)
does(addCommand(sessions, 'list', 'sessions, newest first'), async () => (await import('./sessions.js')).list)
does(addCommand(sessions, 'show <id>', 'one session, readable, or its log lines with --json'), async () => (await import('./sessions.js')).show)

does(addCommand(sessions, 'archive <id>', 'no further prompt; it can still be read and forked'), async () => (await import('./sessions.js')).archive)
does(addCommand(sessions, 'fork <id>', 'a new session that begins as this one was').option('--at <seq>', 'at this line of its log (default: the last)', count), async () => (await import('./sessions.js')).fork)
does(addCommand(sessions, 'export <id>', 'the whole session in one text')
  .addOption(new Option('--format <format>', 'log lines, or a text to read').choices(['jsonl', 'markdown']).default('jsonl'))
  .option('-o, --output <file>', 'write a new file instead of printing'), async () => (await import('./sessions.js')).exportTo)
does(addCommand(sessions, 'abort <id>', 'stop the turn that runs in the daemon'), async () => (await import('./sessions.js')).abort)

does(addCommand(program, 'trace <session>', 'what happened in a session, as a tree with times: who decided what').summary('a session as a tree with times: who decided what').option('--turn <n>', 'this turn alone', count), async () => (await import('./trace.js')).trace)

const config = addCommand(program, 'config', 'the config file: check, explain, print its schema').helpCommand(false)
does(addCommand(config, 'check', 'read config and plugins, start nothing, name every problem'), async () => (await import('./config.js')).check)
does(addCommand(config, 'explain [key]', 'the config in force, and the line that each value comes from'), async () => (await import('./explain.js')).explain)
does(addCommand(config, 'schema', 'JSON Schema of harness.config.yaml, for editors').option('--api', 'instead: OpenAPI of the daemon\'s socket, for programs'), async () => (await import('./config.js')).schema)

does(addCommand(program, 'trust [path]', 'what a folder would run, and may it')
  .option('--yes', 'don\'t ask')
  .option('--list', 'what is trusted')
  .option('--revoke', 'trust it no more'), async () => (await import('./trust.js')).trust)

const permission = addCommand(program, 'permission', 'the policy: what it would say to a call, and why').helpCommand(false)
does(addCommand(permission, 'test <command...>', 'what the policy of the config in force says to a command, and which rule')
  .option('--tool <name>', 'judge a call of this tool; the command is its arguments as JSON, or a path')
  .addOption(new Option('--mode <mode>', 'as in "hx agent"').choices(['default', 'accept-edits', 'plan', 'yes'])), async () => (await import('./permission.js')).test)

does(addCommand(program, 'init', 'write a harness.config.yaml here, ready for an editor'), async () => (await import('./init.js')).init)

does(addCommand(program, 'doctor', 'is all as it should be; what to type for each finding'), async () => (await import('./doctor.js')).doctor)
does(addCommand(program, 'completion', 'completion for your shell').addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish'])), async () => (await import('./completion.js')).completion)
does(addCommand(program, 'complete', 'what may come next, for those scripts', { hidden: true }).argument('[words...]'), async () => {
  const { complete } = await import('./completion.js')
  return (io, words: readonly string[]) => complete(io, program, words)
})

async function main(argv: readonly string[]): Promise<number> {
  io.globals = { json: argv.includes('--json') }           // known before the line is parsed, so that its own errors are JSON too
  try {
    if (argv.length === 0) { program.outputHelp(); return 0 }
    await program.parseAsync(argv, { from: 'user' })
    return exitCode
  } catch (error) {
    if (!(error instanceof CommanderError)) return io.fail(error)
    return error.exitCode === 0 ? 0 : 2                      // --help and --version, or a group without its command
  }
}

/** Runs the line of this process, to its end. Only the bin calls it: the build puts this file where others are imported from, too. */
export async function run(): Promise<never> {
  const code = await main(process.argv.slice(2))
  await io.flush()
  if (io.lost) io.stderr.write(`hx: the answer could not be written: ${messageOf(io.lost)}\n`)
  process.exit(io.lost && code === 0 ? 1 : code)              // what a plugin left running must not hold the command
}

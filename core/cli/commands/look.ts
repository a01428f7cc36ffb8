/** The commands of `hx` that look into what is there and change it. */
import { Argument, Option } from 'commander'
import { addCommand, count, does, modeOption, program } from '../command-line.js'
import { KINDS } from '../plugin-kinds.js'

export function declareLook(): void {
  program.commandsGroup('Look and change:')
  const plugins = does(addCommand(program, 'plugins', 'plugins: list, switch, write, add, look into them'), async () => (await import('../plugins.js')).list)
  does(addCommand(plugins, 'list', 'every entry of the config and its state'), async () => (await import('../plugins.js')).list)
  does(addCommand(plugins, 'enable <id>', 'switch an entry on, in the config file'), async () => (await import('../plugins.js')).enable)
  does(addCommand(plugins, 'disable <id>', 'switch an entry off, in the config file'), async () => (await import('../plugins.js')).disable)
  does(addCommand(plugins, 'reload [id]', 'load a plugin anew in the daemon; without an id, read the config again').option('--held', 'load what was held because a tool may have changed it').option('--diff', 'show what is held, and load nothing'), async () => (await import('../plugins.js')).reload)
  does(addCommand(plugins, 'new <name>', 'write a plugin to begin with, its test, and its row; a running daemon takes it at once')
    .addOption(new Option('--from <kind>', 'what it begins as').choices(KINDS).default('guard')), async () => (await import('../new-plugin.js')).create)
  does(addCommand(plugins, 'add <package>', 'install a plugin (a package, a folder, a .tgz, or a file of yours), show what it hangs on, ask, and write its row')
    .option('--id <id>', 'the id of its row').option('-y, --yes', 'don\'t ask'), async () => (await import('../packages.js')).add)
  does(addCommand(plugins, 'remove <id>', 'take its row out').option('--purge', 'and uninstall its package, and delete its data'), async () => (await import('../packages.js')).remove)
  does(addCommand(plugins, 'update [id]', 'the newest version of its package; without an id, of all'), async () => (await import('../packages.js')).update)
  does(addCommand(plugins, 'info <id>', 'one plugin: state, what it registered, what it waits for'), async () => (await import('../plugin-info.js')).info)

  does(addCommand(program, 'hooks', 'hooks and their handlers, in order, with figures'), async () => (await import('../lists.js')).hooks)
  does(addCommand(program, 'tools', 'tools that the model is offered'), async () => (await import('../lists.js')).tools)
  does(addCommand(program, 'models', 'models, and what those that are not ready miss'), async () => (await import('../lists.js')).models)

  const sessions = does(addCommand(program, 'sessions', 'sessions: list, read, archive, fork, export'), async () => (await import('../sessions.js')).list)
  does(addCommand(sessions, 'list', 'sessions, newest first'), async () => (await import('../sessions.js')).list)
  does(addCommand(sessions, 'show <id>', 'one session, readable, or its log lines with --json'), async () => (await import('../sessions.js')).show)

  does(addCommand(sessions, 'archive <id>', 'no further prompt; it can still be read and forked'), async () => (await import('../sessions.js')).archive)
  does(addCommand(sessions, 'fork <id>', 'a new session that begins as this one was').option('--at <seq>', 'at this line of its log (default: the last)', count), async () => (await import('../sessions.js')).fork)
  does(addCommand(sessions, 'export <id>', 'the whole session in one text')
    .addOption(new Option('--format <format>', 'log lines, or a text to read').choices(['jsonl', 'markdown']).default('jsonl'))
    .option('-o, --output <file>', 'write a new file instead of printing'), async () => (await import('../sessions.js')).exportTo)
  does(addCommand(sessions, 'abort <id>', 'stop the turn that runs in the daemon'), async () => (await import('../sessions.js')).abort)

  does(addCommand(program, 'trace <session>', 'what happened in a session, as a tree with times: who decided what').summary('a session as a tree with times: who decided what').option('--turn <n>', 'this turn alone', count), async () => (await import('../trace.js')).trace)

  const config = addCommand(program, 'config', 'the config file: check, explain, print its schema').helpCommand(false)
  does(addCommand(config, 'check', 'read config and plugins, start nothing, name every problem'), async () => (await import('../config.js')).check)
  does(addCommand(config, 'explain [key]', 'the config in force, and the line that each value comes from'), async () => (await import('../explain.js')).explain)
  does(addCommand(config, 'schema', 'JSON Schema of harness.config.yaml, for editors').option('--api', 'instead: OpenAPI of the daemon\'s socket, for programs'), async () => (await import('../config.js')).schema)

  does(addCommand(program, 'trust [path]', 'what a folder would run, and may it')
    .option('--yes', 'don\'t ask')
    .option('--list', 'what is trusted')
    .option('--revoke', 'trust it no more'), async () => (await import('../trust.js')).trust)

  const permission = addCommand(program, 'permission', 'the policy: what it would say to a call, and why').helpCommand(false)
  does(addCommand(permission, 'test <command...>', 'what the policy of the config in force says to a command, and which rule')
    .option('--tool <name>', 'judge a call of this tool; the command is its arguments as JSON, or a path')
    .addOption(modeOption('as in "hx agent"')), async () => (await import('../permission.js')).test)

  does(addCommand(program, 'init', 'write a harness.config.yaml here, ready for an editor'), async () => (await import('../init.js')).init)

  does(addCommand(program, 'doctor', 'is all as it should be; what to type for each finding'), async () => (await import('../doctor.js')).doctor)
  does(addCommand(program, 'completion', 'completion for your shell').addArgument(new Argument('<shell>').choices(['bash', 'zsh', 'fish'])), async () => (await import('../completion.js')).completion)
  does(addCommand(program, 'complete', 'what may come next, for those scripts', { hidden: true }).argument('[words...]'), async () => {
    const { complete } = await import('../completion.js')
    return (io, words: readonly string[]) => complete(io, program, words)
  })
}

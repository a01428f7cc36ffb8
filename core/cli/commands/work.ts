/** The commands of `hx` that work with the agent. */
import { addCommand, count, does, hostOptions, modeOption, position, program } from '../command-line.js'

export function declareWork(): void {
  program.commandsGroup('Work:')
  does(hostOptions(addCommand(program, 'agent [task...]', 'do one task and end; standard input is added when it is not a terminal')
    .summary('do one task and end')
    .option('--session <id>', 'continue this session')
    .option('-c, --continue', 'continue the last session of this folder')
    .option('--model <model>', '<id> or <id>/<model>, see "hx models"')
    .option('--max-steps <n>', 'end the turn after so many steps', count)
    .addOption(modeOption('what needs no asking'))
    .option('--yes', 'short for --mode yes')
    .option('--offline', 'use the embedded offline model')
    .option('--ephemeral', 'keep nothing of this session')
    .option('--detach', 'print the session and leave; the daemon goes on')
    .option('--if-idle', 'fail when a turn of the session runs, instead of waiting for its end')
    .option('--steer', 'hand it to the turn of the session that runs, for its next step')), async () => (await import('../agent.js')).agent)

  does(hostOptions(addCommand(program, 'chat', 'talk to it on the terminal')
    .option('--session <id>', 'continue this session')
    .option('-c, --continue', 'continue the last session of this folder')
    .option('--model <model>', '<id> or <id>/<model>, see "hx models"')
    .addOption(modeOption('what needs no asking'))
    .option('--offline', 'use the embedded offline model')), async () => (await import('../chat.js')).chat)

  does(addCommand(program, 'attach <session>', 'follow the turn that runs in a session of the daemon, and answer its asks; Ctrl-C leaves it alone')
    .summary('follow a turn of the daemon, answer its asks')
    .option('--after <seq>', 'show what is behind this line of the log', position)
    .option('--follow', 'stay when the turn has ended'), async () => (await import('../attach.js')).attach)

  const approvals = does(addCommand(program, 'approvals', 'asks that wait: list, allow or deny them'), async () => (await import('../approvals.js')).list)
  does(addCommand(approvals, 'list', 'asks of all sessions of the daemon'), async () => (await import('../approvals.js')).list)
  does(addCommand(approvals, 'allow <id>', 'let this one call run').option('--session', 'and the very same call for the rest of its session').option('--always', 'and write an allow rule for this very command into the config'), async () => (await import('../approvals.js')).allow)
  does(addCommand(approvals, 'deny <id> [why...]', 'refuse it, and tell the model why'), async () => (await import('../approvals.js')).deny)

  does(hostOptions(addCommand(program, 'acp', 'an editor drives the agent over stdin and stdout (Agent Client Protocol)')
    .summary('for editors: the Agent Client Protocol')
    .option('--model <model>', '<id> or <id>/<model>, see "hx models"')
    .option('--offline', 'use the embedded offline model')
    .addOption(modeOption('the mode that sessions begin in'))), async () => (await import('../acp.js')).acp)

  does(addCommand(program, 'demo', 'see it work: no key, no network, nothing of yours is touched').summary('see it work; nothing of yours is touched'), async () => (await import('../demo.js')).demo)
}

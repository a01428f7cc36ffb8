/** The commands of `hx` about the daemon. */
import { Option } from 'commander'
import { addCommand, count, does, program } from '../command-line.js'

export function declareDaemon(): void {
  program.commandsGroup('Daemon:')
  does(addCommand(program, 'start', 'start the daemon of this config').option('--foreground', 'stay in this terminal, for a service manager'), async () => (await import('../start.js')).start)
  does(addCommand(program, 'stop', 'stop it: turns end, plugins are unloaded'), async () => (await import('../start.js')).stop)
  does(addCommand(program, 'restart', 'stop it when its turns have ended, and start it anew: with this hx, and the keys of this shell').summary('stop it once its turns have ended, start anew').option('--now', 'don\'t wait for turns, end them'), async () => (await import('../start.js')).restart)
  does(addCommand(program, 'logs', 'what the daemon wrote').option('-f, --follow', 'go on with what it writes').option('-n, --lines <n>', 'so many lines (50)', count)
    .addOption(new Option('--level <level>', 'this level and worse').choices(['debug', 'info', 'warn', 'error'])).option('--plugin <id>', 'of this plugin alone'), async () => (await import('../logs.js')).logs)
  does(addCommand(program, 'status', 'is the daemon running, and how is it'), async () => (await import('../status.js')).status)

  const service = addCommand(program, 'service', 'the daemon under a service manager').helpCommand(false)
  does(addCommand(service, 'install', 'write a systemd user unit for the daemon of this config, and say how to switch it on').option('--print', 'print the unit and write nothing'), async () => (await import('../service.js')).install)
}

/**
 * `hx`: declares the commands, reads the command line and hands over to the file of the command. Knows no command's work.
 * One way out: what a command returns is the exit code, what it throws is said once.
 */
import { CommanderError } from 'commander'
import { messageOf } from '../errors.js'
import { io, outcome, program } from './command-line.js'
import { declareDaemon } from './commands/daemon.js'
import { declareLook } from './commands/look.js'
import { declareWork } from './commands/work.js'

declareWork()
declareDaemon()
declareLook()

async function main(argv: readonly string[]): Promise<number> {
  io.globals = { json: argv.includes('--json') }           // known before the line is parsed, so that its own errors are JSON too
  try {
    if (argv.length === 0) { program.outputHelp(); return 0 }
    await program.parseAsync(argv, { from: 'user' })
    return outcome.code
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

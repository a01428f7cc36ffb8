/**
 * What escapes a plugin into the process that it shares: an error of a timer or socket of its own, a promise that nobody awaits, `process.exit`, text on stdout.
 * The async context knows whose it is, else the stack does. It is told in the plugin's name and everybody goes on; a plugin that does it again and again is stopped.
 * Changes the process, so only a process that is the host's own asks for it. Invariant: what can't be laid at a plugin's door is handed on, never swallowed.
 */
import { at, HarnessError } from '../errors.js'
import { currentOwner } from './async-context.js'
import { watchGlobals } from './globals.js'
import type { Log } from './log.js'
import { flatten, placeIn } from './report.js'

export interface EscapePort {
  readonly log: Log
  /** The plugin whose code stands in a stack. */
  ownerOf(stack: string): string | undefined
  /** Stops a plugin. */
  quarantine(plugin: string, cause: string): Promise<unknown>
  /** An error of nobody's: the process can't be relied on any more. */
  fatal(error: unknown): void
}

/** So many escaped errors within this time, and the plugin is stopped. */
const STRIKES = 3, WITHIN_MS = 5 * 60_000

export interface Containment {
  /** How often a plugin lately did it. */
  strikes(plugin: string): number
  /** Gives the process back as it was. */
  release(): void
}
export function containEscapes(port: EscapePort): Containment {
  const strikes = new Map<string, readonly number[]>()
  const recent = (plugin: string) => (strikes.get(plugin) ?? []).filter(at => performance.now() - at < WITHIN_MS)
  const caught = (error: unknown) => {
    const flat = flatten(error)
    const plugin = currentOwner()?.id ?? port.ownerOf(flat.stack ?? '')
    if (plugin === undefined) { port.fatal(error); return }
    port.log.write('error', `plugin "${plugin}" threw outside of any call: ${flat.message}${whereOf(flat.stack)}`, { error: flat }, plugin)
    strikes.set(plugin, [...recent(plugin), performance.now()])
    if (recent(plugin).length !== STRIKES) return                     // each one behind it comes from what goes on while it is being stopped
    port.quarantine(plugin, `it threw ${STRIKES} times outside of any call; mend what it starts by itself (a timer, a socket, a promise without await), or use ctx.setInterval and the like`)
      .catch((cause: unknown) => { port.log.error(`plugin "${plugin}" could not be stopped: ${flatten(cause).message}`) })
      .finally(() => { strikes.delete(plugin) })
  }
  process.on('uncaughtException', caught)
  process.on('unhandledRejection', caught)
  const undo = [keepProcess(), keepStdout(), watchGlobals()]
  return {
    strikes: plugin => recent(plugin).length,
    release: () => {
      process.off('uncaughtException', caught)
      process.off('unhandledRejection', caught)
      for (const back of undo) back()
    },
  }
}

/** The process belongs to the host: its end, its folder, its mask and its listeners. In a plugin such a call is an error of the code that makes it. */
function keepProcess(): () => void {
  const { exit, abort, kill, chdir, umask, removeAllListeners } = process
  process.exit = code => { refuse(`exit(${code ?? ''})`, 'end', 'throw an error instead'); return exit.call(process, code) }
  process.abort = () => { refuse('abort()', 'end', 'throw an error instead'); return abort.call(process) }
  process.kill = (pid, signal) => {
    if (signal !== 0 && (Math.abs(pid) === process.pid || pid === 0 || pid === -1)) refuse(`kill(${pid})`, 'end', 'throw an error instead')
    return kill.call(process, pid, signal)
  }
  process.chdir = folder => { refuse(`chdir(${JSON.stringify(folder)})`, 'move', 'use absolute paths, or the cwd of the session'); chdir.call(process, folder) }
  process.umask = ((mask?: number | string) => {
    if (mask === undefined) return (umask as () => number).call(process)
    refuse(`umask(${mask})`, 'change what files are readable of', 'give the mode to what makes the file')
    return umask.call(process, mask)
  }) as typeof umask
  process.removeAllListeners = (event => { refuse('removeAllListeners()', 'deafen', 'take off the listeners of your own'); return event === undefined ? (removeAllListeners as () => NodeJS.Process).call(process) : removeAllListeners.call(process, event) }) as typeof removeAllListeners
  return () => { Object.assign(process, { exit, abort, kill, chdir, umask }); process.removeAllListeners = removeAllListeners }
}
/** stdout belongs to the answer of the command: what plugins print goes to stderr, and they may close neither. */
function keepStdout(): () => void {
  const { stdout, stderr } = process, { write } = stdout
  stdout.write = ((...args: Parameters<typeof write>) => (currentOwner() ? stderr.write(...args) : write.apply(stdout, args))) as typeof write
  const undo = [() => { stdout.write = write }]
  for (const name of ['stdout', 'stderr'] as const) {
    const stream = process[name], { end, destroy } = stream
    stream.end = ((...args: unknown[]) => { refuse(`${name}.end()`, 'silence', 'write to it and leave it open'); return Reflect.apply(end, stream, args) as unknown }) as typeof end
    stream.destroy = ((error?: Error) => { refuse(`${name}.destroy()`, 'silence', 'write to it and leave it open'); return Reflect.apply(destroy, stream, [error]) as unknown }) as typeof destroy
    undo.push(() => { Object.assign(stream, { end, destroy }) })
  }
  return () => { for (const back of undo) back() }
}

/** In a plugin such a call is an error of the code that makes it. */
function refuse(call: string, harm: string, instead: string): void {
  const owner = currentOwner()
  if (owner) throw new HarnessError('plugin_failed', `plugin "${owner.id}" called process.${call}, which would ${harm} the host and every other plugin; ${instead}`)
}
const whereOf = (stack: string | undefined): string => {
  const place = placeIn(stack)
  return place === undefined ? '' : ` (${at(place)})`
}

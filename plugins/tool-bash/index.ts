/**
 * tool-bash: the tool `bash`. Shows a tool whose effects can not be confined, that honours its signal, and that leaves no process behind.
 * Without a sandbox around it, what a command may do is decided by the plugins that judge it and by nothing here.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { duration, z, type Context } from 'harnessx'
import { bashTool } from './bash.js'
import { isModelKey } from './environment.js'
import { Jobs, reportLeftovers } from './jobs.js'
import { stopTool } from './stop.js'

export const name = 'tool-bash'
/** The old version's commands are its own: it stops them while the new one serves already. */
export const reload = 'staged'
export const Config = z.strictObject({
  timeout: duration.prefault('2m'),
  maxTimeout: duration.prefault('10m'),
  /** What the model reads of the output, half from its start and half from its end. */
  maxCharacters: z.int().min(1000).max(1_000_000).default(30_000),
  /** A command that prints more is stopped. */
  maxBytes: z.int().min(1000).default(64_000_000),
  /** Commands in the background, per session. */
  maxBackground: z.int().min(0).max(1000).default(16),
  /** Names of variables that commands get beside PATH, HOME, LANG, LC_*, TERM, TMPDIR, USER and SHELL. */
  env: z.array(z.string().min(1).refine(name => !isModelKey(name), 'is the key of a model, which commands never get')).default([]),
})

const LOOK_AFTER_MS = 1000

export function apply(ctx: Context, config: z.infer<typeof Config>): void {
  const jobs = new Jobs()
  ctx.effect(() => () => jobs.stopAll(), 'commands')
  ctx.tools.register(bashTool(jobs, findShell(), config))
  ctx.tools.register(stopTool(jobs))
  ctx.on('agent/turn-end', ({ session }) => { jobs.dropAhead(session.id) })
  ctx.on('agent/session-end', ({ session, reason }) => reason === 'archived' ? jobs.stopSession(session.id) : undefined)   // a closed one may be resumed and find its server running
  if (ctx.state['looked'] === true) return
  ctx.state['looked'] = true                                              // once per host, not at each reload; later, since a start that only asks one thing should not wait for it
  ctx.setTimeout(() => reportLeftovers(ctx.logger), LOOK_AFTER_MS)
}

function findShell(): string {
  const places = ['/bin', '/usr/bin', ...(process.env['PATH'] ?? '').split(':')]
  return places.map(place => join(place, 'bash')).find(file => existsSync(file)) ?? '/bin/sh'
}

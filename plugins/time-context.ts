/**
 * Shows how a plugin tells the model something: one more message of the step, logged with this plugin as its source, at most one reading in ten minutes per session.
 * When the last one was is read from the log itself, so it holds across reloads, restarts and resumed sessions; after a compaction that dropped it, it is told anew.
 */
import { duration, textOf, z, type Context, type Message } from 'harnessx'

export const name = 'time-context'
export const Config = z.strictObject({
  /** Time between two readings in a session. */
  every: duration.prefault('10m'),
})

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  ctx.on('agent/pre-step', async ({ session }, next) => {
    const decision = await next()
    const now = Date.now()
    if (decision.kind === 'reject' || Math.abs(now - lastReading(session.messages, ctx.id)) < config.every) return decision
    return { ...decision, messages: [...decision.messages, `The time is ${new Date(now).toISOString()}.`] }
  })
}

/** Ask the source, not the role: the message has the role of a user. */
function lastReading(messages: readonly Message[], id: string): number {
  const last = messages.findLast(({ source }) => source?.kind === 'plugin' && source.id === id)
  const time = Date.parse(/The time is (\S+)\.$/.exec(last ? textOf(last) : '')?.[1] ?? '')
  return Number.isNaN(time) ? -Infinity : time
}

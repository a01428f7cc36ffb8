/**
 * Shows how to send a request elsewhere: when a model fails for a reason that another one may not share, the next in line is asked, and the log says so.
 * A reply that failed was told and logged, but never acted on, so no tool runs twice. A model that failed rests for a while: the next requests go past it at once.
 * Its row stands above `retry`: what is sent again to one model is below what changes the model.
 */
import { duration, messageOf, ModelError, z, type Context } from 'harnessx'

export const name = 'fallback'
export const Config = z.strictObject({
  /** `<id>/<model>` or `<id>`, in the order in which they are tried after the model that was asked for. */
  models: z.array(z.string().min(1)).min(1).max(10),
  /** Failures that another model may not share. What is wrong with the request itself fails everywhere. */
  on: z.array(z.enum(['rate_limit', 'overloaded', 'auth', 'not_found', 'context_length', 'timeout', 'network', 'protocol', 'truncated', 'content_filter']))
    .default(['rate_limit', 'overloaded', 'auth', 'not_found', 'timeout', 'network', 'protocol']),
  /** How long a model that failed is passed over. */
  rest: duration.prefault('1m'),
})

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  const on: ReadonlySet<string> = new Set(config.on)
  /** When the rest of a model is over. */
  const resting = new Map<string, number>()
  const rests = (model: string) => (resting.get(model) ?? 0) > performance.now()

  ctx.on('agent/request', async ({ model, signal }, next) => {
    const line = [...new Set([model, ...config.models])]
    const awake = line.filter(candidate => !rests(candidate))
    const [first = model, ...others] = awake.length > 0 ? awake : line
    for (let asked = first; ;) {
      try {
        const reply = asked === model ? await next() : await next({ model: asked })
        resting.delete(asked)
        return reply
      } catch (error) {
        const following = others.shift()
        if (!(error instanceof ModelError) || !on.has(error.kind) || signal.aborted || ctx.signal.aborted) throw error
        resting.set(asked, performance.now() + config.rest)
        if (following === undefined) throw error
        ctx.logger.warn(`model "${asked}" failed (${error.kind}), so "${following}" is asked: ${messageOf(error)}`)
        asked = following
      }
    }
  })
}

/**
 * Shows how to look without touching: warns in the log of a result over 100,000 characters and has no opinion on it.
 * Its place is before `truncate`: it judges the result on the way in, and `truncate` cuts on the way out, so it sees the length before the cut.
 */
import { z, type Context } from 'harnessx'

export const name = 'large-output'
export const Config = z.strictObject({
  /** Characters from which on a result is large. */
  max: z.int().positive().default(100_000),
})

export function apply(ctx: Context, { max }: z.infer<typeof Config>) {
  ctx.on('agent/post-tool-use', ({ call, result }) => {
    if (result.content.length > max) ctx.logger.warn(`${call.name} gave ${result.content.length} characters of output, more than ${max}`, { callId: call.id })
  })
}

/**
 * Shows how to stand around a request: one that failed for a passing reason is sent again, after a while that grows and is never the same for two clients, or as long as the endpoint asks.
 * Whether a reason passes is the model's own word (`ModelError.retryable`). A broken reply was told and logged, but never acted on, so nothing happens twice.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { duration, ModelError, z, type Context } from 'harnessx'

export const name = 'retry'
export const Config = z.strictObject({
  /** How often a request is sent at most; a reply that ended early is asked for twice at most. */
  attempts: z.int().min(1).max(20).default(3),
  /** When the endpoint asks for more patience than this, the request fails at once. */
  maxWait: duration.refine(ms => ms <= 86_400_000, 'must be at most 1d').prefault('60s'),
})
type Config = z.infer<typeof Config>

const FIRST_WAIT_MS = 500, LONGEST_WAIT_MS = 8000
/** A wait from this length on is told while it lasts. */
const TOLD_MS = 5000

export function apply(ctx: Context, config: Config) {
  ctx.on('agent/request', async ({ model, signal }, next) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await next()
      } catch (error) {
        const wait = waitAfter(error, attempt, config)
        if (wait === undefined) throw error
        ctx.logger[wait < TOLD_MS ? 'info' : 'warn'](`request to "${model}" is sent again in ${Math.ceil(wait / 1000)} s`)
        await sleep(wait, undefined, { signal: AbortSignal.any([signal, ctx.signal]) }).catch(() => { throw error })     // only an abort ends it early
      }
    }
  })
}

/** Milliseconds until the request is sent again, or undefined when it is not. */
export function waitAfter(error: unknown, attempt: number, { attempts, maxWait }: Config, random = Math.random): number | undefined {
  if (!(error instanceof ModelError) || !error.retryable || attempt >= (error.kind === 'truncated' ? Math.min(2, attempts) : attempts)) return undefined
  const own = Math.min(FIRST_WAIT_MS * 2 ** (attempt - 1), LONGEST_WAIT_MS) * (0.75 + random() / 2)
  const wait = Math.max(own, error.retryAfterMs ?? 0)
  return wait > maxWait ? undefined : wait
}

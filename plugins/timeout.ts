/**
 * Shows how to end what takes too long: a handler around a request or a tool that gives up waiting; the host then aborts the act and drops what it does later.
 * What the limit covers is the row's place to say: a request below `retry` is one attempt, above it all of them with the waits between.
 */
import { duration, ModelError, z, type Context } from 'harnessx'

const limit = z.union(
  [z.literal('none').transform(() => Infinity), duration.refine(ms => ms > 0 && ms <= 86_400_000)],
  'must be a duration such as "10m", more than 0 and at most 1d, or "none"',
)

export const name = 'timeout'
export const Config = z.strictObject({
  /** For one request to a model, from its start to the end of its reply. */
  request: limit.prefault('10m'),
  /** For one run of a tool. */
  tool: limit.prefault('10m'),
  /** Tools that get another limit, by name. */
  tools: z.record(z.string().min(1), limit).default({}),
})

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  const others = new Map(Object.entries(config.tools))

  /** As `act` ends, or with what `late` says after `ms`. */
  async function within<T>(ms: number, act: () => Promise<T>, late: () => Error): Promise<T> {
    if (ms === Infinity) return act()
    const { promise: up, reject } = deferred()
    const off = ctx.setTimeout(() => { reject(late()) }, ms)
    try { return await Promise.race([act(), up]) } finally { off() }
  }

  ctx.on('agent/request', ({ model }, next) =>
    within(config.request, next, () => new ModelError('timeout', `model "${model}" did not finish its reply within ${shown(config.request)}`)))
  ctx.on('agent/tool-use', ({ call }, next) => {
    const ms = others.get(call.name) ?? config.tool
    return within(ms, next, () => new Error(`tool "${call.name}" did not finish within ${shown(ms)} and was stopped; what it did until then stays`))
  })
}

function deferred(): { readonly promise: Promise<never>; readonly reject: (reason: Error) => void } {
  let reject!: (reason: Error) => void
  const promise = new Promise<never>((_, no) => { reject = no })
  promise.catch(() => {})                                    // the race may be over when it comes
  return { promise, reject }
}

const shown = (ms: number): string => ms % 60_000 === 0 ? `${ms / 60_000} min` : ms >= 1000 ? `${ms / 1000} s` : `${ms} ms`

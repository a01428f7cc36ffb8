/** Waiting with a limit. Every wait of the kernel and the host on code that is not theirs goes through here. */

/** What `work` comes to, or `late()` thrown after `ms`. A result or failure that comes later is dropped. */
export async function within<T>(ms: number, work: T | PromiseLike<T>, late: () => Error): Promise<T> {
  if (!isThenable(work)) return work
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<never>((_, refuse) => { timer = setTimeout(() => { refuse(late()) }, ms) })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}

export const isThenable = (value: unknown): value is PromiseLike<unknown> => typeof value === 'object' && value !== null && typeof (value as { then?: unknown }).then === 'function'

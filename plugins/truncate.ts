/**
 * Shows how to change a result: cuts it at 50,000 characters and says how many are missing.
 * It waits for `next()` and cuts on the way out. Every other shipped handler of this hook works on the way in, so nothing of theirs is added behind the cut,
 * plugins that stand later are cut too, and the length that `audit` and `hook-log` see is the final one.
 */
import { z, type Context } from 'harnessx'

export const name = 'truncate'
export const Config = z.strictObject({
  /** Characters that are kept. */
  max: z.int().positive().default(50_000),
})

export function apply(ctx: Context, { max }: z.infer<typeof Config>) {
  ctx.on('agent/post-tool-use', async (_, next) => {
    const result = await next()
    return result.content.length > max ? { ...result, content: cut(result.content, max) } : result
  })
}

function cut(text: string, max: number): string {
  const kept = /[\uD800-\uDBFF]/.test(text[max - 1]!) ? max - 1 : max       // never half a character
  return `${text.slice(0, kept)}\n[cut here: ${text.length - kept} of ${text.length} characters are missing; ask for a smaller part to see them]`
}

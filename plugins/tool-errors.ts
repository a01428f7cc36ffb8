/**
 * Shows how to word things uniformly: every failed call reads `error: <tool>: <message>` and one line of advice, whatever tool it came from.
 * Works on the way in and recognises its own words, so a second instance or an answer that was worded already changes nothing.
 */
import type { Context } from 'harnessx'

export const name = 'tool-errors'

export function apply(ctx: Context) {
  ctx.on('agent/post-tool-use', ({ call, result }) => {
    const head = `error: ${call.name}: `
    if (!result.isError || result.content.startsWith(head)) return
    const message = result.content.replace(/^(?:\s*(?:uncaught )?(?:\w*error|exception)\s*:\s*)+/i, '').trim() || 'it failed and gave no reason'
    return { content: `${head}${message}\nhint: ${adviceFor(message)}`, isError: true }
  })
}

const ADVICE: readonly (readonly [RegExp, string])[] = [
  [/ENOENT|no such file|does not exist|not found/i, 'look for the right path with glob or grep before you try again.'],
  [/EACCES|EPERM|permission denied|read-only/i, 'this place can not be used; do not work around it, choose another or tell the user.'],
  [/outside_workspace|outside the workspace/, 'stay inside the workspace; paths are relative to it.'],
  [/protected_path/, 'leave that file alone and tell the user what you wanted to change there.'],
  [/timed? ?out|too long/i, 'make it smaller, or give it more time if the tool takes a limit.'],
  [/exactly once|old_text|no match/i, 'read the file again; it may not hold what you think.'],
]
const adviceFor = (message: string): string => ADVICE.find(([pattern]) => pattern.test(message))?.[1] ?? 'the same call will fail the same way; change the arguments or the plan.'

/**
 * Shows the ends of things: time and tokens of each step and turn, printed to stderr. Tokens are what the endpoint reported, in and out together.
 */
import type { Context, Payload } from 'harnessx'

export const name = 'stats'

export function apply(ctx: Context) {
  ctx.on('agent/step-end', ({ step, usage, elapsedMs, toolCalls }) => { print(usage, elapsedMs, { step: step + 1, tool_calls: toolCalls }) })
  ctx.on('agent/turn-end', ({ turn, usage, elapsedMs, stats }) => { print(usage, elapsedMs, { turn, steps: stats.steps, tool_calls: stats.toolCalls, blocked: stats.blocked }) })
}

function print({ inputTokens, outputTokens }: Payload<'agent/turn-end'>['usage'], elapsedMs: number, counts: Readonly<Record<string, number>>): void {
  const time = elapsedMs < 1000 ? `${Math.round(elapsedMs)}ms` : `${(elapsedMs / 1000).toFixed(1)}s`
  process.stderr.write(`[stats] tokens=${inputTokens + outputTokens} time=${time} ${Object.entries(counts).map(([key, count]) => `${key}=${count}`).join(' ')}\n`)
}

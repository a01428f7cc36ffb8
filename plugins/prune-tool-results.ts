/**
 * Shows the cheap way to make room: results of tools that lie far back give way to one line, and the model can call the tool again. No model is asked, every call keeps its answer.
 * Each pruning rewrites what the endpoint may have cached, so it waits until it is worth it. What was pruned stays in the session log.
 */
import { textOf, z, type Context, type Message, type SessionEvent } from 'harnessx'

export const name = 'prune-tool-results'
export const Config = z.strictObject({
  /** So many tokens of the newest results stay. */
  keep: z.int().min(0).default(40_000),
  /** Nothing is pruned unless it saves so many tokens. */
  atLeast: z.int().positive().default(20_000),
  /** Tools whose results stay. */
  except: z.array(z.string().min(1)).default([]),
})
type Config = z.infer<typeof Config>

/** A result that is not longer than the line in its place stays. */
const SHORT = 200

export function apply(ctx: Context, config: Config) {
  ctx.on('agent/pre-step', async ({ session }, next) => {
    const decision = await next()
    if (decision.kind === 'reject' || decision.compact) return
    const old = pruned(session.messages, config)
    if (!old) return
    const through = borderBefore((await ctx.sessions.read(session.id)).events, session.messages.slice(old.messages.length))
    if (through === undefined) return
    ctx.logger.info(`about ${old.saved} tokens of old tool results are left out of session "${session.id}" from here on`)
    return { ...decision, compact: { through, messages: old.messages } }
  }, { onError: 'pass' })                                                                // no room made is no reason to refuse a step
}

/** The old part of a conversation without its long results, or undefined when that saves too little. */
export function pruned(messages: readonly Message[], { keep, atLeast, except }: Config): { readonly messages: readonly Message[]; readonly saved: number } | undefined {
  const short = new Map<number, Message>()
  let kept = 0, saved = 0
  for (let index = messages.length - 1; index >= 0; index--) {
    const message = messages[index]!
    if (message.role !== 'tool') continue
    const content = textOf(message)
    kept += tokens(content)
    if (kept <= keep || content.length <= SHORT || except.includes(message.source?.id ?? '')) continue
    const line = `[a result of ${content.length} characters was left out to make room; call the tool again if you need it]`
    short.set(index, { ...message, content: [{ type: 'text', text: line }] })
    saved += tokens(content) - tokens(line)
  }
  if (saved < atLeast) return undefined
  let end = Math.max(...short.keys()) + 1
  while (messages[end]?.role === 'tool') end++                                          // answers to the same reply belong together
  return { messages: messages.slice(0, end).map((message, index) => short.get(index) ?? message), saved }
}

/** The last event before these messages, which are the last of the session; undefined when the log doesn't say, or something older was put in their place. */
export function borderBefore(events: readonly SessionEvent[], rest: readonly Message[]): number | undefined {
  if (rest.length === 0) return events.at(-1)?.seq
  const replaced = events.findLast(event => event.type === 'compaction')?.through ?? 0
  const spoken = events.filter(({ type, seq }) => seq > replaced && (type === 'message' || type === 'tool-result'))
  const first = spoken.at(-rest.length)
  return spoken.length >= rest.length && first?.type === 'message' && textOf(first) === textOf(rest[0]!) ? first.seq - 1 : undefined
}

const tokens = (content: string): number => Math.ceil(Buffer.byteLength(content) / 4)

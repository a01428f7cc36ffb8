/**
 * Shows a tool with a memory: a list that the model keeps and the user sees. The list is the last call in the session itself, so it survives reloads, resumes and forks without a file.
 * When a compaction took that call away, the open items are told to the model again, once.
 */
import { textOf, z, type Context, type Message, type SessionEvent } from 'harnessx'

export const name = 'todo'
export const Config = z.strictObject({
  /** Items of one list. */
  max: z.int().min(1).max(500).default(50),
})

const TOOL = 'todo'
const Item = z.object({
  text: z.string().trim().min(1).max(300).describe('What is to be done.'),
  state: z.enum(['open', 'active', 'done']).describe('At most one is active: the one you work on.'),
})
type Item = z.infer<typeof Item>

const MARK = { open: '[ ]', active: '[>]', done: '[x]' }
const HEAD = 'Your todo list, as you left it:'

export function apply(ctx: Context, { max }: z.infer<typeof Config>) {
  const parameters = z.object({ items: z.array(Item).max(max).describe('The whole list, in order; it takes the place of the last one.') })
  ctx.tools.register({
    name: TOOL,
    description: 'Keep a list of what is to be done in a task of several parts. Each call gives the whole list. Mark an item active before you begin it and done as soon as it is; the user sees the list.',
    parameters,
    execute({ items }: z.infer<typeof parameters>, { session }) {
      if (items.filter(({ state }) => state === 'active').length > 1) throw new Error('only one item can be active; finish it, or set it back to open')
      print(items, session.depth)
      const open = items.filter(({ state }) => state !== 'done').length
      return items.length === 0 ? 'the list is empty' : open === 0 ? 'all done' : `${open} of ${items.length} open`
    },
  })

  /** Summaries behind which the log was looked through. */
  const looked = new WeakSet<Message>()
  ctx.on('agent/pre-step', async ({ session }, next) => {
    const decision = await next()
    const [first] = session.messages
    if (decision.kind === 'reject' || !first || looked.has(first) || isTold(session.messages)) return
    looked.add(first)
    const items = lastList((await ctx.sessions.read(session.id)).events)
    if (!items.some(({ state }) => state !== 'done')) return
    return { ...decision, messages: [...decision.messages, `${HEAD}\n${lines(items).join('\n')}`] }
  }, { onError: 'pass' })

  /** A conversation that begins with something else than a prompt has been compacted; all others still hold the calls themselves. */
  const isTold = (messages: readonly Message[]): boolean =>
    messages[0]?.source?.kind !== 'plugin' || messages.some(message => message.toolCalls?.some(call => call.name === TOOL) || message.source?.id === ctx.id && textOf(message).startsWith(HEAD))
}

/** What the last call that was carried out said. */
function lastList(events: readonly SessionEvent[]): readonly Item[] {
  const result = events.findLast(event => event.type === 'tool-result' && event.name === TOOL && event.kind === 'ok')
  if (result?.type !== 'tool-result') return []
  const intent = events.findLast(event => event.type === 'tool-intent' && event.callId === result.callId)
  const read = z.object({ items: z.array(Item) }).safeParse(intent?.type === 'tool-intent' ? intent.arguments : undefined)
  return read.success ? read.data.items : []
}

const lines = (items: readonly Item[]): string[] => items.map(({ text, state }) => `${MARK[state]} ${text}`)

function print(items: readonly Item[], depth: number): void {
  for (const line of lines(items)) process.stderr.write(`[todo] ${'  '.repeat(depth)}${plain(line)}\n`)
}
/** What a model wrote must not steer the terminal. */
const plain = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')

/**
 * Shows how to replace old messages: when a conversation has grown long, its old turns give way to a summary that the model itself writes. `/compact` asks for it at once.
 * The summary is logged with this plugin as its source, and the turns it replaces stay in the log.
 * Invariants: cut at borders of turns only, so calls keep their answers; one try a turn, and a failure costs the summary, never the turn.
 */
import { duration, messageOf, textOf, z, type Context, type SessionView } from 'harnessx'
import { cutOf, type Cut } from './cut.js'
import { Meter, tokensOf } from './meter.js'
import { SYSTEM, task } from './task.js'

export const name = 'compaction'
export const Config = z.strictObject({
  /** A request that would have more tokens is preceded by a summary. */
  above: z.int().min(1000).default(100_000),
  /** Of the newest turns, those stay that have no more tokens together. The running turn always stays. */
  keep: z.int().min(0).default(20_000),
  /** Writes the summary: `<id>/<model>` or `<id>`. Left out: the model of the session. */
  model: z.string().min(1).optional(),
  /** For writing the summary. */
  timeout: duration.refine(ms => ms > 0 && ms <= 3_600_000, 'must be more than 0 and at most 1h').prefault('2m'),
})
type Config = z.infer<typeof Config>

/** Beyond the model's own limit, the handler has this long. */
const SLACK_MS = 5000

export function apply(ctx: Context, config: Config) {
  const meter = new Meter()
  /** Sessions whose next step is to be preceded by a summary, with what to heed. */
  const wanted = (ctx.state['wanted'] ??= new Map()) as Map<string, string>
  /** Turns in which there is nothing more to try. */
  const tried = new Map<string, number>()
  ctx.commands.register({
    name: 'compact', description: 'Replaces the conversation so far by a summary, before the next step; "/compact WORDS" says what to heed.',
    run: (args, { session }) => {
      wanted.set(session, args.trim())
      return 'The conversation so far is summarised before the next step.'
    },
  })

  ctx.on('agent/pre-step', async ({ session, turn, signal }, next) => {
    const decision = await next()
    const focus = wanted.get(session.id)
    if (decision.kind === 'reject' || decision.compact || tried.get(session.id) === turn) return
    const size = meter.measure(session) + tokensOf(decision.messages)
    if (focus === undefined && size <= config.above) return
    tried.set(session.id, turn)
    wanted.delete(session.id)
    try {
      const cut = cutOf((await ctx.sessions.read(session.id)).events, session.messages, focus === undefined ? config.keep : 0)
      if (!cut) {
        ctx.logger.warn(`session "${session.id}" has about ${size} tokens, and no turn that is over and not summarised yet; it goes on as it is`)
        return
      }
      const summary = await write(session, cut, focus, signal)
      ctx.logger.info(`${cut.messages.length} messages of session "${session.id}", which has about ${size} tokens, give way to a summary`)
      return { ...decision, compact: { through: cut.through, messages: [`Summary of the conversation so far, in place of its ${cut.messages.length} messages:\n\n${summary}`], asked: focus } }
    } catch (error) {
      if (!signal.aborted) ctx.logger.error(`session "${session.id}" has about ${size} tokens and could not be summarised, so it goes on as it is: ${messageOf(error)}`)
      return
    }
  }, { timeout: config.timeout + SLACK_MS, onError: 'pass' })

  /** A model reads the old turns, in a request of its own. */
  async function write(session: SessionView, { messages }: Cut, focus: string | undefined, signal: AbortSignal): Promise<string> {
    const limit = new AbortController()                        // AbortSignal.any does not hold an AbortSignal.timeout: it may be collected before its time
    const timer = setTimeout(() => { limit.abort(new Error(`the model did not answer within ${config.timeout / 1000} s`)) }, config.timeout)
    const reply = await ctx.models.ask({
      messages: [{ role: 'system', content: SYSTEM }, task(messages, focus, config.above * 3)],                 // three characters of four: the task has to fit where the conversation did
      model: config.model ?? meter.modelOf(session.id), session, signal: AbortSignal.any([signal, limit.signal]),
    }).finally(() => { clearTimeout(timer) })
    const words = textOf(reply.message).trim()
    if (reply.finish === 'length') throw new Error('the summary was cut at the length limit of the model')
    if (words === '') throw new Error('the model wrote nothing')
    return words
  }

  ctx.on('agent/request', async ({ session, model, turn }, next) => {
    const { usage } = await next()
    if (turn > 0) meter.sent(session, model, usage)
  })
  ctx.on('agent/session-start', async ({ session, source }) => {
    if (source !== 'new') meter.resumed(session, (await ctx.sessions.read(session.id)).events)
  })
  ctx.on('agent/compacted', ({ session }) => { meter.forget(session.id) })
  ctx.on('agent/session-end', ({ session }) => {
    meter.forget(session.id)
    tried.delete(session.id)
    wanted.delete(session.id)
  })
}


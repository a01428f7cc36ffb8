/** What the bodies and queries of the protocol look like. Both sides mean it: an unknown or missing field is an error, never a default action. */
import { z } from '../z.js'
import { MAX_BODY_BYTES } from './protocol.js'

export const RunOrderSchema = z.strictObject({
  prompt: z.string().min(1).max(MAX_BODY_BYTES),
  session: z.string().min(1).optional(),
  cwd: z.string().startsWith('/', 'must be an absolute path'),
  model: z.string().min(1).optional(),
  maxSteps: z.int().min(1).optional(),
  mode: z.enum(['default', 'accept-edits', 'plan', 'yes']).optional(),
  ephemeral: z.boolean().optional(),
  /** The client can put an ask to a person; each comes as an `approval` event and is answered at `approval`. */
  interactive: z.boolean().optional(),
  /** Answer with the session alone; its asks wait for whoever attaches or lists them. */
  detach: z.boolean().optional(),
  /** Refuse instead of waiting behind a turn that runs. */
  ifIdle: z.boolean().optional(),
})
/** Query of `events`; a `Last-Event-ID` header stands for `after`. */
export const EventsQuerySchema = z.strictObject({
  /** The last `seq` that the client has, or `turn`: what there is from the begin of the last turn on. */
  after: z.union([z.literal('turn'), z.string().regex(/^\d{1,15}$/, 'must be a seq or "turn"').transform(Number)]).optional(),
  /** Stay when no turn runs. */
  follow: z.literal('1').optional(),
  /** The client can put asks to a person. */
  interactive: z.literal('1').optional(),
})
export const StopOrderSchema = z.strictObject({
  /** Takes no new turn, and stops when those there are have ended. */
  wait: z.boolean().optional(),
})
export const ReloadOrderSchema = z.strictObject({
  ids: z.array(z.string().min(1)).optional(),
  /** Instead: what was held because a tool may have changed it. */
  held: z.literal(true).optional(),
})
export const SteerOrderSchema = z.strictObject({ prompt: z.string().min(1).max(MAX_BODY_BYTES) })
export const BeginOrderSchema = z.strictObject({ cwd: z.string().startsWith('/', 'must be an absolute path') })
export const CommandOrderSchema = z.strictObject({
  /** What was written behind the name. */
  args: z.string().max(MAX_BODY_BYTES),
  /** A new one in `cwd` when it is left out. */
  session: z.string().min(1).optional(),
  cwd: z.string().startsWith('/', 'must be an absolute path'),
})
export const AbortOrderSchema = z.strictObject({
  reason: z.string().max(200),
  /** As its `session` event named it: that run alone, also while it waits. Left out: the turn that runs. */
  run: z.string().min(1).optional(),
})
export const ApprovalAnswerSchema = z.discriminatedUnion('answer', [
  z.strictObject({ answer: z.enum(['once', 'session', 'always']) }),
  z.strictObject({ answer: z.literal('denied'), note: z.string().max(2000).optional() }),
])

export const WireErrorSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  place: z.strictObject({ file: z.string(), line: z.int().optional(), column: z.int().optional() }).optional(),
})
export type WireError = z.infer<typeof WireErrorSchema>

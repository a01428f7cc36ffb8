/**
 * The words on the wire: HTTP on the daemon's socket, JSON bodies, server-sent events whose id is the log's `seq`. Schemas and constants; knows no socket.
 * Both sides validate: an unknown or missing field is an error, never a default action.
 */
import { z } from 'zod'

/** Raised whenever an older client or daemon would misunderstand the other. */
export const PROTOCOL = 1
export const HEADERS = { protocol: 'hx-protocol', version: 'hx-version', authorization: 'authorization' } as const
/** Turns that run or wait in one daemon, and connections to it. */
export const MAX_TURNS = 1024, MAX_CONNECTIONS = 2048
/** Largest request body. */
export const MAX_BODY_BYTES = 1024 * 1024

export const ROUTES = {
  live: '/v1/live',
  openapi: '/v1/openapi.json',
  status: '/v1/status',
  keys: '/v1/keys',
  stop: '/v1/stop',
  plugins: '/v1/plugins',
  hooks: '/v1/hooks',
  tools: '/v1/tools',
  models: '/v1/models',
  commands: '/v1/commands',
  sessions: '/v1/sessions',
  session: '/v1/sessions/:id',
  events: '/v1/sessions/:id/events',
  steer: '/v1/sessions/:id/steer',
  archive: '/v1/sessions/:id/archive',
  abort: '/v1/sessions/:id/abort',
  reload: '/v1/reload',
  runs: '/v1/runs',
  approvals: '/v1/approvals',
  approval: '/v1/approvals/:id',
} as const

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
export const ReloadOrderSchema = z.strictObject({ ids: z.array(z.string().min(1)).optional() })
export const SteerOrderSchema = z.strictObject({ prompt: z.string().min(1).max(MAX_BODY_BYTES) })
export const AbortOrderSchema = z.strictObject({ reason: z.string().max(200) })
export const ApprovalAnswerSchema = z.discriminatedUnion('answer', [
  z.strictObject({ answer: z.enum(['once', 'session', 'always']) }),
  z.strictObject({ answer: z.literal('denied'), note: z.string().max(2000).optional() }),
])

/**
 * Names of server-sent events, in the order they may come. Of a run: session, then any of log, delta, progress, approval and settled (an ask needs no answer any more), then result or error.
 * Of a session's events: reset (the client's place is not in this log, it comes again from the start), then the same, then end.
 */
export type RunEventName = 'session' | 'log' | 'delta' | 'progress' | 'approval' | 'settled' | 'result' | 'error' | 'reset' | 'end'
export const WireErrorSchema = z.strictObject({
  code: z.string(),
  message: z.string(),
  place: z.strictObject({ file: z.string(), line: z.int().optional(), column: z.int().optional() }).optional(),
})
export type WireError = z.infer<typeof WireErrorSchema>

/** `no turn is`, `1 turn is`, `2 turns are`. */
export const turnsAre = (count: number): string => count === 0 ? 'no turn is' : count === 1 ? '1 turn is' : `${count} turns are`

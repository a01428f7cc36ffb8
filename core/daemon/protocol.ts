/**
 * The words on the wire: HTTP on the daemon's socket, JSON bodies, server-sent events whose id is the log's `seq`. Schemas and constants; knows no socket.
 * Both sides validate: an unknown or missing field is an error, never a default action.
 */
import { z } from 'zod'

/** Raised whenever an older client or daemon would misunderstand the other. */
export const PROTOCOL = 1
export const HEADERS = { protocol: 'hx-protocol', version: 'hx-version', authorization: 'authorization' } as const
/** Largest request body. */
export const MAX_BODY_BYTES = 1024 * 1024

export const ROUTES = {
  live: '/v1/live',
  status: '/v1/status',
  stop: '/v1/stop',
  plugins: '/v1/plugins',
  hooks: '/v1/hooks',
  tools: '/v1/tools',
  models: '/v1/models',
  commands: '/v1/commands',
  sessions: '/v1/sessions',
  session: '/v1/sessions/:id',
  abort: '/v1/sessions/:id/abort',
  reload: '/v1/reload',
  runs: '/v1/runs',
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
})
export const ReloadOrderSchema = z.strictObject({ ids: z.array(z.string().min(1)).optional() })
export const AbortOrderSchema = z.strictObject({ reason: z.string().max(200) })
export const ApprovalAnswerSchema = z.discriminatedUnion('answer', [
  z.strictObject({ answer: z.enum(['once', 'session', 'always']) }),
  z.strictObject({ answer: z.literal('denied'), note: z.string().max(2000).optional() }),
])

/** Names of the server-sent events of a run, in the order they may come: session, then any of log, delta, progress and approval, then result or error. */
export type RunEventName = 'session' | 'log' | 'delta' | 'progress' | 'approval' | 'result' | 'error'
export interface WireError { readonly code: string; readonly message: string; readonly place?: { readonly file: string; readonly line?: number | undefined; readonly column?: number | undefined } | undefined }

/**
 * The words on the wire: HTTP on the daemon's socket, JSON bodies, server-sent events whose id is the log's `seq`.
 * Constants alone, so that a client starts fast; what bodies look like is in schemas.ts. Knows no socket.
 */

/** Raised whenever an older client or daemon would misunderstand the other. */
export const PROTOCOL = 1
export const HEADERS = { protocol: 'hx-protocol', version: 'hx-version', authorization: 'authorization' } as const
/** Turns that run or wait in one daemon, and connections to it. */
export const MAX_TURNS = 1024, MAX_CONNECTIONS = 2048
/** Largest request body. */
export const MAX_BODY_BYTES = 1024 * 1024

export const ROUTES = {
  live: '/healthz',
  ready: '/readyz',
  openapi: '/v1/openapi.json',
  status: '/v1/status',
  keys: '/v1/keys',
  stop: '/v1/stop',
  plugins: '/v1/plugins',
  hooks: '/v1/hooks',
  tools: '/v1/tools',
  models: '/v1/models',
  commands: '/v1/commands',
  command: '/v1/commands/:name',
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

/**
 * Names of server-sent events, in the order they may come. Of a run: session, then any of log, delta, progress, approval and settled (an ask needs no answer any more), then result or error.
 * Of a session's events: reset (the client's place is not in this log, it comes again from the start), then the same, then end.
 */
export type RunEventName = 'session' | 'log' | 'delta' | 'progress' | 'approval' | 'settled' | 'result' | 'error' | 'reset' | 'end'

/** `no turn is`, `1 turn is`, `2 turns are`. */
export const turnsAre = (count: number): string => count === 0 ? 'no turn is' : count === 1 ? '1 turn is' : `${count} turns are`

/** The socket's HTTP as an OpenAPI 3.1 document, from the very schemas that requests are read with. Pure; one row a route. */
import { z } from '../z.js'
import { VERSION } from '../version.js'
import { HEADERS, PROTOCOL, ROUTES } from './protocol.js'
import { AbortOrderSchema, ApprovalAnswerSchema, BeginOrderSchema, CommandOrderSchema, EventsQuerySchema, ReloadOrderSchema, RunOrderSchema, SteerOrderSchema, StopOrderSchema, WireErrorSchema } from './schemas.js'

interface Operation {
  readonly method: 'get' | 'post'
  readonly route: keyof typeof ROUTES
  readonly summary: string
  readonly body?: z.ZodType
  readonly query?: z.ZodObject
  /** Of the 200 answer; server-sent events where it says so. */
  readonly answer: string
  readonly events?: boolean
}
export const OPERATIONS: readonly Operation[] = [
  { method: 'get', route: 'live', summary: 'Is the process there? The one route without a token.', answer: 'nothing (204)' },
  { method: 'get', route: 'ready', summary: 'Does it take prompts, and can it keep them? 503 when not.', answer: '{ready, store, config}' },
  { method: 'get', route: 'openapi', summary: 'This document.', answer: 'OpenAPI 3.1' },
  { method: 'get', route: 'status', summary: 'How the daemon is.', answer: 'what "hx status --json" prints' },
  { method: 'get', route: 'keys', summary: 'Salted digests of the model keys in use.', answer: '{salt, keys}' },
  { method: 'get', route: 'plugins', summary: 'Entries of the config and their states.', answer: 'what "hx plugins --json" prints' },
  { method: 'get', route: 'hooks', summary: 'Hooks and their handlers, in order.', answer: 'what "hx hooks --json" prints' },
  { method: 'get', route: 'tools', summary: 'Tools that the model is offered.', answer: 'what "hx tools --json" prints' },
  { method: 'get', route: 'models', summary: 'Models, ready or not.', answer: 'what "hx models --json" prints' },
  { method: 'get', route: 'commands', summary: 'Commands that plugins registered.', answer: '{commands}' },
  { method: 'post', route: 'command', summary: 'Runs a command of a plugin; a prompt in the answer is for the client to send.', body: CommandOrderSchema, answer: '{session, text?, prompt?}' },
  { method: 'post', route: 'reload', summary: 'Reads the config again, loads entries anew, or takes in what was held.', body: ReloadOrderSchema, answer: '{reloaded, failed, ms}' },
  { method: 'post', route: 'stop', summary: 'Ends the daemon, at once or when its turns have ended. Whatever protocol is spoken.', body: StopOrderSchema, answer: '{stopping, turns}' },
  { method: 'post', route: 'runs', summary: 'Starts a turn and streams it; leaving the stream does not end it. With "detach" 202 and {session}.', body: RunOrderSchema, answer: 'events session, log (id: seq), delta, progress, approval, settled, then result or error', events: true },
  { method: 'get', route: 'sessions', summary: 'Sessions, newest first.', answer: '{sessions}' },
  { method: 'post', route: 'sessions', summary: 'Makes a session that waits for its first prompt.', body: BeginOrderSchema, answer: '{session}' },
  { method: 'get', route: 'session', summary: 'The log of a session.', answer: '{events, problems}' },
  { method: 'get', route: 'events', summary: 'The log of a session behind a place, then what happens; a Last-Event-ID header stands for "after".', query: EventsQuerySchema, answer: 'events reset, log (id: seq), delta, progress, approval, settled, then end or error', events: true },
  { method: 'post', route: 'steer', summary: 'Hands a prompt to the turn that runs, for its next step.', body: SteerOrderSchema, answer: '{steered, after}' },
  { method: 'post', route: 'abort', summary: 'Stops the turn that runs, or a run by the name of its session event.', body: AbortOrderSchema, answer: '{aborted}' },
  { method: 'post', route: 'archive', summary: 'Takes no further prompt for a session.', answer: '{archived}' },
  { method: 'get', route: 'approvals', summary: 'Asks that wait for a person.', answer: '{approvals}' },
  { method: 'post', route: 'approval', summary: 'Answers one ask, once; 404 when it is answered already or was withdrawn.', body: ApprovalAnswerSchema, answer: '{answered}' },
]

export function openApi(): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {}
  for (const operation of OPERATIONS) {
    const path = ROUTES[operation.route].replace(':id', '{id}')
    paths[path] = { ...paths[path], [operation.method]: described(operation, path) }
  }
  return {
    openapi: '3.1.0',
    info: { title: 'hx daemon', version: VERSION, description: `HTTP over the daemon's Unix socket, protocol ${PROTOCOL}. Every request but GET ${ROUTES.live} shows the token of the run folder and the header ${HEADERS.protocol}: ${PROTOCOL}.` },
    paths,
    components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } }, schemas: { Error: schemaOf(z.strictObject({ error: WireErrorSchema })) } },
  }
}

function described({ method, route, summary, body, query, answer, events }: Operation, path: string): object {
  const refused = { description: 'refused', content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } }
  const parameters = [
    ...path.includes('{id}') ? [{ name: 'id', in: 'path', required: true, schema: { type: 'string' } }] : [],
    ...Object.entries(query?.shape ?? {}).map(([name, schema]) => ({ name, in: 'query', required: false, schema: schemaOf(schema as z.ZodType) })),
  ]
  return {
    operationId: `${method}_${route}`, summary,
    ...(route !== 'live' && { security: [{ token: [] }] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: schemaOf(body) } } } }),
    responses: {
      [route === 'live' ? 204 : 200]: { description: answer, ...(route !== 'live' && { content: { [events ? 'text/event-stream' : 'application/json']: {} } }) },
      ...(route !== 'live' && { '4XX': refused, '5XX': refused }),
    },
  }
}
function schemaOf(schema: z.ZodType): object {
  const { $schema: _, ...plain } = z.toJSONSchema(schema, { io: 'input' })
  return plain
}

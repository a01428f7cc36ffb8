/**
 * openai-server: the agent behind OpenAI's chat completions, on the daemon's own HTTP. Shows routes of a plugin: the daemon's token, its rules about who may come, and an end with the plugin.
 * A conversation goes on in the session in which it was had (conversations.ts); a client that leaves ends its turn, as it would elsewhere.
 */
import { homedir } from 'node:os'
import { HarnessError, messageOf, z, type Context, type Run, type RunResult } from 'harnessx'
import { chunk, completion, errorBody, errorResponse, head, model as modelOf, outcomeOf, usageChunk, type Problem } from './answer.js'
import { Conversations } from './conversations.js'
import { readRequest, wholePrompt, type ChatRequest, type Said } from './request.js'
import { ToldText } from './told-text.js'

export const name = 'openai-server'
/** Only a daemon has them. */
export const inject = ['routes']
export const Config = z.strictObject({
  /** Where its sessions work. Left out: where the daemon was started. */
  cwd: z.string().refine(path => path.startsWith('/') || path === '~' || path.startsWith('~/'), 'must be absolute or begin with "~/"').optional(),
  maxSteps: z.int().positive().optional(),
  /** Nobody can be asked, so what would be asked about is refused; `plan` runs nothing but read-only tools. The two that answer in your name want this plugin's id under `agent.approvers` too. */
  mode: z.enum(['default', 'accept-edits', 'plan', 'yes']).default('default'),
})

/** The model of the config, by the name that `/v1/models` gives it. */
const OURS = 'hx'
/** What else clients of OpenAI's ask for, and are told is not here. */
const ELSEWHERE = ['/v1/responses', '/v1/completions', '/v1/embeddings']

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  const sessions = ctx.state['sessions'] instanceof Map ? ctx.state['sessions'] as Map<string, string> : new Map<string, string>()
  ctx.state['sessions'] = sessions
  const conversations = new Conversations(sessions)
  /** What clients want said at the head of the prompt, by session, while a turn of theirs runs. */
  const systems = new Map<string, string>()
  /** Turns whose session is not known yet. */
  const beginning = new Set<Promise<unknown>>()
  const cwd = config.cwd?.replace(/^~(?=\/|$)/, homedir())

  ctx.on('agent/system-prompt', async ({ session }, next) => {
    await Promise.allSettled(beginning)
    const system = systems.get(session.id)
    return system === undefined ? undefined : [...await next(), { id: 'client', text: system }]
  })
  ctx.routes.register({ method: 'GET', path: '/v1/models', handle: () => Response.json({ object: 'list', data: modelNames(ctx).map(modelOf) }) })
  ctx.routes.register({ method: 'GET', path: '/v1/models/*', handle: ({ url }) => {
    const id = decoded(new URL(url).pathname.slice('/v1/models/'.length))
    return modelNames(ctx).includes(id) ? Response.json(modelOf(id)) : errorResponse(noModel(id))
  } })
  for (const path of ELSEWHERE) ctx.routes.register({ method: 'POST', path, handle: () => errorResponse({ status: 404, type: 'invalid_request_error', code: 'unknown_url', message: `${path} is not served here: the agent speaks /v1/chat/completions` }) })
  ctx.routes.register({ method: 'POST', path: '/v1/chat/completions', async handle(request) {
    let body: unknown
    try { body = await request.json() } catch (error) { return errorResponse(invalid(`the body is no JSON: ${messageOf(error)}`)) }
    const read = readRequest(body)
    if (!read.ok) return errorResponse({ ...invalid(read.message), param: read.param })
    return answer(read.request, request.signal)
  } })

  async function answer(order: ChatRequest, left: AbortSignal): Promise<Response> {
    const gone = new AbortController(), signal = AbortSignal.any([left, gone.signal, ctx.signal])
    const known = order.before.length > 0 ? conversations.take(order.system, order.before) : undefined
    const begun = begin(order, known, signal).then(run => {
      if (order.system !== '') systems.set(run.session, order.system)
      return run
    })
    beginning.add(begun)
    let run: Run
    try { run = await begun } catch (error) { return errorResponse(problemOf(error, order.model)) } finally { beginning.delete(begun) }
    const result = run.result.finally(() => { systems.delete(run.session) })
    /** The client has read `text`; from there it goes on. */
    const stands = (text: string) => { conversations.stands(run.session, order.system, [...order.before, { role: 'user', text: order.prompt }, { role: 'assistant', text }] satisfies Said[]) }
    const headers = { 'hx-session': run.session }
    if (order.stream) return new Response(streamed(order, { ...run, result }, stands, () => { gone.abort(new Error('the client has left')) }), { headers: { ...headers, 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' } })
    const ended = await result, outcome = outcomeOf(ended)
    if ('status' in outcome) return errorResponse(outcome)
    stands(outcome.text)
    return Response.json(completion(head(order.model), outcome.text, outcome.finish, ended.usage), { headers })
  }
  /** Goes on in the known session, or begins one that is told what was said before. */
  async function begin(order: ChatRequest, known: string | undefined, signal: AbortSignal): Promise<Run> {
    const common = { ...(order.model !== OURS && { model: order.model }), ...(config.maxSteps !== undefined && { maxSteps: config.maxSteps }), mode: config.mode, signal }
    if (known !== undefined) {
      try { return await ctx.agents.run({ ...common, session: known, prompt: order.prompt }) } catch (error) {
        if (!(error instanceof HarnessError) || !['session_missing', 'session_archived', 'session_busy', 'session_damaged'].includes(error.code)) throw error
      }
    }
    return ctx.agents.run({ ...common, prompt: wholePrompt(order), ...(cwd !== undefined && { cwd }) })
  }
}

/** Text as it comes, steps apart by an empty line; what the model thinks as `reasoning_content`, which clients that don't know it ignore. */
function streamed(order: ChatRequest, run: Run, stands: (text: string) => void, leave: () => void): ReadableStream<Uint8Array> {
  const top = head(order.model), encoder = new TextEncoder()
  const line = (data: unknown) => encoder.encode(`data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`)
  async function* lines(): AsyncGenerator<unknown> {
    yield chunk(top, { role: 'assistant', content: '' })
    const told = new ToldText()
    for await (const event of run.events) {
      if (event.type !== 'delta' || event.kind === 'arguments') continue
      if (event.kind === 'reasoning') { yield chunk(top, { reasoning_content: event.text }); continue }
      const content = told.add(event.step, event.attempt, event.text)
      if (content !== '') yield chunk(top, { content })
    }
    const ended: RunResult = await run.result, outcome = outcomeOf(ended)
    if ('status' in outcome) { yield errorBody(outcome); return }
    if (told.text === '' && outcome.text !== '') yield chunk(top, { content: told.text = outcome.text })          // a model that streams nothing
    stands(told.text)
    yield chunk(top, {}, outcome.finish)
    if (order.includeUsage) yield usageChunk(top, ended.usage)
    yield '[DONE]'
  }
  const source = lines()
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await source.next()
        if (done) controller.close()
        else controller.enqueue(line(value))
      } catch (error) {
        controller.enqueue(line(errorBody({ status: 500, type: 'server_error', code: 'failed', message: messageOf(error) })))
        controller.close()
      }
    },
    cancel: leave,
  })
}

/** Ours first; then those that are ready, by the names that `hx agent --model` takes. */
function modelNames({ models }: Context): readonly string[] {
  const ready = models.list().filter(one => one.ready)
  return [OURS, ...ready.flatMap(({ id, defaultModel, models: known }) => [...new Set([...(defaultModel === undefined ? [] : [defaultModel]), ...known])].map(one => `${id}/${one}`))]
}

function decoded(written: string): string {
  try { return decodeURIComponent(written) } catch { return written }                                   // no escapes after all
}
const invalid = (message: string): Problem => ({ status: 400, type: 'invalid_request_error', code: null, message })
const noModel = (id: string): Problem => ({ status: 404, type: 'invalid_request_error', code: 'model_not_found', param: 'model', message: `there is no model "${id}"; GET /v1/models lists them, "${OURS}" is the one of the config` })
function problemOf(error: unknown, model: string): Problem {
  if (error instanceof HarnessError && ['no_model', 'unknown_id'].includes(error.code)) return model === OURS ? { status: 503, type: 'server_error', code: 'no_model', message: error.message } : noModel(model)
  return { status: error instanceof HarnessError && error.code === 'aborted' ? 503 : 500, type: 'server_error', code: error instanceof HarnessError ? error.code : null, message: messageOf(error) }
}

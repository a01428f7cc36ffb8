/**
 * model-openai: models that speak the OpenAI chat-completions protocol (DeepSeek, OpenAI, Ollama, vLLM, llama.cpp, LM Studio, OpenRouter, Azure, Gemini, …).
 * Without config it offers `deepseek` and `openai` by what the environment holds; with one it offers that endpoint, and several entries stand side by side.
 * Shows how a plugin brings a model: register one, stream deltas and a reply, throw ModelErrors. Retries belong to another plugin.
 */
import { ModelError, type Context, type Model, type ModelChunk, type ModelRequest } from 'harnessx'
import { attempt } from './attempt.js'
import { Config } from './config.js'
import { endpointOf, modelsOf, specsOf, variablesOf, type Endpoint, type Spec } from './endpoint.js'
import { lessonOf, type Lesson } from './lessons.js'
import { wireBody, type Wire } from './wire.js'

export { Config, wireBody }
export const name = 'model-openai'
/** Distinct lessons one request can take: two names of a limit, none, usage, reasoning. */
const LESSONS = 4

export function apply(ctx: Context, config: Config = {}): void {
  for (const spec of specsOf(config, ctx.id)) ctx.models.register(modelOf(ctx, spec))
}

function modelOf(ctx: Context, spec: Spec): Model {
  const lookUp = (variable: string): string | undefined => ctx.get('keys')?.get(variable) ?? process.env[variable]
  let last: { readonly values: readonly (string | undefined)[]; readonly endpoint: Endpoint | string } | undefined
  /** The same object until what it is made of has changed. */
  const endpoint = (): Endpoint | string => {
    const values = variablesOf(spec).map(lookUp)
    if (!last || values.some((value, at) => value !== last?.values[at])) last = { values, endpoint: endpointOf(spec, lookUp) }
    return last.endpoint
  }
  /** What each model's refusals taught, until the plugin is unloaded. */
  const learned = new Map<string, Partial<Wire>>()

  async function* stream(request: ModelRequest, { signal }: { readonly signal: AbortSignal }): AsyncGenerator<ModelChunk> {
    const to = endpoint()
    if (typeof to === 'string') throw new ModelError('auth', `model "${spec.id}/${request.model}" is not ready: ${to}`)
    for (let left = LESSONS; ; left--) {
      const body = wireBody(request, { ...to.wire, ...learned.get(request.model) })
      let lesson: Lesson | undefined
      try {
        for await (const chunk of attempt(request, body, to, signal, refusal => { lesson = lessonOf(refusal, body, to.wire.maxTokens) })) {
          if (chunk.kind === 'reply') warnOfWindow(chunk.reply.finish, body)
          yield chunk
        }
        return
      } catch (error) {
        if (!lesson || left === 0) throw error
        const { about, ...change } = lesson
        learned.set(request.model, { ...learned.get(request.model), ...change })
        ctx.logger.warn(`model "${spec.id}/${request.model}": ${about}`)
      }
    }

    function warnOfWindow(finish: string, body: Readonly<Record<string, unknown>>): void {
      if (finish !== 'length' || body['max_tokens'] !== undefined || body['max_completion_tokens'] !== undefined) return
      ctx.logger.warn(`model "${spec.id}/${request.model}" stopped at a limit that nobody set: the server's window looks smaller than the conversation needs`)
    }
  }

  return {
    id: spec.id,
    get defaultModel() { return modelsOf(spec, lookUp).defaultModel },
    get models() { return modelsOf(spec, lookUp).models },
    ready: () => { const now = endpoint(); return typeof now === 'string' ? now : true },
    stream,
  }
}

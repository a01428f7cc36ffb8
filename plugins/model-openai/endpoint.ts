/**
 * From an entry's config and the keys at hand to the endpoint to ask, or to one sentence that says what is missing. Pure but for the key lookup it is given.
 * Invariant: a key from the environment goes only to the address that the environment or the profile names, never to one that a config put in its place.
 */
import type { Config } from './config.js'
import type { Limits } from './guard.js'
import { profiles, type Profile, type ProfileName } from './profiles.js'
import type { Wire } from './wire.js'

export interface Endpoint {
  readonly id: string
  readonly baseURL: string
  /** What may be shown of the address. */
  readonly origin: string
  readonly query: Readonly<Record<string, string>>
  readonly path: string
  readonly key: string | undefined
  readonly headers: Readonly<Record<string, string | null>>
  readonly wire: Wire
  readonly limits: Limits
  /** What must not be shown anywhere. */
  readonly secrets: readonly string[]
  readonly hints: { readonly auth: string; readonly notFound: string }
}
export interface Spec { readonly id: string; readonly profile: ProfileName; readonly config: Config }

/** The entries that a config makes: one of its own, or without a profile and an address the two that live by the environment. */
export function specsOf(config: Config, ctxId: string): Spec[] {
  if (config.profile === undefined && config.baseURL === undefined) {
    const { id: _, ...shared } = config
    return [{ id: 'deepseek', profile: 'deepseek', config: shared }, { id: 'openai', profile: 'openai', config: shared }]
  }
  const profile = config.profile ?? 'custom'
  return [{ id: config.id ?? (profile === 'custom' ? ctxId : profile), profile, config }]
}

/** What it offers, whether it is ready or not. */
export function modelsOf({ profile: name, config }: Spec, get: Lookup): { readonly defaultModel: string | undefined; readonly models: readonly string[] } {
  const known = profiles[name]
  const defaultModel = config.model ?? variable(known, 'MODEL', get) ?? config.azure?.deployment ?? known.model
  const listed = config.baseURL ?? variable(known, 'BASE_URL', get) ? [] : known.models ?? []        // another server offers what it offers
  return { defaultModel, models: config.models ?? [...new Set([...(defaultModel ? [defaultModel] : []), ...listed])] }
}

/** The variables that its endpoint may come from. */
export function variablesOf({ profile }: Spec): readonly string[] {
  const { env } = profiles[profile]
  return env ? [`${env}_BASE_URL`, `${env}_API_KEY`] : []
}

export function endpointOf({ id, profile: name, config }: Spec, get: Lookup): Endpoint | string {
  const known = profiles[name]
  const address = config.baseURL ?? variable(known, 'BASE_URL', get) ?? known.baseURL
  if (address === undefined) return `set baseURL of "${id}" to the address of its API`
  const url = parsed(address)
  if (!url) return `${config.baseURL === undefined && known.env ? `${known.env}_BASE_URL` : `the base URL of "${id}"`} must be an address that begins with http:// or https://`
  if (url.username || url.password) return `the base URL of "${id}" must not hold a user name or password; put them into headers`

  const elsewhere = known.baseURL !== undefined && new URL(known.baseURL).origin !== url.origin
  // Another server under the name of OpenAI (OPENAI_BASE_URL) speaks the common dialect.
  const profile: Profile = name === 'openai' && elsewhere ? profiles.custom : known
  const byEnvironment = known.env !== undefined && !(elsewhere && config.baseURL !== undefined)
  const key = config.apiKey?.trim() || (byEnvironment ? variable(known, 'API_KEY', get) : undefined)
  const keyName = byEnvironment && config.apiKey === undefined ? `${known.env}_API_KEY` : `apiKey of "${id}"`
  const headers = config.headers ?? {}
  const authorised = Object.keys(headers).some(header => /^(authorization|api-key|x-api-key)$/i.test(header))
  if (!key && !profile.local && !authorised) return name === 'openai' && byEnvironment ? `set ${keyName}, or point OPENAI_BASE_URL at a local server` : `set ${keyName}`

  const bearer = name !== 'azure' && key !== undefined
  return {
    id,
    baseURL: `${url.origin}${url.pathname.replace(/\/+$/, '')}`,
    origin: url.origin,
    query: { ...Object.fromEntries(url.searchParams), ...(config.azure?.apiVersion ? { 'api-version': config.azure.apiVersion } : {}) },
    path: config.azure?.deployment ? `/openai/deployments/${encodeURIComponent(config.azure.deployment)}/chat/completions` : '/chat/completions',
    key,
    headers: { ...(bearer || hasAuthorization(headers) ? {} : { Authorization: null }), ...(name === 'azure' && key ? { 'api-key': key } : {}), ...headers },
    wire: {
      id,
      options: config.options ?? {},
      maxTokens: config.maxTokens ?? profile.maxTokens,
      reasoning: config.reasoning ?? profile.reasoning,
      reasoningRequired: profile.reasoningRequired ?? false,
      toolIds: config.toolIds ?? profile.toolIds,
      streamOptions: true,
      effortNone: false,
    },
    limits: { headersMs: timer(config.headersTimeout ?? (profile.local ? 290_000 : 30_000)), idleMs: timer(config.idleTimeout ?? (profile.local ? 290_000 : 60_000)), totalMs: timer(config.timeout ?? 3_600_000) },
    secrets: [key, ...Object.values(headers), ...url.searchParams.values()].filter(secret => secret !== undefined && secret.length >= 6) as string[],
    hints: {
      auth: `${key ? 'check' : 'set'} ${keyName}`,
      notFound: `name a model that it offers with agent.model, --model${known.env ? ` or ${known.env}_MODEL` : ''}${!elsewhere && known.model ? `, such as ${id}/${known.model}` : ''}`,
    },
  }
}

/** What a timer of Node can hold: a longer one would fire at once. */
const timer = (ms: number): number => Math.min(Math.max(ms, 1), 2_147_483_647)
type Lookup = (variable: string) => string | undefined
const variable = ({ env }: Profile, suffix: string, get: Lookup): string | undefined => env ? get(`${env}_${suffix}`)?.trim() || undefined : undefined
const hasAuthorization = (headers: Readonly<Record<string, string>>): boolean => Object.keys(headers).some(header => header.toLowerCase() === 'authorization')
function parsed(address: string): URL | undefined {
  try { const url = new URL(address); return /^https?:$/.test(url.protocol) ? url : undefined } catch { return undefined }   // not a URL: the caller says so
}

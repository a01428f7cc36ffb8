/**
 * From what an endpoint or a socket says to a ModelError: one lower-case sentence, a kind, and whether to try again. Pure.
 * Invariant: no key, header value or URL beyond its origin gets into a message.
 */
import { ModelError, messageOf, type ModelErrorKind } from 'harnessx'
import type { Headers } from './headers.js'

/** What a refused request says of its reason. */
export interface Refusal { readonly message: string; readonly code: string; readonly param: string }

/** Reads the body of an error, in the many shapes that endpoints give it. */
export function refusalOf(body: unknown): Refusal {
  if (Array.isArray(body)) return refusalOf(body[0])
  if (typeof body === 'string') return { message: body, code: '', param: '' }
  if (typeof body !== 'object' || body === null) return { message: '', code: '', param: '' }
  const fields = body as Record<string, unknown>
  if (fields['error'] !== undefined && fields['error'] !== null) return refusalOf(fields['error'])
  const message = fields['message'] ?? fields['detail'] ?? fields['msg'] ?? ''
  return {
    message: typeof message === 'string' ? message : JSON.stringify(message),
    code: [fields['code'], fields['type'], fields['status']].filter(part => typeof part === 'string' || typeof part === 'number').join(' '),
    param: typeof fields['param'] === 'string' ? fields['param'] : '',
  }
}
/** The same of a body's text: JSON, plain, or a page that nobody wants to read. */
export function refusalOfText(body: string): Refusal {
  try { return refusalOf(JSON.parse(body)) } catch { return refusalOf(/^\s*</.test(body) ? 'an HTML page' : body) }   // not JSON: it is read as text
}

/** An answer with an error status. `hint` says what a person may do about a refused key or an unknown model. */
export function statusError(who: string, status: number, headers: Headers, refusal: Refusal, hints: Hints): ModelError {
  const kind = kindOf(status, refusal)
  const retryAfterMs = retryAfterOf(headers, Date.now())
  const told = headers.get('x-should-retry')
  const wait = retryAfterMs === undefined ? '' : `; it asks to wait ${Math.ceil(retryAfterMs / 1000)} s`
  const hint = kind === 'auth' ? hints.auth : kind === 'not_found' ? hints.notFound : ''
  const message = `${who} answered ${status}${refusal.message ? `: ${shown(refusal.message, hints.secrets)}` : ''}${wait}${hint ? `; ${hint}` : ''}`
  return new ModelError(kind, message, { status, retryAfterMs, ...(told === 'true' || told === 'false' ? { retryable: told === 'true' } : status === 501 || status === 505 ? { retryable: false } : {}) })
}
export interface Hints { readonly auth: string; readonly notFound: string; readonly secrets: readonly string[] }

/** An error that came as a chunk of the stream. */
export function streamError(who: string, error: unknown, partial: string | undefined, secrets: readonly string[]): ModelError {
  const refusal = refusalOf(error)
  const status = Number(/\b[45]\d\d\b/.exec(refusal.code)?.[0])
  const kind = Number.isNaN(status) ? kindOfWords(refusal) ?? 'overloaded' : kindOf(status, refusal)
  return new ModelError(kind, `${who} broke off its reply${refusal.message ? `: ${shown(refusal.message, secrets)}` : ''}`, { status: Number.isNaN(status) ? undefined : status, partial })
}

/** A socket, a name or a certificate that failed. */
export function networkError(who: string, error: unknown, origin: string, began: boolean, partial: string | undefined, secrets: readonly string[]): ModelError {
  const code = codeOf(error)
  if (code !== undefined && /TIMEOUT|ETIMEDOUT/.test(code)) return new ModelError('timeout', `${who} did not answer in time (${code})`, { partial })
  const why = code ?? shown(messageOf(error), secrets)
  if (!began && code?.startsWith('HPE_')) return new ModelError('network', `${who}: what answers at ${origin} does not speak HTTP as it should (${code})`, { partial })
  return new ModelError('network', began ? `${who} lost the connection in the middle of its reply (${why})` : `${who} could not be reached at ${origin} (${why})`, { partial })
}

/** The innermost code of an error and its causes. */
function codeOf(error: unknown): string | undefined {
  let code: string | undefined
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++) {
    const own = (at as { code?: unknown }).code
    if (typeof own === 'string' && own) code = own
  }
  return code
}

function kindOf(status: number, refusal: Refusal): ModelErrorKind {
  const words = kindOfWords(refusal)
  if (status === 401 || status === 402 || status === 403) return words === 'content_filter' ? words : 'auth'
  if (status === 404) return 'not_found'
  if (status === 408) return 'timeout'
  if (status === 413) return 'context_length'
  if (status === 429) return words === 'auth' ? words : 'rate_limit'
  if (status === 409 || status >= 500) return status === 501 || status === 505 ? 'bad_request' : 'overloaded'
  if (status >= 400) return words === 'context_length' || words === 'content_filter' || words === 'not_found' ? words : 'bad_request'
  return 'protocol'
}
function kindOfWords({ message, code }: Refusal): ModelErrorKind | undefined {
  if (/insufficient_quota|invalid_api_key|insufficient.balance/i.test(`${code} ${message}`)) return 'auth'
  if (/context_length|maximum context|context (window|size|length)|too many tokens|prompt is too long/i.test(`${code} ${message}`)) return 'context_length'
  if (/content_filter|content_policy|data_inspection/i.test(code)) return 'content_filter'
  if (/rate.?limit/i.test(code)) return 'rate_limit'
  if (/model_not_found/i.test(code) || /\bmodel\b.{0,80}\b(not exist|not found|does not exist|unknown|deprecated)/i.test(message)) return 'not_found'
  return undefined
}

/** Milliseconds that the endpoint asks to wait: `retry-after-ms`, or `retry-after` in seconds or as a date. */
export function retryAfterOf(headers: Headers, now: number): number | undefined {
  const ms = headers.get('retry-after-ms'), after = headers.get('retry-after')
  const wait = ms !== null && /^\s*\d/.test(ms) ? Number.parseFloat(ms)
    : after === null ? NaN
    : /^\s*\d+(\.\d+)?\s*$/.test(after) ? Number.parseFloat(after) * 1000 : Date.parse(after) - now
  return Number.isFinite(wait) ? Math.max(0, Math.round(wait)) : undefined
}

/** Foreign text on one line, cut, with every secret taken out. */
export function shown(text: string, secrets: readonly string[]): string {
  let out = text
  for (const secret of secrets) out = out.replaceAll(secret, '[secret]')
  out = out.replace(/\b(?:sk|pk|key|gsk|xai)-[\w*.-]{6,}/gi, '[secret]').replace(/\b(bearer|basic)\s+[\w+/=.-]{8,}/gi, '$1 [secret]').replace(/:\/\/[^/\s@]+@/g, '://')
  out = out.replace(/[\p{Cc}\p{Cf}\s]+/gu, ' ').trim()
  return out.length > 500 ? `${out.slice(0, 499)}…` : out
}

/**
 * The arguments of a tool call, from the string that the model sent to an object that fits. Parsed exactly once, never un-escaped a second time.
 * Pure. Everything that is wrong comes back as one sentence that the model reads.
 */
import { z } from '../z.js'
import { messageOf } from '../errors.js'
import { adopt, freeze } from '../kernel/frozen.js'
import type { Json } from './vocabulary.js'

export type Arguments = Readonly<Record<string, unknown>>
export type Read<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly problem: string }

const ECHO_CHARS = 300
const SCHEMA_CHARS = 2000
const MAX_DEPTH = 64

/** An empty string means no arguments. What is no JSON object is refused, with the beginning of what was sent. */
export function parseArguments(sent: string): Read<Arguments> {
  if (sent.trim() === '') return { ok: true, value: {} }
  let value: unknown
  try { value = JSON.parse(sent) } catch (error) {
    return { ok: false, problem: `the arguments are not valid JSON (${clip(messageOf(error), 120)}); sent: ${clip(sent, ECHO_CHARS)}` }
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    return { ok: false, problem: `the arguments must be a JSON object, received ${kindOf(value)}; sent: ${clip(sent, ECHO_CHARS)}` }
  }
  if (isDeeper(value, MAX_DEPTH)) return { ok: false, problem: `the arguments are nested over ${MAX_DEPTH} levels; sent: ${clip(sent, ECHO_CHARS)}` }
  return { ok: true, value: value as Arguments }
}

/** The schema of a tool: what the model is shown, and what its arguments are checked with. */
export interface Schema {
  readonly json: Readonly<Record<string, Json>>
  /** The arguments as the tool gets them, defaults filled in. */
  read(value: Arguments): Read<Arguments>
}

/** Reads what a tool was registered with: a zod schema of an object, or a JSON Schema of one. Throws in one sentence. */
export function readParameters(parameters: object): Schema {
  const { $schema: _, ...given } = '_zod' in parameters ? toJsonSchema(parameters as z.ZodType) : parameters as Record<string, Json>
  if (given.type !== 'object') throw new Error(`parameters must be a schema of an object, received one of type ${JSON.stringify(given.type)}`)
  if (isDeeper(given, MAX_DEPTH)) throw new Error(`parameters are nested over ${MAX_DEPTH} levels, or hold themselves`)
  let schema = '_zod' in parameters ? parameters as z.ZodType : undefined
  const json = schema ? freeze(given) : adopt(given, 'parameters')      // the plugin's own object stays as it is; what zod makes is a copy already
  return {
    json,
    read(value) {
      schema ??= fromJsonSchema(json)                                   // with the first call: it costs more than all the rest of a registration
      const parsed = schema.safeParse(value)
      return parsed.success ? { ok: true, value: parsed.data as Arguments } : { ok: false, problem: problemsOf(parsed.error) }
    },
  }
}

/** What the model reads about arguments that don't fit. */
export const wrongArguments = (tool: string, problem: string, schema: Schema['json']): string =>
  `invalid arguments for tool "${tool}": ${problem}. Expected arguments that fit this JSON Schema: ${clip(JSON.stringify(schema), SCHEMA_CHARS)}`

/** The beginning of a text, and how much is missing. */
export const clip = (text: string, chars: number): string => text.length > chars ? `${text.slice(0, chars)}… (${text.length - chars} more characters)` : text

const toJsonSchema = (schema: z.ZodType): Record<string, Json> => z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' }) as Record<string, Json>

/**
 * zod reads most of JSON Schema. Of what it can't express (if, not, …) the required names are checked here, and the rest is left to the tool; so are patterns, since
 * one that comes from elsewhere can keep V8 busy for minutes.
 */
function fromJsonSchema(json: Record<string, Json>): z.ZodType {
  try {
    return z.fromJSONSchema(JSON.parse(JSON.stringify(json), (key, value: unknown) => key === 'pattern' && typeof value === 'string' ? undefined : value) as Parameters<typeof z.fromJSONSchema>[0])
  } catch {                                                             // only ever "not supported"; that it is an object schema is checked above
    const required = Array.isArray(json.required) ? json.required.map(String) : []
    return z.looseObject({}).superRefine((value, context) => {
      for (const name of required) if (!Object.hasOwn(value, name)) context.addIssue({ code: 'custom', path: [name], message: 'is required' })
    })
  }
}

function problemsOf(error: z.ZodError): string {
  const lines = error.issues.map(issue => {
    const path = issue.path.map((key, at) => typeof key === 'number' ? `[${key}]` : `${at ? '.' : ''}${String(key)}`).join('')
    return `${path ? `${path}: ` : ''}${issue.message.replace(/^Invalid input: /, '')}`
  })
  return lines.length > 5 ? `${lines.slice(0, 5).join('; ')}; and ${lines.length - 5} more` : lines.join('; ')
}

const kindOf = (value: unknown): string => value === null ? 'null' : Array.isArray(value) ? 'an array' : `a ${typeof value}`

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false
  return levels === 0 || Object.values(value).some(inner => isDeeper(inner, levels - 1))
}

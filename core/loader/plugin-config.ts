/**
 * The config of an entry against the schema of its plugin: the value with defaults filled in, or one sentence with the place in the file.
 * Any Standard Schema will do; zod's issues carry more than the standard asks for, and are worded in the host's way where they do.
 */
import { basename } from 'node:path'
import { at, didYouMean, HarnessError, messageOf, show, type Place } from '../errors.js'
import { runFor } from '../kernel/async-context.js'
import type { SchemaResult, StandardSchema } from '../kernel/hooks.js'
import { within } from '../kernel/limits.js'

type Issue = NonNullable<SchemaResult['issues']>[number]
/** What zod adds to an issue. */
interface ZodIssue { readonly code?: string; readonly expected?: string; readonly values?: readonly unknown[]; readonly keys?: readonly string[]; readonly minimum?: number; readonly maximum?: number; readonly inclusive?: boolean; readonly origin?: string }

const VALIDATE_MS = 5000
const SHOWN = 3

/** `written` is what a message may show: the config before its references were resolved, since what they lead to may be a secret. */
export async function validateConfig(id: string, schema: StandardSchema | undefined, config: unknown, place: (path: readonly PropertyKey[]) => Place, written: unknown = config): Promise<unknown> {
  const value = config ?? {}
  if (!schema) return value
  let result: SchemaResult
  try {
    result = await within(VALIDATE_MS, runFor(id, () => schema['~standard'].validate(value)), () => new Error(`it did not answer within ${VALIDATE_MS} ms`))
  } catch (error) {
    throw new HarnessError('config_invalid', `plugin "${id}": its Config could not check the config (${messageOf(error)})`, { cause: error })
  }
  if (typeof result !== 'object' || result === null || !('value' in result) && !Array.isArray(result.issues)) throw new HarnessError('config_invalid', `plugin "${id}": its Config could not check the config (it must answer {value} or {issues: [{message}]}, received ${show(result)})`)
  if (!result.issues) return result.value
  const problems = result.issues.slice(0, SHOWN).map(issue => {
    const path = pathOf(issue)
    return { text: sentence(issue, path, written ?? {}, schema), where: place(path) }
  })
  const more = result.issues.length - problems.length
  throw new HarnessError('config_invalid', `plugin "${id}": ${problems.map(({ text, where }) => `${text} (${at({ file: basename(where.file), line: where.line })})`).join('; ')}${more > 0 ? `; and ${more} more` : ''}`, { place: problems[0]?.where })
}

const pathOf = (issue: Issue): PropertyKey[] => (issue.path ?? []).map(part => typeof part === 'object' ? part.key : part)

function sentence(issue: Issue, path: readonly PropertyKey[], config: unknown, schema: StandardSchema): string {
  const name = ['config', ...path].reduce<string>((text, part) => typeof part === 'number' ? `${text}[${part}]` : text === '' ? String(part) : `${text}.${String(part)}`, '')
  const { keys, code } = issue as ZodIssue
  if (code === 'unrecognized_keys' && keys) return `${name} has no ${keys.length === 1 ? 'key' : 'keys'} ${keys.map(show).join(', ')}${keys.length === 1 ? didYouMean(keys[0]!, keysAt(schema, path)) : ''}`
  const received = lookUp(config, path)
  const wanted = wording(issue)
  return received === undefined ? `${name} is missing and ${wanted}` : `${name} ${wanted}, received ${show(received)}`
}

/** The keys that a schema of zod, whoever's copy of it, knows at `path`; of another schema, none. */
function keysAt(schema: unknown, path: readonly PropertyKey[]): readonly string[] {
  let inner = unwrapped(schema)
  for (const part of path) inner = unwrapped(inner?.shape?.[String(part)] ?? inner?.element ?? inner?.valueType)
  return Object.keys(inner?.shape ?? {})
}
interface ZodLike { readonly shape?: Readonly<Record<string, unknown>>; readonly element?: unknown; readonly valueType?: unknown; unwrap?(): unknown }
function unwrapped(schema: unknown): ZodLike | undefined {
  let inner = schema as ZodLike | undefined
  for (let depth = 0; depth < 8 && inner?.shape === undefined && inner?.element === undefined && typeof inner?.unwrap === 'function'; depth++) inner = inner.unwrap() as ZodLike | undefined
  return inner
}

/** `must be …`, from what zod knows of it, else the schema's own message. */
function wording(issue: Issue): string {
  const { code, expected, values, minimum, maximum, inclusive, origin } = issue as ZodIssue
  const own = typeof issue.message === 'string' ? issue.message : 'its Config gave no message'
  if (/^must /.test(own)) return own
  if (code === 'invalid_type' && expected) return `must be ${article(expected === 'int' ? 'integer' : expected)}`
  if (code === 'invalid_value' && values) return `must be ${values.length === 1 ? '' : 'one of '}${values.map(show).join(', ')}`
  if (code === 'too_small' && minimum !== undefined) return bound(origin, inclusive === false ? 'more than' : 'at least', minimum)
  if (code === 'too_big' && maximum !== undefined) return bound(origin, inclusive === false ? 'less than' : 'at most', maximum)
  return `is wrong: ${own}`
}
function bound(origin: string | undefined, how: string, limit: number): string {
  const unit = origin === 'string' ? ' characters long' : origin === 'array' || origin === 'set' ? ' items long' : ''
  return `must be ${how} ${limit}${unit}`
}
const article = (noun: string): string => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`

function lookUp(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value
  for (const part of path) {
    if (typeof found !== 'object' || found === null) return undefined
    found = (found as Record<PropertyKey, unknown>)[part]
  }
  return found
}

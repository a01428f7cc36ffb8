/**
 * The keys of harness.config.yaml: one zod schema, its JSON Schema for editors, and the wording of what doesn't fit. Knows no YAML and no file.
 * Every key may be left out; the defaults stand here and nowhere else. Keys are a public interface under SemVer.
 */
import { z } from '../z.js'
import { duration } from '../duration.js'
import { didYouMean, show } from '../errors.js'
import { LEVELS } from '../kernel/log.js'

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
const name = z.string().regex(NAME, 'must be 1 to 64 letters, digits, ".", "_" or "-", beginning with a letter or digit')

const Row = z.strictObject({
  name: name.optional().describe('which plugin: ./plugins/<name>, a shipped one, or the package harnessx-plugin-<name>'),
  id: name.optional().describe('the identity of this entry; the name when left out'),
  from: z.string().min(1).optional().describe('the module: a path from this file, or a package'),
  enabled: z.boolean().optional().describe('false: not loaded'),
  required: z.boolean().optional().describe('true: prompts, steps and tool calls are refused while it should be active and is not'),
  locked: z.boolean().optional().describe('true in your own file: a project can not change this row'),
  config: z.record(z.string(), z.unknown()).optional().describe('what the plugin is given; ${env:NAME}, ${env:NAME:-default} and ${file:/path} are replaced'),
})
/** A row as written, the short form spelled out. */
export type Row = z.infer<typeof Row>

const number = z.number({ error: issue => issue.code === 'invalid_type' ? 'must be a number' : undefined }), amount = number.min(0)
const Price = z.strictObject({
  input: amount.describe('tokens sent'),
  cached: amount.optional().describe('tokens sent that the endpoint had in its cache; as input when left out'),
  output: amount.describe('tokens of replies, reasoning among them'),
})
const count = z.int().min(1)
const sections = {
  version: z.literal(1).default(1).describe('of this format'),
  agent: z.strictObject({
    model: z.string().min(1).optional().describe('<id>/<model>, or <id>; the first ready one when left out'),
    system: z.string().optional().describe('the system prompt'),
    maxSteps: count.default(50).describe('model requests of one turn'),
    maxContinuations: z.int().min(0).default(8).describe('how often stop handlers may continue a turn'),
    maxParallel: count.max(64).default(8).describe('read-only calls that run together'),
    prices: z.record(z.string().min(1), Price).default({}).describe('what models cost: "<id>/<model>", or "<id>" for all its models, in US dollars for a million tokens'),
    maxCost: number.positive('must be more than 0').optional().describe('dollars: a turn that has cost so much, with the tasks inside it, takes no further step'),
    askTimeout: duration.prefault('5m').describe('how long a question waits for a person'),
    approvers: z.array(name).default([]).describe('ids of plugins that may answer in your name: begin turns with a mode or an approver of their own'),
  }).prefault({}),
  reload: z.strictObject({
    watch: z.boolean().default(true).describe('reload what is saved'),
    drainMs: z.int().min(0).max(600_000).default(5000).describe('how long an old version may finish its calls'),
    trustTools: z.boolean().default(false).describe('true: changes that appear while an unconfined tool runs are loaded without asking'),
  }).prefault({}),
  workspace: z.strictObject({ roots: z.array(z.string().min(1)).default([]).describe('further folders that tools may use') }).prefault({}),
  sessions: z.strictObject({ durability: z.enum(['none', 'commit', 'always']).default('commit').describe('when the session log is synced to disk') }).prefault({}),
  server: z.strictObject({
    tcp: z.strictObject({
      host: z.enum(['127.0.0.1', '::1']).default('127.0.0.1'),
      port: z.int().min(1).max(65_535),
    }).optional().describe('a listener beside the socket; requests need the token in the run folder'),
  }).prefault({}),
  log: z.strictObject({ level: z.enum(LEVELS).default('info').describe('what is logged') }).prefault({}),
}
const plugins = z.array(z.union([name, Row])).default([]).describe('the order here is the order of handlers')

/** The whole file as written. */
const ConfigFile = z.strictObject({ ...sections, plugins })
/** All but the rows, with defaults. */
export const Sections = z.strictObject(sections)
export type Sections = z.infer<typeof Sections>
/** Sections that are merged key by key. */
export const SECTION_NAMES = (Object.keys(sections) as (keyof typeof sections)[]).filter(key => key !== 'version')

export interface Issue { readonly path: readonly PropertyKey[]; readonly message: string; /** The key itself is wrong, not its value. */ readonly key?: boolean }

/** What is wrong with a file's content, as sentences. */
export function issuesOf(value: unknown): Issue[] {
  const rows = typeof value === 'object' && value !== null && Array.isArray((value as { plugins?: unknown }).plugins) ? (value as { plugins: unknown[] }).plugins : []
  // Rows are checked one by one: what a union says of a row that fits neither form helps nobody.
  const whole = ConfigFile.safeParse(rows.length > 0 ? { ...value as object, plugins: [] } : value)
  return [
    ...(whole.success ? [] : whole.error.issues.flatMap(issue => sentences(issue, value, []))),
    ...rows.flatMap((row, index) => {
      const checked = (typeof row === 'object' && row !== null ? Row : name).safeParse(row)
      if (!checked.success) return checked.error.issues.flatMap(issue => sentences(issue, row, ['plugins', index]))
      return typeof row === 'object' && (row as Row).name === undefined && (row as Row).id === undefined ? [{ path: ['plugins', index], message: `plugins[${index}] needs a name` }] : []
    }),
  ]
}

/** `agent.maxSteps`, `plugins[2].config`. */
export const dotted = (path: readonly PropertyKey[]): string =>
  path.map((part, index) => typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${String(part)}`).join('') || 'the file'

function sentences(issue: z.core.$ZodIssue, root: unknown, above: readonly PropertyKey[]): Issue[] {
  const path = [...above, ...issue.path]
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map(key => ({ path: [...path, key], key: true, message: `"${dotted([...path, key])}" is not a key${didYouMean(key, keysAt(path))}` }))
  }
  const value = issue.path.reduce<unknown>((inner, part) => (inner as Record<PropertyKey, unknown> | undefined)?.[part], root)
  return [{ path, message: `${dotted(path)} ${expectation(issue, value)}, received ${value === undefined || value === null ? 'nothing' : show(value)}` }]
}

const NOUNS: Readonly<Record<string, string>> = { string: 'a text', number: 'a whole number', int: 'a whole number', boolean: 'true or false', array: 'a list', object: 'a map', record: 'a map' }

function expectation(issue: z.core.$ZodIssue, value: unknown): string {
  switch (issue.code) {
    case 'invalid_type': return issue.message.startsWith('must be') ? issue.message : `must be ${NOUNS[issue.expected] ?? issue.expected}`
    case 'invalid_value': return `must be ${issue.values.length > 1 ? 'one of ' : ''}${issue.values.map(one => show(one)).join(', ')}${typeof value === 'string' ? didYouMean(value, issue.values.map(String)) : ''}`
    case 'too_small': return issue.message.startsWith('must be') ? issue.message : issue.origin === 'string' ? 'must not be empty' : `must be at least ${issue.minimum}`
    case 'too_big': return `must be at most ${issue.maximum}`
    default: return issue.message.slice(0, 1).toLowerCase() + issue.message.slice(1)
  }
}

/** The keys that may stand at `path`. */
function keysAt(path: readonly PropertyKey[]): readonly string[] {
  if (path[0] === 'plugins') return Object.keys(Row.shape)
  let schema: unknown = ConfigFile
  for (const part of path) schema = inside(schema) instanceof z.ZodRecord ? (inside(schema) as z.ZodRecord).valueType : shapeOf(schema)?.[String(part)]
  return Object.keys(shapeOf(schema) ?? {})
}
function shapeOf(schema: unknown): Readonly<Record<string, unknown>> | undefined {
  const inner = inside(schema)
  return inner instanceof z.ZodObject ? inner.shape : undefined
}
function inside(schema: unknown): unknown {
  let inner = schema
  while (inner instanceof z.ZodPrefault || inner instanceof z.ZodDefault || inner instanceof z.ZodOptional) inner = inner.unwrap()
  return inner
}

/** JSON Schema (draft 2020-12) of the file; with the schemas of plugins' configs by name, an editor checks those too. */
export function configJsonSchema(pluginSchemas: Readonly<Record<string, object>> = {}): Record<string, unknown> {
  const schema = z.toJSONSchema(ConfigFile, { io: 'input', target: 'draft-2020-12' }) as unknown as { properties: { plugins: { items: { anyOf: Record<string, unknown>[] } } } } & Record<string, unknown>
  const row = schema.properties.plugins.items.anyOf[1]!
  const known = Object.entries(pluginSchemas)
  if (known.length > 0) row['allOf'] = known.map(([plugin, config]) => ({ if: { properties: { name: { const: plugin } }, required: ['name'] }, then: { properties: { config } } }))
  return { ...schema, title: 'harness.config.yaml' }
}

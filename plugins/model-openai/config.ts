/** The config of the entry. Everything may be left out: then DeepSeek and OpenAI are offered by what the environment holds. */
import { duration, z } from 'harnessx'
import { PROFILES } from './profiles.js'

export const Config = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9_-]*$/i, 'must be letters, digits, "-" and "_"').optional().describe('name in <id>/<model>; the profile by default'),
  profile: z.enum(PROFILES).optional().describe('which dialect it speaks, and the defaults that go with it'),
  baseURL: z.string().optional().describe('where its API begins, often ending in /v1'),
  apiKey: z.string().optional().describe('write it as ${env:NAME}'),
  model: z.string().optional().describe('the model when only the id is named'),
  models: z.array(z.string()).optional().describe('what hx models lists'),
  options: z.record(z.string(), z.json()).optional().describe('sent with every request: temperature, max_tokens, reasoning_effort, …'),
  headers: z.record(z.string(), z.string()).optional(),
  azure: z.strictObject({ deployment: z.string(), apiVersion: z.string() }).optional().describe('only for addresses with deployments; those that end in /openai/v1 need none'),
  maxTokens: z.enum(['max_tokens', 'max_completion_tokens', 'none']).optional().describe('what the limit of output tokens is called there'),
  reasoning: z.enum(['reasoning_content', 'reasoning', 'drop']).optional().describe('the field in which its reasoning goes back to it'),
  toolIds: z.enum(['any', 'short', 'nine']).optional().describe('ids of tool calls that it takes: any, up to 40 characters, or nine letters and digits'),
  headersTimeout: duration.optional().describe('until it begins to answer; 30s, 290s for local ones'),
  idleTimeout: duration.optional().describe('between two pieces of an answer; 60s, 290s for local ones'),
  timeout: duration.optional().describe('for a whole answer; 1h'),
})
export type Config = z.infer<typeof Config>

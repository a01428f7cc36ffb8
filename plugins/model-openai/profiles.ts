/**
 * What is known of the endpoints that speak the OpenAI protocol: where they are, which variable holds their key, and where their dialects differ.
 * Plain data. An entry's config may override every field; what an endpoint refuses at run time is learned in lessons.ts.
 */
export const PROFILES = ['deepseek', 'openai', 'ollama', 'vllm', 'llamacpp', 'lmstudio', 'openrouter', 'azure', 'gemini', 'custom'] as const
export type ProfileName = typeof PROFILES[number]

export interface Profile {
  readonly baseURL?: string
  /** Prefix of the variables `<env>_API_KEY`, `<env>_MODEL` and `<env>_BASE_URL`. */
  readonly env?: string
  /** Runs on one's own machine: no key is needed, and the first token may take minutes. */
  readonly local?: boolean
  readonly model?: string
  readonly models?: readonly string[]
  /** What the limit of output tokens is called here. */
  readonly maxTokens: 'max_tokens' | 'max_completion_tokens' | 'none'
  /** The field in which the model's reasoning goes back to it; `drop` sends none. */
  readonly reasoning: 'reasoning_content' | 'reasoning' | 'drop'
  /** An assistant message with tool calls is refused without that field, so an empty one is sent when there was no reasoning. */
  readonly reasoningRequired?: boolean
  /** Ids of tool calls that are accepted: `short` is up to 40 characters, `nine` exactly nine letters and digits. */
  readonly toolIds: 'any' | 'short' | 'nine'
}

const plain = { maxTokens: 'max_tokens', reasoning: 'drop', toolIds: 'any' } as const

export const profiles: Readonly<Record<ProfileName, Profile>> = {
  // In thinking mode, which is the default there, a request that leaves out the reasoning of an earlier message with tool calls is a 400, in later turns too.
  deepseek: { ...plain, baseURL: 'https://api.deepseek.com', env: 'DEEPSEEK', model: 'deepseek-flash', models: ['deepseek-flash', 'deepseek-v4-pro'], reasoning: 'reasoning_content', reasoningRequired: true },
  openai: { ...plain, baseURL: 'https://api.openai.com/v1', env: 'OPENAI', model: 'gpt-6.1-terra', models: ['gpt-6.1-terra', 'gpt-6.1-sol', 'gpt-6-luna'], maxTokens: 'max_completion_tokens', toolIds: 'short' },
  ollama: { ...plain, baseURL: 'http://127.0.0.1:11434/v1', env: 'OLLAMA', local: true, reasoning: 'reasoning' },
  vllm: { ...plain, baseURL: 'http://127.0.0.1:8000/v1', env: 'VLLM', local: true, reasoning: 'reasoning' },
  llamacpp: { ...plain, baseURL: 'http://127.0.0.1:8080/v1', env: 'LLAMACPP', local: true, model: 'default', reasoning: 'reasoning_content' },
  lmstudio: { ...plain, baseURL: 'http://127.0.0.1:1234/v1', env: 'LMSTUDIO', local: true },
  openrouter: { ...plain, baseURL: 'https://openrouter.ai/api/v1', env: 'OPENROUTER', reasoning: 'reasoning' },
  azure: { ...plain, env: 'AZURE_OPENAI', maxTokens: 'max_completion_tokens', toolIds: 'short' },
  gemini: { ...plain, baseURL: 'https://generativelanguage.googleapis.com/v1beta/openai', env: 'GEMINI' },
  // `OPENAI_BASE_URL` points at one of these: the common dialect, and no key is fine.
  custom: { ...plain, local: true, reasoning: 'reasoning_content' },
}

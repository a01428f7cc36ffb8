/**
 * Shows a record that holds: the start and the end of every call as JSON lines, refused ones too, with the length that was written back to the model.
 * Its place is before every judge, and `agent/tool-end` comes after every handler that changes a result.
 * Invariants: one line is one write, at the end of the file; lines keep their order; a handler ends when its line is written, so nothing is lost on unload;
 * a disk that is full costs lines, never a call, and is told once.
 */
import { appendFile, rename, rm, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { messageOf, z, type Context, type Logger, type SentToolCall } from 'harnessx'

export const name = 'audit'
export const Config = z.strictObject({
  /** Below the plugin's own folder, or absolute. */
  file: z.string().min(1).default('audit.jsonl'),
  /** Size at which the file is set aside as `….1`; an older one becomes `….2`. */
  maxBytes: z.int().positive().default(10_000_000),
  /** How many of those are kept. */
  keep: z.int().min(0).max(100).default(3),
  /** Values are left out where a key holds one of these words. */
  redact: z.array(z.string().min(1)).default(['password', 'passwd', 'secret', 'token', 'api_key', 'access_key', 'private_key', 'authorization', 'cookie', 'credential']),
})

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  const file = new RotatingFile(resolve(ctx.dataDir, config.file), config, ctx.logger)
  const redact = redaction(config.redact)

  ctx.on('agent/tool-start', ({ session, turn, step, call }) => file.append({ ts: now(), event: 'start', session: session.id, turn, step, id: call.id, tool: call.name, arguments: redact(call.arguments) }))
  ctx.on('agent/tool-end', ({ session, turn, step, call, outcome, plugin, result, elapsedMs }) => file.append({
    ts: now(), event: 'end', session: session.id, turn, step, id: call.id, tool: call.name, outcome, ...(plugin !== undefined && { plugin }), chars: result.content.length, elapsedMs,
  }))
}

const now = (): string => new Date().toISOString()

/** A file of lines that is set aside when it has grown. */
class RotatingFile {
  readonly #path: string
  readonly #limits: { readonly maxBytes: number; readonly keep: number }
  readonly #logger: Logger
  #last: Promise<void> = Promise.resolve()
  #failing = false

  constructor(path: string, limits: { readonly maxBytes: number; readonly keep: number }, logger: Logger) {
    this.#path = path
    this.#limits = limits
    this.#logger = logger
  }

  /** Resolves when the line is written or given up. */
  append(record: object): Promise<void> {
    return this.#last = this.#last.then(() => this.#write(`${JSON.stringify(record)}\n`))
  }

  async #write(line: string): Promise<void> {
    try {
      await this.#rotate(line.length)
      await appendFile(this.#path, this.#failing ? `\n${line}` : line, { mode: 0o600 })                        // the failed write may have left half a line
      this.#failing = false
    } catch (error) {
      if (!this.#failing) this.#logger.warn(`"${this.#path}" could not be written, so calls go unrecorded until it can: ${messageOf(error)}`)
      this.#failing = true
    }
  }
  async #rotate(more: number): Promise<void> {
    const { maxBytes, keep } = this.#limits
    const size = await stat(this.#path).then(({ size }) => size, missing)
    if (size === undefined || size === 0 || size + more <= maxBytes) return
    if (keep === 0) return rm(this.#path)
    for (let age = keep; age > 0; age--) await rename(age === 1 ? this.#path : `${this.#path}.${age - 1}`, `${this.#path}.${age}`).catch(missing)
  }
}
function missing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

const MAX_TEXT = 10_000, MAX_DEPTH = 20

/** What is written of arguments: without secrets, and no text longer than 10,000 characters. */
function redaction(words: readonly string[]): (value: SentToolCall['arguments']) => unknown {
  const squeezed = words.map(word => word.toLowerCase().replaceAll(/[_-]/g, ''))
  const isSecret = (key: string) => { const plain = key.toLowerCase().replaceAll(/[_-]/g, ''); return squeezed.some(word => plain.includes(word)) }
  const names = words.map(word => word.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(/[_-]/g, '[_-]?')).join('|')
  // `TOKEN=x`, `"apiKey": "x"`, `Authorization: Bearer x`, `--password x`; and keys that show what they are.
  const inText = names === '' ? undefined : new RegExp(`((?:${names})[\\w-]*["']?\\s*[=:]\\s*(?:bearer\\s+|basic\\s+)?|--?[\\w-]*(?:${names})[\\w-]*\\s+)("[^"]*"|'[^']*'|[^\\s"',;&|)}]+)`, 'gi')
  const KEYS = /\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{16}|eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]+)/g
  const text = (value: string) => {
    const plain = (inText ? value.slice(0, MAX_TEXT).replace(inText, '$1[redacted]') : value.slice(0, MAX_TEXT)).replace(KEYS, '[redacted]')
    return value.length > MAX_TEXT ? `${plain}… (${value.length - MAX_TEXT} more characters)` : plain
  }
  const walk = (value: unknown, depth: number): unknown => {
    if (typeof value === 'string') return text(value)
    if (typeof value !== 'object' || value === null) return value
    if (depth > MAX_DEPTH) return '[too deep]'
    if (Array.isArray(value)) return value.map(item => walk(item, depth + 1))
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, isSecret(key) && (typeof item === 'string' || typeof item === 'object' && item !== null) ? '[redacted]' : walk(item, depth + 1)]))
  }
  return value => walk(value, 0)
}

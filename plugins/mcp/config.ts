/** The config of mcp: servers by name, in the shape that other clients have made common. Pure. */
import { duration, z } from 'harnessx'
import { SERVER_NAME, SERVER_NAME_LENGTH } from './names.js'

const limit = (most: number) => duration.refine(ms => ms > 0 && ms <= most, `must be more than 0 and at most ${most / 60_000}m`)

const Server = z.strictObject({
  /** A program that speaks over its standard input and output, and what it is started with; `~/` is the home. No shell. */
  command: z.string().min(1).optional(),
  args: z.array(z.string()).default([]),
  /** Beside PATH, HOME, LANG, LC_*, TERM, TMPDIR, USER and SHELL. */
  env: z.record(z.string(), z.string()).default({}),
  /** Left out: the folder of the config. */
  cwd: z.string().refine(path => path.startsWith('/') || path === '~' || path.startsWith('~/'), 'must be absolute or begin with "~/"').optional(),
  /** In place of a command: one that speaks streamable HTTP. */
  url: z.url({ protocol: /^https?$/ }).optional(),
  headers: z.record(z.string(), z.string()).default({}),
  /** Other clients write it; what is given says it already. */
  type: z.enum(['stdio', 'http', 'streamable-http']).optional(),
  /** Names of its tools that are offered, and that are not; `*` stands for anything. */
  allow: z.array(z.string().min(1)).optional(),
  deny: z.array(z.string().min(1)).default([]),
  /** How long a call may go without an answer or a word of progress. */
  timeout: limit(24 * 3_600_000).prefault('2m'),
  startTimeout: limit(10 * 60_000).prefault('30s'),
}).refine(({ command, url }) => (command === undefined) !== (url === undefined), 'needs either a "command" or a "url"')
export type ServerSpec = z.infer<typeof Server>

export const Config = z.strictObject({
  servers: z.record(z.string().max(SERVER_NAME_LENGTH).regex(SERVER_NAME, 'letters and digits, with single "-" or "_" between them'), Server),
  /** What the model reads of one answer; the rest is kept in a file. */
  maxCharacters: z.int().min(1000).max(1_000_000).default(30_000),
})
export type Config = z.infer<typeof Config>

/**
 * Shows how to reach a person who is elsewhere: a command or a webhook is told when a turn ends or a question waits. Asks and turns of agents that others started count as theirs.
 * What can't be told costs a line in the log, never the turn; a turn's end waits for it, so that a process that ends with its turn has told it.
 */
import { spawn } from 'node:child_process'
import { duration, messageOf, z, type Context } from 'harnessx'

export const name = 'notify'
export const Config = z.strictObject({
  on: z.array(z.enum(['turn-end', 'ask'])).min(1).default(['turn-end', 'ask']),
  /** A program and its arguments, no shell. It gets the notice as JSON on stdin, and its text in place of an argument `{}`. */
  command: z.array(z.string()).min(1).optional(),
  /** Gets the notice as JSON by POST. */
  webhook: z.url({ protocol: /^https?$/ }).optional(),
  headers: z.record(z.string(), z.string()).default({}),
  /** Turns that were over sooner are not told. */
  after: duration.prefault('0ms'),
  timeout: duration.refine(ms => ms > 0 && ms <= 60_000, 'must be more than 0 and at most 1m').prefault('5s'),
}).refine(({ command, webhook }) => command !== undefined || webhook !== undefined, 'needs a "command" or a "webhook"')

interface Notice { readonly event: 'turn-end' | 'ask'; readonly text: string; readonly session: string; readonly cwd: string; readonly turn: number; readonly reason: string; readonly elapsedMs?: number; readonly tool?: string }

/** What a program gets of the environment: no keys. */
const PASSED = ['PATH', 'HOME', 'LANG', 'USER', 'DISPLAY', 'WAYLAND_DISPLAY', 'DBUS_SESSION_BUS_ADDRESS', 'XDG_RUNTIME_DIR', 'TMPDIR']

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  const options = { timeout: config.timeout + 1000 }
  if (config.on.includes('turn-end')) ctx.on('agent/turn-end', ({ session, turn, reason, elapsedMs }) => {
    if (session.depth > 0 || elapsedMs < config.after) return
    return tell({ event: 'turn-end', text: `hx: ${reason} after ${Math.round(elapsedMs / 1000)} s in ${session.cwd}`, session: session.id, cwd: session.cwd, turn, reason, elapsedMs })
  }, options)
  if (config.on.includes('ask')) ctx.on('agent/ask', ({ session, turn, call, reason }) => {
    void tell({ event: 'ask', text: `hx asks about ${call.name} in ${session.cwd}: ${reason}`, session: session.id, cwd: session.cwd, turn, reason, tool: call.name })      // the question need not wait for it
  })

  async function tell(notice: Notice): Promise<void> {
    const limit = new AbortController(), signal = AbortSignal.any([ctx.signal, limit.signal])
    const timer = setTimeout(() => { limit.abort(new Error(`not within ${config.timeout / 1000} s`)) }, config.timeout)      // AbortSignal.any does not hold an AbortSignal.timeout: it may be collected before its time
    const ways = [config.command && run(config.command, notice, signal), config.webhook && post(config.webhook, config.headers, notice, signal)]
    for (const { status, reason } of (await Promise.allSettled(ways)) as PromiseRejectedResult[]) {
      if (status === 'rejected') ctx.logger.warn(`nobody could be told of ${notice.event}: ${messageOf(reason)}`)
    }
    clearTimeout(timer)
  }
}

async function post(url: string, headers: Readonly<Record<string, string>>, notice: Notice, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(notice), signal }).catch((error: unknown) => {
    throw new Error(`${new URL(url).origin} could not be reached (${messageOf((error as { cause?: unknown }).cause ?? error)})`, { cause: error })
  })
  await response.body?.cancel()
  if (!response.ok) throw new Error(`${new URL(url).origin} answered ${response.status}`)
}

function run([program = '', ...args]: readonly string[], notice: Notice, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const env = Object.fromEntries(PASSED.flatMap(key => process.env[key] === undefined ? [] : [[key, process.env[key]]]))
    const child = spawn(program, args.map(arg => arg === '{}' ? notice.text : arg), { cwd: notice.cwd, env, stdio: ['pipe', 'ignore', 'ignore'], signal, killSignal: 'SIGKILL' })
    child.on('error', error => { reject(signal.aborted ? new Error(`"${program}" did not end in time`) : new Error(`"${program}" could not be run: ${error.message}`)) })
    child.on('close', code => { code === 0 ? resolve() : reject(new Error(`"${program}" ended with ${code ?? 'a signal'}`)) })
    child.stdin.on('error', () => {})                                   // it may not want to read
    child.stdin.end(`${JSON.stringify(notice)}\n`)
  })
}

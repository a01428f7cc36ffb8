/**
 * Shows the plainest plugin: it only watches, and prints what passes each hook to stderr. Its place is first, so that it also sees what later plugins refuse.
 * `PostToolUse` is what the model will read: as the outermost handler it waits for all others.
 */
import type { Context } from 'harnessx'

export const name = 'hook-log'

export function apply(ctx: Context) {
  // A log that breaks must not stop the work it tells of.
  ctx.on('agent/user-prompt-submit', ({ session }) => { print(`[HOOK] UserPromptSubmit cwd=${session.cwd}`) }, { onError: 'pass' })
  ctx.on('agent/tool-start', ({ call }) => { print(asCommand(call.name, call.arguments)) })
  ctx.on('agent/pre-tool-use', ({ call }) => { print(`[HOOK] PreToolUse ${call.name}(${JSON.stringify(call.arguments)})`) }, { onError: 'pass' })
  ctx.on('agent/post-tool-use', async ({ call }, next) => {
    const { content } = await next()
    print(`[HOOK] PostToolUse ${call.name} output_chars=${content.length}`)
  })
  ctx.on('agent/stop', ({ stats }) => { print(`[HOOK] Stop: steps=${stats.steps}, tool_calls=${stats.toolCalls}, blocked=${stats.blocked}`) })
}

/** `$ ls -l` for a shell, `> read_file path=README.md` for the rest. Arguments that could not be parsed stand as they were sent. */
function asCommand(name: string, args: Readonly<Record<string, unknown>> | string): string {
  if (typeof args === 'string') return `> ${name} ${args}`
  if (typeof args.command === 'string') return `$ ${args.command}`
  return ['>', name, ...Object.entries(args).map(([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`)].join(' ')
}

const MAX = 300
function print(line: string): void {
  const plain = oneLine(line)
  process.stderr.write(`${plain.length > MAX ? `${plain.slice(0, MAX - 1)}…` : plain}\n`)
}
/** What a model wrote must not steer the terminal: escape sequences go, control and invisible characters become blanks. */
const oneLine = (text: string): string => text.slice(0, 4 * MAX).replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g, '').replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')

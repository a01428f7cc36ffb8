/**
 * Shows a policy: what a call may do is allowed, asked about or refused by the rules in the config; the loop only asks and obeys.
 * Shell commands are judged on their whole tree (shell.ts, judge.ts), other tools by the paths in their arguments. A yes opens a path to that one call.
 * Rules see text before it runs. They keep an agent from doing by mistake what nobody wanted; against one that means harm only a sandbox helps.
 */
import { homedir } from 'node:os'
import { ask, block, HarnessError, z, type Context, type SessionView, type ToolCall } from 'harnessx'
import { answerTo, readQuestion, USAGE } from './answer.js'
import { ASK, DENY } from './defaults.js'
import type { Judgement, Policy, Where } from './judge.js'
import { parseRule, type Rule } from './rules.js'

export type { Judgement, Policy, Where }

export const name = 'permission'

const rule = z.string().refine(text => parseRule(text) !== undefined, 'must be the words of one command, such as "git push *", or "> /etc/*"')
export const Config = z.strictObject({
  /** Commands that never run. Deny comes before ask, ask before allow. */
  deny: z.array(rule).default([]),
  /** Commands that run when a person says yes. */
  ask: z.array(rule).default([]),
  /** Commands that run, also when they name a path outside the workspace. */
  allow: z.array(rule).default([]),
  /** Whether the shipped lists hold too (defaults.ts). */
  defaults: z.boolean().default(true),
  /** Whether changes of files in the workspace by other tools than a shell need a yes, unless the mode is `accept-edits`. */
  edits: z.enum(['allow', 'ask']).default('allow'),
  /** What becomes of a command that no rule concerns. */
  otherwise: z.enum(['allow', 'ask', 'deny']).default('allow'),
})

/** Loads the parser with the first command, which no start should wait for. */
export const judgeCommand = async (source: string, policy: Policy, where: Where): Promise<Judgement> => (await import('./judge.js')).judgeCommand(source, policy, where)

export function policyOf({ deny, ask, allow, defaults, otherwise }: z.infer<typeof Config>): Policy {
  const rules = (shipped: readonly string[], own: readonly string[]): Rule[] => [...defaults ? shipped : [], ...own].flatMap(text => parseRule(text) ?? [])
  return { deny: rules(DENY, deny), ask: rules(ASK, ask), allow: rules([], allow), otherwise }
}

const RANK = { allow: 0, ask: 1, deny: 2 } as const

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  const policy = policyOf(config)

  ctx.on('agent/pre-tool-use', async ({ session, call }, next) => {
    const { kind, reason, outside = [] } = await judge(session, call)
    if (kind === 'allow') return
    if (kind === 'deny') {
      print(`Blocked: ${reason}`)
      return block(reason)
    }
    for (const { path, mode } of outside) ctx.workspace.openFor(session, call.id, path, mode)
    return (await next()).kind === 'block' ? undefined : ask(reason)       // blocked: nobody will be asked
  })
  // Whoever can be asked is shown the call by their own client.
  ctx.on('agent/tool-end', ({ call, outcome, result }) => {
    const [, reason] = (outcome === 'denied' && /^denied: nobody could be asked \((.*)\)$/ms.exec(result.content)) || []
    if (reason === undefined) return
    print(`Permission required: ${reason}`)
    print(`Tool: ${shown(call)}`)
    print('Non-interactive terminal; denied.')
  })

  // Named like the entry: two instances have two policies.
  if (/^[a-z][a-z0-9-]{0,31}$/.test(ctx.id)) ctx.commands.register({
    name: ctx.id,
    description: `what the policy says to a command: /${ctx.id} ${USAGE}`,
    needsSession: false,
    async run(args, { session, cwd }) {
      const question = readQuestion(args), { tool: name, mode } = question
      const view = { id: session || 'none', cwd, depth: 0, mode, messages: [] }
      const tool = ctx.tools.list().find(one => one.name === name)
      if (mode === 'plan' && !tool?.readOnly) return answerTo(question, { kind: 'deny', reason: `in plan mode only read-only tools run, and "${name}" is none` }, ctx.id, {})
      const judgement = await judge(view, { id: '', name, arguments: question.arguments })
      const settled: Judgement = mode === 'yes' && judgement.kind === 'ask' ? { ...judgement, kind: 'allow', reason: `mode "yes" says yes to: ${judgement.reason}` } : judgement
      return answerTo(question, settled, ctx.id, { deny: config.deny, ask: config.ask, allow: config.allow })
    },
  })

  /** Both when there are both: a file tool that is given a command beside its path, which it doesn't even know, is still one. */
  async function judge(session: SessionView, call: ToolCall): Promise<Judgement> {
    const command = commandOf(call), paths = command === undefined || pathsIn(call).length > 0 ? await judgePaths(session, call) : undefined
    const said = command === undefined ? undefined : await judgeCommand(command, policy, whereIn(ctx, session))
    if (!paths || !said) return paths ?? said!
    return { ...RANK[paths.kind] > RANK[said.kind] ? paths : said, outside: [...paths.outside ?? [], ...said.outside ?? []] }
  }
  async function judgePaths(session: SessionView, call: ToolCall): Promise<Judgement> {
    const where = whereIn(ctx, session)
    const mode = ctx.tools.list().find(tool => tool.name === call.name)?.readOnly ? 'read' : 'write'
    const outside: string[] = [], paths = pathsIn(call)
    for (const path of paths) {
      const place = await where(path, mode)
      if (place === 'protected') return { kind: 'deny', reason: `${path} is protected` }
      if (place === 'outside') outside.push(path)
    }
    if (outside.length > 0) return { kind: 'ask', reason: `${outside.join(', ')} is outside the workspace`, outside: outside.map(path => ({ path, mode })) }
    const asks = config.edits === 'ask' && mode === 'write' && paths.length > 0 && session.mode !== 'accept-edits'
    return asks ? { kind: 'ask', reason: `edits are asked about: ${paths.join(', ')}` } : { kind: 'allow', reason: 'no rule concerns it' }
  }
}

/** Asks the workspace. A `~` is what a shell makes of it. */
const whereIn = (ctx: Context, session: SessionView): Where => async (path, mode) => {
  if (/^~[^/]/.test(path)) return 'outside'                    // another user's home
  try {
    await ctx.workspace.resolve(session, path.replace(/^~/, homedir()), mode)
    return 'inside'
  } catch (error) {
    if (error instanceof HarnessError && error.code === 'outside_workspace') return 'outside'
    if (error instanceof HarnessError && error.code === 'protected_path') return 'protected'
    throw error
  }
}

/** What a shell tool would run, whatever the tool's name: a text, or the words of one command. */
function commandOf({ arguments: { command, cmd } }: ToolCall): string | undefined {
  const given = command ?? cmd
  if (Array.isArray(given)) return given.map(word => `'${String(word).replaceAll("'", `'\\''`)}'`).join(' ')
  return typeof given === 'string' ? given : undefined
}

const PATH_KEY = /^(?:path|paths|file|files|file_?(?:path|name)|dir|directory|folder|cwd|root|source|destination|dest|target)$/i

/** The paths in a call's arguments, and the fixed part of a pattern of `glob` and `grep`. A tool that names them otherwise has to resolve them itself, as all should. */
function pathsIn({ name, arguments: args }: ToolCall): readonly string[] {
  const found = Object.entries(args).flatMap(([key, value]) => PATH_KEY.test(key) ? [value].flat() : (key === 'glob' || (name === 'glob' && key === 'pattern')) && typeof value === 'string' ? [fixedPart(value)] : [])
  // What the workspace can't open, such as "~/x" or a NUL, it refuses in words of its own. A URL is no path, unless it climbs back to one: "x://../src/a.ts".
  return found.filter((path): path is string => typeof path === 'string' && path !== '' && !/^~(?:\/|$)|\0/.test(path) && (!/^[a-z][a-z0-9+.-]*:\/\//i.test(path) || path.split('/').includes('..')))
}
const fixedPart = (pattern: string): string => {
  const parts = pattern.split('/'), at = parts.findIndex(part => /[*?[\]{}!()]/.test(part))
  return (at < 0 ? parts : parts.slice(0, at)).join('/') || (pattern.startsWith('/') ? '/' : '')
}

/** Of a call that was asked about, so its arguments were read. A command beside a path hides it from nobody. */
const shown = ({ id, name, arguments: args }: Omit<ToolCall, 'arguments'> & { readonly arguments: ToolCall['arguments'] | string }): string => {
  if (typeof args === 'string') return `${name}(${args})`
  const call = { id, name, arguments: args }
  return `${name}(${(pathsIn(call).length > 0 ? undefined : commandOf(call)) ?? JSON.stringify(args)})`
}

const MAX = 500
/** What a model wrote must not steer the terminal of the person who is asked. */
function print(line: string): void {
  const plain = line.slice(0, 4 * MAX).replace(/\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?)/g, '').replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ')
  process.stderr.write(`${plain.length > MAX ? `${plain.slice(0, MAX - 1)}…` : plain}\n`)
}

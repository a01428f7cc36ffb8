/**
 * Shows how the files of another tool hang on the hooks here: the command hooks of `.claude/settings.json`, run as Claude Code documents them, by the names of its tools.
 * Only folders that the config names are read (else its own), once, when the plugin is loaded: what a turn writes there counts after a reload by a person.
 * Invariants: nobody is made milder (an `allow` of a script has no say over other plugins); a command is gone when its time, its turn or this plugin is over.
 */
import { realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { accept, ask, block, duration, messageOf, proceed, reject, z, type Base, type Context, type Mode, type SessionView, type ToolCall } from 'harnessx'
import { runCommand } from './command.js'
import { NONE, outcomeOf, together, type Outcome } from './outcome.js'
import { readSettings, type EventName, type Hook, type Settings } from './settings.js'
import { ourInput, theirInput, theirName, theirResponse } from './tools.js'
import { Transcripts } from './transcript.js'

export const name = 'claude-hooks'
export const Config = z.strictObject({
  /** Folders whose `.claude/settings.json` and `settings.local.json` are trusted; their hooks run for sessions in them. Left out: the folder of the config. `~/` is the home. */
  folders: z.array(z.string().refine(path => isAbsolute(path) || path === '~' || path.startsWith('~/'), 'must be absolute or begin with "~/"')).min(1).optional(),
  /** The user's own `~/.claude/settings.json` too, for these sessions. */
  user: z.boolean().default(false),
  /** For a command that names no timeout of its own. */
  timeout: duration.refine(ms => ms > 0 && ms <= 600_000, 'must be more than 0 and at most 10m').prefault('60s'),
})
type Config = z.infer<typeof Config>

interface Project extends Pick<Settings, 'hooks' | 'env'> { readonly folder: string; readonly real: string }
interface Judged { readonly args: Readonly<Record<string, unknown>>; readonly outcome: Outcome }

const SLACK_MS = 2000
/** A session that ends waits this long for what runs beside it. */
const LEAVE_MS = 3000
const LONGEST_NAME = 200, LONGEST_WORDS = 2000
/** What a subagent is of: scripts choose by it. */
const AGENT = 'general-purpose'
/** What they announce ends anyway. */
const ENDS: readonly EventName[] = ['Stop', 'SubagentStop', 'SessionEnd']
const MODES: Readonly<Record<Mode, string>> = { default: 'default', 'accept-edits': 'acceptEdits', plan: 'plan', yes: 'bypassPermissions' }

export async function apply(ctx: Context, config: Config) {
  const projects = await readProjects(ctx, config)
  const options = { timeout: Math.max(config.timeout, ...projects.flatMap(({ hooks }) => hooks.map(({ timeoutMs = 0 }) => timeoutMs))) + SLACK_MS }
  const transcripts = new Transcripts(() => ctx.dataDir)
  /** Words for the next step, by session: of a SessionStart, and of commands that nobody waits for. */
  const waiting = new Map<string, readonly string[]>()
  const say = ({ id }: SessionView, words: readonly string[]) => { if (words.length > 0) waiting.set(id, [...waiting.get(id) ?? [], ...words]) }
  /** Commands that go on while the turn does, by session. */
  const beside = new Map<string, Set<Promise<void>>>()
  /** Calls whose hooks have run and that are not over, by session and id. */
  const judged = new Map<string, Judged>()
  const keyOf = (session: SessionView, { id }: { readonly id: string }) => `${session.id} ${id}`

  /** What a script has to say to the user. */
  const tell = (words: string) => { ctx.logger.warn(words.slice(0, LONGEST_WORDS)) }
  /** Runs the hooks of an event that want `subject`, beside each other. Undefined when there are none. */
  async function fire(event: EventName, subject: string, { session, signal }: Pick<Base, 'session' | 'signal'>, more: object): Promise<Outcome | undefined> {
    const project = projectOf(projects, session.cwd)
    const hooks = project?.hooks.filter(hook => hook.event === event && hook.matches(subject)) ?? []
    if (!project || hooks.length === 0) return undefined
    const path = await transcriptOf(session)
    const input = JSON.stringify({
      session_id: session.id, transcript_path: path, cwd: session.cwd, permission_mode: MODES[session.mode ?? 'default'], hook_event_name: event,
      ...(session.depth > 0 && { agent_id: session.id, agent_type: AGENT, ...(event === 'SubagentStop' && { agent_transcript_path: path }) }), ...more,
    })
    const run = async ({ command, timeoutMs = config.timeout }: Hook, stopping: AbortSignal): Promise<Outcome> => {
      const outcome = outcomeOf(event, await runCommand(command, input, { cwd: session.cwd, env: { ...project.env, CLAUDE_PROJECT_DIR: project.folder }, timeoutMs, signal: stopping }))
      for (const problem of stopping.aborted ? [] : outcome.problems) ctx.logger.warn(`${event} hook "${command.slice(0, LONGEST_NAME)}" failed, which stops nothing: ${problem}`)
      for (const words of outcome.told) tell(words)
      return outcome
    }
    const stopping = AbortSignal.any([signal, ctx.signal])
    const outcomes = await Promise.all([...new Map(hooks.map(hook => [hook.command, hook])).values()].map(hook => {
      if (!hook.beside) return run(hook, stopping)
      goOn(session, run(hook, ctx.signal).then(({ context }) => { say(session, context) }))
      return NONE
    }))
    const outcome = together(outcomes)
    if (outcome.halt !== undefined && !ENDS.includes(event)) ctx.agents.abort(session.id, outcome.halt)
    return outcome
  }
  function goOn({ id }: SessionView, done: Promise<void>): void {
    const all = beside.get(id) ?? new Set()
    beside.set(id, all.add(done))
    void done.finally(() => { all.delete(done) })                      // never rejects: a command that fails is an outcome
  }
  /** A script may do without: what can't be written costs a line in the log. */
  const transcriptOf = (session: SessionView): Promise<string> => transcripts.of(session).catch((error: unknown) => {
    ctx.logger.warn(`the transcript of session "${session.id}" can not be written: ${messageOf(error)}`)
    return ''
  })
  const toolInput = (session: SessionView, call: ToolCall) => ({ tool_name: theirName(call.name), tool_input: theirInput(call.name, call.arguments, session.cwd), tool_use_id: call.id })
  const preToolUse = (payload: Base, call: ToolCall) => fire('PreToolUse', theirName(call.name), payload, toolInput(payload.session, call))

  ctx.on('agent/tool-arguments', async (payload, next) => {
    const { session, call } = payload
    const args = await next()
    const outcome = await preToolUse(payload, { ...call, arguments: args })
    if (!outcome) return
    const changed = outcome.block === undefined && outcome.input && ourInput(call.name, outcome.input, args, session.cwd)
    judged.set(keyOf(session, call), { args: changed || args, outcome })
    return changed || undefined
  }, options)
  ctx.on('agent/pre-tool-use', async payload => {
    const { session, call } = payload
    let before = judged.get(keyOf(session, call))
    if (!before || !isDeepStrictEqual(before.args, call.arguments)) {               // somebody has changed them since, or the hooks' own change didn't fit
      const outcome = await preToolUse(payload, call)
      if (!outcome) return
      const wants = outcome.block === undefined && outcome.input && ourInput(call.name, outcome.input, call.arguments, session.cwd)
      if (wants && !isDeepStrictEqual(wants, call.arguments)) return block(`a PreToolUse hook wants arguments that can not be had: ${JSON.stringify(wants).slice(0, 300)}`)
      judged.set(keyOf(session, call), before = { args: call.arguments, outcome })
    }
    const { outcome } = before
    if (outcome.block !== undefined) return block(outcome.block)
    return outcome.ask === undefined ? undefined : ask(outcome.ask)
  }, options)
  ctx.on('agent/post-tool-use', async (payload, next) => {
    const { session, call } = payload
    const result = await next()
    const input = theirInput(call.name, call.arguments, session.cwd)
    const event = result.isError ? 'PostToolUseFailure' : 'PostToolUse'
    const outcome = await fire(event, theirName(call.name), payload, { ...toolInput(session, call), tool_response: theirResponse(call.name, input, result), ...(result.isError && { error: result.content }) })
    const context = [...judged.get(keyOf(session, call))?.outcome.context ?? [], ...(outcome?.block !== undefined ? [`A hook says of ${call.name}: ${outcome.block}`] : []), ...outcome?.context ?? []]
    return context.length > 0 ? { ...result, context } : undefined
  }, options)
  ctx.on('agent/tool-end', ({ session, call }) => { judged.delete(keyOf(session, call)) })

  ctx.on('agent/user-prompt-submit', async (payload, next) => {
    const { session, prompt } = payload
    const outcome = session.depth === 0 ? await fire('UserPromptSubmit', '', payload, { prompt }) : undefined
    if (outcome?.block !== undefined) return reject(outcome.block)
    const decision = await next()
    return decision.kind === 'reject' || !outcome || outcome.context.length === 0 ? undefined : accept([...decision.messages, ...outcome.context])
  }, options)
  ctx.on('agent/stop', async payload => {
    const outcome = await fire(payload.session.depth > 0 ? 'SubagentStop' : 'Stop', payload.session.depth > 0 ? AGENT : '', payload, { stop_hook_active: payload.stopHookActive, last_assistant_message: payload.reply })
    if (outcome?.halt !== undefined) tell(outcome.halt)               // it ends anyway, whatever another of them wants
    return outcome?.block === undefined || outcome.halt !== undefined ? undefined : proceed(outcome.block)
  }, options)
  ctx.on('agent/pre-step', async (payload, next) => {
    const { session } = payload
    const decision = await next()
    if (decision.kind === 'reject') return
    if (decision.compact) {
      const { asked } = decision.compact, trigger = asked === undefined ? 'auto' : 'manual'
      const outcome = await fire('PreCompact', trigger, payload, { trigger, custom_instructions: asked ?? '' })
      if (outcome?.block !== undefined) ctx.logger.warn(`a PreCompact hook objects, which can not stop it: ${outcome.block}`)
    }
    const words = waiting.get(session.id)
    if (!words) return
    waiting.delete(session.id)
    return { ...decision, messages: [...decision.messages, ...words] }
  }, { ...options, onError: 'pass' })

  ctx.on('agent/session-start', async payload => {
    const { session } = payload, source = payload.source === 'new' ? 'startup' : 'resume'
    const outcome = session.depth > 0 ? await fire('SubagentStart', AGENT, payload, {}) : await fire('SessionStart', source, payload, { source })
    say(session, outcome?.context ?? [])
  }, options)
  ctx.on('agent/compacted', async payload => {
    if (payload.session.depth > 0) return
    const outcome = await fire('SessionStart', 'compact', payload, { source: 'compact' })
    say(payload.session, outcome?.context ?? [])
  }, options)
  ctx.on('agent/session-end', async payload => {
    const { id, depth } = payload.session
    if (depth === 0) await fire('SessionEnd', 'other', payload, { reason: 'other' })
    const over = new AbortController()
    await Promise.race([Promise.all(beside.get(id) ?? []), sleep(LEAVE_MS, undefined, { signal: over.signal })]).finally(() => { over.abort() })
    beside.delete(id)
    waiting.delete(id)
    await transcripts.forget(id)
  }, options)
  ctx.on('agent/ask', payload => {
    void fire('Notification', 'permission_prompt', payload, { message: `hx needs your permission to use ${theirName(payload.call.name)}`, title: 'Permission needed', notification_type: 'permission_prompt' })      // the question doesn't wait for it
  })
}

/** Reads the files, and says what of them will not be. */
async function readProjects(ctx: Context, { folders, user }: Config): Promise<readonly Project[]> {
  const own = user ? await readSettings(homedir()) : { hooks: [], env: {}, problems: [] }
  const here = ctx.get('host')?.configDir
  const projects = await Promise.all((folders ?? (here === undefined ? [] : [here])).map(async written => {
    const folder = resolve(written.replace(/^~(?=\/|$)/, homedir()))
    const { files, hooks, env, problems } = await readSettings(folder)
    if (files.length === 0) ctx.logger.warn(`"${join(folder, '.claude')}" holds no settings.json; add one and reload, or take the folder out of the config`)
    for (const problem of problems) ctx.logger.warn(problem)
    return { folder, real: await realpath(folder).catch(() => folder), hooks: [...own.hooks, ...hooks], env: { ...own.env, ...env } }
  }))
  for (const problem of own.problems) ctx.logger.warn(problem)
  return projects.sort((a, b) => b.folder.length - a.folder.length)
}

/** The innermost of the folders that the session is in. */
const projectOf = (projects: readonly Project[], cwd: string): Project | undefined =>
  projects.find(({ folder, real }) => [folder, real].some(root => cwd === root || cwd.startsWith(root.endsWith(sep) ? root : `${root}${sep}`)))

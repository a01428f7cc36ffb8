/**
 * What stands under `hooks` in a `.claude/settings.json`, read once and made plain: which commands belong to which event, and what of it can't be carried out here. Pure but for `readSettings`.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf, z } from 'harnessx'

export const EVENTS = ['PreToolUse', 'PostToolUse', 'PostToolUseFailure', 'UserPromptSubmit', 'Stop', 'SubagentStart', 'SubagentStop', 'SessionStart', 'SessionEnd', 'PreCompact', 'Notification'] as const
export type EventName = (typeof EVENTS)[number]

/** One command and what it is for. */
export interface Hook {
  readonly event: EventName
  /** Does it want this tool, source, trigger or reason? */
  matches(subject: string): boolean
  readonly command: string
  readonly timeoutMs?: number | undefined
  /** Nobody waits for it, so it decides nothing. */
  readonly beside: boolean
}
export interface Settings { readonly hooks: readonly Hook[]; /** For its commands. */ readonly env: Readonly<Record<string, string>>; readonly problems: readonly string[] }

const Group = z.object({ matcher: z.string().optional(), hooks: z.array(z.object({ type: z.string(), command: z.string().optional(), timeout: z.number().positive().optional(), async: z.boolean().optional() }).loose()) })
const File = z.object({ disableAllHooks: z.boolean().optional(), env: z.record(z.string(), z.string()).optional().catch(undefined), hooks: z.record(z.string(), z.array(z.unknown())).optional() }).loose()
/** Of a timeout: some files give milliseconds where seconds are meant. */
const MOST_SECONDS = 3600
/** Events that Claude Code has no matcher for. */
const UNMATCHED: readonly EventName[] = ['UserPromptSubmit', 'Stop']

/** The hooks of one folder's two files. A file that is not there is none; one that can't be read is an error. */
export async function readSettings(folder: string): Promise<Settings & { readonly files: readonly string[] }> {
  const files: string[] = [], hooks: Hook[] = [], env: Record<string, string> = {}, problems: string[] = []
  for (const name of ['settings.json', 'settings.local.json']) {
    const file = join(folder, '.claude', name)
    try {
      const read = parseSettings(await readFile(file, 'utf8'))
      files.push(file)
      hooks.push(...read.hooks)
      Object.assign(env, read.env)
      problems.push(...read.problems.map(problem => `${file}: ${problem}`))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw new Error(`"${file}" can not be read: ${messageOf(error)}`, { cause: error })
    }
  }
  return { files, hooks, env, problems }
}

export function parseSettings(text: string): Settings {
  const read = File.safeParse(JSON.parse(text))
  if (!read.success) throw new Error(`"hooks" must be a map of lists (${z.prettifyError(read.error).split('\n')[0]})`)
  const { disableAllHooks, env = {}, hooks: events = {} } = read.data
  if (disableAllHooks) return { hooks: [], env, problems: ['disableAllHooks is set, so none of its hooks runs'] }
  const hooks: Hook[] = [], problems: string[] = []
  for (const [event, groups] of Object.entries(events)) {
    if (!isEvent(event)) { problems.push(`"${event}" is not supported, so its hooks do not run`); continue }
    for (const [place, value] of groups.entries()) {
      const group = Group.safeParse(value), where = `${event}[${place}]`
      if (!group.success) { problems.push(`${where} must be {matcher, hooks: [{type, command}]} and does not run`); continue }
      const matches = matcher(UNMATCHED.includes(event) ? undefined : group.data.matcher)
      if (!matches) { problems.push(`${where}: the matcher "${group.data.matcher}" is no regular expression, so it does not run`); continue }
      for (const { type, command, timeout, async = false, ...more } of group.data.hooks) {
        if (type !== 'command' || command === undefined) { problems.push(`${where}: a hook of type "${type}" is not supported and does not run`); continue }
        const ignored = Object.keys(more).filter(key => ['args', 'if', 'once', 'asyncRewake', 'shell'].includes(key))
        if (ignored.length > 0) problems.push(`${where}: ${ignored.map(key => `"${key}"`).join(' and ')} is not supported; the command runs without`)
        hooks.push({ event, matches, command, timeoutMs: timeout === undefined ? undefined : Math.min(timeout, MOST_SECONDS) * 1000, beside: async && event !== 'SessionEnd' })
      }
    }
  }
  return { hooks, env, problems }
}

const isEvent = (event: string): event is EventName => (EVENTS as readonly string[]).includes(event)

/** `Bash`, `Edit|Write`, or a regular expression; none, an empty one and `*` match everything. */
function matcher(text = ''): ((subject: string) => boolean) | undefined {
  if (text === '' || text === '*') return () => true
  if (/^[\w|, -]+$/.test(text)) {
    const names = text.split(/[|,]/).map(name => name.trim())
    return subject => names.includes(subject)
  }
  try {
    const pattern = new RegExp(text)
    return subject => pattern.test(subject)
  } catch { return undefined }                                       // only a SyntaxError can arrive here
}

/**
 * Shows knowledge on demand: folders with a SKILL.md are listed in the system prompt by name and description, and the tool `skill` gives the whole text when a task calls for it.
 * Folders of the workspace only, through `ctx.workspace`; every step looks again, and a file that has not changed is not read again.
 */
import { readdir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { messageOf, nearest, z, type Context, type SessionView } from 'harnessx'

export const name = 'skills'
export const Config = z.strictObject({
  /** Folders of skills, from the session's folder. The first that has a name has it. */
  folders: z.array(z.string().min(1).regex(/^[^\0]+$/)).min(1).default(['.claude/skills', '.agents/skills', 'skills']),
  /** How many are listed. */
  max: z.int().min(1).max(500).default(50),
})

interface Skill { readonly name: string; readonly description: string; readonly folder: string; readonly body: string; /** For a person to ask for, not for the model to find. */ readonly hidden: boolean }

const MOST_BYTES = 200_000, LONGEST_DESCRIPTION = 1024, MOST_FILES = 50, MOST_KNOWN = 1000

export function apply(ctx: Context, { folders, max }: z.infer<typeof Config>) {
  const known = new Map<string, { readonly version: string; readonly skill: Skill | undefined }>()
  const told = new Set<string>()

  ctx.on('agent/system-prompt', async ({ session }, next) => {
    const sections = await next()
    const skills = await skillsOf(session)
    if (skills.length === 0) return sections
    const list = skills.map(skill => `- ${skill.name}: ${skill.description}`).join('\n')
    return [...sections, { id: ctx.id, text: `Skills are instructions for certain tasks. When a task fits one, read it with the tool "skill" before you begin:\n${list}` }]
  })

  const parameters = z.object({ name: z.string().min(1).describe('A name from the list of skills.') })
  ctx.tools.register({
    name: 'skill', description: 'Read a skill: the instructions for a certain task, by its name.', parameters, readOnly: true,
    async execute(args: z.infer<typeof parameters>, { session }) {
      const skills = await skillsOf(session)
      const skill = skills.find(one => one.name === args.name)
      if (!skill) throw new Error(`there is no skill "${args.name}"; ${skills.length === 0 ? 'there are none here' : `did you mean "${nearest(args.name, skills.map(one => one.name)) ?? skills[0]!.name}"?`}`)
      const files = (await readdir(await ctx.workspace.resolve(session, skill.folder, 'read'))).filter(file => file !== 'SKILL.md').sort().slice(0, MOST_FILES)
      return `${skill.body}\n\n[its folder is ${skill.folder}${files.length > 0 ? `, with ${files.join(', ')}` : ''}]`
    },
  })

  async function skillsOf(session: SessionView): Promise<readonly Skill[]> {
    const found = new Map<string, Skill>()
    for (const folder of folders) {
      for (const entry of await entriesOf(session, folder)) {
        const skill = await read(session, join(folder, entry))
        if (skill && !skill.hidden && !found.has(skill.name) && found.size < max) found.set(skill.name, skill)
      }
    }
    return [...found.values()]
  }
  async function entriesOf(session: SessionView, folder: string): Promise<readonly string[]> {
    try {
      return (await readdir(await ctx.workspace.resolve(session, folder, 'read'))).sort()
    } catch (error) {
      complain(folder, error)
      return []
    }
  }
  async function read(session: SessionView, folder: string): Promise<Skill | undefined> {
    const file = join(folder, 'SKILL.md')
    try {
      const real = await ctx.workspace.resolve(session, file, 'read')
      const { mtimeMs, size, ino } = await stat(real)
      const version = `${folder} ${mtimeMs} ${size} ${ino}`, before = known.get(real)
      if (before?.version === version) return before.skill
      const skill = parseSkill(new TextDecoder().decode(await ctx.workspace.readFile(session, file, { maxBytes: MOST_BYTES })), folder)
      if (!skill) complain(file, new Error('it must begin with "---", a description and "---"'))
      if (known.size >= MOST_KNOWN) known.clear()
      known.set(real, { version, skill })
      return skill
    } catch (error) {
      complain(file, error)
      return undefined
    }
  }
  /** Once for each; what is not there is nothing to complain of. */
  function complain(path: string, error: unknown): void {
    if (['ENOENT', 'ENOTDIR'].includes(String((error as { code?: unknown }).code)) || told.has(path) || told.size >= MOST_KNOWN) return
    told.add(path)
    ctx.logger.warn(`"${path}" is not among the skills: ${messageOf(error)}`)
  }
}

/** A head between two lines of `---`, then the text. Undefined without a description; without a name it is called like its folder. */
export function parseSkill(text: string, folder: string): Skill | undefined {
  const [, head = '', body = ''] = /^\uFEFF?---[ \t]*\r?\n([^]*?)\r?\n---[ \t]*(?:\r?\n([^]*))?$/.exec(text) ?? []
  const name = field(head, 'name') || basename(folder), description = field(head, 'description')
  if (description === '') return undefined
  return { name: name.slice(0, 64), description: description.length > LONGEST_DESCRIPTION ? `${description.slice(0, LONGEST_DESCRIPTION - 1)}…` : description, folder, body: body.trim(), hidden: field(head, 'disable-model-invocation') === 'true' }
}

/** A plain, quoted or folded value of a head, on one line: what these heads hold, no more of YAML. */
function field(head: string, key: string): string {
  const lines = head.split(/\r?\n/), at = lines.findIndex(line => line.startsWith(`${key}:`))
  if (at < 0) return ''
  const rest = lines.slice(at + 1), end = rest.findIndex(line => /^\S/.test(line))
  const first = lines[at]!.slice(key.length + 1).trim().replace(/^[|>][+-]?$/, '')
  const value = [first, ...rest.slice(0, end < 0 ? undefined : end)].map(line => line.trim()).filter(line => line !== '').join(' ')
  if (/^"[^]*"$/.test(value)) return value.slice(1, -1).replace(/\\(["\\])/g, '$1')
  return /^'[^]*'$/.test(value) ? value.slice(1, -1).replaceAll("''", "'") : value
}

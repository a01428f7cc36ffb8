/**
 * Shows how a plugin brings commands: each `.claude/commands/*.md` of a trusted folder becomes `/name` in chats and editors, and gives a prompt.
 * Read once, when the plugin is loaded: what a turn writes there counts after a reload by a person. Invariants: nothing of a file is run, and none makes a judge milder.
 */
import { readdir, readFile, stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { basename, isAbsolute, join, resolve } from 'node:path'
import { messageOf, z, type Context } from 'harnessx'
import { parseCommand, promptOf } from './markdown.js'

export const name = 'claude-commands'
export const Config = z.strictObject({
  /** Folders whose `.claude/commands` are trusted. Left out: the folder of the config. `~/` is the home. */
  folders: z.array(z.string().refine(path => isAbsolute(path) || path === '~' || path.startsWith('~/'), 'must be absolute or begin with "~/"')).min(1).optional(),
  /** The user's own `~/.claude/commands` too; a project's command of the same name goes first. */
  user: z.boolean().default(false),
})

const MOST_BYTES = 100_000, MOST_FILES = 200

export async function apply(ctx: Context, { folders, user }: z.infer<typeof Config>) {
  const here = ctx.get('host')?.configDir
  const roots = [...folders?.map(folder => resolve(folder.replace(/^~(?=\/|$)/, homedir()))) ?? (here === undefined ? [] : [here]), ...user ? [homedir()] : []]
  const taken = new Map<string, string>()
  for (const root of roots) {
    for (const file of await filesOf(join(root, '.claude/commands'))) {
      try { await register(file) } catch (error) { ctx.logger.warn(`"${file}" is no command here: ${messageOf(error)}`) }
    }
  }

  async function register(file: string): Promise<void> {
    const command = basename(file, '.md').toLowerCase().replace(/[_. ]+/g, '-'), before = taken.get(command)
    if (before !== undefined) throw new Error(`/${command} is "${before}"`)
    const found = await stat(file)
    if (!found.isFile()) throw new Error('it is not a file')
    if (found.size > MOST_BYTES) throw new Error(`it has more than ${MOST_BYTES} bytes`)
    const written = parseCommand(await readFile(file, 'utf8'))
    if (!written) throw new Error('it holds no prompt')
    ctx.commands.register({ name: command, description: written.description, run: args => ({ prompt: promptOf(written.body, args.trim()) }) })
    taken.set(command, file)
    if (written.ignored.length > 0) ctx.logger.warn(`/${command} ("${file}"): not supported, so without effect: ${written.ignored.join(', ')}`)
  }

  /** Folders in it only sort files. None is there, or none can be read: the second is told. */
  async function filesOf(folder: string): Promise<readonly string[]> {
    try {
      const found = (await readdir(folder, { recursive: true })).filter(file => file.endsWith('.md')).sort()
      if (found.length > MOST_FILES) ctx.logger.warn(`"${folder}" has ${found.length} commands; the first ${MOST_FILES} are offered`)
      return found.slice(0, MOST_FILES).map(file => join(folder, file))
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') ctx.logger.warn(`"${folder}" can not be read: ${messageOf(error)}`)
      return []
    }
  }
}

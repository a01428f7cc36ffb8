/**
 * Shows how to add to the system prompt: what a project writes for agents in AGENTS.md or CLAUDE.md, from the session's folder upwards as far as the workspace reaches, the nearest last.
 * Every step looks again, so an edit counts from the next step on; a file that has not changed is not read again. Read through `ctx.workspace` only.
 */
import { stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { HarnessError, messageOf, z, type Context, type SessionView } from 'harnessx'

export const name = 'agent-instructions'
export const Config = z.strictObject({
  /** Names of files; of each folder the first that is there is taken. */
  files: z.array(z.string().min(1).regex(/^[^\0]+$/)).min(1).default(['AGENTS.md', 'CLAUDE.md']),
  /** All of them together; what is nearer to the session's folder goes first. */
  maxBytes: z.int().positive().max(1_000_000).default(32_000),
})

interface Known { readonly version: string; readonly text: string }
/** Files that are remembered, and folders that are looked through. */
const MOST_FILES = 200, MOST_FOLDERS = 64

export function apply(ctx: Context, { files, maxBytes }: z.infer<typeof Config>) {
  const known = new Map<string, Known>()
  const told = new Set<string>()

  ctx.on('agent/system-prompt', async ({ session }, next) => {
    const sections = await next()
    const found: string[] = []
    let room = maxBytes
    for (const folder of upwards(session.cwd)) {
      const file = await firstIn(session, folder)
      if (file === 'outside') break
      if (!file || room <= 0) continue
      const text = cut(file.text, room)
      room -= Buffer.byteLength(text)
      found.unshift(`Instructions of ${file.path}:\n\n${text}`)
    }
    return found.length === 0 ? sections : [...sections, { id: ctx.id, text: found.join('\n\n') }]
  })

  async function firstIn(session: SessionView, folder: string): Promise<{ path: string; text: string } | 'outside' | undefined> {
    for (const file of files) {
      const path = join(folder, file)
      try {
        const text = await read(session, path)
        if (text !== '') return { path, text }
      } catch (error) {
        if (error instanceof HarnessError && error.code === 'outside_workspace' && folder !== session.cwd) return 'outside'
        if (told.size < MOST_FILES && !told.has(path) && !isMissing(error)) {
          told.add(path)
          ctx.logger.warn(`"${path}" is left out of the system prompt: ${messageOf(error)}`)
        }
      }
    }
    return undefined
  }

  async function read(session: SessionView, path: string): Promise<string> {
    const real = await ctx.workspace.resolve(session, path, 'read')
    const { mtimeMs, size, ino } = await stat(real)
    const version = `${mtimeMs} ${size} ${ino}`, before = known.get(real)
    if (before?.version === version) return before.text
    const text = new TextDecoder().decode(await ctx.workspace.readFile(session, path, { maxBytes: maxBytes + 1 })).trim()
    if (known.size >= MOST_FILES) known.clear()
    known.set(real, { version, text })
    return text
  }
}

function* upwards(folder: string): Generator<string> {
  for (let at = folder, seen = 0; seen < MOST_FOLDERS; at = dirname(at), seen++) {
    yield at
    if (dirname(at) === at) return
  }
}

/** At most so many bytes, whole characters. */
function cut(text: string, bytes: number): string {
  if (Buffer.byteLength(text) <= bytes) return text
  return `${Buffer.from(text).subarray(0, bytes).toString('utf8').replace(/\uFFFD+$/, '')}\n[cut here: longer than there is room for]`
}

const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR', 'EISDIR'].includes(String((error as { code?: unknown } | undefined)?.code))

/**
 * Shows how to stand around a tool: programs that a call starts run in bubblewrap, which shows them a read-only system, the workspace and nothing else of the machine.
 * What they may reach is the workspace's own answer (`ctx.workspace.bounds`); this file decides when, command-line.ts how. A tool takes part by `unconfined: 'programs'`.
 * Where bubblewrap is missing or doesn't work, commands run bare and that is said once; with `required` they are refused.
 */
import { execFile } from 'node:child_process'
import { rmdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { promisify } from 'node:util'
import { z, type Context, type ToolResult } from 'harnessx'
import { commandLine, ISOLATION } from './command-line.js'
import { findProgram, look } from './files.js'
import { gitFolders } from './git.js'
import { standing } from './standing.js'
import { systemPaths } from './system.js'

export const name = 'sandbox'
/** Commands that run keep the sandbox in which they were started. */
export const reload = 'staged'
export const Config = z.strictObject({
  /** Whether commands may use the network. */
  network: z.boolean().default(false),
  /** Further files and folders that commands may read: absolute, or `~/…`. */
  read: z.array(z.string().regex(/^(?:\/|~\/)./, 'must be absolute, or begin with "~/"')).default([]),
  /** Refuse commands where there is no working sandbox. */
  required: z.boolean().default(false),
  /** The program, when it stands elsewhere. */
  program: z.string().min(1).default('bwrap'),
})

const PROBE_MS = 5000

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  const mountPoints = new Set<string>()
  let found: Promise<{ readonly program: string } | { readonly problem: string }> | undefined
  ctx.effect(() => () => { for (const folder of [...mountPoints].reverse()) removeEmpty(folder) }, 'mount points')

  ctx.on('agent/tool-use', async ({ session, call }, next) => {
    if (ctx.tools.list().find(tool => tool.name === call.name)?.unconfined !== 'programs') return
    const bwrap = await (found ??= probe(config))
    if ('problem' in bwrap) {
      if (config.required) throw new Error(`the sandbox is required here and can not be used (${bwrap.problem}), so the command was not run; tell the user`)
      tellOnce(bwrap.problem)
      return
    }
    const home = homedir(), bounds = await ctx.workspace.bounds(session, call.id)
    const { argv, made } = commandLine({ program: bwrap.program, bounds, home, network: config.network, system: systemPaths(home, process.env['PATH'] ?? '', config.read, look), git: gitFolders(bounds.writable, home) }, look)
    for (const folder of made) mountPoints.add(folder)
    ctx.workspace.confine(session, call.id, inner => [...argv, ...inner], () => standing(argv))
    return withNote(await next(), config.network)
  })

  function tellOnce(problem: string): void {
    if (ctx.state['told'] === problem) return
    ctx.state['told'] = problem
    ctx.logger.warn(`commands run without a sandbox: ${problem}. Rules alone keep nobody out who means harm; install bubblewrap, or say enabled: false to hear no more of it`)
  }
}

/** Once, with the first command: a start should not wait for it. */
async function probe({ program, network }: z.infer<typeof Config>): Promise<{ readonly program: string } | { readonly problem: string }> {
  if (process.platform !== 'linux') return { problem: 'bubblewrap runs on Linux only' }
  const file = findProgram(program, process.env['PATH'] ?? '')
  if (file === undefined) return { problem: `bubblewrap ("${program}") is not installed` }
  try {
    await promisify(execFile)(file, [...ISOLATION, ...network ? [] : ['--unshare-net'], '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', 'true'], { timeout: PROBE_MS })
    return { program: file }
  } catch (error) {
    const { stderr, message } = error as Error & { stderr?: string }
    return { problem: `bubblewrap does not work here: ${(stderr || message).trim().split('\n')[0]}` }
  }
}

const NETWORK = /could not resolve|getaddrinfo|EAI_AGAIN|ENOTFOUND|ENETUNREACH|network is unreachable|name resolution|name or service not known/i, READ_ONLY = /read-only file system|\bEROFS\b|could not (?:write|lock) config/i

/** A model that doesn't know why something failed tries ten other ways. */
function withNote(result: ToolResult, network: boolean): ToolResult {
  const notes = !result.isError ? [] : [
    ...!network && NETWORK.test(result.content) ? ['commands have no network here; only the user can change that (network: true in the config of plugin "sandbox"), so ask'] : [],
    ...READ_ONLY.test(result.content) ? ['commands write in the workspace only, and not to what steers git or the host; /tmp and the home folder are empty and forgotten after each call'] : [],
  ]
  return notes.length === 0 ? result : { ...result, content: `${result.content}\n${notes.map(note => `[sandbox: ${note}]`).join('\n')}` }
}

function removeEmpty(folder: string): void {
  try { rmdirSync(folder) } catch { /* it is used by now, or gone: both are somebody else's doing */ }
}

/**
 * Shows a guard: no `.env`, key or credential file through any tool. A path is refused by its name, as it is written and as its links resolve; a command by the
 * names in it; lines of such files are left out of what `grep` and `glob` find (on the way in, so that no later handler sees them).
 * A guard by names is a seat belt, not a wall: a command can build a name at run time (`cat .*`, `$x`), and only a sandbox stops that.
 */
import { block, z, type Context } from 'harnessx'

export const name = 'guard-secrets'
const pattern = z.string().min(1)
export const Config = z.strictObject({
  /** More names, such as `*.secret` or `vault/`: `*` is any text within one part of a path; with `/` at the end, a folder and what is in it. */
  patterns: z.array(pattern).default([]),
  /** Names that are no secrets here, in the same form. */
  allow: z.array(pattern).default([]),
})

const SECRETS: readonly string[] = [
  '.env', '.env.*', '.envrc', '*.env', '*.pem', '*.key', '*.p12', '*.pfx', '*.jks', '*.keystore', '*.kdbx', '*.ppk', 'id_rsa*', 'id_dsa*', 'id_ecdsa*', 'id_ed25519*',
  '.npmrc', '.pypirc', '.netrc', '_netrc', '.pgpass', '.my.cnf', '.git-credentials', '.htpasswd', '.dockercfg', '.docker/config.json', 'credentials', 'credentials.json', 'credentials.y*ml',
  '.ssh/', '.aws/', '.azure/', '.gnupg/', '.kube/config', '.config/gcloud/', '.config/gh/', 'service?account*.json', 'serviceaccount*.json', 'client_secret*.json', 'application_default_credentials.json', 'proc/*/environ', 'proc/*/*/environ', 'proc/*/*/*/environ',
]
/** What is published by intent, or only looks like a file. */
const HARMLESS = /\.(?:example|sample|template|dist|defaults?|pub)$|\/(?:process|import\.meta)\.env$/
/** Arguments whose text is content, not a name. */
const CONTENT = /^(?:content|contents|text|old_?text|new_?text|old_?string|new_?string|query|regex|prompt|message|description)$/i
const COMMAND_KEY = /^(?:command|cmd)$/i
const PATH_KEY = /path|file|dir|folder|source|target|dest/i
/** Names that a wildcard in a command might mean. */
const SAMPLES = ['.env', '.env.local', '.envrc', '.npmrc', '.netrc', '.pypirc', '.pgpass', '.git-credentials', '.ssh', '.aws', 'id_rsa', 'id_ed25519', 'credentials', 'credentials.json']

export function apply(ctx: Context, config: z.infer<typeof Config>) {
  const isSecret = secretNames([...SECRETS, ...config.patterns], config.allow)

  ctx.on('agent/pre-tool-use', async ({ call, session }) => {
    for (const { key, text } of stringsIn(call.arguments)) {
      const found = COMMAND_KEY.test(key) ? wordsOf(text).find(word => isSecret(word) || mayMeanSecret(word)) : isName(call.name, key, text) && (isSecret(text) || mayMeanSecret(text)) ? text : undefined
      if (found !== undefined) return block(refusal(found))
      if (PATH_KEY.test(key) && isSecret(await realPath(text))) return block(refusal(text))
    }
    return undefined

    /** What stands behind links; a path that the workspace refuses is no matter of this guard. */
    async function realPath(path: string): Promise<string> {
      try { return await ctx.workspace.resolve(session, path, 'read') } catch { return '' }
    }
  })

  ctx.on('agent/post-tool-use', ({ call, result }) => {
    if (call.name !== 'grep' && call.name !== 'glob') return
    const lines = result.content.split('\n')
    const kept = lines.filter(line => !(call.name === 'glob' ? [line] : filesOf(line)).some(isSecret))
    const left = lines.length - kept.length
    return left === 0 ? undefined : { ...result, content: [...kept, `[${left} ${left === 1 ? 'line' : 'lines'} of files that may hold secrets left out]`].join('\n') }
  })
}

const refusal = (path: string): string => `${JSON.stringify(path.slice(0, 200))} may hold secrets, which no tool reads or writes; ask the user for what you need to know`

/** Does some part of this path have one of the names? Case is ignored, since file systems may ignore it. */
function secretNames(patterns: readonly string[], allowed: readonly string[]): (path: string) => boolean {
  const secret = patterns.map(compile), allow = allowed.map(compile)
  return path => {
    const text = `/${path.replaceAll('\\', '/').toLowerCase()}`.replace(/\/+$/, '')
    return secret.some(one => one.test(text)) && !HARMLESS.test(text) && !allow.some(one => one.test(text))
  }
}
function compile(glob: string): RegExp {
  const body = glob.toLowerCase().replace(/^\/+|\/+$/g, '').replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*+/g, '[^/]*').replaceAll('?', '[^/]')
  return new RegExp(`/${body}${glob.endsWith('/') ? '(?:/|$)' : '$'}`)
}

/** A short text of one line under a key that names something. The pattern of `grep` is text to look for, that of `glob` is a name. */
const isName = (tool: string, key: string, text: string): boolean => text.length <= 4096 && !text.includes('\n') && !CONTENT.test(key) && !(key === 'pattern' && tool !== 'glob')

/** The file in `file:12:text` or `file-12-text`; a name may hold such a part itself, so every reading counts. */
const filesOf = (line: string): readonly string[] => [...line.matchAll(/[:-]\d+[:-]/g)].map(({ index }) => line.slice(0, index))

function* stringsIn(value: unknown, key = ''): Generator<{ key: string; text: string }> {
  if (typeof value === 'string') yield { key, text: value }
  else if (Array.isArray(value)) for (const item of value) yield* stringsIn(item, key)
  else if (typeof value === 'object' && value !== null) for (const [name, item] of Object.entries(value)) yield* stringsIn(item, name)
}

/** `ps e`, which is no option of the kind with a dash. */
const SHOWS_ENVIRONMENTS = /(?:^|[\s;&|(`/])ps\s(?:[^|;&\n]*\s)?[aAxuewfjlvmnrScghXZ]*e[aAxuewfjlvmnrScghXZ]*(?=[\s;&|)`]|$)/

/** Everything in a command that may be a name, quotes and backslashes taken off: too much rather than too little. */
const wordsOf = (command: string): readonly string[] => (command.replaceAll(/\$\{?(?:PPID|BASHPID|\$|!)\}?(?=\/)/g, 'self') + (SHOWS_ENVIRONMENTS.test(command) ? ' proc/self/environ' : '')).replaceAll(/\\\n|["'`\\]/g, '').split(/[\s;|&<>(){}=,:@$#]+/).filter(word => word !== '')

/** A wildcard that spells out enough of a secret's name to mean it: `.e*`, `id_*`, `.[e]nv`. */
function mayMeanSecret(word: string): boolean {
  const last = word.slice(word.lastIndexOf('/') + 1).toLowerCase()
  if (!/[*?[]/.test(last) || last.length > 100 || last.startsWith('*') || last.replaceAll(/\[[^\]]*\]|[*?]/g, '').length < 2) return false
  const body = last.replaceAll(/[.+^${}()|\\]/g, '\\$&').replaceAll(/\[!/g, '[^').replaceAll(/\*+/g, '.*').replaceAll('?', '.')
  try { return SAMPLES.some(sample => new RegExp(`^${body}$`).test(sample)) } catch { return false }       // no valid class of characters: no wildcard either
}

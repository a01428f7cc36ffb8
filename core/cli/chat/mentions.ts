/**
 * `@file` in a prompt: which files are meant, whether they are there, and what the model is told of them.
 * The model is given their names and reads them with its tools, so that containment and every guard hold for what a person names too.
 */
import { readdirSync, realpathSync, statSync } from 'node:fs'
import { dirname, join, relative, resolve } from 'node:path'

/** At the begin or behind a space, so that no mail address is meant; quotes where there are spaces in it. */
const MENTION = /(?<=^|\s)@(?:"([^"\n]+)"|([^\s"@][^\s"]*))/gu

export interface Mentioned { readonly prompt: string; readonly problems: readonly string[] }

/** The prompt with a note of what was found behind each `@`, and what was not. */
export function resolveMentions(prompt: string, cwd: string): Mentioned {
  const found = new Map<string, string>(), problems: string[] = []
  for (const [, quoted, bare] of prompt.matchAll(MENTION)) {
    const named = quoted ?? bare!
    const file = fileOf(named, cwd) ?? fileOf(named.replace(/[.,;:!?)\]}'"]+$/u, ''), cwd)       // it ends a sentence
    if (!file) problems.push(`"@${named}" is no file or folder of ${cwd}`)
    else if (file.outside) problems.push(`"@${named}" lies outside of ${cwd}; tools do not reach it`)
    else found.set(file.path, file.about)
  }
  const note = [...found].map(([path, about]) => `${path} (${about})`).join(', ')
  return { prompt: note === '' ? prompt : `${prompt}\n\n[Named with @, relative to the workspace: ${note}]`, problems }
}

function fileOf(named: string, cwd: string): { path: string; about: string; outside: boolean } | undefined {
  if (named === '') return undefined
  const full = resolve(cwd, named), stat = statSync(full, { throwIfNoEntry: false, bigint: false })
  if (!stat) return undefined
  const path = relative(realpathSync(cwd), realpathSync(full))
  return { path: relative(cwd, full) || '.', about: stat.isDirectory() ? 'folder' : `${stat.size} bytes`, outside: path === '..' || path.startsWith('../') }
}

/** What may stand behind `@`: names in the folder that was typed so far, folders with a slash. */
export function filesLike(typed: string, cwd: string): string[] {
  const folder = typed.endsWith('/') ? typed : typed.includes('/') ? `${dirname(typed)}/` : '', start = typed.slice(folder.length).toLowerCase()
  let entries
  try { entries = readdirSync(resolve(cwd, folder), { withFileTypes: true }) } catch { return [] }       // no such folder, or not ours to read
  return entries.filter(({ name }) => name.toLowerCase().startsWith(start) && (start.startsWith('.') || !name.startsWith('.')) && name !== 'node_modules' && !/["\n]/.test(name))
    .map(entry => join(folder, entry.name) + (entry.isDirectory() ? '/' : '')).sort()
}

/** What git starts: commands in its words, and settings that name a program, from the command line or the environment. Pure. */
import { interpreted } from './interpreters.js'
import { script, unclear, type Inner } from './inner.js'

/** Settings whose value git runs, or which bring more settings. */
const SETTINGS = /^(?:--exec-path=|alias\.[^=]*=!|(?:core\.(?:pager|editor|sshcommand|fsmonitor|hookspath|gitproxy|askpass|alternaterefscommand)|sequence\.editor|diff\.external|uploadpack\.packobjectshook|interactive\.difffilter|include(?:if\..*)?\.path|pager\.[^=]*|remote\..*\.(?:receivepack|uploadpack|vcs)|sendemail\..*(?:cmd|smtpserver)|[^=]*\.(?:command|cmd|textconv|clean|smudge|driver|helper|program))=)(?!(?:true|false|cat|less|store|cache|osxkeychain)$)/i
/** Variables that do the same. */
const VARIABLES = /^GIT_(?:CONFIG_(?:COUNT|PARAMETERS|GLOBAL|SYSTEM|KEY_\d+|VALUE_\d+)|EXEC_PATH|TEMPLATE_DIR)$/
export const bringsSettings = (name: string, value: string): boolean => VARIABLES.test(name) && value !== '/dev/null'
export const SETS = 'a setting of git names a program to run'
/** A folder that git never made obeys no less: it holds settings that name programs. */
export const OTHER_GIT = 'git obeys the settings of the folder that it is told to take'
export const isOwnGit = (folder: string): boolean => folder === '' || /(?:^|\/)\.git\/?$/.test(folder)

export function gitRuns(rest: readonly string[]): readonly Inner[] {
  const at = rest.findIndex((word, i) => (word === 'run' && rest[i - 1] === 'bisect') || word === 'foreach')
  const runs = at < 0 ? [] : script(rest.slice(at + 1).filter(word => !word.startsWith('--')).join(' '))
  const transports = rest.flatMap(word => script(/^(?:--remote=)?ext::(.*)$/s.exec(word)?.[1] ?? '')), packs = rest.includes('clone') ? rest.flatMap((word, i) => word === '-u' ? script(rest[i + 1] ?? '') : []) : []
  const key = rest[0] === 'config' || rest.includes('config') ? rest.slice(rest.indexOf('config') + 1).map((word, i, all) => i < all.length - 1 ? `${word}=${all[i + 1]}` : word) : []
  const setting = [...rest.map(word => word.replace(/^--config(?:-env)?=/, '')), ...key].some(word => SETTINGS.test(word))
  const callbacks = rest.flatMap((word, i) => /^--[\w-]+-callback(?:=|$)/.test(word) ? interpreted('python', ['-c', ` ${word.includes('=') ? word.slice(word.indexOf('=') + 1) : rest[i + 1] ?? ''}`], undefined) : [])
  const folder = rest.some((word, i) => /^--git-dir(?:=|$)/.test(word) && !isOwnGit(word.includes('=') ? word.slice(word.indexOf('=') + 1) : rest[i + 1] ?? ''))
  return [...runs, ...transports, ...packs, ...callbacks, ...setting ? [unclear(SETS)] : [], ...folder ? [unclear(OTHER_GIT)] : []]
}


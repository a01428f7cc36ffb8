/** What of the host's environment a server gets: an allow-list, so that no key is ever among it that its config doesn't name. Pure but for the home. */
import { homedir } from 'node:os'

const PASSED = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR', 'USER', 'LOGNAME', 'SHELL']

export function commandEnvironment(host: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(Object.entries(host).filter((entry): entry is [string, string] => entry[1] !== undefined && (PASSED.includes(entry[0]) || entry[0].startsWith('LC_'))))
}
/** There is no shell that would do it. */
export const expandHome = (text: string): string => text === '~' || text.startsWith('~/') ? homedir() + text.slice(1) : text

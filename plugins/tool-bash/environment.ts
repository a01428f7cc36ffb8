/**
 * What of the host's environment a command gets: an allow-list, so that no key of a model is ever among it. Pure.
 */
const PASSED = ['PATH', 'HOME', 'LANG', 'TERM', 'TMPDIR', 'USER', 'SHELL']

/** Keys that no setting passes on. */
export const isModelKey = (name: string): boolean => /^(DEEPSEEK|OPENAI)_API_KEY$/i.test(name)

const isPassed = (name: string): boolean => PASSED.includes(name) || name.startsWith('LC_')
/** Nothing but what every command gets. */
export const isPlain = (environment: Readonly<Record<string, string>>): boolean => Object.keys(environment).every(isPassed)

export function commandEnvironment(host: Readonly<Record<string, string | undefined>>, more: readonly string[]): Record<string, string> {
  const passed = Object.entries(host).filter(([name]) => (isPassed(name) || more.includes(name)) && !isModelKey(name))
  return Object.fromEntries(passed.filter((entry): entry is [string, string] => entry[1] !== undefined))
}

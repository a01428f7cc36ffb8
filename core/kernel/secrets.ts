/**
 * What must not be shown: values that were named as secret, and what has the form of a credential. Pure but for the set of values; knows no log and no config.
 * It keeps slips out of logs and reports. It is no wall: a secret that is encoded or cut in two passes.
 */
export const HIDDEN = '[hidden]'
/** Shorter values would hide words that are no secrets. */
const SHORTEST = 6
const NAME = /(?:^|[^a-z])(?:(?:api)?keys?|pat|auth|authorization|token|secret|password|passwd|passphrase|credentials?|cookie)$/i
const FORMS: readonly [form: RegExp, shown: string][] = [
  [/\b(Bearer|Basic)\s+[\w.~+/=-]{6,}/gi, `$1 ${HIDDEN}`],
  [/\b(?:sk|pk|rk)-[\w-]{16,}|\bgh[opsu]_\w{20,}|\bAKIA[A-Z0-9]{16}\b|\bxox[abp]-[\w-]{10,}/g, HIDDEN],
  [/(\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]*:)[^\s@/]+@/gi, `$1${HIDDEN}@`],
]

/** Is this the name of a variable or key whose value is a secret? */
export const isSecretName = (name: string): boolean => NAME.test(name.replace(/([a-z0-9])([A-Z])/g, '$1_$2'))

export class Secrets {
  readonly #values = new Set<string>()
  #known: RegExp | undefined

  /** Values that are hidden from now on, wherever they stand. */
  learn(values: Iterable<string>): void {
    for (const value of values) if (value.length >= SHORTEST) this.#values.add(value)
    const longestFirst = [...this.#values].sort((a, b) => b.length - a.length)
    this.#known = longestFirst.length === 0 ? undefined : new RegExp(longestFirst.map(value => value.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')).join('|'), 'g')
  }
  /** Of an environment: what its names say is a secret. */
  learnEnv(env: Readonly<Record<string, string | undefined>>): void {
    this.learn(Object.entries(env).flatMap(([name, value]) => value !== undefined && isSecretName(name) ? [value] : []))
  }
  /** Of plain data: texts under names that say so, as they stand in a config. */
  learnIn(value: unknown, name = '', depth = 0): void {
    if (typeof value === 'string' && isSecretName(name)) this.learn([value])
    if (typeof value !== 'object' || value === null || depth > 6) return
    for (const [key, inner] of Object.entries(value)) this.learnIn(inner, Array.isArray(value) ? name : key, depth + 1)
  }
  /** The text without them. */
  hide(text: string): string {
    const known = this.#known ? text.replace(this.#known, HIDDEN) : text
    return FORMS.reduce((cleaned, [form, shown]) => cleaned.replace(form, shown), known)
  }
  /** The same for plain data: texts are cleaned, values under secret names are hidden. What is no plain data becomes its text. */
  hideIn(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return this.hide(value)
    if (typeof value !== 'object' || value === null) return typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint' ? String(value) : value
    if (depth > 6) return '…'
    if (value instanceof Error) return { name: value.name, message: this.hide(value.message), stack: this.hide(String(value.stack)) }
    if (Array.isArray(value)) return value.map(inner => this.hideIn(inner, depth + 1))
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, isSecretName(key) && typeof inner === 'string' ? HIDDEN : this.hideIn(inner, depth + 1)]))
  }
}

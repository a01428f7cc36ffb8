/**
 * References in the texts of a plugin's config: `${env:NAME}`, `${env:NAME:-default}`, `${file:/path}`. Nothing else is replaced, nothing is evaluated, and what comes in isn't looked at again.
 * Pure: variables and files are handed in. The config as written is never changed, so a secret can't be written back.
 */
import { messageOf } from '../errors.js'

export interface Sources {
  readonly env: Readonly<Record<string, string | undefined>>
  /** The text of a file; throws when it can't be read. */
  read(file: string): string
}
export interface Unresolved { readonly path: readonly PropertyKey[]; readonly message: string }
/** `secrets` is what references became: never to be shown. Variables that only say where and who one is are none. */
export interface Interpolated { readonly value: unknown; readonly unresolved: readonly Unresolved[]; readonly secrets: readonly string[] }

const REFERENCE = /\$\{(env|file):([^}]*)\}/g
const NO_SECRET = /^(?:PATH|HOME|PWD|USER|LOGNAME|SHELL|LANG|LC_\w+|TERM|TMPDIR|TZ|HOSTNAME|XDG_\w+|HX_HOME|HX_CONFIG)$/
const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/

export function interpolate(value: unknown, sources: Sources): Interpolated {
  const unresolved: Unresolved[] = [], secrets: string[] = []
  const walk = (inner: unknown, path: readonly PropertyKey[]): unknown => {
    if (typeof inner === 'string') return inner.replace(REFERENCE, (reference, kind: string, name: string) => {
      try {
        const found = kind === 'env' ? variable(name, sources) : { text: sources.read(name).replace(/\r?\n$/, ''), secret: true }
        if (found.secret) secrets.push(found.text)
        return found.text
      } catch (error) {
        unresolved.push({ path, message: `${reference}: ${messageOf(error)}` })
        return reference
      }
    })
    if (Array.isArray(inner)) return inner.map((item, index) => walk(item, [...path, index]))
    if (typeof inner === 'object' && inner !== null) return Object.fromEntries(Object.entries(inner).map(([key, item]) => [key, walk(item, [...path, key])]))
    return inner
  }
  return { value: walk(value, []), unresolved, secrets }
}

/** Does this text hold a reference? Such a value is shown as written, never as it resolved. */
export const isReference = (text: string): boolean => new RegExp(REFERENCE.source).test(text)

function variable(text: string, { env }: Sources): { text: string; secret: boolean } {
  const match = VARIABLE.exec(text)
  if (!match) throw new Error(`"${text}" is not the name of an environment variable`)
  if (match[2]?.includes('${')) throw new Error('a default can not hold another reference; write the value out')
  const value = env[match[1]!], secret = !NO_SECRET.test(match[1]!)
  // As in a shell, `:-` also stands in for an empty value.
  if (match[2] !== undefined && (value === undefined || value === '')) return { text: match[2], secret: false }
  if (value === undefined) throw new Error(`the environment variable "${match[1]}" is not set; set it, or write \${env:${match[1]}:-default}`)
  return { text: value, secret }
}

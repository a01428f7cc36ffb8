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
export interface Interpolated { readonly value: unknown; readonly unresolved: readonly Unresolved[] }

const REFERENCE = /\$\{(env|file):([^}]*)\}/g
const VARIABLE = /^([A-Za-z_][A-Za-z0-9_]*)(?::-([\s\S]*))?$/

export function interpolate(value: unknown, sources: Sources): Interpolated {
  const unresolved: Unresolved[] = []
  const walk = (inner: unknown, path: readonly PropertyKey[]): unknown => {
    if (typeof inner === 'string') return inner.replace(REFERENCE, (reference, kind: string, name: string) => {
      try { return kind === 'env' ? variable(name, sources) : sources.read(name).replace(/\r?\n$/, '') } catch (error) {
        unresolved.push({ path, message: `${reference}: ${messageOf(error)}` })
        return reference
      }
    })
    if (Array.isArray(inner)) return inner.map((item, index) => walk(item, [...path, index]))
    if (typeof inner === 'object' && inner !== null) return Object.fromEntries(Object.entries(inner).map(([key, item]) => [key, walk(item, [...path, key])]))
    return inner
  }
  return { value: walk(value, []), unresolved }
}

/** Does this text hold a reference? Such a value is shown as written, never as it resolved. */
export const isReference = (text: string): boolean => new RegExp(REFERENCE.source).test(text)

function variable(text: string, { env }: Sources): string {
  const match = VARIABLE.exec(text)
  if (!match) throw new Error(`"${text}" is not the name of an environment variable`)
  const value = env[match[1]!]
  // As in a shell, `:-` also stands in for an empty value.
  if (match[2] !== undefined) return value === undefined || value === '' ? match[2] : value
  if (value === undefined) throw new Error(`the environment variable "${match[1]}" is not set; set it, or write \${env:${match[1]}:-default}`)
  return value
}

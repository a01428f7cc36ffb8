/** Tells whether two processes have the same model keys without either showing one: salted digests. Pure but for the salt. */
import { createHmac, randomBytes } from 'node:crypto'

/** Variables that hold keys of models. */
const NAMES = ['DEEPSEEK_API_KEY', 'OPENAI_API_KEY'] as const

export interface KeyDigests { readonly salt: string; readonly keys: Readonly<Record<string, string>> }

export function keyDigests(read: (name: string) => string | undefined, salt: string = randomBytes(16).toString('base64url')): KeyDigests {
  return { salt, keys: Object.fromEntries(NAMES.flatMap(name => {
    const value = read(name)
    return value ? [[name, createHmac('sha256', salt).update(`${name}=${value}`).digest('base64url')]] : []
  })) }
}
/** Names of keys that stand in `env` and are not the ones behind `digests`. */
export function differing({ salt, keys }: KeyDigests, env: Readonly<Record<string, string | undefined>>): readonly string[] {
  return Object.entries(keyDigests(name => env[name], salt).keys).flatMap(([name, digest]) => keys[name] === digest ? [] : [name])
}

/**
 * The port that is asked before the first byte of a folder is read. Knows no store and no terminal: who answers is decided outside.
 * What it says no to is never opened, parsed, resolved or watched.
 */
import { HarnessError } from '../errors.js'

export interface TrustRequest { readonly kind: 'config' | 'plugin' | 'env'; readonly file: string }
export interface Trust { allows(request: TrustRequest): boolean }

/** Throws `untrusted` in one sentence. */
export function ask(trust: Trust, request: TrustRequest): void {
  if (trust.allows(request)) return
  throw new HarnessError('untrusted', `${request.kind === 'env' ? '.env file' : request.kind} "${request.file}" is not trusted, so nothing of it was read; "hx trust" shows what it would run and asks, --trust trusts it for this run`, { place: { file: request.file } })
}
/** Everything under these folders: the installation's own files. */
export const trustFolders = (folders: readonly string[]): Trust => ({ allows: ({ file }) => folders.some(folder => file === folder || file.startsWith(folder.endsWith('/') ? folder : `${folder}/`)) })
/** `--trust`, for this run only. */
export const trustAll: Trust = { allows: () => true }
export const either = (...some: readonly Trust[]): Trust => ({ allows: request => some.some(trust => trust.allows(request)) })

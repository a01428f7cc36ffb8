/**
 * The calls of the file system as a program under test sees them, of which one fails: the nth on a file below a folder, of one kind or of any. Imports follow, since builtin modules are synced.
 * What fails has not happened, but for `close`, after which a descriptor is gone whatever it said. Descriptors that are left open are told.
 */
import fs from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'

export const KINDS = ['open', 'write', 'truncate', 'sync', 'rename', 'close', 'read', 'stat', 'mkdir', 'remove'] as const
export type Kind = typeof KINDS[number]
export interface Fault { readonly kind: Kind | 'any'; readonly nth: number; readonly code: string; /** It and all that follow fail, until `heal`. */ readonly stays?: boolean }
export interface FailingFs {
  /** Did it come to the call that fails? */
  readonly struck: boolean
  /** Descriptors below the folder that are open. */
  readonly open: ReadonlyMap<number, string>
  heal(): void
  /** Everything as it was. */
  restore(): void
}

type Call = (...args: never[]) => unknown
const NAMES: Readonly<Record<string, Kind>> = {
  openSync: 'open', writeSync: 'write', ftruncateSync: 'truncate', fsyncSync: 'sync', fdatasyncSync: 'sync', fdatasync: 'sync', renameSync: 'rename', closeSync: 'close',
  readFileSync: 'read', fstatSync: 'stat', statSync: 'stat', mkdirSync: 'mkdir', rmSync: 'remove',
}

export function failingFs(folder: string, { kind, nth, code, stays = false }: Fault): FailingFs {
  const open = new Map<number, string>(), calls = fs as unknown as Record<string, Call>, real = new Map<string, Call>()
  let count = 0, struck = false, healthy = false
  const fails = (of: Kind): Error | undefined => {
    if (healthy || (kind !== 'any' && kind !== of) || (struck && !stays) || (!struck && ++count < nth)) return undefined
    struck = true
    return Object.assign(new Error(`${code}: made to fail, ${of}`), { code, syscall: of })
  }
  const ours = (target: unknown): boolean => typeof target === 'number' ? open.has(target) : typeof target === 'string' && (target === folder || target.startsWith(`${folder}/`))
  for (const [name, of] of Object.entries(NAMES)) {
    const call = calls[name]!
    real.set(name, call)
    const later = name === 'fdatasync'
    calls[name] = ((...args: unknown[]) => {
      const [target] = args
      if (!ours(target)) return call(...args as never[])
      const error = fails(of)
      if (of === 'close') { open.delete(target as number); call(target as never) }
      if (error && later) { setImmediate(() => { (args.at(-1) as (error: Error) => void)(error) }); return undefined }
      if (error) throw error
      if (of === 'close') return undefined
      const done = call(...args as never[])
      if (of === 'open') open.set(done as number, String(target))
      return done
    }) as Call
  }
  const { open: openLater } = promises
  promises.open = (async (path: string, ...more: never[]) => {
    const error = ours(path) && fails('open')
    if (error) throw error
    const handle = await openLater(path, ...more)
    if (ours(path)) {
      const sync = handle.sync.bind(handle)
      handle.sync = async () => { const broken = fails('sync'); if (broken) throw broken; await sync() }
    }
    return handle
  }) as typeof openLater
  syncBuiltinESMExports()
  return {
    get struck() { return struck }, open,
    heal: () => { healthy = true },
    restore: () => {
      for (const [name, call] of real) calls[name] = call
      promises.open = openLater
      syncBuiltinESMExports()
    },
  }
}

/**
 * The workspace of a session: which paths tools may reach. The session's cwd and `workspace.roots`, what a person opened for one call, and for reading the session's
 * own output folder; never what is protected. Knows no tool and no person: the loop says which call runs and which ask got a yes.
 * Every answer is about real paths (containment.ts), and files are checked again once they are open (contained-file.ts).
 */
import { homedir } from 'node:os'
import { basename, isAbsolute, join, resolve, sep } from 'node:path'
import { HarnessError, messageOf, show } from '../errors.js'
import { DanglingLink, isInside, realPath } from './containment.js'
import { readContained, writeContained, type Check } from './contained-file.js'
import type { Bounds, Confinement, Launcher, WorkspaceService } from './services.js'
import type { SessionView } from './vocabulary.js'

type Mode = 'read' | 'write'
interface Grant { readonly real: Promise<string | undefined>; readonly mode: Mode; approved: boolean }

export interface WorkspaceOptions {
  /** Folders beside the session's cwd that are inside, absolute (`workspace.roots`). */
  readonly roots?: () => readonly string[]
  /** Files and folders that are never written, absolute, there or not: the config in force, the trust store, plugin folders, the host's own places. */
  readonly protectedPaths: () => readonly string[]
  /** Those that are not read either: tokens and sockets. */
  readonly secretPaths?: () => readonly string[]
  /** The session's folder for full outputs, which its tools may read (of each store, when it may be in one of two); only named, not made. */
  readonly outputPath?: (session: string) => string | readonly string[]
  readonly home?: string
}

/** What a shell, git or ssh runs or obeys at its next start, below the home folder. */
const START_FILES = [
  '.profile', '.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.zshrc', '.zshenv', '.zprofile', '.zlogin', '.zlogout', '.kshrc', '.cshrc', '.tcshrc', '.login', '.inputrc',
  '.config/fish', '.config/systemd', '.config/autostart', '.config/environment.d', '.gitconfig', '.config/git', '.ssh', '.pam_environment', '.xprofile', '.xsessionrc', '.xinitrc', 'Library/LaunchAgents',
]

const KNOWN_MS = 500, KNOWN_MOST = 5000

export class Workspace implements WorkspaceService {
  readonly #options: WorkspaceOptions
  #startFiles: readonly string[] | undefined
  /** Which call a view was made for: a path that was opened for it is open through this very object. */
  readonly #calls = new WeakMap<SessionView, string>()
  readonly #grants = new Map<string, Grant[]>()
  readonly #confined = new Map<string, Confinement>()
  readonly #known = new Map<string, { readonly real: Promise<string>; readonly until: number }>()

  constructor(options: WorkspaceOptions) {
    this.#options = options
  }

  #started(): readonly string[] { return this.#startFiles ??= START_FILES.map(file => join(this.#options.home ?? homedir(), file)) }

  // ---- for tools and hooks

  async resolve(session: SessionView, path: string, mode: Mode): Promise<string> {
    return (await this.#admit(session, path, mode)).real
  }
  async readFile(session: SessionView, path: string, options: { offset?: number | undefined; maxBytes?: number | undefined } = {}): Promise<Buffer> {
    const { real, check } = await this.#admit(session, path, 'read')
    return readContained(real, check, options)
  }
  async writeFile(session: SessionView, path: string, data: string | Uint8Array, options: { mode?: number | undefined } = {}): Promise<void> {
    const { real, check } = await this.#admit(session, path, 'write')
    return writeContained(real, check, data, options)
  }
  openFor(session: SessionView, callId: string, path: string, mode: Mode): void {
    const real = realOf(session, path).catch(() => undefined)                                     // what can't be resolved can't be opened; `resolve` says why
    const key = callKey(session, callId)
    this.#grants.set(key, [...this.#grants.get(key) ?? [], { real, mode, approved: false }])
  }
  async bounds(session: SessionView, callId: string): Promise<Bounds> {
    const { roots, protectedPaths, secretPaths, outputPath } = this.#options
    const granted = async (mode: Mode) => realsOf((this.#grants.get(callKey(session, callId)) ?? []).filter(grant => grant.approved && grant.mode === mode))
    const [writable, outputs, guarded, secret, opened, shown] = await Promise.all([
      this.#realPaths([session.cwd, ...roots?.() ?? []]),
      this.#realPaths([outputPath?.(session.id) ?? []].flat()),
      this.#realPaths([...protectedPaths(), ...this.#started()]),
      this.#realPaths(secretPaths?.() ?? []),
      granted('write'), granted('read'),
    ])
    return { writable: [...writable, ...opened], readable: [...outputs, ...shown], protected: guarded, secret }
  }
  confine(session: SessionView, callId: string, launch: Launcher, standing?: () => string): void { this.#confined.set(callKey(session, callId), { launch, standing }) }

  // ---- for the loop

  /** How programs of this call are started, when a plugin said so. */
  confinement(session: SessionView, callId: string): Confinement | undefined { return this.#confined.get(callKey(session, callId)) }

  /** The session as one call sees it. */
  callView(session: SessionView, callId: string): SessionView {
    const view: SessionView = Object.freeze({ id: session.id, cwd: session.cwd, parent: session.parent, depth: session.depth, mode: session.mode, get messages() { return session.messages } })
    this.#calls.set(view, callId)
    return view
  }
  /** A person said yes to the ask about this call. */
  approve(session: SessionView, callId: string): void {
    for (const grant of this.#grants.get(callKey(session, callId)) ?? []) grant.approved = true
  }
  /** The call is over, whatever came of it: ids of calls may come again. */
  forget(session: SessionView, callId: string): void {
    this.#grants.delete(callKey(session, callId))
    this.#confined.delete(callKey(session, callId))
  }

  // ---- the policy

  async #admit(session: SessionView, path: string, mode: Mode): Promise<{ real: string; check: Check }> {
    if (isOfAProcess(absolute(session, path))) throw neverReached(path, mode)                     // also where it can't be resolved: the process may come
    const check = await this.#policy(session, path, mode)
    const real = await realOf(session, path)
    check(real)
    return { real, check }
  }

  /** A snapshot of what holds for this path now. It is asked again, with the path that was really opened. */
  async #policy(session: SessionView, path: string, mode: Mode): Promise<Check> {
    const { roots, protectedPaths, secretPaths, outputPath } = this.#options
    const closed = [...secretPaths?.() ?? [], ...mode === 'write' ? [...protectedPaths(), ...this.#started()] : []]
    const [folders, forbidden, own, opened] = await Promise.all([
      this.#realPaths([session.cwd, ...roots?.() ?? []]),
      this.#realPaths(closed).then(reals => [...closed, ...reals].map(fold)),
      mode === 'read' && outputPath ? this.#realPaths([outputPath(session.id)].flat()) : [],
      this.#opened(session, mode),
    ])
    return real => {
      if (own.some(folder => isInside(folder, real))) return
      const folded = fold(real)
      if (forbidden.some(folder => isInside(folder, folded)) || isOfAProcess(real) || mode === 'write' && isSteering(folded)) throw neverReached(path, mode)
      if (![...folders, ...opened].some(folder => isInside(folder, real))) throw outside(session, path)
    }
  }

  /** Real paths of what the configuration names; one that can't be resolved stands as it is. Tools can't change where these lead, so an answer holds for a moment. */
  #realPaths(paths: readonly string[]): Promise<string[]> {
    const now = performance.now()
    if (this.#known.size > KNOWN_MOST) this.#known.clear()
    return Promise.all(paths.map(path => {
      const known = this.#known.get(path)
      if (known && known.until > now) return known.real
      const real = realPath(resolve(path)).catch(() => resolve(path))
      this.#known.set(path, { real, until: now + KNOWN_MS })
      return real
    }))
  }

  /** What a person opened for the call that this view belongs to. A yes to writing is one to reading too. */
  async #opened(view: SessionView, mode: Mode): Promise<string[]> {
    const callId = this.#calls.get(view)
    if (callId === undefined) return []
    const grants = (this.#grants.get(callKey(view, callId)) ?? []).filter(grant => grant.approved && (grant.mode === 'write' || mode === 'read'))
    return realsOf(grants)
  }
}

const realsOf = async (grants: readonly Grant[]): Promise<string[]> => (await Promise.all(grants.map(grant => grant.real))).filter(real => real !== undefined)

/** Files that steer the host or git wherever they stand: a config of the host in any folder, and everything of git's (hooks, config, or a `.git` file that leads elsewhere). */
const isSteering = (folded: string): boolean => basename(folded) === 'harness.config.yaml' || folded.split(sep).includes('.git')

/** Environment and memory of processes, the host's among them, and of the whole machine. */
const isOfAProcess = (path: string): boolean => /^\/proc\/(?:.*\/)?(?:environ|mem|kcore)$|^\/dev\/k?mem$/.test(path)

/** Protected names are compared without case and in one Unicode form, since file systems differ in both; a few harmless names are refused with them. */
const fold = (path: string): string => path.normalize('NFC').toLowerCase()

/** Calls of different sessions may carry the same id. */
const callKey = (session: SessionView, callId: string): string => `${session.id}\0${callId}`

function absolute(session: SessionView, path: string): string {
  if (path === '') throw new HarnessError('outside_workspace', 'outside_workspace: the path is empty; use "." for the workspace itself')
  if (path.includes('\0')) throw new HarnessError('outside_workspace', `outside_workspace: ${show(path)} holds a NUL character; use a plain path`)
  if (path === '~' || path.startsWith('~/')) throw new HarnessError('outside_workspace', `outside_workspace: ${show(path)}: "~" is not expanded here; write the path out, or "./~" for a folder of that name`)
  return isAbsolute(path) ? resolve(path) : resolve(session.cwd, path)
}
async function realOf(session: SessionView, path: string): Promise<string> {
  const named = absolute(session, path)
  try {
    return await realPath(named)
  } catch (error) {
    if (error instanceof DanglingLink) throw outside(session, path, 'leads through a link to something that does not exist, so it may be outside')
    throw outside(session, path, `could not be resolved (${messageOf(error)}), so it may be outside`, error)
  }
}
const neverReached = (path: string, mode: Mode): HarnessError =>
  new HarnessError('protected_path', `protected_path: ${show(path)} is never ${mode === 'write' ? 'written' : 'read'} by tools, also not with a yes; leave it as it is`)
const outside = (session: SessionView, path: string, why = 'lies outside', cause?: unknown): HarnessError =>
  new HarnessError('outside_workspace', `outside_workspace: ${show(path)} ${why} the workspace ${show(session.cwd)}; use a path inside it`, { cause })

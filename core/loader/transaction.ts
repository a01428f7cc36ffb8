/**
 * One change of what runs: new versions in, old ones out, all or nothing. Knows modules and generations, no file and no config text.
 *
 *   stage ─────────────────────────────────────────────▶ switch ─▶ the old ones end on their own (the host's)
 *     └─ exclusive ones: close gates ▶ end the old ▶ mount the new ─┘      a failure there ▶ mount the old again ▶ open gates
 *
 * Invariants: a failure before an old one has ended changes nothing; while gates are closed nobody goes unjudged; whoever could not be put back is told before a gate opens.
 */
import { HarnessError, messageOf } from '../errors.js'
import type { PluginModule } from '../kernel/hooks.js'
import type { Generation, Kernel } from '../kernel/kernel.js'
import type { Hosted } from './hosted.js'

/** A version that is to run. */
export interface Member { readonly entry: Hosted; readonly module: PluginModule; readonly config: unknown }

/** What the transaction needs of the host, and tells it. Everything is synchronous, so that what it says holds at the switch. */
export interface TransactionPort {
  readonly kernel: Kernel
  readonly drainMs: number
  readonly mountMs: number
  dataDir(id: string): string
  /** Versions of an entry that were switched out and still have calls running. */
  leaving(entry: Hosted): readonly Generation[]
  entryOf(generation: Generation): Hosted | undefined
  switched(member: Member, generation: Generation): void
  /** It was ended for something that failed, and runs again as it was. */
  restored(entry: Hosted, generation: Generation): void
  /** It was stopped with its provider, and the new provider does not give it what it injects. */
  stopped(entry: Hosted, state: Record<string, unknown>): void
  /** It ran, and could not be put back after a failure. */
  lost(entry: Hosted, error: unknown): void
}
export interface Outcome {
  /** Dependents that were stopped and started along with the members. */
  readonly restarted: readonly Hosted[]
  /** Versions that were switched out and end on their own. */
  readonly retired: readonly Generation[]
}

/** Failures that a version running beside the old one may have, and alone would not. */
const COLLISIONS = ['EADDRINUSE', 'EEXIST', 'already_registered']

export function transact(port: TransactionPort, members: readonly Member[], commit: () => void = () => {}): Promise<Outcome> {
  return new Transaction(port, members).run(commit)
}

class Transaction {
  readonly #port: TransactionPort
  readonly #kernel: Kernel
  readonly #members: readonly Member[]
  readonly #exclusive = new Set<Member>()
  /** New versions, mounted and unseen, in the order in which they were mounted. */
  readonly #fresh = new Map<Member, Generation>()
  /** Old versions that were ended, providers first. */
  #ended: readonly Generation[] = []
  #open = () => {}

  constructor(port: TransactionPort, members: readonly Member[]) {
    this.#port = port
    this.#kernel = port.kernel
    this.#members = [...members].sort((a, b) => a.entry.spec.row - b.entry.spec.row)
  }

  async run(commit: () => void): Promise<Outcome> {
    try {
      for (const member of this.#members) if (isExclusive(member)) this.#exclusive.add(member)
      await this.#stage()
      if (this.#exclusive.size > 0) await this.#exchange()
      const retired = this.#switch(commit)
      await this.#settle()
      return { restarted: this.#dependents().map(({ entry }) => entry).filter(({ state }) => state === 'active'), retired }
    } catch (error) {
      for (const generation of [...this.#fresh.values()].reverse()) await this.#kernel.dispose(generation)
      await this.#restore()
      throw error
    } finally {
      this.#open()
    }
  }

  /** Members that can run beside their old versions; most failures end here, and nothing has been touched. */
  async #stage(): Promise<void> {
    const lacking: Member[] = []
    for (const member of this.#members) {
      if (this.#exclusive.has(member)) continue
      if (this.#missing(member).length > 0) { lacking.push(member); continue }
      try {
        await this.#mount(member, false)
      } catch (error) {
        if (!member.entry.generation || !collides(error)) throw error
        const { id } = member.entry
        this.#kernel.log.write('info', `plugin "${id}" can not run beside its old version (${messageOf(error)}); the old one is stopped first`, undefined, id)
        this.#exclusive.add(member)
      }
    }
    for (const member of lacking) this.#goAfterProviders(member)
  }
  /** What it lacks may come with the others of this transaction, if they are seen before it mounts: as exclusive ones are. */
  #goAfterProviders(member: Member): void {
    const missing = this.#missing(member)
    const providers = [...this.#fresh].filter(([, { provides }]) => missing.some(name => provides.includes(name)))
    if (providers.length === 0 && this.#exclusive.size === 0) throw lacks(member, missing)
    for (const [provider] of providers) this.#exclusive.add(provider)
    this.#exclusive.add(member)
  }

  /** Ends the old versions and all that use their services, and mounts the new ones, providers first. */
  async #exchange(): Promise<void> {
    const { drainMs, mountMs } = this.#port
    const down = this.#down()
    for (const member of [...this.#fresh.keys()].reverse()) {
      if (!this.#exclusive.has(member)) continue
      await this.#kernel.dispose(this.#fresh.get(member)!)
      this.#fresh.delete(member)
    }
    this.#open = this.#kernel.close(down, drainMs + mountMs)
    this.#ended = down
    const entries = down.flatMap(generation => this.#port.entryOf(generation) ?? [])
    const older = entries.flatMap(entry => this.#port.leaving(entry)).map(generation => this.#kernel.end(generation, drainMs))
    for (const generation of [...down].reverse()) await this.#kernel.end(generation, drainMs)
    await Promise.all(older)
    await this.#mountInTurn(new Set([...this.#exclusive, ...this.#dependents()]))
  }
  /** The old versions that have to end. A member that uses a service of one of them becomes exclusive too. */
  #down(): readonly Generation[] {
    const down = this.#kernel.dependents([...this.#exclusive].flatMap(({ entry }) => entry.generation ?? []))
    for (const member of this.#members) if (down.some(generation => generation === member.entry.generation)) this.#exclusive.add(member)
    return down
  }
  /** Whoever has its services, by row, until nobody is left. A dependent without its service waits; a member without it fails. */
  async #mountInTurn(pending: Set<Member>): Promise<void> {
    for (let member = this.#ready(pending); member; member = this.#ready(pending)) {
      pending.delete(member)
      await this.#mount(member, true)
    }
    for (const member of pending) if (this.#members.includes(member)) throw lacks(member, this.#missing(member))
  }
  #ready(pending: ReadonlySet<Member>): Member | undefined {
    return [...pending].sort((a, b) => a.entry.spec.row - b.entry.spec.row).find(member => this.#missing(member).length === 0)
  }

  #switch(commit: () => void): Generation[] {
    const outs = [...this.#fresh.keys()].flatMap(({ entry }) => entry.generation && !this.#ended.includes(entry.generation) ? [entry.generation] : [])
    this.#kernel.switch([...this.#fresh.values()], outs)
    for (const [member, generation] of this.#fresh) this.#port.switched(member, generation)
    for (const { entry } of this.#dependents()) if (entry.generation && this.#ended.includes(entry.generation)) this.#port.stopped(entry, entry.generation.state)
    commit()
    return outs
  }
  /** Optional scopes that were stopped have to judge again before a gate opens. */
  async #settle(): Promise<void> {
    if (this.#ended.length > 0) while (await this.#kernel.settle());
  }

  /** After a failure: what was ended is mounted again, the same module with the same config and state. */
  async #restore(): Promise<void> {
    const back: { entry: Hosted; generation: Generation }[] = []
    for (const old of this.#ended) {
      const entry = this.#port.entryOf(old)
      if (!entry) continue                                  // an optional scope; it comes back with its plugin or by settling
      const member: Member = { entry, module: old.module, config: old.config }
      try {
        back.push({ entry, generation: await this.#kernel.mount(old.module, { ...this.#options(member, true), version: old.generation, state: old.state }) })
      } catch (error) {
        this.#port.lost(entry, error)
      }
    }
    for (const { entry, generation } of back) {
      try {
        this.#kernel.switch([generation])
        this.#port.restored(entry, generation)
      } catch (error) {
        await this.#kernel.dispose(generation)
        this.#port.lost(entry, error)
      }
    }
    await this.#settle()
  }

  async #mount(member: Member, exclusive: boolean): Promise<void> {
    this.#fresh.set(member, await this.#kernel.mount(member.module, this.#options(member, exclusive)))
  }
  #options({ entry, config }: Member, exclusive: boolean) {
    return { id: entry.id, row: entry.spec.row, version: entry.version + 1, config, state: entry.generation?.state ?? entry.data, dataDir: this.#port.dataDir(entry.id), file: entry.spec.from, mountMs: this.#port.mountMs, exclusive }
  }
  /** Entries that were ended with their provider: they run again as they were. */
  #dependents(): readonly Member[] {
    return this.#restarts ??= this.#ended.flatMap(generation => {
      const entry = this.#port.entryOf(generation)
      return entry && !this.#members.some(member => member.entry === entry) ? [{ entry, module: generation.module, config: generation.config }] : []
    })
  }
  #restarts: readonly Member[] | undefined
  #missing({ module }: Member): string[] { return this.#kernel.missing(module.inject ?? []) }
}

/** Has the running version to end before the next one starts? */
function isExclusive({ entry: { generation }, module }: Member): boolean {
  if (!generation) return false
  return module.reload === 'exclusive' || generation.module.reload === 'exclusive' || generation.provides.length > 0 || (generation.holds && generation.module.reload !== 'staged')
}
function collides(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if (COLLISIONS.includes((at as { code?: string }).code ?? '')) return true
  return false
}
const lacks = ({ entry }: Member, missing: readonly string[]): HarnessError =>
  new HarnessError('service_missing', `plugin "${entry.id}" waits for service ${missing.map(name => `"${name}"`).join(', ')}, which no enabled plugin provides; enable one, or drop it from inject`)

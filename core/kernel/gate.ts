/**
 * A gate before what a plugin offers, closed while the plugin is replaced exclusively: who comes meanwhile waits, bounded.
 * Knows activities, no registry. Invariant: a call that the closing side itself waits for is never made to wait.
 */
import { HarnessError } from '../errors.js'
import { enclosing } from './async-context.js'
import type { Owner } from './owners.js'

/** The limit of a gate has passed. */
export class GateTimeout extends HarnessError {
  readonly plugins: readonly string[]
  readonly why: string
  constructor(what: string, gate: Gate) {
    const plugins = [...new Set([...gate.owners].map(owner => owner.id))]
    const why = `it is being reloaded and did not come back within ${gate.limitMs} ms`
    super('plugin_timeout', `${what} waits for plugin ${plugins.map(id => `"${id}"`).join(', ')}: ${why}`)
    this.plugins = plugins
    this.why = why
  }
}

export class Gate {
  readonly owners: ReadonlySet<Owner>
  readonly limitMs: number
  /** Opens the gate; once is enough. */
  readonly open: () => void
  readonly #opened: Promise<void>
  constructor(owners: readonly Owner[], limitMs: number) {
    this.owners = new Set(owners)
    this.limitMs = limitMs
    let open = () => {}
    this.#opened = new Promise(resolve => { open = resolve })
    this.open = open
  }
  /** Was the current call begun inside one of these owners, or inside a dispatch that holds one of them? */
  admits(): boolean {
    for (const { owner, holding } of enclosing()) {
      if (owner !== undefined && this.owners.has(owner)) return true
      if (holding !== undefined) for (const held of holding) if (this.owners.has(held)) return true
    }
    return false
  }
  /** Resolves when it opens; rejects with GateTimeout after `ms`, or with the signal's reason. */
  async wait(what: string, ms: number, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    let giveUp: (() => void) | undefined
    const stopped = new Promise<never>((_, reject) => {
      const timer = setTimeout(() => reject(new GateTimeout(what, this)), Math.max(0, ms))
      const abort = () => reject(signal?.reason)
      signal?.addEventListener('abort', abort)
      giveUp = () => { clearTimeout(timer); signal?.removeEventListener('abort', abort) }
    })
    try { await Promise.race([this.#opened, stopped]) } finally { giveUp?.() }
  }
}

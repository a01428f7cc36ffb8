/** Why entries wait, in words: who would provide the service, and cycles by name. Pure; works on what modules say of themselves, before anything is mounted. */
import type { EntryState } from './entry.js'

export interface Waiter {
  readonly id: string
  readonly state: EntryState
  /** Services it injects that are not there. */
  readonly missing: readonly string[]
  /** Services it says or is known to provide. */
  readonly provides: readonly string[]
}

/** Services of core that are not there in every process, and where they are. */
const ELSEWHERE: Readonly<Record<string, string>> = { routes: 'which only a daemon has; start one with "hx start"' }

/** One sentence for each entry that waits. */
export function explain(entries: readonly Waiter[]): Map<string, string> {
  const waiting = entries.filter(entry => entry.state === 'waiting' && entry.missing.length > 0)
  return new Map(waiting.map(entry => [entry.id, sentence(entry, entries)]))
}

function sentence(entry: Waiter, entries: readonly Waiter[]): string {
  const cycle = findCycle(entry, entries)
  if (cycle) return `plugin "${entry.id}" waits in a cycle: ${cycle.join(' > ')}; one of them has to do without the other's service, or ask for it with ctx.inject`
  const service = entry.missing[0]!
  const providers = entries.filter(other => other.provides.includes(service))
  const provider = providers.find(other => other.state !== 'disabled') ?? providers[0]
  const waits = `plugin "${entry.id}" waits for service "${service}"`
  if (!provider && Object.hasOwn(ELSEWHERE, service)) return `${waits}, ${ELSEWHERE[service]}`
  if (!provider) return `${waits}, which no enabled plugin provides; enable one, or drop it from inject`
  if (provider.state === 'disabled') return `${waits}, which no enabled plugin provides; enable "${provider.id}", or drop it from inject`
  if (provider.state === 'waiting') return `${waits} of plugin "${provider.id}", which waits itself`
  if (provider.state === 'active') return `${waits}, which plugin "${provider.id}" says it provides but does not; see its provides`
  return `${waits} of plugin "${provider.id}", which is not running (${provider.state})`
}

/** The ids along the way from an entry back to itself, by what each misses. */
export function findCycle(from: Waiter, entries: readonly Waiter[]): string[] | undefined {
  const seen = new Set<Waiter>()
  const walk = (entry: Waiter, trail: readonly string[]): string[] | undefined => {
    for (const service of entry.missing) {
      for (const provider of entries) {
        if (provider.state !== 'waiting' || !provider.provides.includes(service)) continue
        if (provider === from) return [...trail, from.id]
        if (seen.has(provider)) continue
        seen.add(provider)
        const found = walk(provider, [...trail, provider.id])
        if (found) return found
      }
    }
    return undefined
  }
  return walk(from, [from.id])
}

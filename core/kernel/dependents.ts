/** Who uses whose services among mounted generations: the order to stop and start in. Pure; optional scopes go with their plugin where it goes itself. */
import type { Generation } from './generation.js'

/**
 * All that has to stop before `of` may: whoever uses a service of theirs, optional scopes included, and whoever uses theirs, and so on; `of` included.
 * Providers come first, so the reverse is the order to stop in.
 */
export function dependents(of: readonly Generation[], mounted: Iterable<Generation>): Generation[] {
  const live = [...mounted].filter(({ stage }) => stage === 'live')
  const found = new Set(of)
  for (const { provides } of found) {                      // grows while it is walked
    for (const other of live) if (other.module.inject?.some(name => provides.includes(name))) found.add(other)
  }
  const withPlugin = ({ parent }: Generation): boolean => parent !== undefined && (found.has(parent) || withPlugin(parent))
  return providersFirst([...found].filter(generation => !withPlugin(generation)))
}

/** By row, but nobody before whom he uses. There are no cycles: who stands in one is never mounted. */
function providersFirst(generations: readonly Generation[]): Generation[] {
  const inOrder = [...generations].sort((a, b) => a.row - b.row)
  const ordered = new Set<Generation>(), visited = new Set<Generation>()
  const visit = (generation: Generation) => {
    if (visited.has(generation)) return
    visited.add(generation)
    const needs = generation.family.flatMap(({ module }) => module.inject ?? [])
    for (const provider of inOrder) if (provider !== generation && provider.provides.some(name => needs.includes(name))) visit(provider)
    ordered.add(generation)
  }
  for (const generation of inOrder) visit(generation)
  return [...ordered]
}

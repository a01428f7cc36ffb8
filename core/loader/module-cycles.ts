/** Which modules import each other in a circle (Tarjan). Pure: from files and their edges to the circle of each file that is in one; files of the same circle get the very same list. */
export function circles(edges: ReadonlyMap<string, Iterable<string>>): Map<string, readonly string[]> {
  const index = new Map<string, number>(), low = new Map<string, number>()
  const stack: string[] = [], onStack = new Set<string>()
  const circle = new Map<string, readonly string[]>()
  const visit = (file: string): void => {
    index.set(file, index.size)
    low.set(file, index.get(file)!)
    stack.push(file)
    onStack.add(file)
    for (const next of edges.get(file) ?? []) {
      if (!edges.has(next)) continue
      if (!index.has(next)) visit(next)
      if (onStack.has(next)) low.set(file, Math.min(low.get(file)!, low.get(next)!))
    }
    if (low.get(file) !== index.get(file)) return
    const members = stack.splice(stack.indexOf(file))
    for (const member of members) {
      onStack.delete(member)
      if (members.length > 1 || [...edges.get(member)!].includes(member)) circle.set(member, members)
    }
  }
  for (const file of edges.keys()) if (!index.has(file)) visit(file)
  return circle
}

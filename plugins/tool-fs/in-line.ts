/**
 * Lets works on the same thing run one after the other, and works on different things at once. Holds nothing of what is done.
 */
export type InLine = <T>(key: string, work: () => Promise<T>) => Promise<T>

export function inLine(): InLine {
  const last = new Map<string, Promise<unknown>>()
  return (key, work) => {
    const mine = (last.get(key) ?? Promise.resolve()).then(work, work)   // the one before tells its failure to its own caller
    last.set(key, mine)
    const leave = (): void => { if (last.get(key) === mine) last.delete(key) }
    mine.then(leave, leave)
    return mine
  }
}

/**
 * Requests that come in the same instant are begun one after another, each in a turn of the event loop of its own; one that comes alone waits for nothing. Knows no request.
 * Else the work of all of them would be one stretch, in which no timer runs and nobody else is served; of some hundreds it is long enough to be taken for a plugin that never gives the process back.
 */
export function inTurn(): () => Promise<void> | undefined {
  const waiting: (() => void)[] = []
  /** This turn of the event loop has begun one. */
  let taken = false
  const next = () => {
    const begin = waiting.shift()
    taken = begin !== undefined
    if (!begin) return
    begin()
    setImmediate(next)
  }
  return () => {
    if (taken) return new Promise(resolve => { waiting.push(resolve) })
    taken = true
    setImmediate(next)
    return undefined
  }
}

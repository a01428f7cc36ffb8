/**
 * Requests that come in the same instant are begun one after another, each in a turn of the event loop of its own. Knows no request.
 * Else the work of all of them would be one stretch, in which no timer runs and nobody else is served; of some hundreds it is long enough to be taken for a plugin that never gives the process back.
 */
export function inTurn(): () => Promise<void> {
  const waiting: (() => void)[] = []
  const next = () => {
    waiting.shift()!()
    if (waiting.length > 0) setImmediate(next)
  }
  return () => new Promise(resolve => { if (waiting.push(resolve) === 1) setImmediate(next) })
}

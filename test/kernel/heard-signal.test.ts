import { getEventListeners } from 'node:events'
import { describe, expect, it } from 'vitest'
import { currentOwner, runAs } from '../../core/kernel/async-context.js'
import { heardController } from '../../core/kernel/heard-signal.js'
import type { Owner } from '../../core/kernel/owners.js'

const owner = (id: string): Owner => ({ id, generation: 1, row: 0, stage: 'live' })

describe('a signal that plugins are given', () => {
  it('calls what hangs on it on the account of who hung it there, whoever aborts', () => {
    const { signal, abort } = held(), heard: string[] = []
    const hear = (how: string) => () => { heard.push(`${how} ${currentOwner()?.id ?? 'nobody'}`) }
    runAs(owner('a'), () => { signal.addEventListener('abort', hear('function')) })
    runAs(owner('b'), () => { signal.addEventListener('abort', { handleEvent: hear('object') }) })
    runAs(owner('c'), () => { signal.onabort = hear('onabort') })
    signal.addEventListener('abort', hear('core'))
    runAs(owner('d'), abort)
    expect(heard).toEqual(['function a', 'object b', 'onabort c', 'core d'])
  })
  it('gives a function the event and the signal as `this`, once if it was added twice, and takes it back', () => {
    const { signal, abort } = held(), seen: unknown[] = []
    function hear(this: unknown, event: Event) { seen.push(this, event.type, event.target) }
    runAs(owner('a'), () => {
      signal.addEventListener('abort', hear)
      signal.addEventListener('abort', hear, { once: true })
      const gone = () => { seen.push('gone') }
      signal.addEventListener('abort', gone)
      signal.removeEventListener('abort', gone)
      signal.addEventListener('abort', null as never)
    })
    abort()
    expect(seen).toEqual([signal, 'abort', signal])
  })
  it('holds nothing more once what hung on it is taken back, from outside too', () => {
    const { signal } = held(), hear = () => {}
    runAs(owner('a'), () => { signal.addEventListener('abort', hear) })
    expect(getEventListeners(signal, 'abort')).toHaveLength(1)
    signal.removeEventListener('abort', hear)
    expect(getEventListeners(signal, 'abort')).toEqual([])
  })
  it('serves what Node itself hangs there: a derived signal, and one that is waited on', async () => {
    const { signal, abort } = held()
    const derived = runAs(owner('a'), () => AbortSignal.any([signal]))
    const waiting = runAs(owner('a'), async () => { await (await import('node:timers/promises')).setTimeout(60_000, undefined, { signal }) })
    const refused = expect(waiting).rejects.toMatchObject({ name: 'AbortError' })
    await new Promise(setImmediate)
    abort()
    expect(derived.aborted).toBe(true)
    await refused
  })
})

function held() {
  const controller = heardController()
  return { signal: controller.signal, abort: () => { controller.abort() } }
}

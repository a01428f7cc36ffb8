import { getEventListeners } from 'node:events'
import { expect, it } from 'vitest'
import { waitsUntilAborted } from '../../core/agent/abort.js'

it('a thousand waits have one place on the list of their signal, and none when they are over', async () => {
  const { signal } = new AbortController(), { wait, off } = waitsUntilAborted(signal)
  for (let i = 0; i < 1000; i++) expect(await wait(Promise.resolve(i))).toBe(i)
  await expect(wait(Promise.reject(new Error('failed')))).rejects.toThrow('failed')
  expect(getEventListeners(signal, 'abort')).toHaveLength(1)
  off()
  expect(getEventListeners(signal, 'abort')).toHaveLength(0)
})

it('an abort ends the wait at hand and every later one with its reason, whatever the work does', async () => {
  const controller = new AbortController(), { wait } = waitsUntilAborted(controller.signal), hanging = new Promise<never>(() => {})
  await wait(Promise.resolve())
  const waiting = wait(hanging)
  controller.abort(new Error('stopped'))
  await expect(waiting).rejects.toThrow('stopped')
  await expect(wait(hanging)).rejects.toThrow('stopped')
})

/** What the compiler holds of `until`: a promise is an object, so an async condition would hold at once. */
import { expect, it } from 'vitest'
import { until } from '../support/agent.js'

/** Never called: it is there to be compiled. */
export async function conditions(): Promise<void> {
  await until(() => [1].find(one => one === 1))
  // @ts-expect-error an async condition
  await until(async () => true)
  // @ts-expect-error one that is a promise at times
  await until((): boolean | Promise<boolean> => true)
}
it('waits until a condition holds, and fails when it never does', async () => {
  let looks = 0
  await until(() => ++looks === 3)
  expect(looks).toBe(3)
  await expect(until(() => false, 'the moon', 1)).rejects.toThrow('the moon did not come true')
})

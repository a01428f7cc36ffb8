import { expect, it, onTestFinished } from 'vitest'
import { Frames } from '../../../core/cli/chat/frames.js'
import { until } from '../../support/agent.js'

function counted(moves = () => false) {
  let drawn = 0
  const frames = new Frames(() => { drawn++ }, moves)
  onTestFinished(() => { frames.end() })
  return { frames, drawn: () => drawn }
}

it('draws once for all that changes before the next frame, and at once when asked to', async () => {
  const { frames, drawn } = counted()
  for (let i = 0; i < 50; i++) frames.soon()
  expect(drawn()).toBe(0)
  await until(() => drawn() > 0)
  expect(drawn()).toBe(1)
  frames.soon()
  frames.now()                                               // takes what was to come with it
  expect(drawn()).toBe(2)
})
it('draws by itself while something moves, and never after its end', async () => {
  let moves = true
  const { frames, drawn } = counted(() => moves)
  await until(() => drawn() >= 2)
  moves = false
  const before = drawn()
  frames.soon()
  frames.end()
  await new Promise(resolve => { setTimeout(resolve, 150) })   // longer than a frame and a look; a slow machine only looks less
  expect(drawn()).toBe(before)
})

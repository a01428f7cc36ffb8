import { describe, expect, it } from 'vitest'
import { testAgent, ofType } from '../support/agent.js'

describe('a turn', () => {
  it('answers a prompt', async () => {
    const { run, model } = await testAgent()
    model.says('hello')
    const ran = await run('hi')
    expect(ran).toMatchObject({ reason: 'completed', text: 'hello', stats: { steps: 1, toolCalls: 0, blocked: 0 }, usage: { inputTokens: 10, outputTokens: 2 } })
    expect(ran.log.map(event => event.type)).toEqual(['session', 'turn-start', 'message', 'system', 'request', 'usage', 'message', 'turn-end'])
    expect(ofType(ran.log, 'turn-end')[0]).toMatchObject({ reason: 'completed' })
  })
})

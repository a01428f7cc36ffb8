import { describe, expect, it } from 'vitest'
import { reject } from '../../core/agent/hooks.js'
import { textOf } from '../../core/agent/vocabulary.js'
import { testAgent, type Script, type TestAgent } from '../support/agent.js'
import { until } from '../support/hx.js'

const users = ({ model }: TestAgent, request: number) => model.requests[request]!.messages.filter(({ role }) => role === 'user').map(textOf)

describe('a prompt for a turn that runs', () => {
  async function steered(...script: Script) {
    const one = await testAgent()
    one.model.says(...script)
    await one.tools({ name: 'steer', description: 'what a person says meanwhile', parameters: { type: 'object', properties: { text: { type: 'string' } } }, execute: ({ text }: { text: string }, { session }) => String(one.agent.agents.steer(session.id, text)) })
    return one
  }
  it('is taken at its next step, behind the results of its calls', async () => {
    const one = await steered({ calls: [['steer', { text: 'rather in blue' }]] }, 'blue')
    const ran = await one.run('paint it')
    expect(ran).toMatchObject({ reason: 'completed', turn: 1, text: 'blue' })
    expect(users(one, 1)).toEqual(['paint it', 'rather in blue'])
    expect(one.model.requests[1]!.messages.at(-1)).toMatchObject({ role: 'user' })
    expect(ran.log.filter(({ type }) => type === 'turn-start')).toHaveLength(1)
  })
  it('continues a turn that would have ended', async () => {
    const one = await steered(() => { one.agent.agents.steer(one.agent.agents.list()[0]!.session, 'and more'); return 'first' }, 'second')
    expect(await one.run('go')).toMatchObject({ text: 'second', turn: 1 })
    expect(users(one, 1)).toEqual(['go', 'and more'])
  })
  it('is judged like any prompt, and left out with a warning when it is rejected', async () => {
    const one = await steered({ calls: [['steer', { text: 'bad idea' }]] }, 'done')
    await one.plugin('judge', ctx => { ctx.on('agent/user-prompt-submit', ({ prompt }) => { if (prompt.startsWith('bad')) return reject('no bad ideas') }) })
    const ran = await one.run('go')
    expect(ran).toMatchObject({ reason: 'completed', text: 'done' })
    expect(users(one, 1)).toEqual(['go'])
    expect(ran.log.find(({ type }) => type === 'warning')).toMatchObject({ message: 'a prompt for the running turn was left out: rejected by plugin "judge": no bad ideas' })
  })
  it('has a turn of its own when the one it was for takes no further step', async () => {
    const one = await steered({ calls: [['steer', { text: 'later' }]] }, 'in a turn of its own')
    const { reason, session } = await one.run('go', { maxSteps: 1 })
    expect(reason).toBe('max-steps')
    await until(() => one.agent.agents.list().length === 0)
    const { events } = await one.store.read(session)
    expect(events.flatMap(event => event.type === 'turn-start' ? [event.prompt] : [])).toEqual(['go', 'later'])
    expect(events.findLast(event => event.type === 'turn-end')).toMatchObject({ turn: 2, reason: 'completed' })
  })
  it('goes with a turn that is stopped', async () => {
    const one = await steered({ hang: true })
    const running = one.run('go')
    const { session } = await until(() => one.model.requests.length > 0 && one.agent.agents.list()[0])
    expect(one.agent.agents.steer(session, 'later')).toBe(true)
    one.agent.agents.abort(session)
    expect((await running).reason).toBe('aborted')
    await until(() => one.agent.agents.list().length === 0)
    expect(one.model.requests).toHaveLength(1)
  })
  it('is refused when none runs, and when it is empty', async () => {
    const one = await steered('hi')
    const { session } = await one.run('go')
    expect(one.agent.agents.steer(session, 'more')).toBe(false)
    expect(() => one.agent.agents.steer(session, ' ')).toThrow('not empty')
  })
})

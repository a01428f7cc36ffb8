import { describe, expect, it } from 'vitest'
import { allow, ask } from '../../core/agent/hooks.js'
import type { ApprovalAnswer, ApprovalRequest, Approver, RunInput, Tool } from '../../core/agent/services.js'
import { finished, ofType, testAgent, until, type ScriptedCall } from '../support/agent.js'

/** An agent whose every call of `write` is asked about. */
async function asking({ askTimeoutMs, approvers }: { askTimeoutMs?: number; approvers?: readonly string[] } = {}) {
  const test = await testAgent({ config: { ...(askTimeoutMs !== undefined && { askTimeoutMs }), ...(approvers && { approvers }) } })
  const ran: unknown[] = [], asked: ApprovalRequest[] = [], told: string[] = []
  const write: Tool = { name: 'write', description: 'writes', parameters: { type: 'object' }, execute: (args: object) => { ran.push(args); return 'written' } }
  await test.tools(write)
  await test.plugin('permission', ctx => {
    ctx.on('agent/pre-tool-use', () => ask('it writes'))
    ctx.on('agent/ask', ({ call, reason }) => { told.push(`${call.id} ${reason}`) })
  })
  const answering = (...answers: (ApprovalAnswer | undefined)[]): Approver => async request => { asked.push(request); return answers.shift() }
  const go = async (calls: readonly ScriptedCall[], more: Partial<RunInput> = {}) => {
    test.model.says({ calls }, 'done')
    const turn = await test.run('go', more)
    return { ...turn, approvals: ofType(turn.log, 'approval').map(({ answer, by, reason }) => `${answer} ${by} ${reason}`), results: ofType(turn.log, 'tool-result') }
  }
  return { test, ran, asked, told, answering, go }
}

describe('an ask', () => {
  it('shows the call to the person of the run, once, and a yes lets it run', async () => {
    const { go, asked, told, ran, answering } = await asking()
    const turn = await go([['write', { a: 1 }], ['write', { a: 1 }]], { approver: answering({ answer: 'once' }, { answer: 'once' }) })
    expect(asked).toMatchObject([{ session: turn.session, turn: 1, call: { id: 'c1', name: 'write', arguments: { a: 1 } }, reason: 'it writes', plugin: 'permission' }, { call: { id: 'c2' } }])
    expect(told).toEqual(['c1 it writes', 'c2 it writes'])
    expect(turn.approvals).toEqual(['once user it writes', 'once user it writes'])
    expect(ran).toHaveLength(2)
    expect(turn.unanswered).toBe(false)
  })
  it('that is denied reaches the model with the reason, and with the note of the person', async () => {
    const { go, ran, answering } = await asking()
    const turn = await go([['write', {}], ['write', {}]], { approver: answering({ answer: 'denied' }, { answer: 'denied', note: 'use trash' }) })
    expect(turn.results.map(({ kind, content, plugin }) => [kind, content, plugin])).toEqual([['denied', 'denied by the user (it writes)', 'permission'], ['denied', 'denied by the user (it writes): use trash', 'permission']])
    expect(turn).toMatchObject({ reason: 'completed', unanswered: false, stats: { blocked: 2 } })
    expect(ran).toEqual([])
  })
  it('without anybody to ask is denied', async () => {
    const { go, told } = await asking()
    const turn = await go([['write', {}]])
    expect(turn.results[0]).toMatchObject({ kind: 'denied', content: 'denied: nobody could be asked (it writes)' })
    expect(turn).toMatchObject({ unanswered: true, approvals: ['denied nobody it writes'] })
    expect(told).toEqual(['c1 it writes'])
  })
  it('counts anything but one of the three yeses as no', async () => {
    const { go, ran } = await asking()
    const answers: Approver[] = [async () => undefined, async () => { throw new Error('gone') }, () => { throw new Error('gone') }, async () => ({ answer: 'yes' }) as never, async () => true as never]
    for (const approver of answers) expect(await go([['write', {}]], { approver })).toMatchObject({ unanswered: true, approvals: ['denied nobody it writes'] })
    expect(ran).toEqual([])
  })
  it('has a limit, after which it is withdrawn and a late yes does nothing', async () => {
    const { go, ran } = await asking({ askTimeoutMs: 30 })
    let withdrawn = false, late = (_: ApprovalAnswer) => {}
    const turn = await go([['write', {}]], { approver: ({ signal }) => { signal.addEventListener('abort', () => { withdrawn = true }); return new Promise(resolve => { late = resolve }) } })
    late({ answer: 'once' })
    expect(turn).toMatchObject({ unanswered: true, approvals: ['denied timeout it writes'] })
    expect(turn.results[0]!.content).toBe('denied: nobody could be asked (it writes)')
    expect(withdrawn).toBe(true)
    expect(ran).toEqual([])
  })
  it('is withdrawn when its turn is stopped', async () => {
    const { test, ran } = await asking()
    let withdrawn = false, asked = false
    test.model.says({ calls: [['write', {}]] })
    const run = await test.agent.agents.run({ prompt: 'go', cwd: test.cwd, approver: ({ signal }) => { asked = true; signal.addEventListener('abort', () => { withdrawn = true }); return new Promise(() => {}) } })
    await until(() => asked)
    test.agent.agents.abort(run.session)
    const turn = await finished(run)
    expect(turn.reason).toBe('aborted')
    expect(ofType(turn.log, 'approval')).toMatchObject([{ answer: 'denied', by: 'abort' }])
    expect(ofType(turn.log, 'tool-result')).toMatchObject([{ kind: 'interrupted' }])
    expect(withdrawn).toBe(true)
    expect(ran).toEqual([])
  })
  it('for the session is not put again for the same call, whatever the order of its arguments', async () => {
    const { go, asked, told, answering } = await asking()
    const approver = answering({ answer: 'session' }, { answer: 'once' }, { answer: 'once' })
    const first = await go([['write', { a: 1, b: { c: 2 } }], ['write', { b: { c: 2 }, a: 1 }], ['write', { a: 2 }]], { approver })
    expect(first.approvals).toEqual(['session user it writes', 'session user it writes', 'once user it writes'])
    const again = await go([['write', { a: 1, b: { c: 2 } }]], { session: first.session })
    expect(again.unanswered).toBe(false)
    const other = await go([['write', { a: 1, b: { c: 2 } }]], { approver })
    expect(other.approvals).toEqual(['once user it writes'])
    expect(asked).toHaveLength(3)
    expect(told).toHaveLength(3)
  })
  it('for good holds in the same folder, not in another', async () => {
    const { go, test, answering } = await asking()
    await go([['write', { a: 1 }]], { approver: answering({ answer: 'always' }) })
    expect((await go([['write', { a: 1 }]])).approvals).toEqual(['always user it writes'])
    expect((await go([['write', { a: 1 }]], { cwd: test.folder.path })).approvals).toEqual(['denied nobody it writes'])
  })
  it('is answered by the mode "yes" without asking, and the log says so', async () => {
    const { go, told, ran } = await asking()
    expect((await go([['write', {}]], { mode: 'yes' })).approvals).toEqual(['once mode it writes'])
    expect(told).toEqual([])
    expect(ran).toHaveLength(1)
  })
  it('of a nested agent goes to the person of the outer one, who can not be outdone by its mode', async () => {
    const { test, asked, answering, ran } = await asking()
    await test.plugin('sub', ctx => {
      ctx.tools.register({ name: 'delegate', description: 'd', parameters: { type: 'object' }, execute: async (_, { session, signal }) => (await (await ctx.agents.run({ prompt: 'inner', mode: 'yes', parent: { session: session.id, depth: session.depth }, signal })).result).text })
    })
    test.model.says({ calls: [['delegate', {}]] }, { calls: [['write', {}]] }, 'inner', 'outer')
    await test.run('go', { approver: answering({ answer: 'once' }, { answer: 'denied' }) })
    expect(asked.map(({ call }) => call.name)).toEqual(['delegate', 'write'])
    expect(asked[1]!.session).not.toBe(asked[0]!.session)
    expect(ran).toEqual([])
  })
  it('does not count as time of a handler that waits around it', async () => {
    const { test, go } = await asking()
    await test.plugin('around', ctx => {
      ctx.tools.register({ name: 'consent', description: 'c', parameters: { type: 'object' }, readOnly: true, execute: async (_, { session }) => String(await ctx.approvals.ask({ session: session.id, title: 'a server', reason: 'it is new' })) })
      ctx.on('agent/tool-use', async (_, next) => next(), { tools: ['consent'], timeout: 40 })
    })
    const slow: Approver = async () => { await new Promise(resolve => { setTimeout(resolve, 80) }); return { answer: 'once' } }
    const turn = await go([['consent', {}]], { approver: slow })
    expect(turn.results[0]).toMatchObject({ kind: 'ok', content: 'true' })
  })
})

describe('a plugin', () => {
  it('can not answer for the user: no approver, mode or decision of its own makes an ask a yes, unless the config names it', async () => {
    for (const approvers of [[], ['another']]) {
      const { test, ran, answering } = await asking({ approvers })
      const refused: unknown[] = []
      await test.plugin('eager', ctx => {
        ctx.on('agent/pre-tool-use', async (_, next) => { await next(); return allow() }, { prepend: true })
        ctx.on('agent/session-start', async ({ session }) => {
          if (session.parent !== undefined) return
          for (const more of [{ approver: async () => ({ answer: 'always' as const }) }, { mode: 'yes' as const }, { mode: 'accept-edits' as const }, { mode: 'yes' as const, parent: { session: 'nobody', depth: 0 } }]) {
            await ctx.agents.run({ prompt: 'write', cwd: session.cwd, ...more }).catch((error: Error) => { refused.push(error.message) })
          }
          expect(Object.keys(ctx.workspace)).not.toContain('approve')
        })
      })
      test.model.says({ calls: [['write', {}]] }, 'done')
      expect(ofType((await test.run('go')).log, 'tool-result')).toMatchObject([{ kind: 'denied' }])
      expect(refused).toEqual(['an approver', 'mode "yes"', 'mode "accept-edits"', 'mode "yes"'].map(how => `plugin "eager" may not answer for the user: it began a turn with ${how} of its own; agent.approvers in the config names the plugins that may`))
      test.model.says({ calls: [['write', {}]] }, 'done')
      expect(ofType((await test.run('again', { approver: answering({ answer: 'denied' }) })).log, 'approval')).toMatchObject([{ answer: 'denied', by: 'user' }])
      expect(ran).toEqual([])
    }
    const { test, ran } = await asking({ approvers: ['named'] })
    const named: { run?: () => Promise<unknown> } = {}
    await test.plugin('named', ctx => { named.run = async () => (await ctx.agents.run({ prompt: 'write', cwd: test.cwd, mode: 'yes' })).result })
    test.model.says({ calls: [['write', {}]] }, 'done')
    await named.run!()
    expect(ran).toHaveLength(1)
  })
})

describe('an ask of a plugin on its own account', () => {
  it('goes to the person of the session that runs; nobody means no', async () => {
    const { test, go, asked, answering } = await asking()
    const said: unknown[] = []
    await test.plugin('mcp', ctx => { ctx.on('agent/turn-start', async ({ session }) => { said.push(await ctx.approvals.ask({ session: session.id, title: 'start server "x"', reason: 'it runs a program' })) }) })
    await go([], { approver: answering({ answer: 'once' }) })
    await go([])
    await go([], { mode: 'yes' })
    expect(said).toEqual([true, false, true])
    expect(asked).toMatchObject([{ call: { name: 'start server "x"' }, plugin: 'mcp', reason: 'it runs a program' }])
  })
})

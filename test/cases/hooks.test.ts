import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { textOf } from '../../core/agent/vocabulary.js'
import { caseHost, tool } from '../support/case-host.js'

const bash = (command: string) => ({ calls: [{ name: 'bash', arguments: { command } }] })

describe('a refused call', () => {
  it('carries the exact reason of the first plugin that blocks; the second one is not asked', async () => {
    const host = await caseHost({
      plugins: { first: `ctx.on('agent/pre-tool-use', () => block('use pnpm here'))`, second: `ctx.on('agent/pre-tool-use', () => { say('second was asked'); return block('or yarn') })`, tools: tool('bash') },
      replies: [bash('npm i'), 'done'],
    })
    const { results } = await host.run('install')
    expect(results).toEqual(['blocked by plugin "first": use pnpm here. The same call will be refused again; do not work around it.'])
    expect(textOf(host.requests[1]!.messages.at(-1)!)).toBe(results[0])
    expect(host.said()).toEqual([])
  })
  it('shows the model neither config nor stack nor path of the plugin, also when that threw', async () => {
    const host = await caseHost({
      plugins: {
        blocks: { code: `ctx.on('agent/pre-tool-use', () => block('not here'), { tools: ['first'] })`, config: { token: 'sk-hunter2' } },
        throws: { code: `ctx.on('agent/pre-tool-use', () => { throw new Error('no route with ' + config.token) }, { tools: ['second'] })`, config: { token: 'sk-hunter2' } },
        tools: tool('first') + tool('second'),
      },
      replies: [{ calls: [{ name: 'first', arguments: {} }, { name: 'second', arguments: {} }] }, 'done'],
    })
    const { results } = await host.run('go')
    expect(results[1]).toBe('hook_failed: plugin "throws" could not judge this call (it threw an error)')
    expect(JSON.stringify(host.requests)).not.toMatch(/sk-hunter2|no route|throws\.ts|hx-test-/)
    expect(host.log).toContainEqual(expect.objectContaining({ plugin: 'throws', message: expect.stringContaining('no route with') as unknown }))      // the log has it, but for the token
    expect(JSON.stringify(host.log)).not.toContain('sk-hunter2')
  })
  it('is refused whichever tool of the host it calls, and nothing changes', async () => {
    const host = await caseHost({
      plugins: { guard: `ctx.on('agent/pre-tool-use', () => block('not today'))`, more: tool('plugin_tool') },
      shipped: ['tool-fs', 'tool-bash'], files: { 'a.txt': 'a' },
    })
    const names = host.tools().map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['bash', 'read_file', 'write_file', 'edit_file', 'glob', 'grep', 'plugin_tool']))
    const some: Record<string, object> = {
      bash: { command: 'touch b.txt' }, read_file: { path: 'a.txt' }, write_file: { path: 'b.txt', content: 'b' }, edit_file: { path: 'a.txt', old_text: 'a', new_text: 'b' }, glob: { pattern: '*' }, grep: { pattern: 'a' }, stop_command: { pid: 1 },
      ...Object.fromEntries(names.filter(name => name.endsWith('_background')).map(name => [name, {}])),
    }
    host.says({ calls: names.map(name => ({ name, arguments: some[name] ?? {} })) }, 'done', { calls: [{ name: 'bash', arguments: { command: 'ls' } }] }, 'done')
    const { results, result } = await host.run('go')
    const refused = results.filter(text => text.startsWith('blocked by plugin "guard": not today'))
    expect([refused.length, result.stats.blocked]).toEqual([names.length, names.length])
    await host.configure(host.rows.slice(1))
    expect((await host.run('look')).results[0]).toBe('a.txt\n[exit code 0]')
  })
  it('of a judge that looks for a command is no sandbox, but the writing of a script with it is seen too', async () => {
    const host = await caseHost({
      plugins: { guard: `ctx.on('agent/pre-tool-use', ({ call }) => { if (JSON.stringify(call.arguments).includes('make deploy')) return block('do not deploy') })` },
      shipped: ['tool-fs', 'tool-bash'], replies: [bash('make deploy'), { calls: [{ name: 'write_file', arguments: { path: 'x.sh', content: 'make deploy\n' } }] }, 'done'],
    })
    expect((await host.run('deploy')).results).toEqual(Array.from({ length: 2 }, () => 'blocked by plugin "guard": do not deploy. The same call will be refused again; do not work around it.'))
  })
})

describe('a stop handler that never looks at stopHookActive', () => {
  it('is stopped in each turn anew, by name, and the session stays usable', async () => {
    const host = await caseHost({ plugins: { nag: `ctx.on('agent/stop', () => proceed('more'))` }, agent: { maxContinuations: 2 }, replies: Array.from({ length: 9 }, (_, n) => `answer ${n}`) })
    let session: string | undefined
    for (const expected of ['answer 2', 'answer 5', 'answer 8']) {
      const { result, events } = await host.run('go', { session })
      session = result.session
      expect([result.reason, result.text]).toEqual(['completed', expected])
      expect(events.flatMap(event => event.type === 'warning' ? [event.message] : [])).toEqual([expect.stringMatching(/^plugin "nag" asks to go on again after 2 continuations/)])
    }
  })
})

describe('a rewrite of arguments', () => {
  it('reaches the tool and later watchers, who see what the model had asked for', async () => {
    const host = await caseHost({
      plugins: {
        wrap: `ctx.on('agent/tool-arguments', ({ call }) => ({ command: 'nice ' + call.arguments.command }))`,
        after: `ctx.on('agent/post-tool-use', ({ call }) => { say(call.arguments, call.originalArguments) })`, tools: tool('bash'),
      },
      replies: [bash('ls'), 'done'],
    })
    expect((await host.run('go')).results).toEqual(['note: plugin "wrap" changed the arguments to {"command":"nice ls"}\nran'])
    expect(host.said()).toEqual(['bash ran {"command":"nice ls"}', '{"command":"nice ls"} {"command":"ls"}'])
  })
  it('in place is an error that says how, and the call runs as it was', async () => {
    const host = await caseHost({ plugins: { wrap: `ctx.on('agent/tool-arguments', ({ call }: any) => { call.arguments.command = 'x' })`, tools: tool('bash') }, replies: [bash('ls'), 'done'] })
    expect((await host.run('go')).results).toEqual(['ran'])
    expect(host.said()).toEqual(['bash ran {"command":"ls"}'])
    expect(host.log.find(({ plugin, level }) => plugin === 'wrap' && level !== 'info')!.message).toContain('payloads are frozen: return a changed copy')
  })
  it('in place by a judge refuses the call', async () => {
    const host = await caseHost({ plugins: { judge: `ctx.on('agent/pre-tool-use', ({ call }: any) => { call.arguments.command = 'x' })`, tools: tool('bash') }, replies: [bash('ls'), 'done'] })
    expect((await host.run('go')).results).toEqual(['hook_failed: plugin "judge" could not judge this call (it threw an error)'])
    expect(host.said()).toEqual([])
  })
  it('goes through rewriters one after another, whoever is slower', async () => {
    const rewriter = (id: string, calls: string) => `let calls = 0\nctx.on('agent/tool-arguments', async ({ call }, next) => { await sleep(${calls}); const args: any = await next(); return { command: args.command + ' ${id}' } })`
    const host = await caseHost({ plugins: { a: rewriter('a', 'calls++ % 2 ? 20 : 0'), b: rewriter('b', 'calls++ % 2 ? 0 : 20'), tools: tool('bash') } })
    host.says({ calls: Array.from({ length: 10 }, () => ({ name: 'bash', arguments: { command: 'ls' } })) }, 'done')
    await host.run('go')
    expect(host.said()).toEqual(Array.from({ length: 10 }, () => 'bash ran {"command":"ls b a"}'))
  })
  it('made after a judge in the config is judged all the same', async () => {
    const host = await caseHost({
      plugins: {
        guard: `ctx.on('agent/pre-tool-use', ({ call }) => { if (/^rm /.test(String(call.arguments.command))) return block('no rm') }, { prepend: true })`,
        sly: `ctx.on('agent/tool-arguments', () => ({ command: 'rm x' }))`, tools: tool('bash'),
      },
      replies: [bash('ls'), 'done'],
    })
    expect((await host.run('go')).results[0]).toContain('blocked by plugin "guard": no rm')
    expect(host.said()).toEqual([])
  })
})

describe('a plugin that throws what nobody can look at', () => {
  /** `instanceof`, `in` and every field of it throw too. */
  const UNREADABLE = `new Proxy({}, { get() { throw new Error('get') }, has() { throw new Error('has') }, getPrototypeOf() { throw new Error('proto') } })`
  it.each([
    ['a judge', `ctx.on('agent/pre-tool-use', () => { throw ${UNREADABLE} })`, 'hook_failed: plugin "bad" could not judge this call (it threw an error)'],
    ['a judge, by its prototype', `ctx.on('agent/pre-tool-use', async () => { throw Object.create(${UNREADABLE}) })`, 'hook_failed: plugin "bad" could not judge this call (it threw an error)'],
    ['a decision', `ctx.on('agent/pre-tool-use', () => ({ get kind() { throw ${UNREADABLE} } }))`, 'hook_failed: plugin "bad" could not judge this call (it threw an error)'],
    ['an amend handler', `ctx.on('agent/post-tool-use', () => { throw ${UNREADABLE} })`, 'ran'],
    ['a watch handler', `ctx.on('agent/tool-start', () => { throw ${UNREADABLE} })`, 'ran'],
    ['a stop handler', `ctx.on('agent/stop', () => { throw ${UNREADABLE} })`, 'ran'],
    ['a handler around a tool', `ctx.on('agent/tool-use', () => { throw ${UNREADABLE} })`, 'what was thrown can not be read'],
    ['a model that is not asked', `ctx.models.register({ id: 'm', ready: () => { throw ${UNREADABLE} }, async *stream() {} } as never)`, 'ran'],
  ])('is told as a failure like any other, and the turn goes on: %s', async (_, bad, result) => {
    const host = await caseHost({ plugins: { bad, tools: tool('bash') }, replies: [bash('ls'), 'done'] })
    const { result: end, results } = await host.run('go')
    expect([end.reason, results]).toEqual(['completed', [result]])
    if (bad.includes('ctx.on')) expect(host.log.some(({ plugin, message }) => plugin === 'bad' && message.includes('what was thrown can not be read'))).toBe(true)
  })
  it('fails the call alone when a tool does it, and the request alone when a handler around it does', async () => {
    const host = await caseHost({ plugins: { tools: tool('bash', `(() => { throw ${UNREADABLE} })()`), bad: `ctx.on('agent/request', ({ turn }, next) => { if (turn === 2) throw ${UNREADABLE}; return next() })` }, replies: [bash('ls'), 'done', 'again'] })
    const first = await host.run('go')
    expect([first.result.reason, first.results]).toEqual(['completed', ['what was thrown can not be read']])
    expect((await host.run('on', { session: first.result.session })).result).toMatchObject({ reason: 'failed', message: 'what was thrown can not be read' })
    expect((await host.run('on', { session: first.result.session })).result).toMatchObject({ reason: 'completed', text: 'again' })
  })
})

describe('a judge that breaks', () => {
  const BROKEN: readonly (readonly [body: string, what: string])[] = [
    [`throw new Error('x')`, 'it threw an error'],
    [`return new Promise<never>(() => {})`, 'timed out after 40 ms'],
    [`return 42 as never`, 'it returned a wrong value'],
    [`return false as never`, 'it returned a wrong value'],
    [`return {} as never`, 'it returned a wrong value'],
    [`return 'block' as never`, 'it returned a wrong value'],
    [`return { kind: 'block' } as never`, 'it returned a wrong value'],
    [`return { decision: 'block', reason: 'no' } as never`, 'it returned a wrong value'],
  ]
  const judges = (options: string) => BROKEN.map(([body], n) => `ctx.on('agent/pre-tool-use', () => { ${body} }, { timeout: 40, tools: ['tool_${n}'], ${options} })`).join('\n')
  const tools = BROKEN.map((_, n) => tool(`tool_${n}`)).join('')
  const calls = { calls: BROKEN.map((_, n) => ({ name: `tool_${n}`, arguments: {} })) }

  it('refuses the call, says which failure it was, and is no policy to the log', async () => {
    const host = await caseHost({ plugins: { guard: judges(''), tools }, replies: [calls, 'done'] })
    const { results, events, result } = await host.run('go')
    expect(results).toEqual(BROKEN.map(([, what]) => `hook_failed: plugin "guard" could not judge this call (${what})`))
    expect(events.flatMap(event => event.type === 'tool-result' ? [event.kind] : [])).toEqual(BROKEN.map(() => 'hook_failed'))
    expect([host.said(), result.stats.blocked, result.reason]).toEqual([[], BROKEN.length, 'completed'])
  })
  it('and said onError pass lets the call run, and the log says so', async () => {
    const host = await caseHost({ plugins: { guard: judges(`onError: 'pass'`), tools }, replies: [calls, 'done'] })
    expect((await host.run('go')).results).toEqual(BROKEN.map(() => 'ran'))
    expect(host.log.filter(({ plugin, level }) => plugin === 'guard' && level !== 'info')).toHaveLength(BROKEN.length)
  })
  it('because it waits too long is told apart from one whose turn was stopped; neither lets the tool run', async () => {
    const host = await caseHost({ plugins: { guard: `ctx.on('agent/pre-tool-use', ({ call }) => { say('waits'); return new Promise<never>(() => {}) }, { timeout: 60 })\nctx.on('agent/session-start', ({ session }) => { say(session.id) })`, tools: tool('bash') }, replies: [bash('ls'), 'done', bash('ls')] })
    const { result, results } = await host.run('go')
    expect([result.reason, results]).toEqual(['completed', ['hook_failed: plugin "guard" could not judge this call (timed out after 60 ms)']])
    await host.save('guard', `ctx.on('agent/pre-tool-use', ({ session }) => { void ctx.agents.abort(session.id, 'enough'); return new Promise<never>(() => {}) })`)
    await host.reload('guard')
    const stopped = await host.run('again', { session: result.session })
    expect([stopped.result.reason, stopped.result.message]).toEqual(['aborted', 'enough'])
    expect(stopped.events.find(event => event.type === 'tool-result')).toMatchObject({ kind: 'interrupted' })
    expect(stopped.events.some(event => event.type === 'decision' && event.kind === 'hook_failed')).toBe(false)
    expect(host.said().filter(line => line.startsWith('bash'))).toEqual([])
  })
})

describe('the tools of a handler', () => {
  it('are exact names or patterns of whole names, with any flags', async () => {
    const NAMES = ['read', 'read_file', 'thread_read', 'glob']
    const host = await caseHost({
      plugins: {
        watch: ([[`['read']`], [`['read_file', 'glob']`], [`[/read/]`], [`[/read_.*/g]`], [`[/READ/iy]`], [`[/.*/]`]] as const).map(([tools]) => `ctx.on('agent/pre-tool-use', ({ call }) => { say(${JSON.stringify(tools)}, call.name) }, { tools: ${tools} })`).join('\n'),
        tools: NAMES.map(name => tool(name)).join(''),
      },
      replies: Array.from({ length: 2 }, () => ({ calls: NAMES.map(name => ({ name, arguments: {} })) })).flatMap(reply => [reply, 'done']),
    })
    for (let turn = 0; turn < 2; turn++) {                   // twice: a pattern with a state of its own would forget every second call
      const before = host.said().length
      await host.run('go')
      const seen: Record<string, string[]> = {}
      for (const line of host.said().slice(before)) if (line.startsWith('[')) { const at = line.lastIndexOf(' '); (seen[line.slice(0, at)] ??= []).push(line.slice(at + 1)) }
      expect(seen).toEqual({ [`['read']`]: ['read'], [`['read_file', 'glob']`]: ['read_file', 'glob'], '[/read/]': ['read'], '[/read_.*/g]': ['read_file'], '[/READ/iy]': ['read'], '[/.*/]': NAMES })
    }
  })
  it.each([
    [`'read_file'`, /tools must be a list/],
    [`['*']`, /"\*" is no tool's name; for a pattern write a RegExp/],
    [`['read_file,glob']`, /"read_file,glob" is no tool's name/],
    [`['([']`, /"\(\[" is no tool's name/],
    [`['glob', 7]`, /7 is no tool's name/],
    [`[]`, /with at least one entry/],
  ])('given as %s fail the load with a sentence', async (tools, says) => {
    const host = await caseHost({ plugins: { watch: `ctx.on('agent/pre-tool-use', () => {}, { tools: ${tools} as never })` } })
    expect(host.plugins()[0]).toMatchObject({ state: 'failed', lastError: expect.stringMatching(says) })
  })
  it('that match nothing there is are told when they are loaded', async () => {
    const host = await caseHost({ plugins: { watch: `ctx.on('agent/pre-tool-use', () => {}, { tools: ['Write', 'glob', /edit/] })` }, shipped: ['tool-fs'] })
    expect(host.log.filter(({ plugin, level }) => plugin === 'watch' && level === 'warn').map(({ message }) => message)).toEqual([expect.stringContaining('"Write", /edit/ matches none of the known tools')])
  })
})

describe('a wrong hook', () => {
  it.each([
    ['agent/pre-tooluse', 'agent/pre-tool-use'], ['PreToolUse', 'agent/pre-tool-use'], ['PreTooluse', 'agent/pre-tool-use'], ['before_tool', 'agent/pre-tool-use'], ['UserPromptSubmit', 'agent/user-prompt-submit'], ['Stop', 'agent/stop'], ['preToolUse', 'agent/pre-tool-use'], ['pre-tool-use', 'agent/pre-tool-use'],
  ])('%s fails the load, and what was meant is named', async (name, meant) => {
    const host = await caseHost({ plugins: { typo: `ctx.on('${name}' as never, () => {})`, other: `say('other is up')` } })
    expect(host.plugins()[0]).toMatchObject({ state: 'failed', lastError: expect.stringContaining(`"${meant}"`) })
    expect(host.said()).toEqual(['other is up'])
  })
})

describe('a policy', () => {
  it('is not undone by a plugin before it that allows everything', async () => {
    const allowing = `ctx.on('agent/pre-tool-use', async (_, next) => { await next(); return allow() }, { prepend: true })\nctx.on('agent/pre-tool-use', () => allow(), { prepend: true })`
    const host = await caseHost({ plugins: { generous: allowing }, shipped: ['permission', 'tool-bash'], replies: [{ calls: [{ name: 'bash', arguments: { command: 'sudo ls' } }, { name: 'bash', arguments: { command: 'rm x' } }] }, 'done'] })
    const { results, result } = await host.run('go')
    expect(results).toEqual([expect.stringContaining(`blocked by plugin "permission": 'sudo' is on the deny list`), expect.stringMatching(/^denied: nobody could be asked/)])
    expect(result.unanswered).toBe(true)
  })
})

describe('a plugin whose file is gone', () => {
  it('goes on as it was, and prompts go through', async () => {
    const host = await caseHost({ plugins: { guard: `ctx.on('agent/pre-tool-use', () => block('still here'))`, tools: tool('bash') }, replies: [bash('ls'), 'done'] })
    rmSync(join(host.pluginFolder, 'guard.ts'))
    const report = await host.reload('guard')
    expect(report.failed.map(({ id }) => id)).toEqual(['guard'])
    expect(host.plugins()[0]!.state).toBe('active')
    const { results, result } = await host.run('go')
    expect([result.reason, results[0]]).toEqual(['completed', expect.stringContaining('still here')])
  })
})

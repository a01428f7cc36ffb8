import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { AgentsService } from 'harnessx'
import { createTestHost } from 'harnessx/testing'
import * as claudeHooks from '../../plugins/claude-hooks/index.js'
import { outcomeOf } from '../../plugins/claude-hooks/outcome.js'
import { parseSettings } from '../../plugins/claude-hooks/settings.js'
import { ourInput, theirInput } from '../../plugins/claude-hooks/tools.js'
import * as subagent from '../../plugins/subagent.js'
import * as toolFs from '../../plugins/tool-fs/index.js'
import { textOf } from '../../core/agent/vocabulary.js'
import { folder } from '../support/folder.js'
import { pluginHost, type Row } from '../support/plugin-host.js'
import { until } from '../support/agent.js'

type Hooks = Record<string, { matcher?: string; command: string; timeout?: number; async?: boolean }[]>
const settings = (events: Hooks) => JSON.stringify({ hooks: Object.fromEntries(Object.entries(events).map(([event, hooks]) => [event, hooks.map(({ matcher, ...hook }) => ({ matcher, hooks: [{ type: 'command', ...hook }] }))])) })

/** A host in whose workspace these hooks stand; `$OUT` in a command is a folder for what it leaves. */
async function started(events: Hooks, { rows = [], config = {}, files = {} }: { rows?: Row[]; config?: object; files?: Record<string, string> } = {}) {
  const project = folder(files), out = folder()
  const filled = JSON.parse(JSON.stringify(events).replaceAll('$OUT', out.path)) as Hooks
  project.write('.claude/settings.json', settings(filled))
  const host = await pluginHost([{ module: claudeHooks, config: { folders: [project.path], ...config } }, { module: toolFs }, ...rows])
  return {
    host, project, out,
    run: (...[replies, more]: Parameters<typeof host.run>) => host.run(replies, { cwd: project.path, ...more }),
    call: (name: string, args: object) => host.call(name, args, { cwd: project.path }),
    left: (name: string) => JSON.parse(readFileSync(out.at(name), 'utf8')),
    warnings: () => host.lines.filter(({ level, plugin }) => level === 'warn' && plugin === 'claude-hooks').map(({ message }) => message),
    heard: () => host.requests.at(-1)!.messages.filter(({ role }) => role === 'user').map(textOf),
  }
}
const say = (output: object) => `printf %s '${JSON.stringify(output)}'`
const decide = (specific: object) => say({ hookSpecificOutput: { hookEventName: 'PreToolUse', ...specific } })

describe('claude-hooks: PreToolUse', () => {
  it('gets the call as Claude Code tells it: names, absolute paths, the project folder', async () => {
    const { call, left, project } = await started({ PreToolUse: [{ matcher: 'Read', command: 'cat > $OUT/in; printf \'"%s"\' "$CLAUDE_PROJECT_DIR" > $OUT/dir' }] }, { files: { 'a.txt': 'hello' } })
    expect((await call('read_file', { path: 'a.txt' })).read).toContain('hello')
    expect(left('in')).toMatchObject({ hook_event_name: 'PreToolUse', tool_name: 'Read', tool_input: { file_path: project.at('a.txt') }, tool_use_id: expect.any(String), session_id: expect.any(String), cwd: project.path, permission_mode: 'default' })
    expect(left('dir')).toBe(project.path)
  })
  it('gets the conversation so far as a file of JSON lines, grown by what is new at each call', async () => {
    const { run, out, host } = await started({ PreToolUse: [{ command: 'cat > $OUT/in; cp "$(node -p "JSON.parse(require(\'fs\').readFileSync(\'$OUT/in\',\'utf8\')).transcript_path")" $OUT/transcript' }] }, { files: { 'a.txt': 'hello' } })
    await run([[{ name: 'read_file', arguments: { path: 'a.txt' } }], [{ name: 'glob', arguments: { pattern: '*' } }]])
    const lines = readFileSync(out.at('transcript'), 'utf8').trim().split('\n').map(line => JSON.parse(line))
    expect(lines.map(({ type, message }) => [type, typeof message.content === 'string' ? message.content : message.content.map((part: { type: string; name?: string }) => part.name ?? part.type)])).toEqual([['user', 'go'], ['assistant', ['Read']], ['user', ['tool_result']], ['assistant', ['Glob']]])
    expect(lines[1].message.content[0].input.file_path).toMatch(/\/a\.txt$/)
    await host.close()
  })
  it('is refused by exit code 2, with what stands on stderr', async () => {
    const { call } = await started({ PreToolUse: [{ matcher: 'Edit|Write', command: 'echo "not this file" >&2; exit 2' }] })
    expect((await call('write_file', { path: 'a.txt', content: 'x' })).read).toMatch(/^blocked by plugin "claude-hooks": not this file\./)
    expect((await call('glob', { pattern: '*' })).read).not.toContain('blocked')
  })
  it.each([
    [decide({ permissionDecision: 'deny', permissionDecisionReason: 'no' }), 'blocked by plugin "claude-hooks": no'],
    [say({ decision: 'block', reason: 'old way' }), 'blocked by plugin "claude-hooks": old way'],
    [decide({ permissionDecision: 'ask', permissionDecisionReason: 'sure?' }), 'denied: nobody could be asked (sure?)'],
    [decide({ permissionDecision: 'allow' }), 'created'],
    ['echo plain words', 'created'],
    ['echo broken >&2; exit 1', 'created'],
    ['exit 0', 'created'],
  ])('reads %s', async (command, read) => {
    const { call } = await started({ PreToolUse: [{ command }] })
    expect((await call('write_file', { path: 'a.txt', content: 'x' })).read).toContain(read)
  })
  it('changes the arguments, and the model is told', async () => {
    const command = `node -e "const i=JSON.parse(require('fs').readFileSync(0));console.log(JSON.stringify({hookSpecificOutput:{updatedInput:{...i.tool_input,content:'CHANGED'}}}))"`
    const { call, project } = await started({ PreToolUse: [{ matcher: 'Write', command }] })
    const { read } = await call('write_file', { path: 'a.txt', content: 'x' })
    expect(read).toContain('note: plugin "claude-hooks" changed the arguments to {"path":"a.txt","content":"CHANGED"}')
    expect(readFileSync(project.at('a.txt'), 'utf8')).toBe('CHANGED')
  })
  it('runs no call whose changed arguments can not be had', async () => {
    const { call, project } = await started({ PreToolUse: [{ command: decide({ updatedInput: { file_path: 7 } }) }] })
    expect((await call('write_file', { path: 'a.txt', content: 'x' })).read).toContain('a PreToolUse hook wants arguments that can not be had: {"path":7}')
    expect(existsSync(project.at('a.txt'))).toBe(false)
  })
  it('that refuses a call changes none of its arguments, whatever it wants in their place', async () => {
    const { call } = await started({ PreToolUse: [{ command: decide({ permissionDecision: 'deny', permissionDecisionReason: 'no. Write it elsewhere.', updatedInput: { file_path: 'b.txt', content: 'x' } }) }] })
    expect((await call('write_file', { path: 'a.txt', content: 'x' })).read).toBe('blocked by plugin "claude-hooks": no. Write it elsewhere. The same call will be refused again; do not work around it.')
  })
  it('judges again when another plugin changes the arguments after it', async () => {
    const changer: Row = { id: 'changer', module: { name: 'changer', apply: (ctx: any) => ctx.on('agent/tool-arguments', async (_: unknown, next: () => Promise<object>) => ({ ...await next(), path: 'secret.txt' }), { tools: ['write_file'], prepend: true }) } }
    const { call } = await started({ PreToolUse: [{ command: 'grep -q secret && { echo "no secrets" >&2; exit 2; }; exit 0' }] }, { rows: [changer] })
    expect((await call('write_file', { path: 'a.txt', content: 'x' })).read).toContain('no secrets')
  })
  it('lets no script overrule another plugin', async () => {
    const guard: Row = { id: 'guard', module: { name: 'guard', apply: (ctx: any) => ctx.on('agent/pre-tool-use', () => ({ kind: 'block', reason: 'never' })) } }
    const { call } = await started({ PreToolUse: [{ command: decide({ permissionDecision: 'allow' }) }] }, { rows: [guard] })
    expect((await call('glob', { pattern: '*' })).read).toContain('blocked by plugin "guard"')
  })
  it('runs several beside each other, the same command once; one refusal stands', async () => {
    const { call, out } = await started({ PreToolUse: [{ command: 'echo x >> $OUT/once' }, { matcher: 'Glob', command: 'echo x >> $OUT/once' }, { command: 'echo one >&2; exit 2' }] })
    expect((await call('glob', { pattern: '*' })).read).toContain('one')
    expect(readFileSync(out.at('once'), 'utf8')).toBe('x\n')
  })
  it('ends a command that takes too long with everything it started; that stops nothing and is told', async () => {
    const { call, warnings, out } = await started({ PreToolUse: [{ matcher: 'Glob', command: '(sleep 1; touch $OUT/late) & sleep 20', timeout: 0.1 }] }, { files: { 'a.txt': '' } })
    const began = performance.now()
    expect((await call('glob', { pattern: '*.txt' })).read).toContain('a.txt')
    expect(performance.now() - began).toBeLessThan(5000)
    expect(warnings()).toEqual([expect.stringMatching(/^PreToolUse hook ".*" failed, which stops nothing: it did not end within 0\.1 s$/)])
    await new Promise(resolve => { setTimeout(resolve, 1100) })
    expect(existsSync(out.at('late'))).toBe(false)
  })
  it('that can not be run at all stops nothing and is told', async () => {
    const { call, warnings } = await started({ PreToolUse: [{ command: 'true \0' }, { command: `: ${'x'.repeat(200_000)}` }] }, { files: { 'a.txt': 'hello' } })
    expect((await call('read_file', { path: 'a.txt' })).read).toBe('hello')
    expect(warnings().filter(line => line.includes('it could not be run'))).toHaveLength(2)
  })
  it('stops the turn when a script says continue: false, and shows a systemMessage to the user', async () => {
    const { run, warnings } = await started({ PreToolUse: [{ command: say({ continue: false, stopReason: 'enough', systemMessage: 'look here' }) }] })
    const { result } = await run([[{ name: 'glob', arguments: { pattern: '*' } }]])
    expect(result).toMatchObject({ reason: 'aborted', message: 'enough' })
    expect(warnings()).toEqual(['look here'])
  })
  it('never gives a key of a model to a command', async () => {
    process.env['OPENAI_API_KEY'] = 'sk-test-key'
    onTestFinished(() => { delete process.env['OPENAI_API_KEY'] })
    const { call, out } = await started({ PreToolUse: [{ command: 'env > $OUT/env' }] })
    await call('glob', { pattern: '*' })
    expect(readFileSync(out.at('env'), 'utf8')).not.toContain('sk-test-key')
  })
})

describe('claude-hooks: the other events', () => {
  it('PostToolUse: what it objects and adds follows the result', async () => {
    const { call, heard, left } = await started({ PostToolUse: [{ matcher: 'Write', command: 'cat > $OUT/in; echo "run the formatter" >&2; exit 2' }, { matcher: 'Write', command: say({ hookSpecificOutput: { additionalContext: 'lint is clean' } }) }] })
    expect((await call('write_file', { path: 'a.txt', content: 'x' })).read).toContain('created')
    expect(heard()).toEqual(['go', 'A hook says of write_file: run the formatter', 'lint is clean'])
    expect(left('in')).toMatchObject({ tool_name: 'Write', tool_response: { success: true, filePath: expect.stringMatching(/a\.txt$/) } })
  })
  it('PostToolUseFailure is for calls that failed, PostToolUse is not', async () => {
    const { call, out, left } = await started({ PostToolUse: [{ command: 'touch $OUT/wrong' }], PostToolUseFailure: [{ command: 'cat > $OUT/in' }] })
    await call('read_file', { path: 'nowhere.txt' })
    expect(existsSync(out.at('wrong'))).toBe(false)
    expect(left('in')).toMatchObject({ tool_name: 'Read', error: expect.stringContaining('does not exist') })
  })
  it('PreToolUse: additionalContext follows the result', async () => {
    const { call, heard } = await started({ PreToolUse: [{ command: decide({ additionalContext: 'mind the gap' }) }] })
    await call('glob', { pattern: '*' })
    expect(heard()).toEqual(['go', 'mind the gap'])
  })
  it('UserPromptSubmit: plain words go to the model, exit code 2 rejects the prompt', async () => {
    const one = await started({ UserPromptSubmit: [{ command: 'cat > $OUT/in; echo "branch: main"' }] })
    await one.run([])
    expect(one.heard()).toEqual(['go', 'branch: main'])
    expect(one.left('in')).toMatchObject({ prompt: 'go' })
    const two = await started({ UserPromptSubmit: [{ command: 'echo "no such prompts" >&2; exit 2' }] })
    expect((await two.run([])).result).toMatchObject({ reason: 'rejected', message: 'rejected by plugin "claude-hooks": no such prompts' })
  })
  it('Stop: a block goes on with its reason, and stop_hook_active tells the second time', async () => {
    const { run, heard } = await started({ Stop: [{ command: 'grep -q \'"stop_hook_active":true\' || { echo "run the tests" >&2; exit 2; }' }] })
    const { result } = await run(['first', 'second'])
    expect([result.reason, result.text]).toEqual(['completed', 'second'])
    expect(heard()).toEqual(['go', 'run the tests'])
  })
  it('SessionStart: its words come with the first prompt, by source; a matcher chooses', async () => {
    const { run, heard } = await started({ SessionStart: [{ matcher: 'startup', command: 'echo welcome' }, { matcher: 'resume', command: 'echo again' }] })
    const { result: { session } } = await run([])
    expect(heard()).toEqual(['go', 'welcome'])
    await run([], { session })
    expect(heard()).toEqual(['go', 'welcome', 'go'])
  })
  it('Stop: continue: false ends the turn as it is, whatever another wants', async () => {
    const { run, warnings } = await started({ Stop: [{ command: 'echo more >&2; exit 2' }, { command: say({ continue: false, stopReason: 'that will do' }) }] })
    const { result } = await run(['first', 'second'])
    expect([result.reason, result.text]).toEqual(['completed', 'first'])
    expect(warnings()).toEqual(['that will do'])
  })
  it('SessionStart, after a compaction, tells the model what it must not forget', async () => {
    const compacts: Row = { id: 'compacts', module: { name: 'compacts', apply: (ctx: any) => { ctx.on('agent/pre-step', ({ step, messages }: any) => step === 1 ? { kind: 'enter', messages, compact: { through: 2, messages: ['short'] } } : undefined) } } }
    const { run, heard } = await started({ SessionStart: [{ matcher: 'compact', command: 'echo "branch: main"' }] }, { rows: [compacts] })
    await run([[{ name: 'glob', arguments: { pattern: '*' } }], [{ name: 'glob', arguments: { pattern: '*' } }], 'done'])
    expect(heard()).toContain('branch: main')
  })
  it('SessionStart: exit code 2 refuses nothing, and what it says is for the user; so in the others that only tell', async () => {
    const { run, warnings } = await started({ SessionStart: [{ command: 'echo "mind the step" >&2; exit 2' }] })
    const { result } = await run([])
    expect([result.reason, warnings()]).toEqual(['completed', ['mind the step']])
    for (const event of ['SessionEnd', 'SubagentStart', 'Notification'] as const) expect(outcomeOf(event, { code: 2, stdout: '', stderr: 'mind\n' })).toEqual({ context: [], told: ['mind'], problems: [] })
  })
  it('of a subagent say which it is, and SubagentStart speaks to it alone', async () => {
    const { run, host, left } = await started({ SubagentStart: [{ matcher: 'general-purpose', command: 'cat > $OUT/start; echo \'{"hookSpecificOutput":{"additionalContext":"you are a helper"}}\'' }], SubagentStop: [{ matcher: 'general-purpose', command: 'cat > $OUT/stop' }] }, { rows: [{ module: subagent }] })
    const { result: { session } } = await run([[{ name: 'task', arguments: { title: 'look', prompt: 'look around' } }], 'all is well', 'done'])
    const said = host.requests.map(({ messages }) => messages.some(message => textOf(message) === 'you are a helper'))
    expect(said).toEqual([false, true, false])
    expect(left('start')).toMatchObject({ hook_event_name: 'SubagentStart', agent_type: 'general-purpose' })
    expect(left('start').agent_id).not.toBe(session)
    expect(left('stop')).toMatchObject({ agent_id: left('start').agent_id, last_assistant_message: 'all is well', agent_transcript_path: expect.stringMatching(/\.jsonl$/) })
  })
  it('that nobody waits for (async) hold nothing up, speak at the next step, and the end of the session waits for them, a while', async () => {
    let agents: AgentsService | undefined
    const keeper: Row = { id: 'keeper', module: { name: 'keeper', apply: (ctx: any) => { agents = ctx.agents } } }
    const { run, heard, out } = await started({ UserPromptSubmit: [{ command: `until test -e $OUT/go; do sleep 0.02; done; ${say({ hookSpecificOutput: { additionalContext: 'it is ready' } })}`, async: true }], Stop: [{ command: 'sleep 0.3; touch $OUT/end', async: true }, { command: 'sleep 100', async: true }] }, { rows: [keeper] })
    const { result: { session, reason } } = await run([])              // it waits for "go", and the turn doesn't
    expect([reason, heard()]).toEqual(['completed', ['go']])
    out.write('go', '')
    for (let turns = 0; turns < 50 && !heard().includes('it is ready'); turns++) await run([], { session })
    expect(heard()).toContain('it is ready')
    await agents!.archive(session)
    expect(existsSync(out.at('end'))).toBe(true)
  })
  it('SessionEnd, PreCompact and Notification are told', async () => {
    let agents: AgentsService | undefined
    const asker: Row = { id: 'asker', module: { name: 'asker', apply: (ctx: any) => {
      agents = ctx.agents
      ctx.on('agent/pre-tool-use', () => ({ kind: 'ask', reason: 'sure?' }))
      ctx.on('agent/pre-step', ({ step, messages }: any) => step === 1 ? { kind: 'enter', messages, compact: { through: 1, messages: [] } } : undefined)
    } } }
    const { run, out, left } = await started({ SessionEnd: [{ command: 'cat > $OUT/end' }], PreCompact: [{ matcher: 'auto', command: 'cat > $OUT/compact' }], Notification: [{ command: 'cat > $OUT/note.part; mv $OUT/note.part $OUT/note' }] }, { rows: [asker] })
    const { result: { session } } = await run([[{ name: 'glob', arguments: { pattern: '*' } }]])
    await until(() => existsSync(out.at('note')))
    expect(left('note')).toMatchObject({ notification_type: 'permission_prompt', message: 'hx needs your permission to use Glob' })
    expect(left('compact')).toMatchObject({ trigger: 'auto' })
    await agents!.archive(session)
    expect(left('end')).toMatchObject({ hook_event_name: 'SessionEnd', reason: 'other' })
  })
})

describe('claude-hooks: PreCompact', () => {
  it('tells a compaction that a person asked for, with the words, from one that comes by itself, and matches both', async () => {
    const seen: string[] = []
    const asker: Row = { id: 'asker', module: { name: 'asker', apply: (ctx: any) => {
      ctx.on('agent/pre-step', ({ step, messages }: any) => ({ kind: 'enter', messages, compact: { through: 1, messages: [], ...step === 0 && { asked: 'keep names' } } }))
      ctx.on('agent/compacted', ({ step }: any) => { seen.push(`step ${step}`) })
    } } }
    const { run, left } = await started({ PreCompact: [{ matcher: 'manual', command: 'cat > $OUT/manual' }, { matcher: 'auto', command: 'cat > $OUT/auto' }] }, { rows: [asker] })
    await run([[{ name: 'glob', arguments: { pattern: '*' } }]])
    expect([left('manual'), left('auto'), seen]).toMatchObject([{ trigger: 'manual', custom_instructions: 'keep names' }, { trigger: 'auto', custom_instructions: '' }, ['step 0', 'step 1']])
  })
})

describe('claude-hooks: settings', () => {
  it('run nothing for a session outside of the folders', async () => {
    const { host, out } = await started({ UserPromptSubmit: [{ command: 'touch $OUT/ran' }] })
    await host.run([])
    expect(existsSync(out.at('ran'))).toBe(false)
  })
  it('are read when the plugin is loaded: what a turn writes there counts only after a reload', async () => {
    const { run, host, project, out } = await started({})
    project.write('.claude/settings.json', settings({ UserPromptSubmit: [{ command: `touch ${out.at('ran')}` }] }))
    await run([])
    expect(existsSync(out.at('ran'))).toBe(false)
    await host.reload('claude-hooks', { module: claudeHooks, config: { folders: [project.path] } })
    await run([])
    expect(existsSync(out.at('ran'))).toBe(true)
  })
  it('say what is not supported', () => {
    const { hooks, problems } = parseSettings(JSON.stringify({ model: 'x', hooks: {
      WorktreeCreate: [], PreToolUse: [{ matcher: '(', hooks: [] }, { hooks: [{ type: 'prompt', prompt: 'x' }, { type: 'command', command: 'a', if: 'Bash(git *)', timeout: 5 }] }, 'x'],
    } }))
    expect(hooks).toMatchObject([{ event: 'PreToolUse', command: 'a', timeoutMs: 5000, beside: false }])
    expect(problems).toEqual([
      '"WorktreeCreate" is not supported, so its hooks do not run',
      'PreToolUse[0]: the matcher "(" is no regular expression, so it does not run',
      'PreToolUse[1]: a hook of type "prompt" is not supported and does not run',
      'PreToolUse[1]: "if" is not supported; the command runs without',
      'PreToolUse[2] must be {matcher, hooks: [{type, command}]} and does not run',
    ])
    expect(parseSettings('{"disableAllHooks":true,"hooks":{"Stop":[{"hooks":[{"type":"command","command":"a"}]}]}}').hooks).toEqual([])
    expect(parseSettings('{}')).toEqual({ hooks: [], env: {}, problems: [] })
  })
  it('have no matcher for UserPromptSubmit and Stop, give commands their env, and no command more than an hour', async () => {
    const { run, left } = await started({ UserPromptSubmit: [{ matcher: 'Bash', command: 'printf \'"%s"\' "$TEAM" > $OUT/team', timeout: 600_000 }] })
    await run([])
    expect(left('team')).toBe('')
    const { hooks, env } = parseSettings(JSON.stringify({ env: { TEAM: 'blue' }, hooks: { Stop: [{ matcher: 'x', hooks: [{ type: 'command', command: 'a', timeout: 600_000 }] }] } }))
    expect([env, hooks[0]!.matches(''), hooks[0]!.timeoutMs]).toEqual([{ TEAM: 'blue' }, true, 3_600_000])
  })
  it.each([['Bash', ['Bash']], ['Edit|Write', ['Edit', 'Write']], ['', ['Bash', 'Edit', 'Write', 'mcp__x__y']], ['*', ['Bash', 'Edit', 'Write', 'mcp__x__y']], ['mcp__.*', ['mcp__x__y']], ['^(Edit|Wri)', ['Edit', 'Write']]])('match %j', (matcher, wanted) => {
    const [hook] = parseSettings(JSON.stringify({ hooks: { PreToolUse: [{ matcher, hooks: [{ type: 'command', command: 'a' }] }] } })).hooks
    expect(['Bash', 'Edit', 'Write', 'mcp__x__y'].filter(tool => hook!.matches(tool))).toEqual(wanted)
  })
  it.each([['{"hooks": ['], ['[]'], ['{"hooks": []}']])('that are broken keep the plugin from loading: %s', async text => {
    const project = folder({ '.claude/settings.json': text })
    await expect(pluginHost([{ module: claudeHooks, config: { folders: [project.path] } }])).rejects.toThrow(/settings\.json" can not be read/)
  })
  it('can be switched on, reloaded and off in a running host', async () => {
    const project = folder({ '.claude/settings.json': settings({ UserPromptSubmit: [{ command: 'echo from a hook' }] }) })
    const host = await createTestHost({ plugins: [], replies: ['one', 'two'] })
    await host.configure([{ name: 'claude-hooks', config: { folders: [project.path] } }])
    await host.reload('claude-hooks')
    await host.run('go', { cwd: project.path })
    await host.configure([])
    await host.run('go', { cwd: project.path })
    expect(host.requests.map(({ messages }) => messages.some(message => textOf(message).includes('from a hook')))).toEqual([true, false])
    await host.close()
  })
})

describe('what a script says', () => {
  it('may be anything: wrong types, other JSON and broken JSON decide nothing', () => {
    for (const stdout of ['{', '{"decision": 5}', '[1]', 'null', '{"hookSpecificOutput": "x", "continue": "no"}', '{"hookSpecificOutput":{"permissionDecision":true}}']) {
      expect(outcomeOf('PreToolUse', { code: 0, stdout, stderr: '' })).toMatchObject({ context: [], problems: [] })
      expect(outcomeOf('PreToolUse', { code: 0, stdout, stderr: '' }).block).toBeUndefined()
    }
  })
  it('names arguments there and back', () => {
    const args = { path: 'src/a.ts', old_text: 'a', new_text: 'b' }
    const theirs = theirInput('edit_file', args, '/work')
    expect(theirs).toEqual({ file_path: join('/work', 'src/a.ts'), old_string: 'a', new_string: 'b' })
    expect(ourInput('edit_file', theirs, args, '/work')).toEqual(args)
    expect(ourInput('edit_file', { ...theirs, file_path: '/home/me/b.ts' }, args, '/home/me')).toEqual({ ...args, path: '/home/me/b.ts' })
  })
})

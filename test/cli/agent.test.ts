import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, it, onTestFinished } from 'vitest'
import { buildRequest } from '../../core/agent/request.js'
import type { SessionEvent } from '../../core/agent/session-events.js'
import { endpointOf, specsOf } from '../../plugins/model-openai/endpoint.js'
import { wireBody } from '../../plugins/model-openai/wire.js'
import { CLI, place, until } from '../support/hx.js'
import { startScriptedModel, type Script } from '../support/scripted-model.js'

const FILES = { 'README.md': '# Demo\n\nA small project.\n', 'src/index.js': 'export {}\n', 'src/other.js': 'export {}\n', 'test.txt': 'here\n' }
const lines = (stdout: string) => stdout.trim().split('\n').map(line => JSON.parse(line) as SessionEvent)

async function withModel(script: Script, files: Record<string, string> = FILES) {
  const model = await startScriptedModel(script)
  onTestFinished(() => model.close())
  const here = place(files)
  const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'test-key', OPENAI_MODEL: 'scripted' }
  return { ...here, model, agent: (args: readonly string[], more: { input?: string } = {}) => here.hx(['agent', ...args], { env, ...more }) }
}
/** What the model read as results, of one request. */
const toolMessages = (body: { messages: { role: string; content: string; tool_call_id: string }[] }) => body.messages.filter(message => message.role === 'tool')

describe('hx agent, the three tasks of the first seed', () => {
  it('reads and lists: two calls, printed hook by hook, the answer alone on stdout', async () => {
    const { agent, model } = await withModel([{ toolCalls: [{ name: 'read_file', arguments: { path: 'README.md' } }, { name: 'glob', arguments: { pattern: 'src/*.js' } }] }, 'A small project with two files.'])
    const { code, stdout, stderr } = await agent(['Read', 'README.md', 'and list src/*.js'])
    expect(stderr).not.toContain('hx:')
    expect(stdout).toBe('A small project with two files.\n')
    expect(code).toBe(0)
    expect(stderr).toMatch(/\[HOOK\] UserPromptSubmit cwd=/)
    expect(stderr).toContain('> read_file path=README.md')
    expect(stderr).toContain('[HOOK] PreToolUse read_file({"path":"README.md"})')
    expect(stderr).toMatch(/\[HOOK\] PostToolUse read_file output_chars=\d+/)
    expect(stderr).toContain('[HOOK] Stop: steps=2, tool_calls=2, blocked=0')
    expect(stderr).toMatch(/\[stats\] tokens=\d+ time=/)
    const [first, second] = model.requests.map(request => request.body)
    expect(first.messages.map((message: { role: string }) => message.role)).toEqual(['system', 'user', 'user'])      // the last is the time, from its plugin
    expect(first.tool_choice).toBe('auto')
    expect(toolMessages(second).map(message => message.tool_call_id)).toEqual(second.messages.find((message: { role: string }) => message.role === 'assistant').tool_calls.map((call: { id: string }) => call.id))
    expect(JSON.stringify(model.requests.map(request => request.body))).not.toContain('PreToolUse')
  })
  it('blocks sudo: the call is not run, the model reads why, the run still completes', async () => {
    const { agent, model } = await withModel([{ toolCalls: [{ name: 'bash', arguments: { command: 'sudo ls /' } }] }, 'I may not use sudo.'])
    const { code, stdout, stderr } = await agent(['Try to run sudo ls'])
    expect(code).toBe(0)
    expect(stdout).toBe('I may not use sudo.\n')
    expect(stderr).toContain('$ sudo ls /')
    expect(stderr).toContain("Blocked: 'sudo' is on the deny list")
    expect(stderr).toContain('blocked=1')
    const results = toolMessages(model.requests[1]!.body)
    expect(results).toHaveLength(1)
    expect(results[0]!.content).toBe('blocked by plugin "permission": \'sudo\' is on the deny list. The same call will be refused again; do not work around it.')
  })
  it('asks before deleting: nobody can be asked, so it is refused, the file stays, exit 3', async () => {
    const { agent, model, folder } = await withModel([{ toolCalls: [{ name: 'bash', arguments: { command: 'rm test.txt' } }] }, 'I could not delete it.'])
    const { code, stderr } = await agent(['Delete the file test.txt'])
    expect(code).toBe(3)
    expect(existsSync(join(folder, 'test.txt'))).toBe(true)
    expect(stderr).toContain('Permission required: ')
    expect(stderr).toContain('Tool: bash(')
    expect(stderr).toContain('Non-interactive terminal; denied.')
    expect(toolMessages(model.requests[1]!.body)[0]!.content).toMatch(/^denied: nobody could be asked \(/)
  })
})

describe('hx agent, on the offline model', () => {
  it('does the tasks of both seeds as described', async () => {
    const { hx, folder } = place(FILES)
    const read = await hx(['agent', '--offline', 'Read README.md and list src/*.js'])
    expect(read.code).toBe(0)
    expect(read.stdout).toContain('src/index.js')
    expect(read.stderr).toContain('tool_calls=2')
    const sudo = await hx(['agent', '--offline', 'Try to run sudo ls'])
    expect(sudo.code).toBe(0)
    expect(sudo.stdout).toContain('deny list')
    const remove = await hx(['agent', '--offline', 'Delete the file test.txt'])
    expect(remove.code).toBe(3)
    expect(existsSync(join(folder, 'test.txt'))).toBe(true)
    const create = await hx(['agent', '--offline', 'Create a file called new.txt'])
    expect(create.code).toBe(0)
    expect(existsSync(join(folder, 'new.txt'))).toBe(true)
    const temporary = await hx(['agent', '--offline', 'Delete all temporary files in /tmp'])
    expect(temporary.code).toBe(3)
    const one = await hx(['agent', '--offline', 'Read the file README.md'])
    expect(one.code).toBe(0)
    expect(one.stdout).toContain('Demo')
  })
  it('answers only when it is asked for', async () => {
    const { code, stderr } = await place(FILES).hx(['agent', 'hello'])
    expect(code).toBe(2)
    expect(stderr).toContain('no model: set DEEPSEEK_API_KEY or OPENAI_API_KEY, point OPENAI_BASE_URL at a local server, or try --offline')
  })
})

describe('hx agent --json', () => {
  it('prints exactly the lines of the log, from session to turn-end', async () => {
    const { agent, env } = await withModel(['hello'])
    const { stdout } = await agent(['--json', 'hi'])
    const events = lines(stdout)
    expect(events[0]!.type).toBe('session')
    expect(events.at(-1)!.type).toBe('turn-end')
    expect(events.map(event => event.seq)).toEqual(events.map((_, i) => i + 1))
    const file = readFileSync(join(env['HX_HOME']!, 'state/sessions', `${(events[0] as { id: string }).id}.jsonl`), 'utf8')
    expect(stdout).toBe(file)
  })
  it('rebuilds every request from the log alone, byte for byte', async () => {
    const spec = specsOf({}, 'model-openai').find(({ id }) => id === 'openai')!
    const endpoint = endpointOf(spec, name => ({ OPENAI_BASE_URL: 'http://localhost', OPENAI_API_KEY: 'k' })[name])
    if (typeof endpoint === 'string') throw new Error(endpoint)
    const { agent, model } = await withModel([
      { reasoning: 'hm', toolCalls: [{ name: 'read_file', arguments: { path: 'README.md' }, extra: { extra_content: { google: { thought_signature: 'abc' } } } }, { name: 'bash', arguments: 'not json' }] },
      { text: 'beside', toolCalls: [{ name: 'glob', arguments: { pattern: '**/*.js' } }] },
      'done',
    ])
    const { stdout } = await agent(['--json', 'go'])
    const events = lines(stdout)
    const sent = events.flatMap((event, i) => event.type === 'request' ? [buildRequest(events.slice(0, i + 1))] : [])
    expect(sent).toHaveLength(3)
    expect(model.requests).toHaveLength(3)
    sent.forEach((request, i) => { expect(JSON.stringify(wireBody(request, endpoint.wire))).toBe(model.requests[i]!.raw.toString('utf8')) })
  })
  it('says what failed in one line of JSON', async () => {
    const { hx } = place()
    const { code, stdout } = await hx(['agent', '--json', '--session', 'nope', 'hi'])
    expect(code).toBe(2)
    expect(JSON.parse(stdout)).toMatchObject({ type: 'error', code: 'session_missing' })
  })
})

describe('hx agent, from the shell', () => {
  it('joins words and adds standard input', async () => {
    const { agent, model } = await withModel(['ok'])
    await agent(['summarise', 'this'], { input: 'line one\nline two\n' })
    expect(model.requests[0]!.body.messages[1].content).toBe('summarise this\n\nline one\nline two')
  })
  it('adds a file that is its standard input, from where it is read to, and nothing of /dev/null', async () => {
    const { model, folder, env, write } = await withModel(['ok', 'ok'])
    write('task.txt', 'line one\nline two\n')
    const sh = (line: string) => promisify(execFile)('sh', ['-c', line, process.execPath, CLI], { cwd: folder, env: { ...env, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k' } })
    await sh('{ read -r _; "$0" "$1" agent summarise; } < task.txt')
    await sh('"$0" "$1" agent hello < /dev/null')
    expect(model.requests.map(({ body }) => body.messages[1].content)).toEqual(['summarise\n\nline two', 'hello'])
  })
  it('prints text beside calls on stderr, once, also when the turn ends there', async () => {
    const { agent } = await withModel([{ text: 'I will look.', toolCalls: [{ name: 'glob', arguments: { pattern: '*' } }] }])
    const { code, stdout, stderr } = await agent(['--max-steps', '1', 'look'])
    expect([code, stdout, stderr.match(/I will look\./g)]).toEqual([1, '', ['I will look.']])
  })
  it('prints a usage line without a task', async () => {
    const { code, stderr } = await place().hx(['agent'])
    expect(code).toBe(2)
    expect(stderr).toContain('usage: hx agent "TASK"')
  })
  it('continues the last session of the folder', async () => {
    const { agent, model } = await withModel(['first', 'second'])
    await agent(['remember 7'])
    await agent(['-c', 'what was it'])
    expect(model.requests[1]!.body.messages.map((message: { content: string }) => message.content)).toEqual([expect.any(String), 'remember 7', expect.stringContaining('The time is'), 'first', 'what was it'])
  })
  it('leaves nothing of an ephemeral session', async () => {
    const { agent, hx } = await withModel(['hi'])
    await agent(['--ephemeral', 'hello'])
    expect((await hx(['sessions', '--json'])).stdout).toBe('{"sessions":[]}\n')
  })
  it('ends with 1 when the endpoint fails, and says so once', async () => {
    const { agent } = await withModel([{ status: 400, body: { error: { message: 'boom' } } }])
    const { code, stdout, stderr } = await agent(['hi'])
    expect(code).toBe(1)
    expect(stdout).toBe('')
    expect(stderr.match(/boom/g)).toHaveLength(1)
    expect(stderr).not.toContain('test-key')
  })
  it('stops at Ctrl-C with 130, closes the open call, and the session goes on afterwards', async () => {
    const { start, hx, model } = await withModel([{ toolCalls: [{ name: 'bash', arguments: { command: 'sleep 60' } }] }, 'later'])
    const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted' }
    const running = start(['agent', '--yes', 'sleep'], { env })
    await until(() => running.output().stderr.includes('PreToolUse bash'))
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
    const after = await hx(['agent', '-c', 'and now'], { env })
    expect(after.code).toBe(0)
    const results = toolMessages(model.requests[1]!.body)
    expect(results).toHaveLength(1)
    expect(results[0]!.content).toContain('interrupted')
  })
  it('ends with 143 at SIGTERM', async () => {
    const { start, model } = await withModel([{ hang: 'body' }])
    const running = start(['agent', 'wait'], { env: { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k' } })
    await until(() => model.requests.length > 0)
    running.child.kill('SIGTERM')
    expect((await running.ended).code).toBe(143)
  })
  it('reads nothing of a folder that is not trusted: exit 3, one sentence', async () => {
    const { hx } = place({ 'harness.config.yaml': 'plugins: [marker]\n', 'plugins/marker.ts': 'import { writeFileSync } from "node:fs"\nwriteFileSync("marker", "ran")\nexport const name = "marker"\nexport const apply = () => {}\n' })
    const { code, stderr } = await hx(['agent', '--offline', 'hi'])
    expect(code).toBe(3)
    expect(stderr.trim().split('\n')).toHaveLength(1)
    expect(stderr).toContain('--trust')
  })
  it('writes nothing where plugins are looked for, or to the host itself, whatever stands there', async () => {
    const model = [
      { toolCalls: [{ name: 'write_file', arguments: { path: 'plugins/permission.ts', content: 'export const name = "permission"' } }, { name: 'bash', arguments: { command: 'echo x > plugins/permission.ts' } }, { name: 'bash', arguments: { command: 'find plugins -type f -exec truncate -s0 {} +' } }, { name: 'bash', arguments: { command: 'mv plugins others' } }] },
      'done',
    ]
    const guard = 'export const name = "guard"\nexport const apply = () => {}\n'
    const { agent, model: server, folder } = await withModel(model, { 'harness.config.yaml': 'plugins: [permission, guard, tool-fs, tool-bash, model-openai]\n', 'plugins/guard.ts': guard })
    await agent(['--trust', 'go'])
    expect(existsSync(join(folder, 'plugins/permission.ts'))).toBe(false)
    expect(readFileSync(join(folder, 'plugins/guard.ts'), 'utf8')).toBe(guard)
    expect(toolMessages(server.requests[1]!.body).map(message => message.content)).toEqual(Array.from({ length: 4 }, () => expect.stringMatching(/protected/)))
  })
  it('does not continue a session that keeps nothing', async () => {
    expect((await place().hx(['agent', '--ephemeral', '-c', 'hi'])).code).toBe(2)
  })
})

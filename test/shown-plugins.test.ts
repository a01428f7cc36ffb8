/** What plugins/README.md shows of each shipped plugin comes about here, in a test host, and is held against it line by line (support/documents.ts says how). */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createTestHost, type Script, type TestHost, type TestHostOptions } from 'harnessx/testing'
import { textOf, type Context, type ToolRun } from 'harnessx'
import { daemon } from './support/daemon.js'
import { blocks, firstLine, notPrinted, ROOT, SHOWN, typed } from './support/documents.js'
import { folder } from './support/folder.js'
import { freePort } from './support/free-port.js'
import { hasSandbox } from './support/sandbox.js'
import { shell } from './support/shell.js'
import { startScriptedModel, type Script as Replies } from './support/scripted-model.js'

type Tool = (args: Record<string, unknown>, run: ToolRun) => unknown
const call = (name: string, args: object = {}) => ({ calls: [{ name, arguments: args }] })
/** A tool that gives what the test wants. */
const tool = (name: string, give: Tool) => ({ id: name, module: { name, apply(ctx: Context) { ctx.tools.register({ name, description: 'Gives what the test wants.', parameters: { type: 'object' }, execute: give } as never) } } })

/** Everything that a person or the model can read of these prompts: results, what is printed, the system prompt, the log. */
async function told(plugins: TestHostOptions['plugins'], replies: Script, more: Partial<TestHostOptions> & { prompts?: readonly string[]; beside?: (host: TestHost) => string; cwd?: string } = {}): Promise<string> {
  const host = await createTestHost({ plugins, replies, ...more })
  onTestFinished(() => host.close())
  const results: string[] = [], printed: string[] = [], system: string[] = []
  let session: string | undefined
  for (const prompt of more.prompts ?? ['go']) {
    const ran = await host.run(prompt, { ...(session !== undefined && { session }), ...(more.cwd !== undefined && { cwd: more.cwd }) })
    session = ran.result.session
    results.push(...ran.results)
    printed.push(...ran.printed, ...ran.events.flatMap(event => event.type === 'warning' ? [`hx: ${event.message}`] : []), `hx: ${ran.result.message ?? ''}`)
  }
  for (const { messages } of host.requests) system.push(...messages.map(textOf))
  return [...results, ...printed, ...system, ...host.log.flatMap(({ plugin, message }) => [message, `hx: plugin "${plugin}": ${message}`]), more.beside?.(host) ?? ''].join('\n').replaceAll(host.folder, '/home/me/ferry')
}
/** The same, of rows that ask real endpoints. */
async function asked(plugins: TestHostOptions['plugins'], model: string, script: Readonly<Record<string, Replies>>): Promise<string> {
  const rows = await Promise.all(Object.entries(script).map(async ([id, replies]) => {
    const { url, close } = await startScriptedModel(replies)
    onTestFinished(close)
    return { name: 'model-openai', id, config: { id, profile: id, baseURL: url, apiKey: 'k' } }
  }))
  return told([...plugins, ...rows], [], { agent: { model } })
}
/** What each block shows, by its first line: what was told, and what stands for the names that the document has made up. */
const WAYS: Readonly<Record<string, () => Promise<string | readonly [string, Readonly<Record<string, string>>]>>> = {
  '[HOOK] UserPromptSubmit cwd=/home/me/ferry': () => told(['hook-log', 'permission', 'tool-fs', 'tool-bash'], [call('read_file', { path: 'README.md' }), call('bash', { command: 'sudo ls' }), 'done'], { files: { 'README.md': '# Ferry' } }),
  '{"ts":"2026-11-30T17:31:22.293Z","event":"start","session":"20261130-173122-d8rnq3","turn":1,"step":0,"id":"call_1","tool":"bash","arguments":{"command":"sudo ls"}}': () =>
    told(['audit', 'permission', 'tool-bash'], [call('bash', { command: 'sudo ls' }), 'done'], { beside: host => readFileSync(join(host.dataDir('audit'), 'audit.jsonl'), 'utf8') }),
  "Blocked: 'sudo' is on the deny list": () => told(['permission', 'tool-bash'], [call('bash', { command: 'sudo ls' }), call('bash', { command: 'rm test.txt' }), 'done']),
  'blocked by plugin "guard-secrets": ".env" may hold secrets, which no tool reads or writes; ask the user for what you need to know. …': () =>
    told(['guard-secrets', 'tool-fs'], [call('read_file', { path: '.env' }), call('grep', { pattern: 'A' }), 'done'], { files: { '.env': 'A=1\nA2=2\nA3=3\n', 'a.txt': 'A\n' } }),
  'curl: (6) Could not resolve host: example.com': () => told(['sandbox', 'tool-bash'], [call('bash', { command: 'curl -sS https://example.com' }), 'done']),
  'hx: plugin "sandbox": commands run without a sandbox: bubblewrap ("bwrap") is not installed. Rules alone keep nobody out who means harm; install bubblewrap, or say enabled: false to hear no more of it': async () =>
    [await told([{ name: 'sandbox', config: { program: 'no-bwrap' } }, 'tool-bash'], [call('bash', { command: 'true' }), 'done']), { '"bwrap"': '"no-bwrap"' }],
  'error: read_file: "no.txt" does not exist; the folder "." is there, but has nothing of a similar name': () => told(['tool-errors', 'tool-fs'], [call('read_file', { path: 'no.txt' }), 'done']),
  'read_file gave 120000 characters of output, more than 100000': () => told(['large-output', tool('read_file', () => 'x'.repeat(120_000))], [call('read_file'), 'done']),
  '[cut here: 123 of 50123 characters are missing; ask for a smaller part to see them]': () => told(['truncate', tool('much', () => 'x'.repeat(50_123))], [call('much'), 'done']),
  '[stats] tokens=1310 time=317ms step=1 tool_calls=1': () => told(['stats', 'permission', 'tool-bash'], [call('bash', { command: 'sudo ls' }), 'done']),
  'hx: attempt 1 failed and is made again: model "openai/gpt-5-mini" answered 503: the engine is busy': () => asked(['retry'], 'openai/gpt-5-mini', { openai: [{ status: 503, body: { error: { message: 'the engine is busy' } } }, 'done'] }),
  'tool "bash" did not finish within 10 min and was stopped; what it did until then stays': async () => {
    const limits = { name: 'timeout', config: { request: '200ms', tool: '200ms' } }, slow = tool('bash', (_, { signal }) => new Promise(resolve => { signal.addEventListener('abort', () => { resolve('') }) }))
    return [`${await told([limits, slow], [call('bash'), 'done'])}\n${await asked([limits], 'openai/gpt-5-mini', { openai: [{ hang: 'headers' }] })}`, { '10 min': '…' }]
  },
  'hx: plugin "fallback": model "deepseek/deepseek-chat" failed (overloaded), so "openai/gpt-5-mini" is asked: model "deepseek/deepseek-chat" answered 503': () =>
    asked([{ name: 'fallback', config: { models: ['openai/gpt-5-mini'] } }], 'deepseek/deepseek-chat', { deepseek: [{ status: 503, body: '' }], openai: ['done'] }),
  '[a result of 4000 characters was left out to make room; call the tool again if you need it]': () => told([{ name: 'prune-tool-results', config: { keep: 0, atLeast: 100 } }, tool('big', () => '.'.repeat(4000))], [call('big'), call('big'), 'done']),
  'hx: plugin "compaction": 46 messages of session "20261130-183640-qrnfga", which has about 101310 tokens, give way to a summary': async () =>
    [await told([{ name: 'compaction', config: { above: 1000, keep: 0 } }], ['word '.repeat(2000), 'the summary', 'done'], { prompts: ['first', 'second'] }), { '46 messages': '… messages' }],
  'Instructions of /home/me/ferry/AGENTS.md:': () => told(['agent-instructions'], ['done'], { files: { 'AGENTS.md': 'Use tabs.\n' } }),
  'Skills are instructions for certain tasks. When a task fits one, read it with the tool "skill" before you begin:': () => told(['skills'], ['done'], { files: { 'skills/pdf/SKILL.md': '---\nname: pdf\ndescription: Reads forms\n---\nDo.\n' } }),
  '{"event":"turn-end","text":"hx: completed after 1 s in /home/me/ferry","session":"20261130-183640-qrnfga","cwd":"/home/me/ferry","turn":1,"reason":"completed","elapsedMs":1451.7}': async () => {
    const out = folder()
    return told([{ name: 'notify', config: { command: ['sh', '-c', `cat > ${out.at('notice')}`] } }], ['done'], { beside: () => readFileSync(out.at('notice'), 'utf8') })
  },
  '[todo] [x] read': () => told(['todo'], [call('todo', { items: [{ text: 'read', state: 'done' }, { text: 'write', state: 'active' }, { text: 'test', state: 'open' }] }), 'done']),
  'the task ended max-steps after 30 steps (step limit reached, the task is unfinished); its last words:': () =>
    told(['subagent', tool('look', () => 'seen')], ({ messages }) => messages.some(message => message.role === 'user' && textOf(message) === 'find it') ? { text: 'looking', ...call('look') } : messages.some(({ role }) => role === 'tool') ? 'done' : call('task', { title: 'find', prompt: 'find it' })),
  'blocked by plugin "claude-hooks": package.json is protected. The same call will be refused again; do not work around it.': async () => {
    const hook = (command: string, more = {}) => [{ hooks: [{ type: 'command', command, ...more }] }]
    const project = folder({ '.claude/settings.json': JSON.stringify({ hooks: { WorktreeCreate: hook('true'), PreToolUse: [...hook('sleep 5', { timeout: 0.2 }), ...hook('grep -q package.json && { echo package.json is protected >&2; exit 2; }')] } }) })
    const host = await told([{ name: 'claude-hooks', config: { folders: [project.path] } }, 'tool-fs'], [call('read_file', { path: 'package.json' }), 'done'], { cwd: project.path })
    return [host.replaceAll(project.path, '/home/me/ferry'), { 'check.sh': 'sleep 5', '60 s': '0.2 s' }]
  },
  'hx: plugin "claude-commands": /fix-issue ("/home/me/ferry/.claude/commands/fix-issue.md"): not supported, so without effect: "allowed-tools"': async () => {
    const project = folder({ '.claude/commands/fix-issue.md': '---\nallowed-tools: Read\n---\nFix $1\n' })
    return (await told([{ name: 'claude-commands', config: { folders: [project.path] } }], ['done'])).replaceAll(project.path, '/home/me/ferry')
  },
  '[image, image/png, 4033 bytes, in "/home/me/.local/state/hx/sessions/…/mcp-5f0c91aa.png"]': async () => {
    const memory = { command: process.execPath, args: [join(ROOT, 'test/support/processes/mcp-server.mjs')] }, docs = { command: 'no-npx', cwd: '/home/me/ferry' }
    return [await told([{ name: 'mcp', config: { servers: { memory, docs } } }], [call('mcp__memory__mixed'), call('mcp__memory__die'), 'done']), { '4033': '9', '/home/me/.local/state/hx/sessions/…/mcp-5f0c91aa': '…', read_graph: 'die', npx: 'no-npx' }]
  },
  [`$ curl -s http://127.0.0.1:7070/v1/chat/completions -H "authorization: Bearer $(cat $XDG_RUNTIME_DIR/hx/*.token)" -d '{"model": "hx", "messages": [{"role": "user", "content": "List src/*.js"}]}'`]: async () => {
    const port = await freePort()
    const here = await daemon([{ toolCalls: [{ name: 'glob', arguments: { pattern: 'src/*.js' } }] }, 'src/*.js matches 2 files: src/a.js, src/b.js.'], { 'harness.config.yaml': `server: { tcp: { port: ${port} } }\nplugins: [tool-fs, model-openai, openai-server]\n`, 'src/a.js': '', 'src/b.js': '' })
    const { command } = typed(shown.find(({ text }) => text.includes('/v1/chat/completions'))!)[0]!
    return `$ ${command}\n${(await shell(here).sh(command.replace('7070', String(port)).replace('$XDG_RUNTIME_DIR/hx', '$HX_HOME/run'))).stdout}`
  },
}
const NEEDS: Readonly<Record<string, boolean>> = { 'curl: (6) Could not resolve host: example.com': hasSandbox && spawnSync('curl', ['--version']).status === 0 }

const shown = blocks.filter(({ doc, language }) => doc === 'plugins/README.md' && SHOWN.includes(language))
describe('what plugins/README.md shows', () => {
  for (const block of shown) it.runIf(NEEDS[firstLine(block)] ?? true)(`comes about: ${firstLine(block).slice(0, 80)}`, async () => {
    const way = WAYS[firstLine(block)]
    expect(way, 'nothing here runs this block').toBeDefined()
    const one = await way!(), [came, names] = typeof one === 'string' ? [one, {}] : one
    expect(notPrinted(block.text, came, names), came).toEqual([])
  })
  it('has a way for no block that is gone', () => {
    expect(Object.keys(WAYS).filter(first => !shown.some(block => firstLine(block) === first))).toEqual([])
  })
})

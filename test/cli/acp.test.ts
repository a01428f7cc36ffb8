/** `hx acp` as an editor starts it: a process of its own, spoken to by the client of the official SDK. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { client, ndJsonStream, PROTOCOL_VERSION, type ClientContext, type RequestPermissionRequest, type SessionUpdate } from '@agentclientprotocol/sdk'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { RunEvent } from '../../core/agent/services.js'
import { answerOf, commandOf, promptOf, stopReasonOf } from '../../core/cli/acp-prompt.js'
import { Updates } from '../../core/cli/acp-updates.js'
import { CLI, place, until, type Place } from '../support/hx.js'
import { startScriptedModel } from '../support/scripted-model.js'

const CONFIG = 'plugins: [{ name: permission, required: true }, tool-fs, tool-bash, model-openai, ./note.ts]\n'
const NOTE = `export const name = 'note'
export function apply(ctx) {
  console.log('a plugin prints')
  ctx.commands.register({ name: 'note', description: 'Says what is noted.', run: args => 'noted: ' + args })
}
`
type Script = Parameters<typeof startScriptedModel>[0]

async function editor(script: Script, { answer = 'once', at, args = ['--trust'] }: { answer?: string; at?: Place; args?: string[] } = {}) {
  const model = await startScriptedModel(script)
  onTestFinished(() => model.close())
  const here = at ?? place({ 'harness.config.yaml': CONFIG.replace('./note.ts', '{ name: note, from: ./note.ts }'), 'note.ts': NOTE, 'a.txt': 'hello\n' })
  const env = { ...here.env, OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted' }
  const child = spawn(process.execPath, [CLI, 'acp', ...args], { cwd: here.folder, env, stdio: ['pipe', 'pipe', 'pipe'] })
  const ended = once(child, 'close') as Promise<[number | null]>
  onTestFinished(async () => { child.kill('SIGKILL'); await ended })
  let stdout = '', stderr = ''
  child.stdout.on('data', text => { stdout += String(text) })
  child.stderr.on('data', text => { stderr += String(text) })
  const updates: SessionUpdate[] = [], asked: RequestPermissionRequest[] = []
  const connection = client({ name: 'test' })
    .onRequest('session/request_permission', ({ params }) => {
      asked.push(params)
      return { outcome: { outcome: 'selected', optionId: answer } }
    })
    .onNotification('session/update', ({ params }) => { updates.push(params.update) })
    .connect(ndJsonStream(Writable.toWeb(child.stdin) as WritableStream<Uint8Array>, Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>))
  const agent: ClientContext = connection.agent
  const initialized = await agent.request('initialize', { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} })
  const begin = () => agent.request('session/new', { cwd: here.folder, mcpServers: [] })
  const prompt = (sessionId: string, text: string) => agent.request('session/prompt', { sessionId, prompt: [{ type: 'text', text }] })
  const said = () => updates.map(update => update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? update.content.text : '').join('')
  return { ...here, here, model, agent, initialized, begin, prompt, updates, asked, said, child, ended, env, output: () => ({ stdout, stderr }) }
}
const kinds = (updates: readonly SessionUpdate[]) => updates.map(update => `${update.sessionUpdate}${'status' in update ? ` ${update.status}` : ''}`)

describe('hx acp', () => {
  it('runs a turn for an editor: streamed text, calls with kind, place and change, a permission that is asked for and given', async () => {
    let begun = () => false
    const { initialized, begin, prompt, updates, asked, said, folder, output } = await editor([
      { text: 'I look.', toolCalls: [{ name: 'read_file', arguments: { path: 'a.txt' } }] },
      { toolCalls: [{ name: 'edit_file', arguments: { path: 'a.txt', old_text: 'hello', new_text: 'goodbye' } }] },
      { toolCalls: [{ name: 'bash', arguments: { command: 'rm a.txt' } }] },
      { text: 'All of it is done now, and well.', deltaSize: 5, before: n => n === 3 && until(() => begun()) },          // the rest is not told before a piece has come
    ])
    begun = () => said().includes('All o')
    expect(initialized).toMatchObject({ protocolVersion: PROTOCOL_VERSION, agentInfo: { name: 'harnessx' }, agentCapabilities: { loadSession: true, promptCapabilities: { embeddedContext: true } } })
    const { sessionId, modes } = await begin()
    expect(modes).toMatchObject({ currentModeId: 'default', availableModes: [{ id: 'default' }, { id: 'accept-edits' }, { id: 'plan' }, { id: 'yes' }] })
    expect(await prompt(sessionId, 'do it')).toMatchObject({ stopReason: 'end_turn', usage: { totalTokens: expect.any(Number) as number } })
    expect(said()).toBe('I look.All of it is done now, and well.')
    expect(updates.filter(({ sessionUpdate }) => sessionUpdate === 'agent_message_chunk').length).toBeGreaterThan(2)
    const calls = updates.filter(update => update.sessionUpdate === 'tool_call')
    expect(calls).toMatchObject([
      { title: 'read_file: a.txt', kind: 'read', status: 'pending', rawInput: { path: 'a.txt' }, locations: [{ path: join(folder, 'a.txt') }] },
      { kind: 'edit', content: [{ type: 'diff', path: join(folder, 'a.txt'), oldText: 'hello', newText: 'goodbye' }] },
      { title: 'bash: rm a.txt', kind: 'execute' },
    ])
    expect(new Set(calls.map(({ toolCallId }) => toolCallId)).size).toBe(3)
    expect(updates.filter(update => update.sessionUpdate === 'tool_call_update').map(({ status }) => status)).toEqual(['in_progress', 'completed', 'in_progress', 'completed', 'in_progress', 'completed'])
    expect(asked).toMatchObject([{ sessionId, toolCall: { toolCallId: calls[2]!.toolCallId, title: 'bash: rm a.txt', content: [{ content: { text: expect.stringContaining('permission asks: \'rm *\' is on the ask list') as string } }] }, options: [{ kind: 'allow_once' }, { kind: 'allow_always' }, { kind: 'reject_once' }] }])
    expect(existsSync(join(folder, 'a.txt'))).toBe(false)
    for (const line of output().stdout.trim().split('\n')) expect(JSON.parse(line)).toMatchObject({ jsonrpc: '2.0' })       // and nothing that a plugin prints
    expect(output().stderr).toContain('a plugin prints')
  })
  it('does not run what the person rejects, and says so; modes change what is asked', async () => {
    const { agent, begin, prompt, updates, asked, folder } = await editor([
      { toolCalls: [{ name: 'bash', arguments: { command: 'rm a.txt' } }] }, { text: 'no' },
      { toolCalls: [{ name: 'write_file', arguments: { path: 'b.txt', content: 'x' } }] }, { text: 'planned' },
      { toolCalls: [{ name: 'bash', arguments: { command: 'rm a.txt' } }] }, { text: 'gone' },
    ], { answer: 'denied' })
    const { sessionId } = await begin()
    await prompt(sessionId, 'delete it')
    expect(kinds(updates)).toContain('tool_call_update failed')
    expect(existsSync(join(folder, 'a.txt'))).toBe(true)
    await agent.request('session/set_mode', { sessionId, modeId: 'plan' })
    await prompt(sessionId, 'plan it')
    expect(existsSync(join(folder, 'b.txt'))).toBe(false)
    await agent.request('session/set_mode', { sessionId, modeId: 'yes' })
    await prompt(sessionId, 'do it')
    expect([asked.length, existsSync(join(folder, 'a.txt'))]).toEqual([1, false])
    expect(await agent.request('session/load', { sessionId, cwd: folder, mcpServers: [] })).toMatchObject({ modes: { currentModeId: 'yes' } })
    expect((await begin()).modes).toMatchObject({ currentModeId: 'default' })
    await expect(agent.request('session/set_mode', { sessionId, modeId: 'turbo' })).rejects.toThrow('there is no mode "turbo"')
  })
  it('offers the commands of plugins and runs them; cancels a turn; says what is wrong as an error', async () => {
    const { agent, begin, prompt, updates, said, model } = await editor([{ text: 'never', hang: 'body' }, { status: 400, body: { error: { message: 'too odd' } } }])
    const { sessionId } = await begin()
    const told = await until(() => updates.find(update => update.sessionUpdate === 'available_commands_update'))
    expect(told.availableCommands).toContainEqual(expect.objectContaining({ name: 'note', description: 'Says what is noted.' }))
    expect(await prompt(sessionId, '/note buy milk')).toEqual({ stopReason: 'end_turn' })
    expect(said()).toBe('noted: buy milk')
    const running = prompt(sessionId, 'wait')
    await until(() => model.requests.length === 1)
    await expect(prompt(sessionId, 'meanwhile')).rejects.toThrow('has a turn that runs')
    await agent.notify('session/cancel', { sessionId })
    expect(await running).toMatchObject({ stopReason: 'cancelled' })
    await expect(prompt(sessionId, 'fail')).rejects.toThrow('too odd')
    await expect(prompt('nobody', 'hi')).rejects.toThrow('session "nobody" is not open here')
    await expect(agent.request('session/prompt', { sessionId, prompt: [{ type: 'image', data: '', mimeType: 'image/png' }] })).rejects.toThrow('only text and text files can be read')
  })
  it('obeys a cancel that comes before the turn has begun, also behind a command', async () => {
    const { agent, begin, prompt, model } = await editor([{ text: 'never', hang: 'body' }, { text: 'never', hang: 'body' }])
    const { sessionId } = await begin()
    const cancelled = async (text: string) => {
      const running = prompt(sessionId, text)
      await agent.notify('session/cancel', { sessionId })
      return running
    }
    expect(await cancelled('too soon')).toMatchObject({ stopReason: 'cancelled' })
    expect(await cancelled('/note x')).toMatchObject({ stopReason: expect.stringMatching(/cancelled|end_turn/) as string })       // the command may have ended before
    await until(() => model.requests.every(({ aborted }) => aborted))
  })
  it('leaves lines out that are no messages, and goes on', async () => {
    const { begin, prompt, child, output } = await editor([{ text: 'still here' }])
    child.stdin.write('not json\n\nnull\n42\n[]\n"x"\n{}\n{"jsonrpc":"2.0"}\n{"id":5}\n[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}]\n')
    const { sessionId } = await begin()
    expect(await prompt(sessionId, 'are you there?')).toMatchObject({ stopReason: 'end_turn' })
    await until(() => output().stderr.split('is no message of the protocol').length === 6)
  })
  it('says why it ends when a message is longer than it takes', async () => {
    const { child, ended, output } = await editor([])
    child.stdin.on('error', () => {})
    child.stdin.write('x'.repeat(33 * 1024 * 1024))
    expect(await ended).toEqual([2, null])
    expect(output().stderr).toBe('hx: the editor sent a message of more than 33554432 bytes, so the connection is ended\n')
  })
  it('loads no session whose turn runs here', async () => {
    const { agent, begin, prompt, model, folder } = await editor([{ text: 'never', hang: 'body' }])
    const { sessionId } = await begin()
    const running = prompt(sessionId, 'wait')
    await until(() => model.requests.length === 1)
    await expect(agent.request('session/load', { sessionId, cwd: folder, mcpServers: [] })).rejects.toThrow('has a turn that runs')
    await agent.notify('session/cancel', { sessionId })
    expect(await running).toMatchObject({ stopReason: 'cancelled' })
  })
  it('loads a session in another process, as it was told before, and goes on with it', async () => {
    const first = await editor([{ text: 'reading', toolCalls: [{ name: 'read_file', arguments: { path: 'a.txt' } }] }, { text: 'it says hello' }])
    const { sessionId } = await first.begin()
    await first.prompt(sessionId, 'what is in it?')
    first.child.stdin.end()                                  // the editor leaves
    expect(await first.ended).toEqual([0, null])
    const second = await editor([{ text: 'still hello' }], { at: first.here })
    expect((await second.agent.request('session/list', { cwd: first.folder })).sessions).toMatchObject([{ sessionId, cwd: first.folder, title: 'what is in it?' }])
    await second.agent.request('session/load', { sessionId, cwd: first.folder, mcpServers: [] })
    expect(kinds(second.updates).slice(0, 6)).toEqual(['user_message_chunk', 'agent_message_chunk', 'tool_call pending', 'tool_call_update in_progress', 'tool_call_update completed', 'agent_message_chunk'])
    expect(await second.prompt(sessionId, 'and now?')).toMatchObject({ stopReason: 'end_turn' })
    expect((second.model.requests[0]!.body as { messages: object[] }).messages).toHaveLength(6)
    await expect(second.agent.request('session/load', { sessionId: 'nope', cwd: first.folder, mcpServers: [] })).rejects.toThrow('nope')
  })
  it('works through the daemon, where a turn has the same updates', async () => {
    const here = place({ 'harness.config.yaml': CONFIG.replace(', ./note.ts', ''), 'a.txt': 'hello\n' })
    onTestFinished(async () => { await here.hx(['stop']) })
    const model = await startScriptedModel([{ toolCalls: [{ name: 'bash', arguments: { command: 'rm a.txt' } }] }, { text: 'gone' }])
    onTestFinished(() => model.close())
    expect(await here.hx(['start', '--trust'], { env: { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted' } })).toMatchObject({ code: 0 })
    const { begin, prompt, updates, asked, child, ended } = await editor([], { at: here, args: [] })
    const { sessionId } = await begin()
    expect(await prompt(sessionId, 'delete it')).toMatchObject({ stopReason: 'end_turn' })
    expect(asked).toHaveLength(1)
    expect(kinds(updates).filter(kind => kind.startsWith('tool'))).toEqual(['tool_call pending', 'tool_call_update in_progress', 'tool_call_update completed'])
    child.kill('SIGTERM')
    expect(await ended).toEqual([143, null])
    expect(await here.hx(['status'])).toMatchObject({ code: 0 })
  })
  it('tells an editor that the folder is not trusted, and reads nothing of it', async () => {
    const { begin } = await editor([], { args: [] })
    await expect(begin()).rejects.toThrow(/trust/)
  })
})

describe('what editors send and are told', () => {
  it('is one text of what was written, mentioned and attached', () => {
    expect(promptOf([{ type: 'text', text: 'look at ' }, { type: 'resource_link', name: 'a', uri: 'file:///w/a%20b.ts' }])).toBe('look at /w/a b.ts')
    expect(promptOf([{ type: 'resource', resource: { uri: 'file:///w/a.ts', text: 'let a' } }])).toBe('<file path="/w/a.ts">\nlet a\n</file>')
    expect(promptOf([{ type: 'audio', data: '', mimeType: 'audio/wav' }])).toBeUndefined()
    expect([commandOf('/note  a b', ['note']), commandOf('/etc/hosts is odd', ['note']), commandOf('/note', ['note'])]).toEqual([{ name: 'note', args: 'a b' }, undefined, { name: 'note', args: '' }])
  })
  it('takes an answer for a yes only when it is one of the two', () => {
    expect(['once', 'session', 'always', 'denied', '?'].map(optionId => answerOf({ outcome: { outcome: 'selected', optionId } }))).toEqual([{ answer: 'once' }, { answer: 'session' }, { answer: 'denied' }, { answer: 'denied' }, { answer: 'denied' }])
    expect(answerOf({ outcome: { outcome: 'cancelled' } })).toBeUndefined()
    expect((['completed', 'truncated', 'max-steps', 'rejected', 'aborted', 'failed'] as const).map(reason => stopReasonOf({ reason }))).toEqual(['end_turn', 'max_tokens', 'max_turn_requests', 'refusal', 'cancelled', undefined])
  })
  it('names in a title every argument that counts, so that one more hides none', () => {
    const titleOf = (name: string, args: Record<string, unknown>) => new Updates('/w', () => false).begin(1, 'c', name, args).map(update => 'title' in update ? update.title : undefined)[0]
    expect([titleOf('bash', { command: 'rm a', path: 'README.md' }), titleOf('write_file', { title: 'harmless', path: 'a.ts', content: '' }), titleOf('grep', { pattern: 'x' }), titleOf('odd', {})]).toEqual(['bash: README.md, rm a', 'write_file: a.ts, harmless', 'grep: x', 'odd'])
  })
  it('tells a whole reply once, streamed or not', () => {
    const updates = new Updates('/w', () => true)
    const message = (step: number) => ({ type: 'message', role: 'assistant', turn: 1, step, content: [{ type: 'text', text: 'hi' }], source: { kind: 'model' }, seq: 1, ts: '' }) as RunEvent
    expect(updates.of(message(0))).toHaveLength(1)
    expect([...updates.of({ type: 'delta', turn: 1, step: 1, kind: 'text', text: 'hi', attempt: 1 }), ...updates.of(message(1))]).toHaveLength(1)
  })
})

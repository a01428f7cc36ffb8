import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, onTestFinished } from 'vitest'
import { UNREAD_MS } from '../../core/cli/chat/question.js'
import { daemon } from '../support/daemon.js'
import { place, until, type Place } from '../support/hx.js'
import { startScriptedModel, type Script } from '../support/scripted-model.js'
import { onScreen } from '../support/screen.js'
import { hasTerminal } from '../support/terminal.js'

const CONFIG = 'agent: { prices: { openai: { input: 100, output: 1000 } } }\nplugins: [hook-log, permission, tool-fs, tool-bash, model-openai, model-offline]\n'
const FILES = { 'harness.config.yaml': CONFIG, 'README.md': '# Demo\n\nA small project.\n', 'test.txt': 'here\n' }
const ENTER = '\r', CTRL_C = '\u0003', CTRL_D = '\u0004', UP = '\u001b[A'

async function chat(script: Script, more: { args?: string[]; env?: Record<string, string>; files?: Record<string, string>; here?: Place } = {}) {
  const model = await startScriptedModel(script)
  onTestFinished(() => model.close())
  const here = more.here ?? place({ ...FILES, ...more.files })
  const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted', ...more.env }
  const open = (args: string[] = more.args ?? []) => onScreen(here, ['chat', '--trust', ...args], env)
  const screen = open()
  await screen.sees('/help')
  return { model, here, screen, open }
}

describe('hx chat', () => {
  it('says where to go when there is no terminal', async () => {
    const { code, stderr, stdout } = await place(FILES).hx(['chat', '--trust'])
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toBe('hx: hx chat is a conversation on a terminal, and here is none; for programs and pipes there is: hx agent "TASK"\n')
  })
})

if (!hasTerminal) describe('hx chat on a terminal', () => { it('can not be tried here: "script" of util-linux is missing', () => { expect(hasTerminal).toBe(false) }) })
else describe('hx chat on a terminal', () => {
  it('shows the reply as Markdown, calls with their outcome, thoughts folded, cost, and leaves with Ctrl-D', async () => {
    const { screen, here } = await chat([
      { reasoning: 'a secret thought', text: 'I *look*.', toolCalls: [{ name: 'read_file', arguments: { path: 'README.md' } }] },
      { text: '# Found\n\n- it is **small**\u001b]0;evil\u0007\u001b[31m\n- it ends', chunkMs: 5, deltaSize: 3 },
    ])
    screen.type(`what is this?${ENTER}`)
    await screen.sees(/2 steps · 1 call · \d+ tokens · \$0\.0\d+ · /)
    expect(screen.text).toMatch(/∴ thought.*\n\nI look\.\n\n✓ read_file README\.md {2}\d.*2 lines\n\nFound\n\n• it is small\n• it ends\n\n2 steps/)
    expect(screen.text).not.toContain('a secret thought')
    expect(screen.text).not.toContain('[HOOK]')
    expect(screen.raw).not.toMatch(/\u001b\]|evil/)
    screen.type('\u0014')                                    // Ctrl-T
    await screen.sees('a secret thought')
    screen.type(`/cost${ENTER}`)
    await screen.sees(/1 turn: \d+ tokens \(\d+ in, \d+ out\), \$0\.0/)
    screen.type(CTRL_D)
    expect(await screen.code).toBe(0)
    expect(screen.text).toMatch(/go on with: hx chat --session \S+$/)
    expect(readFileSync(join(here.env['HX_HOME']!, 'state/logs/chat.log'), 'utf8')).toContain('[HOOK] UserPromptSubmit')
  })

  it('shows what a plugin warns of in a handler beside the conversation, and nothing of what it prints', async () => {
    const warner = `export const name = 'warner'
export const apply = ctx => { ctx.on('agent/tool-start', ({ call }) => { console.error('printed'); ctx.logger.warn('mind ' + call.arguments.path) }) }
`
    const { screen, here } = await chat([{ toolCalls: [{ name: 'read_file', arguments: { path: 'README.md' } }] }, 'done'], { files: { 'warner.js': warner, 'harness.config.yaml': CONFIG.replace('hook-log', '{ name: warner, from: ./warner.js }') } })
    screen.type(`go${ENTER}`)
    await screen.sees(/2 steps/)
    expect(screen.text.split('plugin "warner": mind README.md')).toHaveLength(2)
    expect([screen.text.includes('printed'), readFileSync(join(here.env['HX_HOME']!, 'state/logs/chat.log'), 'utf8').trim()]).toEqual([false, 'printed'])
  })

  it('stops the turn with Ctrl-C at once, and leaves with two on an empty line', async () => {
    const { screen, model } = await chat([{ text: 'words and words', hang: 3 }, 'second'])
    screen.type(`go${ENTER}`)
    await screen.sees('words')
    screen.type(CTRL_C)
    await screen.sees('aborted: stopped by the user')
    expect(model.requests[0]!.aborted).toBe(true)
    screen.type(`again${ENTER}`)
    await screen.sees('second')
    await screen.sees(/1 step .*\n\n› *\n.*\/help$/)
    screen.type(CTRL_C)
    await screen.sees('Ctrl-C again')
    screen.type(CTRL_C)
    expect(await screen.code).toBe(130)
  })

  it('gives the terminal back with Ctrl-Z and takes it again with all its modes, also where no shell can stop it', async () => {
    const { screen } = await chat([])
    screen.type('a draft')
    await screen.sees('› a draft')
    screen.type('\u001a')
    await until(() => screen.raw.split('\u001b[?2004h').length === 3)       // pasted blocks come as such again
    expect(screen.raw).toContain('\u001b[?2004l')
    screen.type(' goes on')
    await screen.sees('› a draft goes on')
    expect(screen.text.match(/a draft/g)).toHaveLength(1)
    screen.type(`${CTRL_C}${CTRL_D}`)
    expect(await screen.code).toBe(0)
  })

  it('queues what is typed while a turn runs, and gives it back when that is stopped', async () => {
    let open = () => {}
    const gate = new Promise<void>(resolve => { open = resolve })
    const { screen, model } = await chat([async () => { await gate; return 'first answer' }, 'second answer', { text: 'third', hang: 2 }])
    screen.type(`one${ENTER}`)
    await screen.sees('waiting for the model')
    screen.type(`two${ENTER}`)
    await screen.sees('queued two')
    open()
    await screen.sees('second answer')
    screen.type(`three${ENTER}`)
    await model.request(3)
    screen.type(`four${ENTER}`)
    await screen.sees('queued four')
    screen.type(`> five${ENTER}`)
    await screen.sees('handed to the running turn')
    screen.type(CTRL_C)
    await screen.sees(/aborted[^]*› five\n +four\n/)          // what was handed over and not taken is not lost either
    expect(model.requests.map(({ body }) => body.messages.findLast((one: { role: string; content: string }) => one.role === 'user').content)).toEqual(['one', 'two', 'three'])
  })

  it('asks with the final call, and tells the model why not', async () => {
    const { screen, model } = await chat([{ toolCalls: [{ name: 'bash', arguments: { command: 'rm test.txt' } }] }, 'I leave it.'])
    screen.type(`delete it${ENTER}`)
    await screen.sees(/\[y\] once {2}\[s\] this session.* {2}\[n\] no, tell the model why/)
    expect(screen.text).toMatch(/permission asks: .*rm \*.*\n {2}bash\n {4}rm test\.txt\n/)
    await until(() => {                                      // a key that comes too soon was not meant for the ask
      screen.type('n')
      return screen.text.includes('why?')
    }, 500)
    screen.type('\u0015')                                    // Ctrl-U: whatever came more than once
    screen.type(`keep it${ENTER}`)
    await screen.sees('I leave it.')
    expect(screen.text).toContain('denied: keep it')
    expect(JSON.stringify(model.requests[1]!.body)).toContain('keep it')
  })

  it('takes a pasted block and lines with a backslash as one prompt, names files, and remembers all of it', async () => {
    const { screen, model, here, open } = await chat(() => 'fine')
    screen.type(`\u001b[200~a\nb\u001b[201~`)
    screen.type(` and \\${ENTER}c @READ\t${ENTER}`)
    await screen.sees('1 step')
    expect(model.requests[0]!.body.messages.at(-1).content).toBe('a\nb and \nc @README.md\n\n[Named with @, relative to the workspace: README.md (25 bytes)]')
    screen.type(`see @gone${ENTER}`)
    await screen.sees('"@gone" is no file or folder of')
    expect(model.requests).toHaveLength(1)
    screen.type(`${CTRL_C}${CTRL_D}`)
    await screen.code
    const again = open(['-c'])
    await again.sees(/session \S+\n\n› a\n {2}b and\n {2}c @README\.md\n[^]*fine[^]*\/help/)
    again.type(`${UP}${UP}`)
    await again.sees(/› a\n {2}b and\n {2}c @README\.md\n {2}openai|fine\n\n› a\n/)
    const history = join(here.env['HX_HOME']!, 'state/chat-history')
    expect(statSync(history).mode & 0o777).toBe(0o600)
  })

  it('runs commands of plugins, their prompts too, and says what a wrong one might mean', async () => {
    const plugin = `export const name = 'own'
export function apply(ctx) {
  ctx.commands.register({ name: 'greet', description: 'greets', run: args => 'hello ' + args + '\\u001b[31m' })
  ctx.commands.register({ name: 'ask', description: 'asks', run: args => ({ prompt: 'tell me about ' + args }) })
}`
    const { screen, model } = await chat(['about the sea'], { files: { 'plugins/own.ts': plugin, 'harness.config.yaml': 'plugins: [own, model-openai]\n' } })
    screen.type(`/greet you${ENTER}`)
    await screen.sees('hello you')
    screen.type(`/ask the sea${ENTER}`)
    await screen.sees('about the sea\n\n1 step')
    expect(model.requests[0]!.body.messages.at(-1).content).toBe('tell me about the sea')
    screen.type(`/gret${ENTER}`)
    await screen.sees('there is no command "/gret"; did you mean "/greet"?')
    expect(screen.raw).not.toContain('\u001b[31mhello')
  })

  it('asks after a turn whether to load what a tool may have changed: d shows it, y loads it, other words leave it and are typed', async () => {
    const plugin = (says: string) => `export const name = 'own'\nexport function apply(ctx) { ctx.commands.register({ name: 'say', description: 'says', run: () => 'it says ${says}' }) }\n`
    const bash = (command: string) => ({ toolCalls: [{ name: 'bash', arguments: { command } }] })
    const { screen, here } = await chat([bash('sed -i s/one/two/ plugins/own.ts'), 'changed it', bash('sed -i s/two/three/ plugins/own.ts'), 'and again'], { files: { 'plugins/own.ts': plugin('one'), 'harness.config.yaml': 'plugins: [own, tool-bash, model-openai]\n' } })
    screen.type(`change it${ENTER}`)
    await screen.sees(/a tool may have changed .*own\.ts[^]*load it\? \[y\/N\/d diff\]/)
    await sleep(UNREAD_MS)                                   // a key that comes sooner is none for the question
    screen.type('d')
    await screen.sees(/\+ export[^]*it says two/)
    await sleep(UNREAD_MS)
    screen.type('y')
    await screen.sees('reloaded: own')
    screen.type(`/say${ENTER}`)
    await screen.sees(/\nit says two/)
    screen.type(`once more${ENTER}`)
    await screen.sees(/and again[^]*load it\? \[y\/N\/d diff\]/)
    screen.type('/say')
    await screen.sees('not loaded: /reload --held loads it')
    screen.type(ENTER)
    await until(() => screen.text.match(/^it says two$/gm)?.length === 2)
    expect(readFileSync(join(here.folder, 'plugins/own.ts'), 'utf8')).toContain('three')
    screen.type(CTRL_D)
    expect(await screen.code).toBe(0)
  }, 30_000)

  it('does without colours, and without moving the cursor where the terminal can not', async () => {
    const colourless = await chat(['**bold**'], { env: { NO_COLOR: '1' } })
    colourless.screen.type(`go${ENTER}`)
    await colourless.screen.sees('1 step')
    expect(colourless.screen.raw).not.toMatch(/\u001b\[[\d;]*m/)
    const here = place(FILES), model = await startScriptedModel([{ reasoning: 'hm', text: '# Title\n\nplain' }])
    onTestFinished(() => model.close())
    const dumb = onScreen(here, ['chat', '--trust'], { TERM: 'dumb', OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted' })
    await dumb.sees('>')
    dumb.type('go\n')
    await dumb.sees(/Title\n\nplain\n\n1 step/)
    expect(dumb.raw).not.toContain('\u001b')
    expect(dumb.text).toMatch(/∴ thought[^(\n]*\n/)                // no key is named that is none here
    dumb.type(CTRL_D)
    expect(await dumb.code).toBe(0)
    expect(dumb.text).toMatch(/\n> ?\ngo on with: hx chat/)
  })

  it('goes on when the daemon is killed in a turn, with the session and every turn that had ended', async () => {
    const here = await daemon([{ text: 'first answer' }, { text: 'half of ', hang: 2 }, 'third answer'], { 'harness.config.yaml': 'plugins: [tool-fs, model-openai]\n' })
    const screen = onScreen(here, ['chat'], { OPENAI_BASE_URL: here.model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted' })
    await screen.sees('daemon · new session')
    screen.type(`one${ENTER}`)
    await screen.sees(/first answer\n\n1 step/)
    screen.type(`two${ENTER}`)
    await screen.sees('half of')
    const pid = async () => (JSON.parse((await here.hx(['status', '--json'])).stdout) as { pid: number }).pid
    process.kill(await pid(), 'SIGKILL')
    await screen.sees('connected to the daemon again')
    expect(screen.text).toMatch(/half of\s+the daemon went away while the turn ran; what was done is in the session[^]*connected to the daemon again/)      // in the order in which it came
    expect(screen.text.match(/half of/g)).toHaveLength(1)
    screen.type(`three${ENTER}`)
    await screen.sees(/third answer\n\n1 step/)
    screen.type(CTRL_D)
    expect(await screen.code).toBe(0)
    const next = await pid()
    await here.hx(['stop'])
    await until(() => !existsSync(`/proc/${next}`))             // it writes into the folder to its very end
    const sessions = readdirSync(join(here.env['HX_HOME']!, 'state/sessions')).filter(name => name.endsWith('.jsonl'))
    expect(sessions).toHaveLength(1)
    const log = readFileSync(join(here.env['HX_HOME']!, 'state/sessions', sessions[0]!), 'utf8')
    expect(log.match(/"type":"turn-end"[^\n]*"reason":"(\w+)"/g)?.map(line => /"reason":"(\w+)"/.exec(line)![1])).toEqual(['completed', 'interrupted', 'completed'])
  }, 90_000)                                                 // eight processes, one after another

  it('waits for a daemon that restarts; when none comes back it hosts the conversation itself, unless it would have to ask for trust', async () => {
    const here = await daemon(['first', 'second', 'third'], { 'harness.config.yaml': 'plugins: [tool-fs, model-openai]\n' })
    const screen = onScreen(here, ['chat'], { OPENAI_BASE_URL: here.model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'scripted' })
    screen.type(`one${ENTER}`)                                  // at once: it comes after the chat has begun
    await screen.sees(/first\n\n1 step[^]*· daemon ·/)
    const ended = here.hx(['restart'])
    await until(() => !existsSync(here.socket))
    screen.type(`two${ENTER}`)
    await ended
    await screen.sees(/connected to the daemon again\n\n?second\n\n1 step/)
    expect(screen.text).not.toContain('crashed')
    await here.hx(['stop'])
    screen.type(`three${ENTER}`)
    await screen.sees('the daemon has ended; it may be back in a moment')
    await screen.sees(/is not trusted[^]*› three/)
    await here.hx(['trust', '--yes'])
    screen.type(ENTER)
    await screen.sees(/no daemon runs any more: this process hosts the conversation from here on[^]*third\n\n1 step/)
    screen.type(CTRL_D)
    expect(await screen.code).toBe(0)
  }, 90_000)
})

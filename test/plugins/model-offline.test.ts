import { describe, expect, it } from 'vitest'
import fc from 'fast-check'
import { ModelError, text, textOf, userMessage, type Context, type Message, type Model, type ModelChunk, type ModelRequest, type Reply, type ToolSpec } from 'harnessx'
import { apply, replyTo } from '../../plugins/model-offline/index.js'
import { tasksOf } from '../../plugins/model-offline/tasks.js'

const spec = (name: string, ...required: string[]): ToolSpec => ({ name, description: name, parameters: { type: 'object', properties: Object.fromEntries([...required, ...extra[name] ?? []].map(key => [key, { type: 'string' }])), required } })
const extra: Record<string, string[]> = { read_file: ['offset', 'limit'], glob: ['path'], grep: ['path', 'glob', 'context'], edit_file: ['replace_all'], bash: ['timeout', 'background'] }
const TOOLS = [spec('read_file', 'path'), spec('glob', 'pattern'), spec('grep', 'pattern'), spec('write_file', 'path', 'content'), spec('edit_file', 'path', 'old_text', 'new_text'), spec('bash', 'command')]

type Answer = (name: string, args: Record<string, string>) => string
interface Walk { readonly replies: Reply[]; readonly calls: string[][]; readonly messages: Message[]; readonly answer: string }

/** Plays a turn: the model's calls are answered by `tools`, until it owes nothing. */
function play(prompt: string, tools: Answer, { offered = TOOLS, messages = [] as Message[] } = {}): Walk {
  const history: Message[] = [...messages, userMessage(prompt)]
  const replies: Reply[] = [], calls: string[][] = []
  for (let step = 0; step < 10; step++) {
    const reply = replyTo({ model: 'rules', messages: history, tools: offered, options: {} })
    replies.push(reply)
    history.push({ ...reply.message, source: { kind: 'model', id: 'offline/rules' } })
    if (!reply.message.toolCalls) return { replies, calls, messages: history, answer: textOf(reply.message) }
    calls.push(reply.message.toolCalls.map(call => `${call.name} ${call.arguments}`))
    for (const call of reply.message.toolCalls) history.push({ role: 'tool', toolCallId: call.id, content: [text(tools(call.name, JSON.parse(call.arguments) as Record<string, string>))] })
  }
  throw new Error(`no end after 10 steps: ${JSON.stringify(calls)}`)
}
const README = '# Demo project\n\nA tiny project to try things on.\n\n## Install\n\nnpm i\n\n## Use\n\nrun it'
const BLOCKED = 'blocked by plugin "permission": \'sudo\' is on the deny list. The same call will be refused again; do not work around it.'
const never: Answer = name => { throw new Error(`no call was expected, but ${name} came`) }

describe('the offline model', () => {
  it('reads a file and lists others in one reply, and reports facts of both', () => {
    const { replies, calls, answer } = play('Read README.md and list src/*.js', name => name === 'read_file' ? README : 'src/a.js\nsrc/b.js')
    expect(textOf(replies[0]!.message)).toBe('This is the embedded offline model: fixed rules, no network. I read README.md and list src/*.js.')
    expect(calls).toEqual([['read_file {"path":"README.md"}', 'glob {"pattern":"src/*.js"}']])
    expect(answer).toBe('- README.md has 11 lines; its title is "Demo project"; it begins: "A tiny project to try things on."; sections: Install, Use.\n- src/*.js matches 2 files: src/a.js, src/b.js.')
  })
  it('says what was blocked and does not repeat it', () => {
    const { calls, answer } = play('Try to run sudo ls', () => BLOCKED)
    expect(calls).toEqual([['bash {"command":"sudo ls"}']])
    expect(answer).toBe('I did not run `sudo ls`. It was blocked by plugin "permission": \'sudo\' is on the deny list. I accept that: I neither try it again nor look for a way around it.')
  })
  it('does not repeat a refused call that is asked for twice', () => {
    const { calls } = play('Run sudo ls, then read a.md, then run sudo ls', name => name === 'bash' ? BLOCKED : README)
    expect(calls).toEqual([['bash {"command":"sudo ls"}'], ['read_file {"path":"a.md"}']])
  })
  it('reports a denial when nobody could be asked, and what a person can do', () => {
    const { calls, answer } = play('Delete the file test.txt', () => 'denied: nobody could be asked (rm deletes files)')
    expect(calls).toEqual([['bash {"command":"rm test.txt"}']])
    expect(answer).toContain('It was denied: nobody could be asked (rm deletes files).')
    expect(answer).toContain('Ask again in an interactive terminal')
    expect(answer).not.toContain('I deleted')
  })
  it.each(['hook_failed: plugin "x" could not judge this call (timed out after 5000 ms)', 'guard_inactive: required plugin "permission" is not active (disabled)', 'denied by the user (rm): leave it', 'note: plugin "x" changed the arguments to {}\nblocked by plugin "y": no'])('takes %j as a refusal', content => {
    expect(play('run rm x', () => content).answer).toMatch(/^I did not run/)
  })
  it('writes a file, with content when it is given, and quotes the tool', () => {
    const made = play('Create a file called test.txt', (_, { path }) => `created "${path}" (0 lines, 0 bytes)`)
    expect(made.calls).toEqual([['write_file {"path":"test.txt","content":""}']])
    expect(made.answer).toBe('Created test.txt (0 lines, 0 bytes).')
    expect(play('Create a file called test.txt with "hello\nworld"', () => 'created').calls).toEqual([['write_file {"path":"test.txt","content":"hello\\nworld\\n"}']])
  })
  it('deletes temporary files with one command', () => {
    expect(play('Delete all temporary files in /tmp', () => '(no output)\n[exit code 0]')).toMatchObject({ calls: [['bash {"command":"rm -f /tmp/*.tmp"}']], answer: 'I deleted the temporary files (*.tmp) in /tmp.' })
  })
  it('searches, replaces, and runs in the order of the prompt', () => {
    const { calls, answer } = play('Search for TODO in src, then replace red with blue in a.txt and run `npm test`', name => ({ grep: 'src/a.js:1:TODO x', edit_file: 'edited "a.txt": 1 replacement, at line 1', bash: 'ok\n[exit code 0]' })[name]!)
    expect(calls).toEqual([['grep {"pattern":"TODO","path":"src"}'], ['edit_file {"path":"a.txt","old_text":"red","new_text":"blue","replace_all":true}'], ['bash {"command":"npm test"}']])
    expect(answer).toBe('- "TODO" is in 1 line:\n  src/a.js:1:TODO x\n- Edited a.txt: 1 replacement, at line 1.\n- `npm test` printed: ok')
  })
  it('changes its plan when a name is nearly right or a pattern too narrow', () => {
    const near = play('Read README', (_, { path }) => path === 'README' ? '"README" does not exist; did you mean "README.md"?' : README)
    expect(near.calls.flat()).toEqual(['read_file {"path":"README"}', 'read_file {"path":"README.md"}'])
    expect(near.answer).toMatch(/^There is no README, so I read README\.md\. README\.md has 11 lines/)
    const wide = play('List src/*.js', (_, { pattern }) => pattern === 'src/*.js' ? 'no file matches "src/*.js"' : 'lib/a.js')
    expect(wide.calls.flat()).toEqual(['glob {"pattern":"src/*.js"}', 'glob {"pattern":"**/*.js"}'])
    expect(wide.answer).toBe('No file matches src/*.js; elsewhere there is 1 file: lib/a.js.')
  })
  it('reports a failure as one, and goes on with the rest', () => {
    const { answer } = play('Run false and read gone.md', name => name === 'bash' ? '(no output)\n[exit code 1]' : '"gone.md" does not exist; the folder "." is there, but has nothing of a similar name')
    expect(answer).toBe('- I tried to run `false`, and it failed (exit code 1).\n- I could not read gone.md: "gone.md" does not exist; the folder "." is there, but has nothing of a similar name.')
  })
  it('takes no refusal of the workspace for the content of a file', () => {
    expect(play('Read link.md', () => 'outside_workspace: "link.md" lies outside the workspace "/w"; use a path inside it').answer).toMatch(/^.*I could not read link\.md: outside_workspace/)
  })
  it('tells the time by a command', () => {
    expect(play('What time is it?', () => 'Mon Nov 30 17:00:00 UTC 2026\n[exit code 0]')).toMatchObject({ calls: [['bash {"command":"date"}']], answer: 'It is Mon Nov 30 17:00:00 UTC 2026.' })
  })
  it('reads other kinds of files for what they are', () => {
    const read = (path: string, content: string) => play(`Read ${path}`, () => content).answer
    expect(read('package.json', '{"name":"demo","version":"1.0.0","type":"module"}')).toBe('package.json has 1 line; its name is "demo", version 1.0.0; its keys are name, version, type.')
    expect(read('a.json', '{"name":')).toContain('not valid JSON')
    expect(read('empty.txt', '(empty file)')).toBe('empty.txt is empty.')
    expect(read('src/', '"src/" is a folder with 2 entries\na.js\nb/')).toBe('src/ is a folder with 2 entries: a.js, b/.')
    expect(read('pic.png', '"pic.png" is a binary file of 3.1 KB; it can not be read as text')).toContain('is a binary file')
    expect(read('big.log', 'a\nb\n[lines 1-2 shown, the file goes on: read on with offset 3]')).toContain('has 2 lines, and goes on')
  })
  it('says what it can do when it understands nothing, greets, and calls no tool for it', () => {
    expect(play('Make me a sandwich', never).answer).toMatch(/I do not understand "Make me a sandwich": I follow fixed rules\. You can ask me, for example: "Read README\.md"/)
    expect(play('hello', never).answer).toContain('Hello!')
    expect(play('', never).answer).toContain('You can ask me')
    expect(play('Read a.md and make me a sandwich', () => README).answer).toContain('I do not understand "make me a sandwich"')
  })
  it('uses the tools that are offered and no others', () => {
    const only = (...names: string[]) => TOOLS.filter(tool => names.includes(tool.name))
    expect(play('Read a.md', () => '# A\n[exit code 0]', { offered: only('bash') })).toMatchObject({ calls: [["bash {\"command\":\"cat -- 'a.md'\"}"]], answer: 'a.md has 1 line; its title is "A".' })
    expect(play('Read a.md and delete b.md', never, { offered: [] }).answer).toContain('none is offered')
    expect(play('hello', never, { offered: [] }).answer).toContain('No tool that I know is offered here')
    const renamed: ToolSpec = { name: 'read_file', description: '', parameters: { type: 'object', properties: { file_path: {}, reason: {} }, required: ['file_path'] } }
    expect(play('Read a.md', () => README, { offered: [renamed] }).calls).toEqual([['read_file {"file_path":"a.md"}']])
    expect(play('Read a.md', never, { offered: [{ ...renamed, parameters: { ...renamed.parameters, required: ['file_path', 'reason'] } }] }).answer).toContain('none is offered')
  })
  it('introduces itself once in a session, and answers the newest prompt', () => {
    const first = play('hello', never)
    const second = play('Read a.md', () => README, { messages: first.messages })
    expect(textOf(second.replies[0]!.message)).toBe('I read a.md.')
    expect(second.calls).toEqual([['read_file {"path":"a.md"}']])
    expect(new Set(second.messages.flatMap(message => message.toolCalls?.map(call => call.id) ?? [])).size).toBe(1)
  })
  it('takes a note of a plugin for a note while a task is open, and for a task after its answer', () => {
    const note: Message = { role: 'user', content: [text('The time is 12:00.')], source: { kind: 'plugin', id: 'time-context' } }
    const request = (messages: Message[]): ModelRequest => ({ model: 'rules', messages, tools: TOOLS, options: {} })
    expect(replyTo(request([userMessage('Read a.md'), note])).message.toolCalls).toHaveLength(1)
    expect(replyTo(request([userMessage('hello'), { role: 'assistant', content: [text('Hello!')] }, { ...note, content: [text('Run npm test before you finish.')] }])).message.toolCalls?.[0]?.arguments).toContain('npm test')
  })
  it('goes on honestly when a result is missing', () => {
    const reply = replyTo({ model: 'rules', messages: [userMessage('run ls'), { role: 'assistant', content: [], toolCalls: [{ id: 'x', name: 'bash', arguments: '{}' }] }], tools: TOOLS, options: {} })
    expect(textOf(reply.message)).toContain('it was cut off')
  })
  it('never throws and ends within ten steps, whatever the prompt and the results are', () => {
    const words = fc.constantFrom('read', 'list', 'run', 'delete', 'create', 'file', 'a.md', 'src/*.js', 'and', 'then', ',', '"x y"', '`ls`', 'replace', 'with', 'in', 'search', 'for', 'it', 'the', 'all', '\n', '$', 'temporary', 'files', 'what', 'is', '?')
    const prompt = fc.oneof(fc.string({ unit: 'binary' }), fc.array(words, { maxLength: 25 }).map(all => all.join(' ')))
    const result = fc.oneof(fc.string({ unit: 'binary' }), fc.constantFrom(BLOCKED, 'no file matches "x"', '"a" does not exist; did you mean "b"?', '(no output)\n[exit code 1]', README, '(empty file)', 'denied: nobody could be asked (x)'))
    fc.assert(fc.property(prompt, fc.array(result, { minLength: 1, maxLength: 20 }), fc.subarray(TOOLS), (asked, results, offered) => {
      let at = 0
      const { answer, calls } = play(asked, () => results[at++ % results.length]!, { offered })
      expect(answer).not.toBe('')
      for (const call of calls.flat()) expect(offered.map(tool => tool.name)).toContain(call.slice(0, call.indexOf(' ')))
    }), { numRuns: 500 })
  })
  it('reads a long prompt in no time', () => {
    const began = performance.now()
    for (const unit of ['read ', 'a and ', '"', '`', 'create a file ', ' the', '\n- ', 'replace a with ']) tasksOf(unit.repeat(20_000))
    expect(performance.now() - began).toBeLessThan(3000)
  })
})

describe('its tasks', () => {
  it.each([
    ['Hello, please read README.md, then run ls -la and tell me what it says', 'read README.md | run ls -la'],
    ['Create a file called test.txt and write "hello" in it', 'write test.txt "hello\\n"'],
    ['create test.txt then delete it', 'write test.txt "" | delete rm test.txt'],
    ['1. Read a.md\n2. List *.js', 'read a.md | list *.js'],
    ['run echo "a and read b"', 'run echo "a and read b"'],
    ['Create hello.py with print("hi")', 'write hello.py "print(\\"hi\\")\\n"'],
    ['find all ts files', 'list **/*.ts'], ['list files', 'list *'], ['list src', 'list src/*'], ['which files are in src?', 'list src/*'], ['ls', 'list *'],
    ['Read a.txt, b.txt and c.md', 'read a.txt | read b.txt | read c.md'],
    ['Can you open the file "my notes.txt"?', 'read my notes.txt'],
    ['delete the folder build', 'delete rm -r build'], ['remove all log files in logs', 'delete rm logs/*.log'], ['delete "it\'s.txt"', "delete rm 'it'\\''s.txt'"],
    ['append bye to out.txt', "run printf '%s\\n' 'bye' >> out.txt"],
    ['grep for TODO', 'search TODO'], ['find "foo" in src', 'search foo src'], ['search for "hello world" in all files', 'search hello world'],
    ['edit notes.txt: replace red with blue', 'replace notes.txt red blue'], ['Change foo to bar in x.js', 'replace x.js foo bar'],
    ['$ ls -la | wc', 'run ls -la | wc'], ['run the tests', 'run npm test'], ['Create a folder called docs', 'make-folder docs'],
    ['How many lines does src/a.js have?', 'read src/a.js'], ['thanks!', 'talk thanks'], ['What can you do?', 'talk help'],
  ])('of %j are %s', (prompt, expected) => {
    const shown = tasksOf(prompt).map(task => {
      switch (task.kind) {
        case 'write': return `write ${task.path} ${JSON.stringify(task.content)}`
        case 'delete': return `delete ${task.command}`
        default: return Object.values(task).filter(value => value !== undefined).join(' ')
      }
    }).map(line => line.replace(/^(replace \S+) (\S+) (\S+)$/, '$1 $2 $3')).join(' | ')
    expect(shown).toBe(expected)
  })
})

describe('its stream', () => {
  const models: Model[] = []
  apply({ models: { register: (model: Model) => { models.push(model) } } } as unknown as Context)
  const model = models[0]!
  const request: ModelRequest = { model: 'rules', messages: [userMessage('Read README.md and list src/*.js')], tools: TOOLS, options: {} }
  it('is registered as offline, ready, and only for those who name it', () => {
    expect(model).toMatchObject({ id: 'offline', defaultModel: 'rules', onlyWhenNamed: true })
    expect(model.ready()).toBe(true)
  })
  it('comes in small deltas that add up to the reply, with usage', async () => {
    const chunks: ModelChunk[] = []
    for await (const chunk of model.stream(request, { signal: new AbortController().signal })) chunks.push(chunk)
    const last = chunks.at(-1)!
    if (last.kind !== 'reply') throw new Error('the last chunk is no reply')
    expect(chunks.filter(chunk => chunk.kind === 'text').map(chunk => 'text' in chunk ? chunk.text : '').join('')).toBe(textOf(last.reply.message))
    expect(chunks.filter(chunk => chunk.kind === 'arguments' && chunk.callId === 'offline_2').map(chunk => 'text' in chunk ? chunk.text : '').join('')).toBe('{"pattern":"src/*.js"}')
    expect(chunks.length).toBeGreaterThan(8)
    expect(last.reply.usage!.inputTokens).toBeGreaterThan(10)
  })
  it('ends when it is aborted', async () => {
    const controller = new AbortController()
    const reading = (async () => { for await (const chunk of model.stream(request, { signal: controller.signal })) if (chunk.kind === 'text') controller.abort() })()
    await expect(reading).rejects.toMatchObject({ name: 'ModelError', kind: 'aborted' })
    expect(await reading.catch((error: unknown) => error)).toBeInstanceOf(ModelError)
  })
})

/** Tools, models and commands: what may be registered, by whom, and that nothing stays. */
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { Command, Model, Tool } from '../../core/agent/services.js'
import { testAgent } from '../support/agent.js'

const tool = (more: Partial<Tool> = {}): Tool => ({ name: 'look', description: 'looks', parameters: { type: 'object' }, execute: () => 'seen', ...more })
const model = (more: Partial<Model> = {}): Model => ({ id: 'm', defaultModel: 'small', ready: () => true, async* stream() {}, ...more })
const failure = async (work: Promise<unknown>): Promise<string> => work.then(() => 'nothing was refused', (error: Error) => error.message)

describe('tools', () => {
  it('are listed with their owner and their JSON Schema, in config order', async () => {
    const { agent, plugin } = await testAgent()
    await plugin('a', ctx => { ctx.tools.register(tool({ name: 'zod', parameters: z.object({ path: z.string().describe('where'), depth: z.number().default(3) }), readOnly: true })) })
    await plugin('b', ctx => { ctx.tools.register(tool({ name: 'json' })) })
    expect(agent.tools.list()).toEqual([
      { name: 'zod', plugin: 'a', description: 'looks', readOnly: true, unconfined: false, parameters: { type: 'object', properties: { path: { type: 'string', description: 'where' }, depth: { type: 'number', default: 3 } }, required: ['path'] } },
      { name: 'json', plugin: 'b', description: 'looks', readOnly: false, unconfined: false, parameters: { type: 'object' } },
    ])
  })
  it('leave the schema that a plugin wrote as it was', async () => {
    const { plugin } = await testAgent()
    const parameters = { type: 'object', properties: { a: { type: 'string' } } }
    await plugin('a', ctx => { ctx.tools.register(tool({ parameters })) })
    parameters.properties.a.type = 'number'
    expect(Object.isFrozen(parameters)).toBe(false)
  })
  it('of one name belong to one plugin, and a second one fails to load, naming both', async () => {
    const { agent, plugin, kernel } = await testAgent()
    const first = await plugin('a', ctx => { ctx.tools.register(tool()) })
    expect(await failure(plugin('b', ctx => { ctx.tools.register(tool()) }))).toBe('tool "look" of plugin "b" already belongs to plugin "a"; say override: true to take its place')
    expect(agent.tools.list().map(({ plugin }) => plugin)).toEqual(['a'])
    await kernel.dispose(first)
    await plugin('b', ctx => { ctx.tools.register(tool()) })
    expect(agent.tools.list().map(({ plugin }) => plugin)).toEqual(['b'])
  })
  it('may be taken over by one that says so; when it leaves, the first is back', async () => {
    const { agent, plugin, kernel } = await testAgent()
    await plugin('a', ctx => { ctx.tools.register(tool({ description: 'first' })) })
    const over = await plugin('b', ctx => { ctx.tools.register(tool({ description: 'second', override: true })) })
    expect(agent.tools.list()).toMatchObject([{ plugin: 'b', description: 'second' }])
    expect(await failure(plugin('c', ctx => { ctx.tools.register(tool({ override: true })) }))).toMatch(/both say override: true/)
    await kernel.dispose(over)
    expect(agent.tools.list()).toMatchObject([{ plugin: 'a', description: 'first' }])
  })
  it('are refused with a sentence when they are wrong', async () => {
    const { plugin } = await testAgent()
    const wrong: [unknown, RegExp][] = [
      [undefined, /a tool is an object with name/],
      [tool({ name: 'no spaces' }), /a tool's name has 1 to 64 of .*, received "no spaces"/],
      [tool({ name: 'x'.repeat(65) }), /1 to 64/],
      [tool({ description: '' }), /tool "look": description must be a text/],
      [tool({ parameters: undefined as never }), /parameters must be a zod object or a JSON Schema/],
      [tool({ parameters: { type: 'string' } }), /parameters must be a schema of an object, received one of type "string"/],
      [tool({ parameters: z.string() }), /parameters must be a schema of an object/],
      [tool({ execute: 'x' as never }), /execute must be a function/],
      [tool({ readOnly: 'yes' as never }), /readOnly must be true or false/],
    ]
    for (const [value, message] of wrong) expect(await failure(plugin('a', ctx => { ctx.tools.register(value as Tool) }))).toMatch(message)
  })
  it('can not be registered twice by one plugin', async () => {
    const { plugin } = await testAgent()
    expect(await failure(plugin('a', ctx => { ctx.tools.register(tool()); ctx.tools.register(tool()) }))).toMatch(/plugin "a" registers tool "look" twice/)
  })
  it('leave nothing behind, however often they come and go', async () => {
    const { agent, plugin, kernel } = await testAgent()
    for (let count = 0; count < 100; count++) {
      const one = await plugin('a', ctx => { ctx.tools.register(tool()); ctx.models.register(model()); ctx.commands.register({ name: 'hello', description: 'h', run: () => 'hi' }) })
      expect([agent.tools.list().length, agent.models.list().length, agent.commands.list().length]).toEqual([1, 2, 1])
      await kernel.dispose(one)
    }
    expect([agent.tools.list().length, agent.models.list().length, agent.commands.list().length]).toEqual([0, 1, 0])
    expect(agent.tools.specs()).toBe(agent.tools.specs())
  })
})

describe('a model', () => {
  it('is picked in config order: the first that is ready and need not be named', async () => {
    const { agent, plugin } = await testAgent()
    await plugin('b', ctx => { ctx.models.register(model({ id: 'later' })) })
    expect(agent.models.pick()).toEqual({ id: 'scripted', model: 'default' })
    const other = await testAgent()
    let ready: true | string = 'no key'
    await other.kernel.dispose(other.kernel.generations()[0]!)
    await other.plugin('offline', ctx => { ctx.models.register(model({ id: 'offline', onlyWhenNamed: true })) })
    await other.plugin('a', ctx => { ctx.models.register(model({ id: 'first', ready: () => ready })) })
    await other.plugin('b', ctx => { ctx.models.register(model({ id: 'second' })) })
    expect(other.agent.models.pick()).toEqual({ id: 'second', model: 'small' })
    ready = true
    expect(other.agent.models.pick()).toEqual({ id: 'first', model: 'small' })
    expect(other.agent.models.pick('offline')).toEqual({ id: 'offline', model: 'small' })
  })
  it('is named up to the first slash; its own name may hold more', async () => {
    const { agent, plugin } = await testAgent()
    await plugin('a', ctx => { ctx.models.register(model({ id: 'openai', models: ['gpt-5-mini'] })) })
    expect(agent.models.pick('openai/meta-llama/Llama-3/8b')).toEqual({ id: 'openai', model: 'meta-llama/Llama-3/8b' })
    expect(agent.models.pick('openai')).toEqual({ id: 'openai', model: 'small' })
  })
  it('that does not exist is answered with what was meant', async () => {
    const { agent, plugin } = await testAgent()
    await plugin('a', ctx => { ctx.models.register(model({ id: 'openai', models: ['gpt-5-mini'], defaultModel: undefined })) })
    expect(() => agent.models.pick('opanai/x')).toThrow('model "opanai/x" does not exist (known: "scripted", "openai"); did you mean "openai"?')
    expect(() => agent.models.pick('gpt-5-mini')).toThrow('model "gpt-5-mini" does not exist (known: "scripted", "openai"); did you mean "openai/gpt-5-mini"?')
    expect(() => agent.models.pick('openai')).toThrow('model "openai" lacks the name of the endpoint\'s model; write "openai/<model>"')
  })
  it('that is not ready says what is missing, also by throwing', async () => {
    const { agent, plugin } = await testAgent()
    await plugin('a', ctx => {
      ctx.models.register(model({ id: 'a', ready: () => 'set A_KEY' }))
      ctx.models.register(model({ id: 'b', ready: () => { throw new Error('broken') } }))
      ctx.models.register(model({ id: 'c', ready: () => false as never }))
    })
    expect(() => agent.models.pick('a')).toThrow('model "a" is not ready: set A_KEY')
    expect(agent.models.list().map(({ id, ready, reason }) => [id, ready, reason])).toEqual([
      ['scripted', true, undefined], ['a', false, 'set A_KEY'], ['b', false, 'broken'], ['c', false, 'ready() must give true or a sentence, it gave false'],
    ])
  })
  it('belongs to one plugin and is refused with a sentence when it is wrong', async () => {
    const { plugin } = await testAgent()
    expect(await failure(plugin('a', ctx => { ctx.models.register(model({ id: 'scripted' })) }))).toBe('model "scripted" of plugin "a" already belongs to plugin "model-scripted"; give one of them another id')
    expect(await failure(plugin('a', ctx => { ctx.models.register(model({ id: 'a/b' })) }))).toMatch(/no slash, received "a\/b"/)
    expect(await failure(plugin('a', ctx => { ctx.models.register({ id: 'x' } as Model) }))).toMatch(/model "x": ready must be a function/)
  })
})

describe('a command', () => {
  const hello: Command = { name: 'hello', description: 'greets', run: (args, { session }) => `hello ${args} in ${session}` }
  const signal = new AbortController().signal

  it('is listed and run with its arguments', async () => {
    const { agent, plugin } = await testAgent()
    await plugin('a', ctx => { ctx.commands.register(hello) })
    expect(agent.commands.list()).toEqual([{ name: 'hello', plugin: 'a', description: 'greets' }])
    expect(await agent.commands.run('hello', 'you', { session: 's', cwd: '/', signal })).toBe('hello you in s')
    await expect(agent.commands.run('helo', '', { session: 's', cwd: '/', signal })).rejects.toMatchObject({ code: 'unknown_id', message: 'there is no command "/helo"; did you mean "hello"?' })
  })
  it('may answer with a prompt for its session, and says nothing with anything else', async () => {
    const { agent, plugin } = await testAgent()
    const answers: unknown[] = [{ prompt: 'do it' }, { prompt: ' ' }, { prompt: 7 }, null, 7]
    await plugin('a', ctx => { ctx.commands.register({ ...hello, run: () => answers.shift() as string }) })
    const said = []
    for (let i = 0; i < 5; i++) said.push(await agent.commands.run('hello', '', { session: 's', cwd: '/', signal }))
    expect(said).toEqual([{ prompt: 'do it' }, undefined, undefined, undefined, undefined])
  })
  it('finds a session that was made for it and had no prompt yet, which then begins as new', async () => {
    const { agent, plugin, run, model, cwd } = await testAgent()
    const started: string[] = []
    await plugin('a', ctx => { ctx.on('agent/session-start', ({ source }) => { started.push(source) }) })
    const session = await agent.agents.begin(cwd)
    model.says('hi')
    const { log } = await run('go', { session })
    expect(log.map(event => event.type).slice(0, 2)).toEqual(['session', 'turn-start'])
    expect(started).toEqual(['new'])
  })
  it('is let go when it is given up', async () => {
    const { agent, plugin } = await testAgent()
    await plugin('a', ctx => { ctx.commands.register({ ...hello, run: () => new Promise<string>(() => {}) }) })
    const controller = new AbortController()
    const running = agent.commands.run('hello', '', { session: 's', cwd: '/', signal: controller.signal })
    controller.abort(new Error('enough'))
    await expect(running).rejects.toThrow('enough')
  })
  it('is refused with a sentence when it is wrong or taken', async () => {
    const { plugin } = await testAgent()
    await plugin('a', ctx => { ctx.commands.register(hello) })
    expect(await failure(plugin('b', ctx => { ctx.commands.register(hello) }))).toBe('command "/hello" of plugin "b" already belongs to plugin "a"; give one of them another name')
    for (const [wrong, message] of [[{ ...hello, name: '/hi' }, /begins with a letter, received "\/hi"/], [{ ...hello, run: 1 }, /run must be a function/], [{ ...hello, description: 1 }, /description must be a text/], [null, /a command is an object/]] as const) {
      expect(await failure(plugin('b', ctx => { ctx.commands.register(wrong as Command) }))).toMatch(message)
    }
  })
})

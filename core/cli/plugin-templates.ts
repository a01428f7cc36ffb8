/**
 * What `hx plugins new` writes: for each kind a whole plugin with a `Config`, and a test of it that passes. Text only; knows no file.
 * A template is small enough to be read at once, and does one thing that can be seen.
 */
import type { Kind } from './plugin-kinds.js'

export interface Template {
  /** What it does, for the answer of the command. */
  readonly about: string
  readonly source: string
  /** The body of the test: `host` is the kit's. */
  readonly test: { readonly says: string; readonly plugins?: string; readonly options?: string; readonly body: string }
}

const camel = (name: string): string => name.replace(/-+(.)/g, (_, letter: string) => letter.toUpperCase())
const pascal = (name: string): string => camel(name).replace(/^./, letter => letter.toUpperCase())
const snake = (name: string): string => name.replaceAll('-', '_')

export const TEMPLATES: Readonly<Record<Kind, (name: string) => Template>> = {
  guard: name => ({
    about: 'refuses calls that contain one of some words',
    source: `/** Refuses tool calls whose arguments contain one of the words. */
import { block, z, type Context } from 'harnessx'

export const name = '${name}'
export const Config = z.strictObject({
  /** A call that contains one of these is refused. */
  words: z.array(z.string().min(1)).default(['secret']),
})

export function apply(ctx: Context, { words }: z.infer<typeof Config>) {
  ctx.on('agent/pre-tool-use', ({ call }) => {
    const found = words.find(word => JSON.stringify(call.arguments).includes(word))
    return found === undefined ? undefined : block(\`"\${found}" stays here\`)      // nothing: no opinion, the next one decides
  })
}
`,
    test: {
      says: 'refuses a call that contains a word, and lets others pass', plugins: `'tool-fs', `,
      options: `, files: { 'a.txt': 'hello', 'secret.txt': 'no' }, replies: [{ calls: [{ name: 'read_file', arguments: { path: 'secret.txt' } }, { name: 'read_file', arguments: { path: 'a.txt' } }] }, 'done']`,
      body: `const { results } = await host.run('read')
    MATCH(results[0], /blocked by plugin "${name}"/)
    MATCH(results[1], /hello/)`,
    },
  }),
  rewrite: name => ({
    about: 'changes the arguments of calls before anybody judges them',
    source: `/** Takes the blanks around text arguments away, before anybody judges the call. The model is told of the change. */
import { z, type Context } from 'harnessx'

export const name = '${name}'
export const Config = z.strictObject({
  /** Arguments that stay as they are. */
  except: z.array(z.string()).default(['content']),
})

export function apply(ctx: Context, { except }: z.infer<typeof Config>) {
  ctx.on('agent/tool-arguments', ({ call }) => {
    const trimmed = Object.entries(call.arguments).map(([key, value]) => [key, typeof value === 'string' && !except.includes(key) ? value.trim() : value])
    return Object.fromEntries(trimmed)                       // payloads are frozen: return a changed copy
  })
}
`,
    test: {
      says: 'trims the arguments of a call', plugins: `'tool-fs', `,
      options: `, files: { 'a.txt': 'hello' }, replies: [{ calls: [{ name: 'read_file', arguments: { path: ' a.txt ' } }] }, 'done']`,
      body: `const { results } = await host.run('read')
    MATCH(results[0], /hello/)`,
    },
  }),
  observe: name => ({
    about: 'counts tool calls and logs each turn',
    source: `/** Counts the calls of each tool and logs them when a turn ends. The counts survive a reload. */
import { z, type Context } from 'harnessx'

export const name = '${name}'
export const Config = z.strictObject({
  level: z.enum(['debug', 'info', 'warn']).default('info'),
})

export function apply(ctx: Context, { level }: z.infer<typeof Config>) {
  const counts = ctx.state as Record<string, number>         // plain data, handed to the next version of this plugin
  ctx.on('agent/tool-end', ({ call }) => { counts[call.name] = (counts[call.name] ?? 0) + 1 })
  ctx.on('agent/turn-end', () => { ctx.logger[level](\`calls so far: \${JSON.stringify(counts)}\`) })
}
`,
    test: {
      says: 'logs how often each tool was called', plugins: `'tool-fs', `,
      options: `, files: { 'a.txt': 'hello' }, replies: [{ calls: [{ name: 'read_file', arguments: { path: 'a.txt' } }] }, 'done']`,
      body: `await host.run('read')
    MATCH(host.log.filter(record => record.plugin === '${name}').map(record => record.message).join(), /"read_file":1/)`,
    },
  }),
  around: name => ({
    about: 'stands around every tool call and says which ones are slow',
    source: `/** Stands around every tool call, measures it, and tells which ones are slow. \`next()\` is the call: leave it out, or call it again, and that is what happens. */
import { duration, z, type Context } from 'harnessx'

export const name = '${name}'
export const Config = z.strictObject({
  /** From here on a call is slow. */
  slow: duration.prefault('5s'),
})

export function apply(ctx: Context, { slow }: z.infer<typeof Config>) {
  ctx.on('agent/tool-use', async ({ call }, next) => {
    const begin = performance.now()
    try { return await next() } finally {
      const ms = Math.round(performance.now() - begin)
      if (ms >= slow) ctx.logger.warn(\`\${call.name} took \${ms} ms\`)
    }
  })
}
`,
    test: {
      says: 'tells of a slow call and leaves its result alone', plugins: `'tool-fs', `,
      options: `, files: { 'a.txt': 'hello' }, replies: [{ calls: [{ name: 'read_file', arguments: { path: 'a.txt' } }] }, 'done']`,
      body: `const { results } = await host.run('read')
    MATCH(results[0], /hello/)
    MATCH(host.log.filter(record => record.plugin === '${name}').map(record => record.message).join(), /read_file took \\d+ ms/)`,
    },
  }),
  tool: name => ({
    about: `gives the model a tool, "${snake(name)}"`,
    source: `/** Gives the model a tool that counts the words of a text. */
import { z, type Context } from 'harnessx'

export const name = '${name}'
export const Config = z.strictObject({
  /** Longer texts are refused. */
  maxCharacters: z.int().min(1).default(100_000),
})

export function apply(ctx: Context, { maxCharacters }: z.infer<typeof Config>) {
  const parameters = z.object({ text: z.string().max(maxCharacters).describe('The text to look at.') })
  ctx.tools.register({
    name: '${snake(name)}',
    description: 'Count the words of a text.',
    parameters,
    readOnly: true,                                          // may run beside other read-only calls, and in plan mode
    execute({ text }: z.infer<typeof parameters>) {
      return \`\${text.split(/\\s+/).filter(Boolean).length} words\`
    },
  })
}
`,
    test: {
      says: 'counts words',
      options: `, replies: [{ calls: [{ name: '${snake(name)}', arguments: { text: 'one two three' } }] }, 'done']`,
      body: `const { results } = await host.run('count')
    MATCH(results[0], /3 words/)`,
    },
  }),
  service: name => ({
    about: `offers other plugins a service, ctx.${camel(name)}`,
    source: `/** Offers a service: notes by name, kept while it runs. Another plugin says \`export const inject = ['${camel(name)}']\` and has \`ctx.${camel(name)}\`. */
import { z, type Context } from 'harnessx'

export interface ${pascal(name)} {
  set(key: string, value: string): void
  get(key: string): string | undefined
}
declare module 'harnessx' { interface Services { '${camel(name)}': ${pascal(name)} } }

export const name = '${name}'
export const provides = ['${camel(name)}']
export const Config = z.strictObject({
  /** More are refused. */
  max: z.int().min(1).default(1000),
})

export function apply(ctx: Context, { max }: z.infer<typeof Config>) {
  const notes = new Map<string, string>()
  ctx.provide('${camel(name)}', {
    set(key, value) {
      if (notes.size >= max && !notes.has(key)) throw new Error(\`there are \${max} notes already\`)
      notes.set(key, value)
    },
    get: key => notes.get(key),
  })
}
`,
    test: {
      says: 'gives another plugin its service', plugins: `{ module: user }, `, options: `, replies: ['done']`,
      body: `await host.run('hello')
    MATCH(host.log.map(record => record.message).join(), /the note says hello/)`,
    },
  }),
  model: name => ({
    about: 'a model of its own, for hx agent --model ' + name,
    source: `/** A model: here one that says back what it was told. Replace the body of \`stream\` by a request to yours. */
import { text, textOf, z, type Context } from 'harnessx'

export const name = '${name}'
export const Config = z.strictObject({
  prefix: z.string().default('you said: '),
})

export function apply(ctx: Context, { prefix }: z.infer<typeof Config>) {
  ctx.models.register({
    id: '${name}',
    defaultModel: 'echo',
    onlyWhenNamed: true,                                     // never the first choice; drop this line when it should be
    ready: () => true,                                       // or a sentence that says what to set
    async* stream({ messages }) {
      const said = prefix + textOf(messages.filter(message => message.role === 'user').at(-1) ?? { content: [] })
      yield { kind: 'text', text: said }                     // pieces as they come, then the whole reply
      yield { kind: 'reply', reply: { message: { role: 'assistant', content: [text(said)] }, finish: 'stop', usage: { inputTokens: 0, outputTokens: 0 } } }
    },
  })
}
`,
    test: {
      says: 'answers', body: `const { result } = await host.run('hello', { model: '${name}' })
    MATCH(result.text, /you said: hello/)`,
    },
  }),
}

/** The file of the test, for vitest or for Node's own runner (plain JavaScript, since Node 20 runs no TypeScript). */
export function testFile(name: string, kind: Kind, runner: 'vitest' | 'node'): string {
  const { says, plugins = '', options = '', body } = TEMPLATES[kind](name).test
  const match = (text: string) => text.replace(/MATCH\((.*), (\/.*\/)\)$/gm, runner === 'vitest' ? 'expect($1).toMatch($2)' : 'assert.match($1, $2)')
  const row = kind === 'around' ? `{ from: plugin, config: { slow: '0ms' } }` : 'plugin'
  const user = kind === 'service' ? `/** A plugin that uses it. */
const user = {
  name: 'user',
  inject: ['${camel(name)}'],
  apply(ctx${runner === 'vitest' ? ': any' : ''}) {
    ctx.${camel(name)}.set('greeting', 'hello')
    ctx.on('agent/turn-end', () => { ctx.logger.warn(\`the note says \${ctx.${camel(name)}.get('greeting')}\`) })
  },
}
` : ''
  return `${runner === 'vitest' ? '' : `import assert from 'node:assert/strict'\nimport { test } from 'node:test'\n`}import { fileURLToPath } from 'node:url'
import { createTestHost } from 'harnessx/testing'
${runner === 'vitest' ? `import { expect, test } from 'vitest'\n` : ''}
const plugin = fileURLToPath(new URL('./${name}.ts', import.meta.url))
${user}
test('${name} ${says}', async () => {
  const host = await createTestHost({ plugins: [${plugins}${row}]${options} })
  try {
    ${match(body)}
  } finally { await host.close() }                           // throws when the plugin left something behind
})
`
}

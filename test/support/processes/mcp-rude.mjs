/** An MCP server without the SDK, by hand over stdio, that does what no server should. Its argument says what: `mute`, `dies`, or anything else for one that answers, and whose tools and schemas are odd. */
import { createInterface } from 'node:readline'
import { writeFileSync } from 'node:fs'

const [how, file] = process.argv.slice(2)
const send = message => { process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`) }
const text = said => ({ content: [{ type: 'text', text: said }] })
const object = { type: 'object' }
const node = { type: 'object', properties: { name: { type: 'string' }, next: { $ref: '#/definitions/node' } }, required: ['name'] }
const odd = [
  { name: 'plain', inputSchema: object },
  { name: 'cycle', inputSchema: { ...node, definitions: { node } } },
  { name: 'endless', inputSchema: { type: 'object', properties: { a: { $ref: '#/definitions/a' } }, definitions: { a: { $ref: '#/definitions/b' }, b: { $ref: '#/definitions/a' } } } },
  { name: 'nowhere', inputSchema: { type: 'object', properties: { a: { $ref: 'https://example.com/schema.json' } } } },
  { name: 'draft', inputSchema: { $schema: 'http://json-schema.org/draft-04/schema#', type: 'object', properties: { n: { type: 'number', minimum: 1, exclusiveMinimum: true, 'x-order': 1, format: 'bank-account' } } } },
  { name: 'untyped', inputSchema: { properties: { a: { type: 'string' } } } },
  { name: 'empty', inputSchema: {} },
  { name: 'none' },
  { name: 'nothing', inputSchema: null },
  { name: 'list', inputSchema: { type: 'array' } },
  { name: 'pattern', inputSchema: { type: 'object', properties: { a: { type: 'string', pattern: '(' } } } },
  { name: 'result', inputSchema: object, outputSchema: { type: 'object', properties: { a: { $ref: '#/nowhere' } } } },
  { name: 'twice', description: 'The first.', inputSchema: object },
  { name: 'twice', description: 'The second.', inputSchema: object },
  { inputSchema: object }, 'tool', null, { name: '' },
]
const calls = {
  plain: () => text('fine'), twice: () => text('the one'),
  garbage() {
    process.stdout.write('starting up…\n\n{"half": \n[]\nnull\n{"jsonrpc":"2.0"}\n{"jsonrpc":"2.0","id":99999,"result":{}}\n\x00\xff\xfe\n')
    return text('said between noise')
  },
  flood() {
    for (let i = 0; i < 20_000; i++) process.stderr.write(`line ${i} ${'x'.repeat(80)}\n`)
    return text('flooded')
  },
  huge: () => text('x'.repeat(50 * 1024 * 1024)),
  hang: () => new Promise(() => {}),
  wrong: () => ({ content: 'not a list' }),
  error: () => { throw { code: -32000, message: 'it is broken' } },
  vanish() {
    odd.splice(0, odd.length, { name: 'left', inputSchema: object })
    send({ method: 'notifications/tools/list_changed' })
    return new Promise(resolve => { setTimeout(() => { resolve(text('vanished')) }, 100) })
  },
  storm: () => {
    for (let i = 0; i < 500; i++) send({ method: 'notifications/tools/list_changed' })
    return text('blown')
  },
  lists: () => text(String(lists)),
}
for (const name of Object.keys(calls)) if (!odd.some(tool => tool?.name === name)) odd.push({ name, inputSchema: object })
let lists = 0

const answers = {
  initialize: ({ protocolVersion }) => ({ protocolVersion, capabilities: { tools: { listChanged: true } }, serverInfo: { name: 'rude', version: '1' } }),
  'tools/list'() {
    lists++
    if (how === 'dies') setTimeout(() => { process.exit(1) }, 20)
    return { tools: how === 'dies' ? [{ name: 'plain', inputSchema: object }] : odd }
  },
  'tools/call': ({ name }) => (calls[name] ?? calls.plain)(),
}
if (file) writeFileSync(file, `${process.pid}\n`, { flag: 'a' })
if (how === 'mute') {
  process.on('SIGTERM', () => {})
  setInterval(() => {}, 1000)
}
else for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined || !answers[method]) continue
  void (async () => { try { send({ id, result: await answers[method](params) }) } catch (error) { send({ id, error }) } })()
}

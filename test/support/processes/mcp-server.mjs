/** An MCP server on the SDK that does what a test asks of it: comes and goes, talks too much, hangs. Over stdio, or with a port as its argument over streamable HTTP. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'

const text = said => ({ content: [{ type: 'text', text: String(said) }] })
const tools = {
  look: [{ readOnlyHint: true }, () => text('seen')],
  'weird.name/öl': [{}, () => text('weird')],
  [`long_${'x'.repeat(80)}`]: [{}, () => text('long')],
  pid: [{}, () => text(process.pid)],
  env: [{}, () => text(Object.keys(process.env).sort().join(' '))],
  child: [{}, () => text(spawn('sleep', ['300'], { stdio: 'ignore' }).pid)],
  die: [{}, () => { process.stderr.write('I give up\n'); process.exit(3) }],
  big: [{}, () => text('0123456789'.repeat(10_000))],
  fails: [{}, () => ({ ...text('no such thing'), isError: true })],
  mixed: [{}, () => ({ content: [{ type: 'image', data: Buffer.from('a picture').toString('base64'), mimeType: 'image/png' }, { type: 'resource', resource: { uri: 'file:///a.txt', text: 'of a' } }, { type: 'resource_link', uri: 'file:///b.txt', name: 'b' }] })],
  structured: [{}, () => ({ content: [], structuredContent: { degrees: 21 } })],
  grow: [{}, server => { tools.late = [{}, () => text('better than never')]; delete tools.fails; void server.sendToolListChanged(); return text('grown') }],
  slow: [{}, async (_, { signal, sendNotification, _meta }) => {
    for (let i = 1; !signal.aborted; i++) {
      await sendNotification({ method: 'notifications/progress', params: { progressToken: _meta?.progressToken, progress: i, message: `step ${i}` } })
      await sleep(50)
    }
    process.stderr.write('was cancelled\n')
    return text('cancelled')
  }],
  hang: [{}, () => new Promise(() => {})],
}

function serve(transport) {
  const server = new Server({ name: 'scripted', version: '1' }, { capabilities: { tools: { listChanged: true } } })
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => {          // in pages of five
    const all = Object.entries(tools), from = Number(params?.cursor ?? 0)
    return { tools: all.slice(from, from + 5).map(([name, [annotations]]) => ({ name, description: `Does ${name}.`, annotations, inputSchema: { type: 'object' } })), ...(from + 5 < all.length && { nextCursor: String(from + 5) }) }
  })
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => tools[params.name][1](server, extra))
  return server.connect(transport)
}

const [port] = process.argv.slice(2)
if (port === undefined) {
  process.stderr.write('ready\n')
  await serve(new StdioServerTransport())
} else {
  const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js')
  const sessions = new Map()
  createServer(async (request, response) => {
    const id = request.headers['mcp-session-id']
    let transport = sessions.get(id)
    if (!transport) {
      if (id !== undefined) { response.writeHead(404).end('unknown session'); return }
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: id => { sessions.set(id, transport) } })
      await serve(transport)
    }
    await transport.handleRequest(request, response)
  }).listen(Number(port), '127.0.0.1', () => { process.stderr.write('ready\n') })
}

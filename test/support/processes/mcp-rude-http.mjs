/** MCP servers over HTTP, by hand, that do what none should: the first part of the path says what. `/heard/NAME` gives what one was asked, as JSON; its port is the first line of the standard output. */
import { createServer } from 'node:http'

const heard = {}
const answers = {
  initialize: { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 'far', version: '1' } },
  'tools/list': { tools: [{ name: 'look', inputSchema: { type: 'object' } }] },
  'tools/call': { content: [{ type: 'text', text: 'seen' }] },
}
const well = ({ id, method }, response) => {
  if (id === undefined) response.writeHead(method === 'GET' ? 405 : 202).end()
  else response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id, result: answers[method] }))
}
const endless = type => (message, response) => {
  if (message.method !== 'tools/call') return well(message, response)
  response.writeHead(200, { 'content-type': type })
  response.write('data: {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"')
  const piece = 'x'.repeat(1024 * 1024)
  const more = () => { if (!response.destroyed) { heard.sent = (heard.sent ?? 0) + 1; response.write(piece) ? setImmediate(more) : response.once('drain', more) } }
  more()
}
let session = 1
const servers = {
  well,
  refuses: (_, response) => { response.writeHead(401).end('who are you?') },
  nothing: (_, response) => { response.writeHead(404).end('<html>nothing here</html>') },
  breaks: (_, response) => { response.writeHead(500).end('x'.repeat(100_000)) },
  page: (_, response) => { response.writeHead(200, { 'content-type': 'text/html' }).end('<html>welcome</html>') },
  away: (_, response, { headers }) => { response.writeHead(307, { location: `http://localhost:${headers.host.split(':')[1]}/well` }).end() },
  within: (message, response, { url }) => { if (url.endsWith('/')) well(message, response); else response.writeHead(307, { location: `${url}/` }).end() },
  forgets(message, response, { headers }) {
    if (message.method === 'initialize') response.setHeader('mcp-session-id', `s${session}`)
    else if (headers['mcp-session-id'] !== `s${session}`) return response.writeHead(404).end('Session not found')
    if (message.method === 'tools/list' && session === 1) session = 2
    if (message.method === 'DELETE') response.writeHead(200).end()
    else well(message, response)
  },
  mute() {},
  deaf: (message, response) => { if (message.method !== 'tools/call') well(message, response) },
  json: endless('application/json'),
  stream: endless('text/event-stream'),
}
createServer(async (request, response) => {
  const [, name, of] = request.url.split('/')
  if (name === 'heard') return response.end(JSON.stringify(of === 'sent' ? heard.sent : heard[of] ?? []))
  let body = ''
  for await (const chunk of request) body += chunk
  const message = body === '' ? { method: request.method } : JSON.parse(body);
  (heard[name] ??= []).push(message.method)
  servers[name](message, response, request)
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })

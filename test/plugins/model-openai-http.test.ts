/** What Node's own `fetch` would have done for the SDK, and what it costs a start. */
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import { createServer as createPlainServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { brotliCompressSync, constants, createGzip, deflateSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, it } from 'vitest'
import { Headers } from '../../plugins/model-openai/headers.js'
import { send, type Answer } from '../../plugins/model-openai/http.js'
import { place } from '../support/hx.js'
import { startScriptedModel } from '../support/scripted-model.js'

const TLS = fileURLToPath(new URL('../fixtures/tls/', import.meta.url))
const secrets = { key: readFileSync(join(TLS, 'key.pem')), cert: readFileSync(join(TLS, 'cert.pem')) }
const EVENTS = 'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":"over TLS"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'

const open: Server[] = []
afterEach(() => { for (const server of open.splice(0)) { server.close(); (server as Partial<ReturnType<typeof createServer>>).closeAllConnections?.() } })
async function listening<S extends Server>(server: S, host = '127.0.0.1'): Promise<number> {
  open.push(server)
  await once(server.listen(0, host), 'listening')
  return (server.address() as AddressInfo).port
}
const serving = async (answer: RequestListener) => `http://127.0.0.1:${await listening(createServer(answer))}/v1`
async function textOf({ body }: Answer): Promise<string> {
  let text = ''
  for await (const piece of body!) text += String(piece)
  return text
}

describe('an exchange over HTTP', () => {
  it('undoes what a gateway compressed, one coding or several', async () => {
    const coded: Record<string, Buffer> = { gzip: gzipSync('said'), 'X-Gzip': gzipSync('said'), deflate: deflateSync('said'), br: brotliCompressSync('said'), 'deflate, br': brotliCompressSync(deflateSync('said')), identity: Buffer.from('said') }
    const url = await serving(({ url }, response) => { const coding = decodeURIComponent(url!.split('?')[1]!); response.writeHead(200, { 'content-encoding': coding }).end(coded[coding]) })
    for (const coding of Object.keys(coded)) expect([coding, await textOf(await send(`${url}?${encodeURIComponent(coding)}`, {}))]).toEqual([coding, 'said'])
  })
  it('hands on each piece of a compressed stream when it comes', async () => {
    const zip = createGzip({ flush: constants.Z_SYNC_FLUSH })
    const { body } = await send(await serving((_, response) => { zip.pipe(response.writeHead(200, { 'content-encoding': 'gzip' })); zip.write('first') }), {})
    const pieces = body![Symbol.asyncIterator]()
    expect(String((await pieces.next()).value)).toBe('first')               // nothing more was sent
    zip.end('second')
    expect(String((await pieces.next()).value)).toBe('second')
    expect((await pieces.next()).done).toBe(true)
  })
  it('fails over a compressed body that is cut or is none', async () => {
    const cut = await serving((_, response) => { response.writeHead(200, { 'content-encoding': 'gzip' }); response.write(gzipSync('x'.repeat(9)).subarray(0, 12), () => { response.destroy() }) })
    const none = await serving((_, response) => { response.writeHead(200, { 'content-encoding': 'gzip' }).end('plain') })
    await expect(textOf(await send(cut, {}))).rejects.toThrow()
    await expect(textOf(await send(none, {}))).rejects.toMatchObject({ code: 'Z_DATA_ERROR' })
  })
  it('reaches an address of IPv6', async () => {
    const port = await listening(createServer((_, response) => { response.end('six') }), '::1')
    expect(await textOf(await send(`http://[::1]:${port}/`, {}))).toBe('six')
  })
  it('sends the length of what it sends, in bytes', async () => {
    const url = await serving((request, response) => { response.end(`${request.method} ${request.headers['content-length']} ${request.headers['transfer-encoding']}`) })
    expect(await textOf(await send(url, { method: 'POST', body: 'naïve 👍' }))).toBe('POST 11 undefined')
  })
  it('ends by an abort at any point: before the connection, before an answer, in the middle of one', async () => {
    let asked = () => {}
    const waited = new Promise<void>(resolve => { asked = resolve })
    const url = await serving(({ url }, response) => { if (url === '/v1/body') response.writeHead(200).write('begun'); else asked() })
    await expect(send(url, { signal: AbortSignal.abort() })).rejects.toThrow('aborted')
    const before = new AbortController(), waiting = send(url, { signal: before.signal })
    await waited
    before.abort()
    await expect(waiting).rejects.toThrow('aborted')
    const during = new AbortController(), answer = await send(`${url}/body`, { signal: during.signal })
    const text = textOf(answer).then(() => 'ended', () => 'failed')
    during.abort()
    expect(['ended', 'failed']).toContain(await text)
  })
  it('with a server that answers nonsense, or nothing, is an error with a code', async () => {
    const nonsense = await listening(createPlainServer(socket => { socket.on('error', () => {}).end('SSH-2.0-x\r\n\r\n') }))
    const nothing = await listening(createPlainServer(socket => { socket.on('error', () => {}).once('data', () => { socket.destroy() }) }))
    await expect(send(`http://127.0.0.1:${nonsense}/`, {})).rejects.toMatchObject({ code: expect.stringMatching(/^HPE_/) })
    await expect(send(`http://127.0.0.1:${nothing}/`, {})).rejects.toMatchObject({ code: 'ECONNRESET' })
  })
  it('goes over TLS to a server whose certificate is trusted, and to no other', async () => {
    const port = await listening(createSecureServer(secrets, (request, response) => { request.resume().once('end', () => { response.writeHead(200, { 'content-type': 'text/event-stream' }).end(EVENTS) }) }))
    await expect(send(`https://127.0.0.1:${port}/`, {})).rejects.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' })
    const { hx } = place(), env = { OPENAI_BASE_URL: `https://127.0.0.1:${port}/v1`, OPENAI_API_KEY: 'k' }
    expect(await hx(['agent', 'hello'], { env: { ...env, NODE_EXTRA_CA_CERTS: join(TLS, 'cert.pem') } })).toMatchObject({ code: 0, stdout: 'over TLS\n' })
    expect(await hx(['agent', '--without', 'retry', 'hello'], { env })).toMatchObject({ code: 1, stderr: expect.stringContaining('DEPTH_ZERO_SELF_SIGNED_CERT') })
  })
  it('does not load the `fetch` of Node, nor modules of it that a turn of text has no use for: a start would wait for them', async () => {
    const server = await startScriptedModel(['done']), { hx, folder, write } = place(), loaded = join(folder, 'loaded')
    const asks = write('asks.cjs', `process.on('exit', () => { require('node:fs').writeFileSync(${JSON.stringify(loaded)}, process.moduleLoadList.join('\\n')) })`)
    try {
      expect(await hx(['agent', 'hello'], { env: { OPENAI_BASE_URL: server.url, OPENAI_API_KEY: 'k', NODE_OPTIONS: `--require=${asks}` } })).toMatchObject({ code: 0, stdout: 'done\n' })
    } finally { await server.close() }
    expect(readFileSync(loaded, 'utf8')).not.toMatch(/undici|readablestream|NativeModule (?:crypto|worker_threads|v8|zlib|https)$/m)
  })
})

describe('headers', () => {
  it('know no case, join what comes twice, and are listed as HTTP has them', () => {
    const headers = new Headers([['Accept', ' a '], ['accept', 'b'], ['X-One', '1']])
    expect([...headers]).toEqual([['accept', 'a, b'], ['x-one', '1']])
    headers.set('ACCEPT', 'c')
    headers.delete('x-ONE')
    expect([[...headers.entries()], headers.get('Accept'), headers.has('x-one'), headers.get('x-one')]).toEqual([[['accept', 'c']], 'c', false, null])
  })
})

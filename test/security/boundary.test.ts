import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { request, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo } from 'node:net'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { App } from '../../core/app.js'
import { endpointOf, readToken, securedFolder, writeToken } from '../../core/daemon/endpoint.js'
import { OPERATIONS } from '../../core/daemon/openapi.js'
import { HEADERS, PROTOCOL, ROUTES } from '../../core/daemon/protocol.js'
import { listenTcp, routes } from '../../core/daemon/server.js'
import { parseConfig } from '../../core/loader/config.js'
import { daemon, endpoint } from '../support/daemon.js'
import { folder } from '../support/folder.js'

const TOKEN = 't'.repeat(43), GOOD = { [HEADERS.authorization]: `Bearer ${TOKEN}`, [HEADERS.protocol]: String(PROTOCOL) }
/** An app that notes whatever is asked of it. */
function untouched() {
  const touched: PropertyKey[] = []
  const app = new Proxy({}, { get: (_, key) => { touched.push(key); return () => ({}) } }) as App
  return { touched, http: routes(app, async () => TOKEN, () => { touched.push('stop') }) }
}
const served = () => untouched().http.routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => ({ method, path, name: `${method} ${path}` }))

describe('every route of the daemon', () => {
  it('is in this table', () => {
    expect(new Set(served().map(({ name }) => name)).size).toBe(OPERATIONS.length)
    expect(served().length).toBeGreaterThanOrEqual(Object.keys(ROUTES).length - 1)
  })
  it.each(served())('$name does nothing and says 401 without the token, whatever stands in its place', async ({ method, path }) => {
    const bare = path === ROUTES.live
    for (const authorization of [undefined, '', 'Bearer', 'Bearer ', 'Bearer wrong', `bearer ${TOKEN}`, `Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, TOKEN, `Basic ${TOKEN}`]) {
      const { http, touched } = untouched()
      const answer = await http.request(path.replace(/:\w+/g, 'x'), { method, headers: { ...(authorization !== undefined && { authorization }), [HEADERS.protocol]: String(PROTOCOL), 'content-type': 'application/json' }, ...(method === 'POST' && { body: '{}' }) }, {})
      expect([authorization, answer.status, touched]).toEqual([authorization, bare ? 204 : 401, []])
      if (bare) expect(await answer.text()).toBe('')
    }
    for (const other of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'HEAD', method === 'GET' ? 'POST' : 'GET']) {
      const { http, touched } = untouched()
      const answer = await http.request(path.replace(/:\w+/g, 'x'), { method: other }, {})
      expect([other, touched]).toEqual([other, []])
      expect(answer.headers.get('access-control-allow-origin')).toBeNull()
      if (!bare) expect([other, answer.status]).toEqual([other, 401])
    }
  })
  it('is refused with 429 after ten wrong tokens within a minute, and whoever has the right one is not held up', async () => {
    const { http } = untouched(), status = async (headers: Record<string, string>) => (await http.request(ROUTES.status, { headers }, {})).status
    const seen = []
    for (let i = 0; i < 13; i++) seen.push(await status({ authorization: `Bearer ${i}` }))
    expect(seen).toEqual([...Array<number>(10).fill(401), 429, 429, 429])
    expect(await status(GOOD)).toBe(200)
    expect((await http.request(ROUTES.status, {}, {})).headers.get('retry-after')).toBe('60')
  })
  it('takes no scope from a client: whose prompt it is, how deep, who approves and in whose name is core\'s to say', async () => {
    const run = { prompt: 'go', cwd: '/tmp' }, answer = { answer: 'once' }
    const tries: [path: string, body: object][] = [
      ...[{ source: { kind: 'user' } }, { parent: { session: 'x', depth: 0 } }, { depth: 0 }, { approver: true }, { plugin: 'permission' }, { scope: 'host' }, { turn: 1 }].map((more): [string, object] => [ROUTES.runs, { ...run, ...more }]),
      [ROUTES.sessions, { cwd: '/tmp', parent: 'x' }], [ROUTES.sessions, { cwd: '/tmp', id: 'mine' }],
      ...[{ by: 'user' }, { session: 'another' }, { plugin: 'permission' }, { call: { name: 'bash', arguments: {} } }].map((more): [string, object] => [ROUTES.approval, { ...answer, ...more }]),
      [ROUTES.approval, { answer: 'yes' }], [ROUTES.steer, { prompt: 'x', source: { kind: 'plugin', id: 'p' } }],
    ]
    for (const [path, body] of tries) {
      const { http, touched } = untouched()
      const { status } = await http.request(path.replace(/:\w+/g, 'x'), { method: 'POST', headers: { ...GOOD, 'content-type': 'application/json' }, body: JSON.stringify(body) }, {})
      expect([body, status, touched.filter(key => key !== 'begin')]).toEqual([body, 400, []])       // which is looked up before its body is read, and not called
    }
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', 'application/jsonp', '']) {
      const { http, touched } = untouched()
      const { status } = await http.request(ROUTES.runs, { method: 'POST', headers: { ...GOOD, 'content-type': type }, body: JSON.stringify(run) }, {})
      expect([type, status, touched]).toEqual([type, 415, []])
    }
  })
  it('has a token that no empty or short file stands for', async () => {
    for (const token of [undefined, '']) expect((await routes({} as App, async () => token || undefined, () => {}).request(ROUTES.status, { headers: { authorization: `Bearer ${token ?? ''}` } }, {})).status).toBe(401)
  })
})

describe('a running daemon', () => {
  it('takes another token at once, none without its file, and never turns a connection into another protocol', async () => {
    const here = await daemon(['hello'], { 'harness.config.yaml': 'plugins: [model-offline]\n' })
    const { socket, token } = endpoint(here), file = socket.replace('.sock', '.token')
    const status = async (secret: string): Promise<number> => (await here.open(ROUTES.status, { headers: { [HEADERS.authorization]: `Bearer ${secret}` } })).resume().statusCode!
    expect([await status(token), await status(TOKEN)]).toEqual([200, 401])
    writeFileSync(file, TOKEN)
    expect([await status(TOKEN), await status(token)]).toEqual([200, 401])
    writeFileSync(file, '')
    expect(await status('')).toBe(401)
    writeFileSync(file, token)
    expect((await here.hx(['status'])).code).toBe(0)
    const said = (secret: string): Promise<string> => new Promise((resolve, reject) => {
      let text = ''
      const raw = connect(socket, () => { raw.write(`GET ${ROUTES.status} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nauthorization: Bearer ${secret}\r\n${HEADERS.protocol}: ${PROTOCOL}\r\n\r\n`) })
      raw.setEncoding('utf8').on('data', part => { text += part; if (text.includes('\r\n\r\n')) { raw.destroy(); resolve(text.split('\r\n')[0]!) } }).on('error', reject)
    })
    expect(await said('wrong')).toMatch(/^HTTP\/1\.1 4(01|29)/)
    expect(await said(token)).toMatch(/^HTTP\/1\.1 200/)
  })
})

describe('the listener on the loopback', () => {
  it('answers to its three literal names with its port, to no other host, and to no page of a browser', async () => {
    const server = await listenTcp(untouched().http, { host: '127.0.0.1', port: 0 })
    onTestFinished(() => { server.close() })
    const { port } = server.address() as AddressInfo
    const ask = (headers: Record<string, string>): Promise<IncomingMessage> => new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port, path: ROUTES.status, agent: false, headers: { ...GOOD, ...headers } }, response => { resolve(response.resume()) }).on('error', reject).end()
    })
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]) expect((await ask({ host })).statusCode, host).toBe(200)
    const hosts = ['localhost', '127.0.0.1', `localhost.evil.com:${port}`, `127.evil.com:${port}`, `127.0.0.1.evil.com:${port}`, `0.0.0.0:${port}`, `127.1:${port}`, `127.0.0.2:${port}`, `2130706433:${port}`, `0x7f.1:${port}`, `localhost.:${port}`, `evil@localhost:${port}`, `localhost:${port + 1}`, `[::]:${port}`, `[::ffff:127.0.0.1]:${port}`, `LOCALHOST.evil:${port}`, 'evil.com']
    for (const host of hosts) expect([400, 403], host).toContain((await ask({ host })).statusCode)
    for (const origin of ['null', 'http://evil.com', `http://localhost:${port}`, `http://127.0.0.1:${port}`, 'file://', 'chrome-extension://x', '']) {
      const answer = await ask({ host: `localhost:${port}`, origin })
      expect([origin, answer.statusCode, answer.headers['access-control-allow-origin']]).toEqual([origin, 403, undefined])
    }
  })
  it('asks nothing of the host for what is no plain request of ours: two requests in one, two hosts, foreign addresses, upgrades, endless headers, preflights', async () => {
    const { http, touched } = untouched(), server = await listenTcp(http, { host: '127.0.0.1', port: 0 })
    onTestFinished(() => { server.close() })
    const { port } = server.address() as AddressInfo, host = `host: localhost:${port}`, good = Object.entries(GOOD).map(([name, value]) => `${name}: ${value}`)
    /** The status lines of all that is answered, until the other side is done. */
    const said = (...lines: string[]): Promise<string[]> => new Promise(resolve => {
      let text = ''
      const raw = connect(port, '127.0.0.1', () => { raw.write(lines.join('\r\n')); raw.end() })
      raw.setEncoding('latin1').on('data', part => { text += part }).on('error', () => {}).on('close', () => { resolve(text.match(/^HTTP\/1\.1 \d+/gm) ?? []) })
    })
    const get = `GET ${ROUTES.status} HTTP/1.1`, post = `POST ${ROUTES.runs} HTTP/1.1`, json = 'content-type: application/json', run = '{"prompt":"x","cwd":"/tmp"}', hidden = [post, host, ...good, json, `content-length: ${run.length}`, '', run].join('\r\n')
    expect(await said(get, host, ...good, 'connection: close', '', '')).toEqual(['HTTP/1.1 200'])      // so the rest is refused for what it is
    touched.length = 0
    const tries: readonly (readonly string[])[] = [
      [post, host, json, `content-length: ${hidden.length}`, 'transfer-encoding: chunked', '', '0', '', hidden], [post, host, json, 'transfer-encoding: chunked', 'transfer-encoding: identity', '', '0', '', ''], [post, host, json, 'content-length: 4', 'content-length: 5', '', 'xxxxx'],
      [post, host, json, 'transfer-encoding : chunked', '', '0', '', ''], [post, host, json, 'transfer-encoding: xchunked', '', '0', '', ''], [post, host, json, 'content-length: +5', '', 'xxxxx'], [post, host, ...good, json, 'transfer-encoding: chunked', '', 'zz', 'x', '0', '', ''],
      [get, ...good, '', ''], [get, host, 'host: evil.com', ...good, '', ''], [get, 'host: evil.com', host, ...good, '', ''], [get, `host: localhost:${port}@evil.com`, ...good, '', ''], [get, `host: evil.com/localhost:${port}`, ...good, '', ''],
      [`GET http://evil.com${ROUTES.status} HTTP/1.1`, 'host: evil.com', ...good, '', ''], [`GET http://evil.com${ROUTES.status} HTTP/1.1`, host, 'origin: http://evil.com', ...good, '', ''], [`CONNECT evil.com:443 HTTP/1.1`, host, ...good, '', ''], [`TRACE ${ROUTES.status} HTTP/1.1`, host, ...good, '', ''],
      [`OPTIONS ${ROUTES.runs} HTTP/1.1`, host, 'origin: http://evil.com', 'access-control-request-method: POST', 'access-control-request-headers: authorization', '', ''], [`OPTIONS * HTTP/1.1`, host, '', ''], [get, host, ...good.map(line => line.replace(': ', ':\u0000 ')), '', ''],
      [get, host, ...good, 'connection: upgrade', 'upgrade: websocket', 'origin: http://evil.com', 'sec-websocket-version: 13', 'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==', '', ''], [get, host, ...good, `x: ${'x'.repeat(20_000)}`, '', ''], [get, host, ...good, ...Array.from({ length: 3000 }, (_, i) => `x${i}: y`), '', ''],
      [`GET ${'/x'.repeat(20_000)} HTTP/1.1`, host, ...good, '', ''], ['GET / HTTP/0.9', '', ''], ['\u0016\u0003\u0001\u0002\u0000\u0001', ''], ['PRI * HTTP/2.0', '', 'SM', '', ''],
    ]
    const passed = (await Promise.all(tries.map(async lines => ({ lines: lines.map(line => line.slice(0, 80)).slice(0, 8), answers: await said(...lines) })))).filter(({ answers }) => answers.some(answer => /1 [123]/.test(answer)))
    expect({ passed, touched }).toEqual({ passed: [], touched: [] })
  })
  it('is bound by a config to a literal loopback address and nothing else', () => {
    for (const host of ['0.0.0.0', '::', 'localhost', '127.0.0.2', '127.1', '127.0.0.1.evil.com', '192.168.0.1', '::ffff:127.0.0.1', '']) expect(parseConfig(`server: { tcp: { port: 4000, host: ${JSON.stringify(host)} } }\n`, 'x').problems, host).toHaveLength(1)
    for (const host of ['127.0.0.1', '::1']) expect(parseConfig(`server: { tcp: { port: 4000, host: "${host}" } }\n`, 'x').problems, host).toEqual([])
  })
})

describe('the run folder', () => {
  const at = () => { const made = folder(); return { ...made, run: endpointOf(made.at('run'), '/x/harness.config.yaml') } }
  it('is refused when others could have prepared it, and no token is read there', async () => {
    for (const prepare of [
      (path: string) => { mkdirSync(`${path}-other`, { mode: 0o700 }); symlinkSync(`${path}-other`, path) },
      (path: string) => { mkdirSync(path); chmodSync(path, 0o770) },
      (path: string) => { mkdirSync(path); chmodSync(path, 0o707) },
      ...process.getuid?.() === 0 ? [(path: string) => { mkdirSync(path, { mode: 0o700 }); chownSync(path, 12345, 12345) }] : [],
    ]) {
      const { run } = at()
      prepare(run.folder)
      await expect(securedFolder(run)).rejects.toThrow(/is not a folder|belongs to another user|can be written to by others/)
      await writeToken(run)
      expect(await readToken(run)).toBeUndefined()
    }
  })
  it('has a token of 32 random bytes that is a plain file of ours, or none', async () => {
    const { run, write } = at()
    await securedFolder(run)
    await writeToken(run)
    const first = await readToken(run)
    expect(Buffer.from(first!, 'base64url')).toHaveLength(32)
    await writeToken(run)
    expect(await readToken(run)).not.toBe(first)
    const secret = readFileSync(run.token, 'utf8')
    rmSync(run.token)
    symlinkSync(write('elsewhere', secret), run.token)
    expect(await readToken(run)).toBeUndefined()
    rmSync(run.token)
    writeFileSync(run.token, 'short')
    expect(await readToken(run)).toBeUndefined()
  })
  it('is refused when its socket path is longer than the system takes', async () => {
    await expect(securedFolder(endpointOf(`/tmp/${'x'.repeat(90)}`, '/x'))).rejects.toThrow('longer than 100 bytes')
  })
})

import { readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { request } from 'node:http'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { HEADERS, PROTOCOL, ROUTES } from '../../core/daemon/protocol.js'
import { place, until, type Place } from '../support/hx.js'
import { OPERATIONS } from '../../core/daemon/openapi.js'
import { routes } from '../../core/daemon/server.js'
import type { App } from '../../core/app.js'
import { startScriptedModel } from '../support/scripted-model.js'

const CONFIG = 'plugins: [hook-log, tool-fs, model-openai, model-offline]\n'
interface Answer { readonly status: number; readonly headers: Record<string, unknown>; readonly body: string }
interface Sent { readonly method?: string; readonly path: string; readonly headers?: Record<string, string>; readonly body?: string }

async function daemon(env: Record<string, string> = {}, files: Record<string, string> = {}) {
  const here = place({ 'harness.config.yaml': CONFIG, ...files })
  onTestFinished(async () => { await here.hx(['stop']) })
  const started = await here.hx(['start', '--trust'], { env })
  expect(started).toMatchObject({ code: 0 })
  const { run, token, socket } = endpoint(here)
  const ask = ({ method = 'GET', path, headers, body }: Sent): Promise<Answer> => new Promise((resolve, reject) => {
    const sent = request({ socketPath: socket, method, path, agent: false, headers: headers ?? { [HEADERS.authorization]: `Bearer ${token}`, [HEADERS.protocol]: String(PROTOCOL), 'content-type': 'application/json' } }, response => {
      let text = ''
      response.setEncoding('utf8').on('data', chunk => { text += chunk }).on('end', () => { resolve({ status: response.statusCode!, headers: response.headers, body: text }) })
    })
    sent.on('error', reject).end(body)
  })
  return { ...here, run, socket, token, ask, json: async (sent: Sent) => JSON.parse((await ask(sent)).body) as Record<string, unknown> }
}
function endpoint({ env }: Place) {
  const run = join(env['HX_HOME']!, 'run'), name = readdirSync(run).find(file => file.endsWith('.sock'))!
  return { run, socket: join(run, name), token: readFileSync(join(run, name.replace('.sock', '.token')), 'utf8') }
}

describe('the boundary of the daemon', () => {
  it('is a socket and a token for its owner alone, in a folder of its own', async () => {
    const { run, socket } = await daemon()
    expect(statSync(run).mode & 0o777).toBe(0o700)
    for (const file of [socket, socket.replace('.sock', '.token')]) expect(statSync(file).mode & 0o777).toBe(0o600)
  })
  it('refuses another protocol, and says what it speaks', async () => {
    const { ask, token } = await daemon()
    const { status, headers, body } = await ask({ path: ROUTES.status, headers: { [HEADERS.authorization]: `Bearer ${token}`, [HEADERS.protocol]: '99' } })
    expect(status).toBe(426)
    expect(headers[HEADERS.protocol]).toBe(String(PROTOCOL))
    expect(body).toContain('protocol_mismatch')
  })
  it('takes no unknown field, no missing one, no text for JSON, and no body over its limit', async () => {
    const { ask, token, folder } = await daemon()
    const run = (body: string, type = 'application/json') => ask({ method: 'POST', path: ROUTES.runs, body, headers: { [HEADERS.authorization]: `Bearer ${token}`, [HEADERS.protocol]: String(PROTOCOL), 'content-type': type } })
    expect((await run(JSON.stringify({ prompt: 'hi', cwd: folder, model: 'offline', sudo: true }))).body).toContain('sudo')
    expect((await run(JSON.stringify({ cwd: folder }))).body).toContain('prompt')
    expect((await run('{')).status).toBe(400)
    expect((await run(JSON.stringify({ prompt: 'hi', cwd: folder }), 'text/plain')).status).toBe(415)
    expect((await run(JSON.stringify({ prompt: 'x'.repeat(2_000_000), cwd: folder }))).status).toBe(413)
    expect((await ask({ path: '/v1/nothing' })).status).toBe(404)
  })
})

describe('what a client sends', () => {
  const talk = (socket: string, text: string): Promise<string> => new Promise(resolve => {
    let said = ''
    const client = connect(socket).setEncoding('latin1')
    client.on('data', chunk => { said += chunk }).on('error', () => {}).on('close', () => { resolve(said) })
    client.write(text)
  })
  it('may come in pieces of unknown length, up to the limit, or have no body at all, and is told what is missing', async () => {
    const { socket, token, folder } = await daemon()
    const head = (method: string, path: string) => `${method} ${path} HTTP/1.1\r\nhost: x\r\n${HEADERS.authorization}: Bearer ${token}\r\n${HEADERS.protocol}: ${PROTOCOL}\r\nconnection: close\r\n`
    const pieces = (...texts: string[]) => `content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n${[...texts, ''].map(text => `${text.length.toString(16)}\r\n${text}\r\n`).join('')}`
    expect(await talk(socket, head('POST', ROUTES.sessions) + pieces('{"cwd":', JSON.stringify(folder), '}'))).toMatch(/^HTTP\/1\.1 200 .*"session":"\d+-/s)
    expect(await talk(socket, head('POST', ROUTES.sessions) + pieces(...Array.from({ length: 20 }, () => ' '.repeat(65_000))))).toMatch(/^HTTP\/1\.1 413 .*at most 1048576 bytes/s)
    expect(await talk(socket, `${head('POST', ROUTES.sessions)}\r\n`)).toMatch(/^HTTP\/1\.1 415 .*must be application\/json/s)
    expect(await talk(socket, `${head('DELETE', ROUTES.status)}\r\n`)).toMatch(/^HTTP\/1\.1 404 .*there is no DELETE \/v1\/status/s)
  })
  it('is not worked off without end when it never reads: a few requests at once, and who sends more loses the connection', async () => {
    const { socket, token } = await daemon()
    const one = `GET ${ROUTES.status} HTTP/1.1\r\nhost: x\r\n${HEADERS.authorization}: Bearer ${token}\r\n${HEADERS.protocol}: ${PROTOCOL}\r\n`
    expect((await talk(socket, `${one}\r\n`.repeat(3) + `${one}connection: close\r\n\r\n`)).match(/HTTP\/1\.1 200/g)).toHaveLength(4)
    expect((await talk(socket, `${one}\r\n`.repeat(1000))).match(/HTTP\/1\.1 200/g)?.length ?? 0).toBeLessThan(200)
  })
})

describe('the health of a daemon', () => {
  it('is told in one word to everybody, and to whoever has the token whether prompts would be kept', async () => {
    const { ask, json, env } = await daemon()
    expect(await ask({ path: '/healthz', headers: {} })).toMatchObject({ status: 204, body: '' })
    expect((await ask({ path: '/readyz', headers: {} })).status).toBe(401)
    expect(await json({ path: '/readyz' })).toMatchObject({ ready: true, store: 'writable', config: { state: 'in force' } })
    const sessions = join(env['HX_HOME']!, 'state', 'sessions')
    rmSync(sessions, { recursive: true, force: true })
    writeFileSync(sessions, 'in the way')
    const { status, body } = await ask({ path: '/readyz' })
    expect([status, JSON.parse(body)]).toEqual([503, expect.objectContaining({ ready: false, store: expect.stringContaining('can not be used') as unknown })])
    rmSync(sessions)
    expect((await ask({ path: '/readyz' })).status).toBe(200)
  })
  it('has what waits and what is open', async () => {
    const { json } = await daemon()
    expect(await json({ path: ROUTES.status })).toMatchObject({ sessions: 0, queued: 0, asks: 0, connections: 1, restarts: 0, loopDelayP99Ms: expect.any(Number) as unknown })
  })
})

describe('a daemon in the background', () => {
  it('serves commands until it is stopped, and leaves nothing', async () => {
    const { hx, run, json } = await daemon()
    expect((await hx(['start', '--trust'])).stderr).toContain('runs already')
    expect(await json({ path: ROUTES.status })).toMatchObject({ plugins: 4, sessions: 0, reloads: 0, config: { state: 'in force' } })
    const answered = await hx(['agent', '--offline', 'Read harness.config.yaml'])
    expect(answered.code).toBe(0)
    expect(answered.stdout).toContain('harness.config.yaml')
    expect(answered.stderr).toContain('> read_file {"path":"harness.config.yaml"}')
    expect(answered.stderr).not.toContain('[HOOK]')             // plugins print where they run
    expect((await hx(['stop'])).code).toBe(0)
    expect(readdirSync(run)).toEqual([])
    expect((await hx(['status'])).code).toBe(1)
    expect((await hx(['stop'])).code).toBe(0)
  })
  it('has the keys of the shell that started it, and no other process sees them', async () => {
    const model = await startScriptedModel(['hello'])
    onTestFinished(() => model.close())
    const { hx, json } = await daemon({ OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'hx-canary-1', OPENAI_MODEL: 'scripted' })
    const { pid } = await json({ path: ROUTES.status }) as { pid: number }
    if (process.platform === 'linux') expect(readFileSync(`/proc/${pid}/environ`, 'utf8')).not.toContain('canary')
    expect((await hx(['agent', 'hi'])).stdout).toBe('hello\n')
    expect(model.requests[0]!.headers.authorization).toBe('Bearer hx-canary-1')
  })
  it('prints the same lines of the log as a run in process', async () => {
    const { hx } = await daemon()
    const events = (await hx(['agent', '--json', '--offline', 'hi'])).stdout.trim().split('\n').map(line => JSON.parse(line) as { seq: number; type: string })
    expect(events[0]).toMatchObject({ seq: 1, type: 'session' })
    expect(events.at(-1)!.type).toBe('turn-end')
    expect(events.map(event => event.seq)).toEqual(events.map((_, i) => i + 1))
  })
  it('aborts a turn when its client is stopped with Ctrl-C', async () => {
    const model = await startScriptedModel([{ hang: 'body' }])
    onTestFinished(() => model.close())
    const { start, hx, json } = await daemon({ OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k' })
    const running = start(['agent', 'wait'])
    await until(() => model.requests.length > 0)
    running.child.kill('SIGINT')
    expect((await running.ended).code).toBe(130)
    await until(async () => (await json({ path: ROUTES.status }) as { sessions: number }).sessions === 0)
    expect((await hx(['sessions'])).stdout).toContain('aborted')
  })
  it('says why when it can not start', async () => {
    const { hx } = place({ 'harness.config.yaml': 'plugns: []\n' })
    const untrusted = await hx(['start'])
    expect(untrusted.code).toBe(3)
    const wrong = await hx(['start', '--trust'])
    expect(wrong.code).toBe(2)
    expect(wrong.stderr).toContain('did you mean "plugins"?')
  })
})

describe('the description of the socket', () => {
  it('has every route that is served, and no other', () => {
    const served = routes({} as App, async () => 'token', () => {}).routes.filter(({ method }) => method !== 'ALL').map(({ method, path }) => `${method} ${path}`)
    expect(OPERATIONS.map(({ method, route }) => `${method.toUpperCase()} ${ROUTES[route]}`).sort()).toEqual([...new Set(served)].sort())
    expect(new Set(OPERATIONS.map(({ route }) => route)).size).toBe(Object.keys(ROUTES).length)
  })
  it('is served, and printed by hx config schema --api, with the schemas that bodies are read with', async () => {
    const { hx, json } = await daemon()
    const served = await json({ path: ROUTES.openapi }) as { openapi: string; paths: Record<string, { post?: { requestBody: { content: Record<string, { schema: { properties: object; required: string[]; additionalProperties: boolean } }> } } }> }
    expect(JSON.parse((await hx(['config', 'schema', '--api'])).stdout)).toEqual(served)
    expect(served.openapi).toBe('3.1.0')
    const { schema } = served.paths['/v1/runs']!.post!.requestBody.content['application/json']!
    expect(schema).toMatchObject({ required: ['prompt', 'cwd'], additionalProperties: false, properties: { detach: { type: 'boolean' }, mode: { enum: ['default', 'accept-edits', 'plan', 'yes'] } } })
  })
})

describe('a daemon with server.tcp', () => {
  const tcp = async () => {
    const probe = createServer()
    await new Promise<void>(resolve => probe.listen(0, '127.0.0.1', resolve))
    const { port } = probe.address() as AddressInfo
    await new Promise(resolve => probe.close(resolve))
    return port
  }
  it('answers on the loopback to a literal name with the token, and to no page of a browser', async () => {
    const port = await tcp()
    const { token } = await daemon({}, { 'harness.config.yaml': `server: { tcp: { port: ${port} } }\n${CONFIG}` })
    const status = (headers: Record<string, string>): Promise<number> => new Promise((resolve, reject) => {
      request({ host: '127.0.0.1', port, path: ROUTES.status, headers: { [HEADERS.authorization]: `Bearer ${token}`, [HEADERS.protocol]: String(PROTOCOL), ...headers } }, response => { resolve(response.resume().statusCode!) }).on('error', reject).end()
    })
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, `[::1]:${port}`]) expect(await status({ host }), host).toBe(200)
    for (const host of ['localhost.evil.com', `localhost.evil.com:${port}`, `127.evil.com:${port}`, `0.0.0.0:${port}`, '127.0.0.1', 'localhost:1']) expect(await status({ host }), host).toBe(403)
    for (const origin of ['http://evil.com', 'null', `http://127.0.0.1:${port}`]) expect(await status({ host: `127.0.0.1:${port}`, origin }), origin).toBe(403)
    expect(await status({ host: `127.0.0.1:${port}`, [HEADERS.authorization]: 'Bearer wrong' })).toBe(401)
  })
  it('moves with an edit of the config, stays where it was when that can not be, and hx status says where it is', async () => {
    const [first, second] = [await tcp(), await tcp()], taken = createServer()
    await new Promise<void>(resolve => taken.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => { taken.close() })
    const one = await daemon({}, { 'harness.config.yaml': `server: { tcp: { port: ${first} } }\n${CONFIG}` })
    const answers = (port: number) => new Promise<boolean>(resolve => { request({ host: '127.0.0.1', port, path: ROUTES.live, agent: false }, response => { resolve(response.resume().statusCode === 204) }).on('error', () => { resolve(false) }).end() })
    const edit = (server: string) => { one.write('harness.config.yaml', `${server}\n${CONFIG}`) }
    expect(await answers(first)).toBe(true)
    edit(`server: { tcp: { port: ${second} } }`)
    await until(async () => await answers(second) && !await answers(first))
    edit(`server: { tcp: { port: ${(taken.address() as AddressInfo).port} } }`)
    await until(async () => String((await one.json({ path: ROUTES.status }))['tcp']).includes('can not be listened on'))
    expect(await answers(second)).toBe(true)
    expect((await one.hx(['status'])).stdout).toContain(`tcp      127.0.0.1:${second}; server.tcp: 127.0.0.1 port`)
    edit('server: {}')
    await until(async () => !await answers(second))
    expect((await one.json({ path: ROUTES.status }))['tcp']).toBeUndefined()
  })
  it('does not start when the port is taken, and says so', async () => {
    const other = createServer()
    await new Promise<void>(resolve => other.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => { other.close() })
    const { hx } = place({ 'harness.config.yaml': `server: { tcp: { port: ${(other.address() as AddressInfo).port} } }\n` })
    expect(await hx(['start', '--trust'])).toMatchObject({ code: 2, stderr: expect.stringContaining('server.tcp: 127.0.0.1 port') as unknown })
    expect((await hx(['status'])).code).toBe(1)
  })
})

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { printable, oneLine } from '../../core/cli/terminal.js'
import type { App } from '../../core/app.js'
import { HEADERS, PROTOCOL, ROUTES } from '../../core/daemon/protocol.js'
import { routes } from '../../core/daemon/server.js'
import { parseLayers } from '../../core/loader/config.js'
import { parseEnvFile } from '../../core/loader/env-file.js'
import { daemon } from '../support/daemon.js'
import { place, until } from '../support/hx.js'
import { startScriptedModel } from '../support/scripted-model.js'

const isClean = () => Object.keys(Object.prototype).length === 0 && ({} as Record<string, unknown>)['polluted'] === undefined

describe('a config that means harm', () => {
  const layer = (text: string) => parseLayers([{ file: 'user', text: 'plugins: [{ name: a, config: { x: 1 } }]\n' }, { file: 'project', text }])
  it.each([
    '__proto__: { polluted: true }', 'constructor: { prototype: { polluted: true } }', 'prototype: { polluted: true }', 'agent: { __proto__: { polluted: true } }', 'agent: { constructor: { prototype: { polluted: true } } }',
    'plugins: [{ name: a, config: { __proto__: { polluted: true } } }]', 'plugins: [{ name: b, config: { deep: { __proto__: { polluted: true } } } }]', 'plugins: [{ name: __proto__ }]', 'plugins: [{ __proto__: { name: b } }]',
    'plugins: [{ name: b, id: __proto__ }]', '"\\u005f_proto__": { polluted: true }', 'a: &a { polluted: true }\n__proto__: *a', 'a: &a { x: 1 }\nagent: { <<: *a }', '!!js/function "f": 1', 'agent: !!python/object:os.system x', 'a: !!binary x',
    '? [a, b]\n: c', 'agent: {maxSteps: 1, maxSteps: 2}', '--- \nplugins: []\n---\nplugins: []', '', 'null', '[]', '"text"', '\u0000', 'plugins:', 'version: 2',
  ])('%j is named as a problem, and changes no prototype', text => {
    const { config, problems } = layer(text)
    expect(isClean()).toBe(true)
    if (text === 'plugins:') return                            // no rows, which says nothing
    expect([config, problems.length > 0]).toEqual([undefined, true])
  })
  it('may carry any name as plain data of a plugin, and nothing else comes of it', () => {
    const { config } = layer('plugins: [{ name: a, config: { constructor: { prototype: { polluted: true } }, toString: 1, hasOwnProperty: 2 } }]\n')
    expect(isClean()).toBe(true)
    expect(config!.plugins[0]!.config).toEqual({ constructor: { prototype: { polluted: true } }, toString: 1, hasOwnProperty: 2 })
    expect(Object.isFrozen(config!.plugins[0]!.config['constructor'])).toBe(true)
  })
  it('is an .env with odd names', () => {
    const values = parseEnvFile('__proto__=x\nconstructor=y\nA=1\n')
    expect([isClean(), Object.getPrototypeOf(values), values['A']]).toEqual([true, null, '1'])
  })
})

it('a request with odd keys is refused before anything is done', async () => {
  const touched: PropertyKey[] = []
  const http = routes(new Proxy({}, { get: (_, key) => { touched.push(key); return () => ({}) } }) as App, async () => 't'.repeat(43), () => {})
  for (const body of ['{"prompt":"x","cwd":"/","__proto__":{"polluted":1}}', '{"prompt":"x","cwd":"/","constructor":{}}', '[]', 'null', '1', '"x"', '{"prompt":1,"cwd":"/"}', '{"prompt":"x","cwd":"relative"}', '{'.repeat(100_000)]) {
    const { status } = await http.request(ROUTES.runs, { method: 'POST', body, headers: { [HEADERS.authorization]: `Bearer ${'t'.repeat(43)}`, [HEADERS.protocol]: String(PROTOCOL), 'content-type': 'application/json' } }, {})
    expect([body.slice(0, 60), status, touched]).toEqual([body.slice(0, 60), 400, []])
  }
  expect(isClean()).toBe(true)
})

describe('text that others wrote', () => {
  /** What a terminal obeys: escapes, other controls but tab and newline, and marks that turn the order of letters. */
  const OBEYED = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/
  it('has nothing in it that a terminal obeys, however it is put together', () => {
    const parts = fc.array(fc.oneof(fc.constantFrom('\u001b', '\u009b', '\u001b]52;c;', '\u0007', '\u001b\\', '\u001b[', '31m', '\u202e', '\r', '\n', '\u001bP', '8;;http://evil\u0007', '\u0090', '\u009d', '\u0000', '\b'), fc.string({ unit: 'binary' })), { maxLength: 20 }).map(all => all.join(''))
    fc.assert(fc.property(parts, text => !OBEYED.test(printable(text)) && !/[\n\r]/.test(oneLine(text))), { numRuns: 500 })
    expect(printable('a\u001b]52;c;ZXZpbA==\u0007b\u001b]8;;http://evil\u001b\\c\u001b[2Jd')).not.toMatch(/ZXZpbA|evil|\[2J/)
  })
  it('reaches neither the terminal nor the log as more than text, from model, tool, plugin or prompt', async () => {
    const bad = '\u001b]52;c;ZXZpbA==\u0007\u001b[2J\u009b31m\u202e\n{"level":"fatal","msg":"forged"}\r'
    const model = await startScriptedModel([{ text: `${bad}hello`, toolCalls: [{ name: `x${bad}`, arguments: { path: bad } }, { name: 'read_file', arguments: { path: `no${bad}` } }] }, `${bad}done`])
    const here = place({ 'harness.config.yaml': 'plugins: [hook-log, loud, tool-fs, model-openai]\n', 'plugins/loud.ts': `export const name = 'loud'\nexport function apply(ctx) { ctx.logger.warn(${JSON.stringify(bad)}) }\n` })
    const env = { OPENAI_BASE_URL: model.url, OPENAI_API_KEY: 'k', OPENAI_MODEL: 'm' }
    const ran = await here.hx(['agent', '--trust', '-v', `go ${bad.replaceAll('\u0000', '')}`], { env })
    const [id] = readdirSync(join(here.env['HX_HOME']!, 'state/sessions')).map(file => file.replace('.jsonl', ''))
    const shown = await here.hx(['sessions', 'show', id!]), listed = await here.hx(['sessions'])
    await model.close()
    for (const { stdout, stderr } of [ran, shown, listed]) expect(`${stdout}${stderr}`.match(OBEYED)).toBeNull()
    expect(ran.stdout).toContain('done')
  })
})

describe('a key of a model', () => {
  it('that is written out in a config stays in that file, whatever is asked and whatever the endpoint answers', async () => {
    const CANARY = 'hx-canary-2c90b7e4', model = await startScriptedModel(Array.from({ length: 2 }, () => ({ status: 401, body: { error: { message: `Incorrect API key provided: ${CANARY}` } } })))
    const config = `plugins:\n  - audit\n  - name: model-openai\n    id: mine\n    config: { id: mine, apiKey: "${CANARY}", baseURL: "${model.url}", model: m, headers: { x-auth: "${CANARY}" } }\n  - name: breaks\n    config: { password: "${CANARY}" }\n`
    const here = place({ 'harness.config.yaml': config, 'plugins/breaks.ts': `export const name = 'breaks'\nexport function apply(ctx, { password }) { ctx.logger.warn('has ' + password) }\n` })
    const said: string[] = []
    for (const args of [['agent', '-v', 'hi'], ['agent', '--json', 'hi'], ['config', 'explain'], ['config', 'explain', '--json'], ['config', 'check'], ['models', '--json'], ['plugins', 'info', 'mine'], ['doctor'], ['permission', 'test', 'ls']]) {
      const { stdout, stderr } = await here.hx(['--trust', ...args])
      said.push(...[stdout, stderr].filter(text => text.includes(CANARY)).map(text => `${args.join(' ')}: ${text.slice(Math.max(0, text.indexOf(CANARY) - 200)).slice(0, 400)}`))
    }
    await model.close()
    expect(said).toEqual([])
    expect(model.requests[0]!.headers.authorization).toBe(`Bearer ${CANARY}`)
    const files = readdirSync(here.env['HX_HOME']!, { recursive: true, withFileTypes: true }).filter(entry => entry.isFile() && !entry.parentPath.includes('code-cache')).map(entry => join(entry.parentPath, entry.name))
    expect(files.filter(file => readFileSync(file, 'latin1').includes(CANARY))).toEqual([])
  }, 60_000)
  it('is found in no file, log, report or output of the whole of it: turns, failures, a crash, a restart', async () => {
    const CANARY = 'hx-canary-7f3e9d1c5b'
    const echo = { status: 401, body: { error: { message: `Incorrect API key provided: ${CANARY}. Authorization: Bearer ${CANARY}` } } }
    const here = await daemon(['hello', { toolCalls: [{ name: 'bash', arguments: { command: 'env; cat /proc/self/environ; cat /proc/$PPID/environ; cat .env' } }] }, 'done', echo, { status: 500, body: CANARY }, 'x'], {
      'harness.config.yaml': 'log: { level: debug }\nplugins:\n  - audit\n  - hook-log\n  - name: breaks\n    config: { token: "${env:HX_TEST_TOKEN}" }\n  - tool-bash\n  - tool-fs\n  - model-openai\n',
      'plugins/breaks.ts': `export const name = 'breaks'\nexport function apply(ctx, { token }) { ctx.logger.info('has ' + token); ctx.on('agent/turn-end', () => { throw new Error('broke with ' + token) }) }\n`,
    }, { OPENAI_API_KEY: CANARY, HX_TEST_TOKEN: `${CANARY}-2` })
    const said: string[] = []
    const hx = async (...args: string[]) => { const { stdout, stderr } = await here.hx(args); said.push(stdout, stderr) }
    for (const task of ['hi', 'look around', 'again']) await hx('agent', '-v', task)
    for (const args of [['plugins', '--json'], ['status', '--json'], ['models', '--json'], ['logs', '-n', '500']]) await hx(...args)
    const { pid } = JSON.parse(said.find(text => text.startsWith('{"pid"'))!) as { pid: number }
    process.kill(pid, 'SIGABRT')
    await until(() => { try { process.kill(pid, 0); return false } catch { return true } })   // ESRCH: it is gone
    await sleep(50)
    await hx('agent', 'after the crash')
    await hx('stop')
    const files = readdirSync(dirname(here.folder), { recursive: true, withFileTypes: true }).filter(entry => entry.isFile()).map(entry => join(entry.parentPath, entry.name))
    expect(files.length).toBeGreaterThan(4)
    const text = (file: string) => { try { return statSync(file).size < 50_000_000 ? readFileSync(file, 'latin1') : '' } catch { return '' } }   // a file of the code cache that was renamed meanwhile
    const found = files.flatMap(file => text(file).split('\n').filter(line => line.includes('hx-canary')).map(line => `${file}: ${line.slice(0, 500)}`))
    expect(found).toEqual([])
    expect(said.filter(text => text.includes('hx-canary'))).toEqual([])
    expect(here.model.requests[0]!.headers.authorization).toBe(`Bearer ${CANARY}`)
    expect(here.model.requests.filter(({ body }) => JSON.stringify(body).includes('hx-canary'))).toEqual([])
  }, 120_000)
})
